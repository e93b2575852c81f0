#pragma once
// What the layer tells the tracer. trace_none.cpp answers with nothing, for programs whose kernels are not compiled for tracing.
#include "common/cuda_on_cpu/device.hpp"

namespace flashsteps::cuda_on_cpu::trace {

enum class Kind : std::uint8_t { load, store, atomic };

bool is_linked();
void launch_begins(const void* arguments, std::size_t bytes);
void launch_ends();  ///< throws what was found
void launch_failed();
void block_begins(void* shared, std::size_t bytes, int threads);
void barrier();
void warp_sync(int warp, unsigned mask);
void warp_done(int warp);  ///< all its lanes are at a block barrier or at the end

void access(Site, const void*, int bytes, Kind);
void matrix_rows(Site, const void* const rows[8], int first_thread);
void copy_begins(Site, void* to, const void* from, int bytes, int read_bytes);
void copy_landed(void* to, int bytes);

void name_memory(void*, std::size_t bytes, const char* name);
void forget_memory(void*) noexcept;

}  // namespace flashsteps::cuda_on_cpu::trace
