#pragma once
// What a step says of itself, as data: the programs, the ladder table and the tests derive the rest from it.
#include "common/attention/head.hpp"
#include "common/cuda/problem.hpp"
#include "common/memory/memory.hpp"
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace flashsteps {

/// What the closed forms depend on: one head, or for groups one key-value head with `group` query heads.
struct HeadSizes {
  Index nq,            ///< queries
      nk,              ///< keys
      d,               ///< elements of a query and of a key
      dv;              ///< elements of a value
  Index br = 1,        ///< queries of a tile
      bc = 1;          ///< keys of a tile
  Index diagonal = 0;  ///< row i sees the keys j <= i + diagonal
  Index group = 1;     ///< query heads that share K and V
  bool d_lse = false;  ///< is dL given?

  Index row_tiles() const { return tile_count(nq, br); }     ///< @return how many tiles cover the queries
  Index column_tiles() const { return tile_count(nk, bc); }  ///< @return how many tiles cover the keys
};

/// Floating-point operations: those of matrix products, and all others. max, add, sub, mul, div, exp and log count 1 each (0.5).
struct Flops {
  Index matmul = 0,  ///< of matrix products
      other = 0;     ///< all others
  /// @param f  is added
  /// @return *this
  Flops& operator+=(const Flops& f) {
    matmul += f.matmul, other += f.other;
    return *this;
  }
  /// @return are both the same?
  bool operator==(const Flops&) const = default;
};

/// What may run in parallel: the heads (FlashAttention-1), or the row tiles of the heads (FlashAttention-2), or groups of heads that
/// share K and V.
enum class Pieces { heads, row_tiles, groups };

/// One algorithm in one number type: a forward pass of one piece, or a backward pass of one group (of one head before step 08).
template <class T> struct Algorithm {
  /// O and L of a head or of some of its rows; nullptr for a backward pass.
  void (*forward)(const Head<T>&, Memory&) = nullptr;
  /// dQ, dK and dV of the heads that share K and V; nullptr for a forward pass.
  void (*backward)(std::span<const Head<T>>, std::span<const Gradients<T>>, Memory&) = nullptr;
};

/// One way in which a step computes: its code, and the closed forms of its costs for one head (for groups: one group).
struct Form {
  std::string name;                               ///< "standard", "column order"
  std::string home;                               ///< the step whose code it is: "05_fa2_loop_swap"
  Pieces pieces = Pieces::heads;                  ///< what runs in parallel
  bool tiled = false;                             ///< does it take Br and Bc?
  Algorithm<float> in_float;                      ///< its code
  Algorithm<double> in_double;                    ///< its code
  Counts (*traffic)(const HeadSizes&) = nullptr;  ///< elements moved
  Index (*on_chip)(const HeadSizes&) = nullptr;   ///< the most elements on chip at once
  Flops (*flops)(const HeadSizes&) = nullptr;     ///< operations

  /// Backward: may the keys of a group be shared out between threads? In column order they may, with a dQ for each part.
  bool by_keys = false;

  bool backward() const { return in_float.backward != nullptr; }  ///< @return does it compute gradients?
  /// @return its code in T, float or double
  template <class T> const Algorithm<T>& algorithm() const {
    if constexpr (std::is_same_v<T, float>) return in_float;
    else return in_double;
  }
};

/// A CUDA kernel of a step: the same algorithm as one of its forms.
struct Kernel {
  std::string name;                               ///< "fp32", "tensor cores"
  std::string form;                               ///< "row tiles outside"; for 06's forward, which is 05's, none
  gpu::Kernels compiled = {};                     ///< its compiled shapes
  Counts (*traffic)(const HeadSizes&) = nullptr;  ///< elements, for one head (backward: one group)
  bool backward = false;                          ///< does it compute gradients?
  bool atomics = false;                           ///< adds floats with atomics, so the last bits depend on the order
  bool tensor_cores = false;                      ///< half and bfloat16
};

/// What the values of a step are compared with.
enum class Reference {
  own_forms,    ///< 01: its own forms with one another
  step_before,  ///< the step before, on the same input
  one_row,      ///< 07: without a mask the steps before; with one, the steps before on every row and the keys that it sees
  repeated      ///< 08: the step before, with K and V repeated for every head of a group
};

/// A step.
struct Step {
  int number;                                    ///< 1 to 8
  std::string name,                              ///< "05_fa2_loop_swap"
      title;                                     ///< "The loops change places"
  std::string idea;                              ///< what is new, in one sentence
  std::string claim;                             ///< what the program shows
  const Step* before = nullptr;                  ///< the step that it builds on
  std::vector<Form> forms;                       ///< the main form first
  std::vector<Kernel> kernels = {};              ///< fp32 before tensor cores, forward before backward
  int beside = 0;                                ///< the form of the step before that costs are compared with
  Reference reference = Reference::step_before;  ///< what its values are compared with
  bool causal = false,                           ///< can it mask?
      gqa = false;                               ///< may heads share K and V?
  bool paper_tiles = false;                      ///< given only the capacity, are Br and Bc those of FlashAttention's Algorithm 1?
  /// The head of K and V that query head h reads.
  Index (*kv_head)(Index h, Index heads, Index kv_heads) = [](Index h, Index, Index) { return h; };

  const Form& main() const { return forms.front(); }  ///< @return the form that the step is about
  /// @param name  of a form
  /// @return the form of that name
  /// @throws std::logic_error if there is none
  const Form& form(const std::string& name) const;
  const Form& forward() const;   ///< @return the form that computes O and L
  const Form* backward() const;  ///< @return the one that computes the gradients, nullptr if there is none
  bool has_backward() const { return backward() != nullptr; }  ///< @return is there one?
};

inline const Form& Step::form(const std::string& wanted) const {
  for (const Form& form : forms)
    if (form.name == wanted) return form;
  throw std::logic_error("step " + name + " has no form '" + wanted + "'");
}
inline const Form& Step::forward() const {
  for (const Form& form : forms)
    if (!form.backward()) return form;
  return forms.front();
}
inline const Form* Step::backward() const {
  for (const Form& form : forms)
    if (form.backward()) return &form;
  return nullptr;
}

/// Calls visit(i, j) for every tile that the mask does not skip, in the order of the forward pass.
/// @param x      the sizes
/// @param visit  `void(Range i, Range j)`
template <class Visit> void for_visited_tiles(const HeadSizes& x, Visit visit) {
  for (const Range i : tiles(x.nq, x.br))
    for (const Range j : tiles(x.nk, x.bc))
      if (kind_of_tile(i, j, x.diagonal) != skip) visit(i, j);
}

}  // namespace flashsteps
