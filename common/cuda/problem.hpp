#pragma once
// What a kernel is given, as plain data: host code that no CUDA compiler sees includes this too.
#include <cstddef>
#include <cstdint>
#include <span>

namespace flashsteps::gpu {

/// The type of Q, K, V and O in device memory. L, and all that a backward pass takes and gives, are float.
enum class Element { float32, half, bfloat16 };

/// [batch, heads, rows, columns] in device memory. The columns of a row are neighbours; the other strides count elements.
struct Tensor {
  void* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;
};

/// All heads of a forward or a backward pass. Row i sees the keys j <= i + diagonal; without a mask diagonal is seq_k.
struct Problem {
  Tensor q, k, v;            // [.. Nq x d]  [.. Nk x d]  [.. Nk x dv]
  Tensor o, lse;             // [.. Nq x dv] [.. Nq x 1]
  Tensor d_o, dq, dk, dv;    // as o, q, k, v; backward only
  int batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, head_dim = 0, value_dim = 0;
  float scale = 1;
  int diagonal = 0;
};

/// A kernel compiled for one tile shape and for head_dim and value_dim of at most `dim`.
struct Compiled {
  Element element;
  int br, bc, dim;
  int threads;               // of a block
  std::size_t shared_bytes;  // of a block
  int capability;            // of the oldest card that it runs on: 75 for 7.5
  void (*start)(const Problem&);
};

/// The compiled shapes of one kernel; the first that fits is the default.
using Kernels = std::span<const Compiled>;

}  // namespace flashsteps::gpu
