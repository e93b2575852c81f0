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
  void* data = nullptr;    ///< the first element
  std::int64_t batch = 0,  ///< stride of batch entries
      head = 0,            ///< of heads
      row = 0;             ///< of rows
};

/// All heads of a forward or a backward pass. Row i sees the keys j <= i + diagonal; without a mask diagonal is seq_k.
struct Problem {
  Tensor q,           ///< queries  [.. Nq x d]
      k,              ///< keys     [.. Nk x d]
      v;              ///< values   [.. Nk x dv]
  Tensor o,           ///< attention  [.. Nq x dv]
      lse;            ///< L          [.. Nq x 1]
  Tensor d_o,         ///< as o; backward only
      dq,             ///< as q; backward only
      dk,             ///< as k; backward only
      dv;             ///< as v; backward only
  int batch = 0,      ///< batch entries
      heads = 0,      ///< query heads
      kv_heads = 0,   ///< heads of K and V
      seq_q = 0,      ///< Nq
      seq_k = 0,      ///< Nk
      head_dim = 0,   ///< d
      value_dim = 0;  ///< dv
  float scale = 1;    ///< tau, the factor of Q K^T
  int diagonal = 0;   ///< row i sees the keys j <= i + diagonal
};

/// A kernel compiled for one tile shape and for head_dim and value_dim of at most `dim`.
struct Compiled {
  Element element;                ///< of Q, K, V and O
  int br,                         ///< queries of a tile
      bc,                         ///< keys of a tile
      dim;                        ///< the most that d and dv may be
  int threads;                    ///< of a block
  std::size_t shared_bytes;       ///< of a block
  int capability;                 ///< of the oldest card that it runs on: 75 for 7.5
  void (*start)(const Problem&);  ///< launches it
};

/// The compiled shapes of one kernel; the first that fits is the default.
using Kernels = std::span<const Compiled>;

}  // namespace flashsteps::gpu
