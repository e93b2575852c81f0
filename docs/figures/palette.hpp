#pragma once
// The colours and letters of all figures: one style block, the same in every file.

#include <string>

namespace flashsteps::figures {

/// The style block. Every colour is a property `--fs-...` of the root element's class `fs-figure`, set with specificity 0: a page that
/// shows a figure inline overrides it with a rule for `.fs-figure`. Dark where the reader's system is, or inside of html.dark-mode; light
/// inside of html.light-mode.
std::string style_block();

/// Computes the contrast of every pair of text and ground that the figures use, in both schemes.
/// @throws std::logic_error with the pairs below 4.5 (text) or 3 (lines and areas that carry a meaning)
void check_contrast();

}  // namespace flashsteps::figures
