#pragma once
// What the layer tells the tracer. trace_none.cpp answers with nothing, for programs whose kernels are not compiled for tracing.
#include "common/cuda_on_cpu/device.hpp"

namespace flashsteps::cuda_on_cpu::trace {

/// What an access does.
enum class Kind : std::uint8_t { load, store, atomic };

bool is_linked();  ///< @return is there a tracer?
/// A kernel is about to run.
/// @param arguments,bytes  of the kernel: where they lie, and how large they are
void launch_begins(const void* arguments, std::size_t bytes);
void launch_ends();    ///< The kernel has ended. @throws Error says what was found
void launch_failed();  ///< The kernel was abandoned.
/// A block is about to run.
/// @param shared,bytes  its dynamic shared memory
/// @param threads       how many it has
void block_begins(void* shared, std::size_t bytes, int threads);
void barrier();                           ///< All threads of the block have met.
void warp_sync(int warp, unsigned mask);  ///< Lanes have met. @param warp,mask which ones
void warp_done(int warp);                 ///< All its lanes are at a block barrier or at the end. @param warp of the block

/// The layer accesses memory for the kernel.
/// @param bytes  how many
void access(Site, const void*, int bytes, Kind);
/// ldmatrix reads a matrix.
/// @param rows          16 bytes each
/// @param first_thread  the one that gave the first address
void matrix_rows(Site, const void* const rows[8], int first_thread);
/// An asynchronous copy begins.
/// @param to,from           in shared and in global memory
/// @param bytes,read_bytes  to be written, and to be read
void copy_begins(Site, void* to, const void* from, int bytes, int read_bytes);
/// A thread waited for an asynchronous copy.
/// @param to,bytes  what was written
void copy_landed(void* to, int bytes);

/// Messages have a name for device memory.
/// @param bytes,name  how much it is, and its name
void name_memory(void*, std::size_t bytes, const char* name);
void forget_memory(void*) noexcept;  ///< It is about to be given back.

}  // namespace flashsteps::cuda_on_cpu::trace
