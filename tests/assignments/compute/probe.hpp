#pragma once
// Holes and probes. A hole is a call of todo(): it says which task is not done yet, by an exception. A probe notes what a task has
// computed, so that it can be judged whatever comes behind it.
#include "common/memory/memory.hpp"
#include <sstream>
#include <string>
#include <vector>

namespace flashsteps {

/// Thrown where a task is not done yet.
struct NotImplemented {
  std::string task;  ///< its number
};

/// @{
/// Stands for what a task is to compute.
/// @param task  its number
/// @throws NotImplemented always
[[noreturn]] inline void todo(const char* task) { throw NotImplemented{task}; }
template <class Value> [[noreturn]] Value todo(const char* task) { throw NotImplemented{task}; }
/// @}

/// What the probes noted, as lines of text: `probe 2.1 rows cols`, and the numbers row by row. Only numbers of 50 digits are noted.
inline std::vector<std::string> probed;

/// @cond
template <class T> inline constexpr bool is_noted = !std::is_arithmetic_v<T> && !std::is_enum_v<T>;
template <class T> void note_number(const T& x) {
  std::ostringstream text;
  text.precision(60);
  text << x;
  probed.push_back(text.str());
}
template <class At> void note(const char* task, Index rows, Index cols, const Present* present, At at) {
  probed.push_back("probe " + std::string(task) + " " + std::to_string(rows) + " " + std::to_string(cols));
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) {
      if (present && !present->all() && !present->has(i, j)) probed.push_back("0");
      else note_number(at(i, j));
    }
}
template <class T> void note_one(const char* task, const Tile<T>& x) {
  if constexpr (is_noted<T>) note(task, x.rows(), x.cols(), &x.present, [&](Index i, Index j) { return x(i, j); });
}
template <class T> void note_one(const char* task, const View<T>& x) {
  if constexpr (is_noted<T>) note(task, x.rows, x.cols, x.present, [&](Index i, Index j) { return x(i, j); });
}
template <class T> void note_one(const char* task, const Loaded<T>& x) { note_one(task, static_cast<const View<T>&>(x)); }
template <class T> void note_one(const char* task, const Slow<T>& x) { note_one(task, Memory().load(x)); }  // not counted
template <class T> void note_one(const char* task, const Workspace<T>& x) { note_one(task, static_cast<const Slow<T>&>(x)); }
template <class T> void note_one(const char* task, const T& x) {
  if constexpr (is_noted<T>) note(task, 1, 1, nullptr, [&](Index, Index) { return x; });
}
/// @endcond

/// Notes what a task has computed.
/// @param task    its number
/// @param values  tiles, views, matrices in slow memory, or numbers
template <class... Values> void probe(const char* task, const Values&... values) { (note_one(task, values), ...); }

}  // namespace flashsteps
