// What read_npy takes and refuses, and that an output folder is written whole or not at all. tests/foreign_npy.py asks NumPy the same.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "common/runner/npy.hpp"
#include "common/runner/output_folder.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;
using flashsteps::BadInput;
using flashsteps::Npy;
using flashsteps::OutputFolder;
using flashsteps::read_npy;
using Shape = std::vector<std::ptrdiff_t>;

/// A folder of its own for each test, gone at its end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("flashsteps-npy-" + std::to_string(getpid()));
  Scratch() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Scratch() { fs::remove_all(path); }

  std::string write(const std::string& bytes) const {
    const fs::path file = path / "file.npy";
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path)) found.push_back(fs::relative(entry.path(), path).string());
    std::sort(found.begin(), found.end());
    return found;
  }
};

std::string file_with(const std::string& header, const std::string& numbers, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + numbers;
}

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::string header_of(const std::string& descr, const std::string& shape, const std::string& fortran_order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran_order + ", 'shape': " + shape + ", }\n";
}

/// The message with which the file is refused, "" if it is taken.
std::string refusal(const std::string& path, int axes = 4) {
  try {
    read_npy<float>(path, axes);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

void is_one_line_about(const std::string& message, const std::string& path, const std::string& part) {
  CAPTURE(message, part);
  CHECK(message.starts_with(path + ": "));
  CHECK(message.find(part) != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.size() < 700);
}

std::string content(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("C order and Fortran order give the same numbers", "[npy]") {
  const Scratch scratch;
  const std::vector<float> c_order = {0, 1, 2, 3, 4, 5}, fortran_order = {0, 3, 1, 4, 2, 5};
  for (const int version : {1, 2, 3}) {
    const auto c = read_npy<double>(scratch.write(file_with(header_of("'<f4'", "(1, 2, 1, 3)"), bytes_of(c_order), version)), 4);
    CHECK(c.shape == Shape{1, 2, 1, 3});
    CHECK(c.numbers == std::vector<double>(c_order.begin(), c_order.end()));
    const auto f = read_npy<float>(scratch.write(file_with(header_of("'<f4'", "(1, 2, 1, 3)", "True"), bytes_of(fortran_order), version)), 4);
    CHECK(f.shape == Shape{1, 2, 1, 3});
    CHECK(f.numbers == c_order);
  }
}

TEST_CASE("The header is read as the Python dictionary that it is", "[npy]") {
  const Scratch scratch;
  const std::string numbers = bytes_of(std::vector<double>{1, 2, 3});
  for (const std::string header : {
           "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }          \n",
           "{\"shape\":(3,),\"fortran_order\":True,\"descr\":\"=f8\"}",
           "  {  'fortran_order' : False ,\n 'shape' : ( 3 , ) , 'descr' : '<f8' } \t\r\n",
       }) {
    CAPTURE(header);
    const auto array = read_npy<double>(scratch.write(file_with(header, numbers)), 1);
    CHECK(array.shape == Shape{3});
    CHECK(array.numbers == std::vector<double>{1, 2, 3});
  }
  CHECK(read_npy<double>(scratch.write(file_with(header_of("'<f8'", "()"), bytes_of(std::vector<double>{7}))), 0).numbers == std::vector<double>{7});
}

TEST_CASE("An axis of length 0 is an array without numbers", "[npy]") {
  const Scratch scratch;
  const auto array = read_npy<float>(scratch.write(file_with(header_of("'<f2'", "(2, 0, 5, 3)"), "")), 4);
  CHECK(array.shape == Shape{2, 0, 5, 3});
  CHECK(array.numbers.empty());
}

TEST_CASE("Every float16 is taken exactly", "[npy]") {
  const Scratch scratch;
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  const auto array = read_npy<double>(scratch.write(file_with(header_of("'<f2'", "(65536,)"), bytes_of(bits))), 1);
  REQUIRE(array.numbers.size() == bits.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double value = array.numbers[i];
    const int exponent = static_cast<int>(i >> 10 & 31), fraction = static_cast<int>(i & 1023);
    const bool negative = i >= 32768;
    double expected = (exponent == 0 ? fraction : fraction + 1024) * std::pow(2.0, std::max(exponent, 1) - 25);
    if (exponent == 31) expected = std::numeric_limits<double>::infinity();
    const bool is_nan = exponent == 31 && fraction != 0;
    const bool right = is_nan ? std::isnan(value) : value == (negative ? -expected : expected) && std::signbit(value) == negative;
    if (!right) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("float64 is rounded once to float", "[npy]") {
  const Scratch scratch;
  const double tie = 1.0 + std::ldexp(1.0, -24);
  const std::vector<double> numbers = {0.1, tie + std::ldexp(1.0, -50), tie, std::ldexp(1.0, -149), -0.0, HUGE_VAL};
  const auto array = read_npy<float>(scratch.write(file_with(header_of("'<f8'", "(6,)"), bytes_of(numbers))), 1);
  CHECK(array.numbers == std::vector<float>{0.1F, 1.0F + std::ldexp(1.0F, -23), 1.0F, std::ldexp(1.0F, -149), -0.0F, HUGE_VALF});
  CHECK(std::signbit(array.numbers[4]));
}

TEST_CASE("What is not a file of floats is refused in one line that names it", "[npy]") {
  const Scratch scratch;
  const std::string six = bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5}), shape = "(1, 2, 1, 3)";
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    const std::string path = scratch.write(bytes);
    is_one_line_about(refusal(path), path, part);
  };
  refused("", "is empty");
  refused("\x93NUM", "not a .npy file");
  refused("hello, this is text", "not a .npy file");
  refused("PK\x03\x04 and so on", "zip archive");
  refused("\x93NUMPY", "ends inside its version");
  refused(std::string("\x93NUMPY\x01", 7), "ends inside its version");
  refused(std::string("\x93NUMPY\x01\x00\x10", 9), "ends inside its header");
  refused(std::string("\x93NUMPY\x04\x00\x10\x00", 10), "format 4.0; known are 1.0, 2.0 and 3.0");
  refused(std::string("\x93NUMPY\x01\x01\x10\x00", 10), "format 1.1");
  refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "4294967295 bytes are missing");
  refused(file_with(header_of("'>f4'", shape), six), "big-endian; save it with .astype('<f4')");
  refused(file_with(header_of("'>f2'", shape), six), "big-endian; save it with .astype('<f2')");
  refused(file_with(header_of("'|O'", shape), six), "pickled Python objects");
  for (const std::string type : {"<i8", "|i1", "|b1", "<c8", "<f16", "|f4", "<V2", ">i4", "f4", "<f", "", "<U3"}) {
    refused(file_with(header_of("'" + type + "'", shape), six), "holds '" + type + "'; accepted are '<f2', '<f4' and '<f8'");
  }
  refused(file_with(header_of("[('a', '<f4')]", shape), six), "records");
  refused(file_with(header_of("('<f4', (2,))", shape), six), "records");
  refused(file_with(header_of("'<f4'", "(2, 3)"), six), "has 2 axes, (2, 3); 4 are expected");
  refused(file_with(header_of("'<f4'", "(6,)"), six), "has 1 axes, (6,); 4 are expected");
  refused(file_with(header_of("'<f4'", "(1, 2, -1, 3)"), six), "negative length");
  refused(file_with(header_of("'<f4'", "(1, 2, -99999999999999999999, 3)"), six), "negative length");
  refused(file_with(header_of("'<f4'", "(1, 2, 99999999999999999999, 3)"), six), "an axis longer than 1073741824");
  refused(file_with(header_of("'<f4'", "(65536, 65536, 65536, 65536)"), six), "more than 1099511627776 elements");
  refused(file_with(header_of("'<f4'", "(0, 1073741824, 1073741824, 1073741824)"), ""), "more than 1099511627776 elements");
  refused(file_with(header_of("'<f4'", "(1, 1, 1024, 1073741824)"), six), "shorter than its header says");
  refused(file_with(header_of("'<f4'", shape), six.substr(1)), "shorter than its header says: (1, 2, 1, 3) of '<f4' take 24 bytes, there are 23");
  refused(file_with(header_of("'<f4'", shape), six + "x"), "longer than its header says: (1, 2, 1, 3) of '<f4' take 24 bytes, there are 25");
  refused(file_with(header_of("'<f4'", "(1, 2, 0, 3)"), six), "longer than its header says");
}

TEST_CASE("A malformed header is refused", "[npy]") {
  const Scratch scratch;
  const std::string six = bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5});
  const auto refused = [&](const std::string& header, const std::string& part) {
    const std::string path = scratch.write(file_with(header, six));
    is_one_line_about(refusal(path), path, part);
  };
  const std::string good = header_of("'<f4'", "(1, 2, 1, 3)");
  REQUIRE(refusal(scratch.write(file_with(good, six))) == "");
  refused("", "malformed");
  refused("{", "malformed");
  refused("{}", "lacks 'descr'");
  refused("[]", "malformed: byte 0 should be '{', found '['");
  refused(good + "x", "malformed");
  refused("{'descr': '<f4', 'shape': (1, 2, 1, 3)}", "lacks 'fortran_order'");
  refused("{'descr': '<f4', 'fortran_order': False}", "lacks 'shape'");
  refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 3)}", "'descr' twice");
  refused("{'color': 'red', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 3)}", "a key 'color'");
  refused("{'" + std::string(60000, 'k') + "': 1}", "malformed");
  refused("{'a\\x41\\nb\xff': 1}", "malformed");
  refused("{'descr", "malformed");
  for (const std::string shape : {"(1, 2, 1, 3", "1, 2", "[1, 2, 1, 3]", "(1, 2,, 3)", "(,)", "(6)", "(1 2 1 3)", "(1.0, 2, 1, 3)", "(1, 2, 1, 3L)",
                                  "(1, '2', 1, 3)", "(+1, 2, 1, 3)"}) {
    CAPTURE(shape);
    refused(header_of("'<f4'", shape), "malformed");
  }
  std::string many = "(";
  for (int i = 0; i < 20000; ++i) many += "1,";
  refused(header_of("'<f4'", many + ")"), "more than 64 axes");
  for (const std::string order : {"false", "0", "'True'", "", "Falsey"}) refused(header_of("'<f4'", "(1, 2, 1, 3)", order), "malformed");
  // Whatever single byte of a good header is replaced, the answer is a reading or one line, never anything else
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; byte += 5) {
      std::string changed = good;
      changed[at] = static_cast<char>(byte);
      const std::string message = refusal(scratch.write(file_with(changed, six)));
      if (message.find('\n') != std::string::npos || message.size() > 700) FAIL_CHECK(message);
    }
  }
}

