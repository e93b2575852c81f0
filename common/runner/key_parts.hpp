#pragma once
// The backward pass of few heads on many threads: column tiles are independent but for dQ, so the keys of a group can be shared out.
#include "common/runner/parallel.hpp"
#include "common/runner/step.hpp"
#include <algorithm>
#include <memory>

namespace flashsteps {

/// Cuts the keys of a head into runs of whole column tiles that visit about as many row tiles each.
/// @param head   with its tiles and its mask
/// @param parts  at most so many
/// @return the runs in order; together they are all keys. One run, if need be an empty one, is always there
template <class T> std::vector<Range> key_parts(const Head<T>& head, Index parts) {
  const Index rows = tile_count(head.q.rows(), head.br);
  std::vector<Index> visited;  // row tiles that the column tiles up to this one visit, and one for each column tile itself
  Index first = 0, all = 0;
  for (const Range j : tiles(head.k.rows(), head.bc)) {
    while (first < rows && std::min((first + 1) * head.br, head.q.rows()) - 1 + head.diagonal < j.begin) ++first;
    visited.push_back(all += rows - first + 1);
  }
  std::vector<Range> runs;
  Index begin = 0;
  for (Index p = 1, tile = 0; p <= parts; ++p) {
    while (tile < Index(visited.size()) && visited[tile] * parts <= all * p) ++tile;
    const Index end = p == parts ? head.k.rows() : std::min(tile * head.bc, head.k.rows());
    if (end > begin) runs.push_back({begin, end});
    begin = end;
  }
  if (runs.empty()) runs.push_back({0, head.k.rows()});
  return runs;
}

/// A group, and the keys of it that one thread takes.
template <class T> struct GroupPart {
  Group<T> group;                                       ///< with these keys; with a dQ of its own, if it is not the first part
  bool first = true;                                    ///< is it the first part of its group?
  std::vector<std::unique_ptr<Workspace<T>>> dq = {};   ///< [Nq x d] for each head, if it is not the first part
};

/// The parts of a group: each has K, V, dK and dV of its keys, the others than the first their own dQ.
/// @param group  the group
/// @param parts  at most so many
/// @return its parts, in the order of their keys
template <class T> std::vector<GroupPart<T>> parts_of(const Group<T>& group, Index parts) {
  std::vector<GroupPart<T>> all;
  for (const Range keys : key_parts(group.heads.front(), parts)) {
    GroupPart<T>& part = all.emplace_back();
    part.first = all.size() == 1;
    for (std::size_t h = 0; h < group.heads.size(); ++h) {
      part.group.heads.push_back(group.heads[h].keys(keys));
      Gradients<T> gradients = group.gradients[h].keys(keys);
      if (!part.first) gradients.dq = *part.dq.emplace_back(std::make_unique<Workspace<T>>(tensor::dq, gradients.dq.rows(), gradients.dq.cols()));
      part.group.gradients.push_back(gradients);
    }
  }
  return all;
}

/// Runs a backward pass over groups of heads, where there are fewer groups than threads in parts. The dQ of the parts are added in the
/// order of their keys, so the bits depend on the number of threads and on nothing else. Extra memory: dQ for every part but the first,
/// which are fewer than there are threads.
///
/// Each part computes D again, which a GPU does once in a kernel of its own: counted is what one does.
/// @param groups    of heads that share K and V
/// @param total     has the capacity, and gets the counts
/// @param what      is done, for a person who waits
/// @param backward  a pass in column order
template <class T> void run_in_parts(const std::vector<Group<T>>& groups, Memory& total, const char* what, decltype(Algorithm<T>::backward) backward) {
  std::vector<GroupPart<T>> parts;
  for (const Group<T>& group : groups)
    for (GroupPart<T>& part : parts_of(group, tile_count(threads(), Index(groups.size())))) parts.push_back(std::move(part));

  run(parts, total, what, [&](const GroupPart<T>& part, Memory& memory) {
    if (part.first) return backward(part.group.heads, part.group.gradients, memory);
    // What comes before the keys is what the same pass does with no keys at all
    Memory without_keys(memory.capacity()), with_keys(memory.capacity());
    std::vector<Head<T>> heads = part.group.heads;
    std::vector<Gradients<T>> gradients = part.group.gradients;
    for (Head<T>& head : heads) head = head.keys({0, 0});
    for (Gradients<T>& each : gradients) each = each.keys({0, 0});
    backward(heads, gradients, without_keys);
    backward(part.group.heads, part.group.gradients, with_keys);
    memory.add_less(with_keys, without_keys);
  });

  // dQ of the group is the sum over its parts
  Memory uncounted;
  const GroupPart<T>* first = nullptr;
  for (const GroupPart<T>& part : parts) {
    if (part.first) first = &part;
    for (std::size_t h = 0; h < part.dq.size(); ++h)
      for (const Range i : tiles(part.dq[h]->rows(), first->group.heads[h].br))
        uncounted.atomic_add(uncounted.load_lanes(transpose((*part.dq[h])[i])), transpose(first->group.gradients[h].dq[i]));
  }
}

}  // namespace flashsteps
