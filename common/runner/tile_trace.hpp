#pragma once
// What happens when a step takes one head tile by tile, in order: the file of --trace-tiles, which the tile player shows.
#include "common/runner/tile_choice.hpp"
#include <string>

namespace flashsteps {

/// @{
/// The most tiles, and the most numbers m, l and o, that a trace takes: about 10 MB of text.
inline constexpr Index most_traced_tiles = 4096, most_traced_numbers = 1000000;
/// @}

/// Asks whether a trace of one head would be of a size that one can look at.
/// @param sizes  of the head
/// @param tiles  Br and Bc
/// @throws BadInput with the limit that it exceeds
void check_tile_trace(const HeadSizes& sizes, TileShape tiles);

/// Runs the step's forward pass on one head, the one of --trace-head in batch 0, in one thread, and writes down what happens.
/// @param step     a step whose main form is a forward pass in tiles
/// @param options  which head it is
/// @param p        the whole problem
/// @param choice   tiles and capacity
/// @return one JSON object, an event a line
template <class T> std::string tile_trace(const Step& step, const Options& options, const Problem<T>& p, const TileChoice& choice);

}  // namespace flashsteps
