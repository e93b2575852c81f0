#pragma once
// The figures of the documents. What a figure shows comes from the code: closed forms of the steps, counted runs, kinds of tile, head maps.

#include "common/runner/problem.hpp"
#include "svg.hpp"

namespace flashsteps::figures {

/// What a form costs on the shipped input, over all heads.
struct Cost {
  const Step* step;
  const Form* form;
  std::string label;  ///< "06 column order", "05 FlashAttention-2"
  Traffic traffic;
  Index on_chip;
  double to_standard;  ///< traffic over that of standard attention, or of the standard backward pass
};
/// Every form in the step whose code it is, in the ladder's order.
std::vector<Cost> default_costs();
/// The shipped input as step 01 reads it, without its numbers.
HeadSizes default_sizes();
inline constexpr Index default_heads = 12;

/// Elements that a form moves for one head.
Index moved(const Form& form, const HeadSizes& sizes);
/// Tiles of a form that fit on chip, wanted or smaller.
HeadSizes fitting(const Form& form, HeadSizes sizes, Index capacity);

Figure memory_hierarchy();
Figure ladder_traffic();
Figure loop_order();
Figure causal_tiles();
Figure split_k_split_q();
Figure thread_blocks();
Figure head_maps();
Figure traffic_block_size();
Figure traffic_head_dim();
Figure traffic_length();
Figure backward_orders();
Figure attention_layer0();
Figure attention_layer5();

}  // namespace flashsteps::figures
