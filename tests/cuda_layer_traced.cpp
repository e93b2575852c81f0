// What the tracer finds and counts. This program's kernels are compiled with -fsanitize=thread and the tracer's answers to it.
#include "common/cuda_on_cpu/counters.hpp"
#include "tests/cuda_layer.hpp"
#include "tests/cuda_layer_schedules.hpp"
#include <array>

namespace flashsteps::cuda_layer {
namespace {

struct Traced : Restore {
  Traced() { settings().trace = true; }
};

/// In every schedule f() is reported, with all these parts in the message.
template <class F> void check_found(F f, const std::vector<std::string>& parts) {
  const Traced traced;
  in_every_schedule([&] {
    const std::string message = message_of(f);
    INFO(message);
    for (const std::string& part : parts) CHECK(contains(message, part));
  });
}

cuda_on_cpu::LineCounters counters_at(const std::string& place, bool shared, bool write) {
  for (const auto& line : cuda_on_cpu::line_counters())
    if (line.place == place && line.shared == shared && line.write == write) return line;
  FAIL("nothing was counted at " << place);
  return {};
}

TEST_CASE("cuda layer traced - no false alarm in the clean kernels") {
  const Traced traced;
  Floats x(200 * 64, 1);
  in_every_schedule([&] {
    block_reductions(Floats(256, 1));
    async_column_sums(x, 200, 64);
    async_column_sums(Floats(65 * 36, 1), 65, 36);
    shuffles(1, 2, 3);
    divergent_paths();
    transpose(Floats(45 * 45, 1), 45);
    mma(false, Words(128), Words(64), Floats(128));
    for (const int count : {2, 4})
      for (const bool transposed : {false, true}) ldmatrix(count, transposed, Words(128));
    histogram(Ints(100, 3));
    reversed(Floats(50, 1), 50);
    atomic_sums(Floats(100, 1), 7);
    arithmetic(Floats(100, 1));
    roundings(Floats(100, 1));
    positions(2, 2, 2, 4, 4, 4);
    votes(Ints(64, 1));
    partial_warp_sync(true);
  });
  SUCCEED();
}

TEST_CASE("cuda layer traced - the same values as untraced") {
  const Floats untraced = block_reductions(Floats(256, 1));
  const Traced traced;
  CHECK(block_reductions(Floats(256, 1)) == untraced);
}

TEST_CASE("cuda layer traced - missing barriers") {
  check_found(missing_barrier, {line_of("race read"), "in block (0,0,0)"});
  check_found(missing_warp_sync, {line_of("no syncwarp")});
  check_found(read_before_overwrite, {"a read and a write on shared byte", line_of("overwrite read"), line_of("overwrite write"), "with no barrier between"});
  check_found([] { partial_warp_sync(false); }, {line_of("group")});
}

TEST_CASE("cuda layer traced - the race names both lines and threads") {
  const Traced traced;
  const std::string message = message_of(missing_barrier);
  INFO(message);
  CHECK(contains(message, "a read and a write on shared byte"));
  CHECK(contains(message, line_of("race write")));
}

TEST_CASE("cuda layer traced - asynchronous copies") {
  check_found(copy_without_wait, {"an asynchronous copy that was not waited for, and a read,", line_of("copy"), line_of("copied")});
  check_found(copy_without_barrier, {line_of("copied")});
}

TEST_CASE("cuda layer traced - reads of unwritten shared memory") {
  check_found(unwritten_shared_memory, {"read of shared byte 128 in block (0,0,0), which nobody wrote: thread (31,0,0) at " + line_of("unwritten")});
}

TEST_CASE("cuda layer traced - out of bounds") {
  check_found(read_past_the_end,
              {"read of 4 bytes outside every buffer by thread (63,0,0) of block (0,0,0) at " + line_of("past"), "0 bytes past the end of 'in'"});
  check_found(shared_past_the_end, {"thread (63,0,0) of block (0,0,0) at " + line_of("shared past"), "0 bytes past the end of shared memory"});
  check_found(one_before_the_start, {"write of 4 bytes outside every buffer", "4 bytes before 'out'"});
}

TEST_CASE("cuda layer traced - races between blocks") {
  check_found(race_between_blocks, {"race between blocks on byte", "of 'out'", "writes it and block", line_of("both write")});
  check_found(read_of_another_block, {"race between blocks on byte", "of 'out'", "reads"});
  check_found(atomic_and_plain, {"race between blocks", "adds to", "writes"});
}

TEST_CASE("cuda layer traced - bank conflicts") {
  const Traced traced;
  for (const int stride : {1, 2, 8, 31, 0}) {
    cuda_on_cpu::reset_counters();
    bank_conflict(stride);
    INFO(cuda_on_cpu::counters_table());
    const auto load = counters_at(line_of("conflict"), true, false);
    const int ways = stride == 8 ? 8 : stride == 2 ? 2 : 1;
    CHECK((load.requests == 1 && load.passes == std::uint64_t(ways) && load.ideal_passes == 1 && load.conflict() == ways));
    CHECK(load.bytes == 128);
    CHECK(load.distinct_bytes == (stride == 0 ? 4u : 128u));
    const auto store = counters_at(line_of("clean store"), true, true);
    CHECK((store.requests == 32 && store.passes == 32));
  }
}

TEST_CASE("cuda layer traced - lanes that read one word take one pass together") {
  const Traced traced;
  for (const auto& [stride, together, ways] :
       {std::array{65, 4, 1}, std::array{32, 4, 8}, std::array{16, 4, 4}, std::array{32, 2, 16}, std::array{32, 32, 1}}) {
    cuda_on_cpu::reset_counters();
    bank_conflict(stride, together);
    const auto load = counters_at(line_of("conflict"), true, false);
    CHECK((load.passes == std::uint64_t(ways) && load.bytes == 128 && load.distinct_bytes == std::uint64_t(128 / together)));
  }
}

TEST_CASE("cuda layer traced - sectors of global memory") {
  const Traced traced;
  for (const int stride : {1, 2, 8}) {
    cuda_on_cpu::reset_counters();
    strided_load(stride);
    const auto load = counters_at(line_of("strided"), false, false);
    CHECK((load.requests == 1 && load.bytes == 128 && load.sectors == std::uint64_t(4 * stride)));
    CHECK(load.bytes_used() == 1.0 / stride);  // 12.5 % for a stride of 8 floats
    for (const auto& buffer : cuda_on_cpu::buffer_counters()) {
      if (buffer.name == "in") CHECK((buffer.read_bytes == 128 && buffer.read_sectors == std::uint64_t(4 * stride) && buffer.written_bytes == 0));
      if (buffer.name == "out") CHECK((buffer.written_bytes == 128 && buffer.written_sectors == 4 && buffer.read_bytes == 0));
    }
    CHECK(cuda_on_cpu::buffer_counters().size() == 2);
  }
}

TEST_CASE("cuda layer traced - an access of sixteen bytes is one request") {
  const Traced traced;
  cuda_on_cpu::reset_counters();
  reversed(Floats(64, 1), 64);
  int found = 0;
  for (const auto& line : cuda_on_cpu::line_counters()) {
    if (line.bytes != 256 || line.requests != 1) continue;  // 16 lanes
    ++found;
    if (line.shared) CHECK((!line.write && line.passes == 2 && line.ideal_passes == 2));  // by quarters of a warp
    else CHECK((line.write && line.sectors == 8 && line.bytes_used() == 1));
  }
  CHECK(found == 2);
}

TEST_CASE("cuda layer traced - ldmatrix is counted by eight rows") {
  const Traced traced;
  cuda_on_cpu::reset_counters();
  ldmatrix(4, false, Words(128));
  std::uint64_t requests = 0;
  for (const auto& line : cuda_on_cpu::line_counters())
    if (line.shared && !line.write && line.bytes == 512) {
      requests += line.requests;
      CHECK(line.conflict() == 1);  // rows of 48 bytes: eight of them touch each bank once
    }
  CHECK(requests == 4);
}

}  // namespace
}  // namespace flashsteps::cuda_layer