TEST_CASE("What is no regular file is refused", "[npy]") {
  const Scratch scratch;
  const std::string missing = (scratch.path / "none.npy").string();
  is_one_line_about(refusal(missing), missing, "no such file");
  is_one_line_about(refusal(scratch.path.string()), scratch.path.string(), "is a folder");
  is_one_line_about(refusal("/dev/null"), "/dev/null", "not a regular file");
  is_one_line_about(refusal(""), "", "no such file");
  const std::string odd = "no\nsuch\x1b[31mfile";
  is_one_line_about(refusal(odd), "no?such?[31mfile", "no such file");
}

TEST_CASE("What is written is read again, bit for bit", "[npy]") {
  const Scratch scratch;
  const fs::path folder = scratch.path / "made" / "with parents" / "";
  const std::vector<float> floats = {1.5F, -0.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e-45F, 3};
  const std::vector<double> doubles = {0.1, 1e300};
  {
    OutputFolder output(folder.string());
    output.add("o.npy", {1, 2, 3, 1}, floats.data());
    output.add("lse.npy", {1, 2, 1}, doubles.data());
    output.add("none.npy", {3, 0, 1, 1}, static_cast<const double*>(nullptr));
    output.commit();
  }
  const std::string inner = "made/with parents";
  CHECK(scratch.names() == std::vector<std::string>{"made", inner, inner + "/lse.npy", inner + "/none.npy", inner + "/o.npy"});
  const auto o = read_npy<float>((folder / "o.npy").string(), 4);
  CHECK(o.shape == Shape{1, 2, 3, 1});
  CHECK(bytes_of(o.numbers) == bytes_of(floats));
  const auto lse = read_npy<double>((folder / "lse.npy").string(), 3);
  CHECK(lse.shape == Shape{1, 2, 1});
  CHECK(lse.numbers == doubles);
  CHECK(read_npy<double>((folder / "none.npy").string(), 4).shape == Shape{3, 0, 1, 1});
  CHECK(content(folder / "lse.npy").size() % 64 == 16);
}

