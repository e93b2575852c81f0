#include "common/runner/npy_header.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/runner/bad_input.hpp"

namespace flashsteps {
namespace {

// More than NumPy writes; a hostile header shall not make a message of megabytes.
constexpr std::size_t kLongestWord = 64;
constexpr std::size_t kMostAxes = 64;

/// Reads the header's dictionary: keys in any order, either kind of quotes, spaces and trailing commas where Python takes them.
class Parser {
 public:
  Parser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  NpyHeader parse() {
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        once(have_descr, key);
        header_.descr = descr();
      } else if (key == "fortran_order") {
        once(have_order, key);
        header_.fortran_order = boolean();
      } else if (key == "shape") {
        once(have_shape, key);
        header_.shape = shape();
      } else {
        refuse_file(path_, fmt::format("its header has a key '{}'; a .npy header has 'descr', 'fortran_order' and 'shape'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) malformed("nothing more");
    if (!have_descr || !have_order || !have_shape) {
      refuse_file(path_, fmt::format("its header lacks '{}'", !have_descr ? "descr" : !have_order ? "fortran_order" : "shape"));
    }
    return header_;
  }

 private:
  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;

  [[noreturn]] void malformed(std::string_view expected) const {
    const bool printable = at_ < text_.size() && text_[at_] >= 0x20 && text_[at_] < 0x7f;
    const std::string found = at_ == text_.size() ? "its end" : printable ? fmt::format("'{}'", text_[at_]) : "an unprintable byte";
    refuse_file(path_, fmt::format("its header is malformed: byte {} should be {}, found {}", at_, expected, found));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    const bool there = next_is(c);
    if (there) ++at_;
    return there;
  }
  void expect(char c) {
    if (!accept(c)) malformed(fmt::format("'{}'", c));
  }
  void once(bool& have, const std::string& key) const {
    if (have) refuse_file(path_, fmt::format("its header has '{}' twice", key));
    have = true;
  }
  std::string quoted() {
    const char quote = next_is('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote, at_);
    const std::string found(text_.substr(at_, end - at_));
    const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '\\'; };
    if (end == std::string_view::npos || found.size() > kLongestWord || !std::all_of(found.begin(), found.end(), plain)) {
      malformed("part of a short closed string of plain characters");
    }
    at_ = end + 1;
    return found;
  }
  std::string descr() {
    if (next_is('[') || next_is('(')) refuse_file(path_, "holds records (a structured type); a plain array of '<f2', '<f4' or '<f8' is expected");
    return quoted();
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    malformed("True or False");
  }
  std::ptrdiff_t axis() {
    skip_space();
    std::ptrdiff_t length = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), length);
    if (error == std::errc::invalid_argument) malformed("the length of an axis");
    if (text_[at_] == '-') refuse_file(path_, "its header has an axis of negative length");
    if (error != std::errc() || length > kLongestAxis) {
      refuse_file(path_, fmt::format("its header has an axis longer than {}, the longest that is taken", kLongestAxis));
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    return length;
  }
  std::vector<std::ptrdiff_t> shape() {
    std::vector<std::ptrdiff_t> lengths;
    expect('(');
    while (!accept(')')) {
      lengths.push_back(axis());
      if (lengths.size() > kMostAxes) refuse_file(path_, fmt::format("its header has more than {} axes", kMostAxes));
      if (accept(',')) continue;
      if (lengths.size() == 1) malformed("',': an axis alone is written (3,)");
      expect(')');
      break;
    }
    return lengths;
  }
};

}  // namespace

void refuse_file(const std::string& path, const std::string& why) { throw BadInput(path + ": " + why); }

std::string shape_text(const std::vector<std::ptrdiff_t>& shape) { return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : ""); }

NpyHeader parse_npy_header(const std::string& path, std::string_view text) { return Parser(path, text).parse(); }

}  // namespace flashsteps
