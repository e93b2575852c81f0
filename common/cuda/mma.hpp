#pragma once
// Tensor cores (compute capability 8.0 and newer): ldmatrix and mma.sync.m16n8k16. All lanes of a warp call them together.
#include "common/cuda/half.hpp"

namespace flashsteps::gpu {

#if defined(__CUDACC__)
/// @param p  in shared memory
/// @return its address as PTX takes it
__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
#endif

/// Four 8 x 8 matrices of 16-bit elements from shared memory. Lane i gives the address of row i % 8 of matrix i / 8, aligned to 16
/// bytes, and gets of each matrix the elements (i / 4, 2 (i % 4)) and the next.
/// @param r     the matrices, one a register
/// @param row   the address that this lane gives
/// @param site  the line of the call: to be left out
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#else
  cuda_on_cpu::ldmatrix(r, 4, false, row, site);
#endif
}
/// The same of the transposed matrices.
/// @param r     the matrices, one a register
/// @param row   the address that this lane gives
/// @param site  the line of the call: to be left out
__device__ __forceinline__ void ldmatrix_x4_transposed(std::uint32_t (&r)[4], const void* row, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#else
  cuda_on_cpu::ldmatrix(r, 4, true, row, site);
#endif
}
/// Two matrices; lanes 0 to 15 give the addresses.
/// @param r     the matrices, one a register
/// @param row   the address that this lane gives
/// @param site  the line of the call: to be left out
__device__ __forceinline__ void ldmatrix_x2(std::uint32_t (&r)[2], const void* row, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
#else
  cuda_on_cpu::ldmatrix(r, 2, false, row, site);
#endif
}
/// Two transposed matrices.
/// @param r     the matrices, one a register
/// @param row   the address that this lane gives
/// @param site  the line of the call: to be left out
__device__ __forceinline__ void ldmatrix_x2_transposed(std::uint32_t (&r)[2], const void* row, [[maybe_unused]] Site site = here()) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
#else
  cuda_on_cpu::ldmatrix(r, 2, true, row, site);
#endif
}

/// @{
/// c += a b with sums in float: a is 16 x 16, b 16 x 8, c 16 x 8. With g = lane / 4, q = lane % 4, a lane holds
/// - of a: (g, 2q..), (g + 8, 2q..), (g, 2q + 8..), (g + 8, 2q + 8..)    pairs along the row
/// - of b: (2q.., g), (2q + 8.., g)                                      pairs along the column
/// - of c: (g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1)
/// @tparam T     __half or __nv_bfloat16
/// @param c,a    of this lane
/// @param b0,b1  of b, of this lane
/// @param site   the line of the call: to be left out
template <class T>
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, Site site = here());

template <>
__device__ __forceinline__ void mma_16x8x16<__half>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                                    [[maybe_unused]] Site site) {
#if defined(__CUDACC__)
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const std::uint32_t b[2] = {b0, b1};
  cuda_on_cpu::mma_16x8x16(cuda_on_cpu::Element::half, c, a, b, site);
#endif
}
template <>
__device__ __forceinline__ void mma_16x8x16<__nv_bfloat16>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                                           [[maybe_unused]] Site site) {
#if defined(__CUDACC__)
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const std::uint32_t b[2] = {b0, b1};
  cuda_on_cpu::mma_16x8x16(cuda_on_cpu::Element::bfloat16, c, a, b, site);
#endif
}
/// @}

}  // namespace flashsteps::gpu