TEST_CASE("Nothing is left half written", "[npy]") {
  const Scratch scratch;
  const float one = 1, two = 2;
  SECTION("without commit nothing stays, the folder neither") {
    { OutputFolder(((scratch.path / "a") / "b").string()).add("o.npy", {1}, &one); }
    CHECK(scratch.names().empty());
  }
  SECTION("without commit an older file keeps its content") {
    OutputFolder first(scratch.path.string());
    first.add("o.npy", {1}, &one);
    first.commit();
    {
      OutputFolder second(scratch.path.string());
      second.add("o.npy", {1}, &two);
    }
    CHECK(scratch.names() == std::vector<std::string>{"o.npy"});
    CHECK(read_npy<float>((scratch.path / "o.npy").string(), 1).numbers.at(0) == 1);
    OutputFolder third(scratch.path.string());
    third.add("o.npy", {1}, &two);
    third.commit();
    CHECK(read_npy<float>((scratch.path / "o.npy").string(), 1).numbers.at(0) == 2);
  }
  SECTION("a name taken by a folder spoils the whole set") {
    fs::create_directories(scratch.path / "lse.npy");
    {
      OutputFolder output(scratch.path.string());
      output.add("o.npy", {1}, &one);
      output.add("lse.npy", {1}, &one);
      CHECK_THROWS_AS(output.commit(), BadInput);
    }
    CHECK(scratch.names() == std::vector<std::string>{"lse.npy"});
  }
  SECTION("a folder that cannot be made") {
    const std::string file = scratch.write("");
    CHECK_THROWS_AS(OutputFolder(file), BadInput);
    CHECK_THROWS_AS(OutputFolder(file + "/below"), BadInput);
    CHECK_THROWS_AS(OutputFolder("/proc/nothing/here"), BadInput);
    CHECK_THROWS_AS(OutputFolder(""), BadInput);
    CHECK_THROWS_AS(OutputFolder((scratch.path / std::string(300, 'x')).string()), BadInput);
    CHECK_THROWS_AS(OutputFolder((scratch.path / "new" / std::string(300, 'x')).string()), BadInput);
    CHECK(scratch.names() == std::vector<std::string>{"file.npy"});
  }
}
