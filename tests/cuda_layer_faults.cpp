// What the CPU layer says about mistakes, in the words of docs/cuda-on-cpu.md. None of this needs the tracer.
#include "tests/cuda_layer.hpp"
#include "tests/cuda_layer_schedules.hpp"
#include <cmath>

namespace flashsteps::cuda_layer {
namespace {

/// f() fails in every schedule with a message that has all these parts.
template <class F> void check_message(F f, const std::vector<std::string>& parts) {
  in_every_schedule([&] {
    const std::string message = message_of(f);
    INFO(message);
    for (const std::string& part : parts) CHECK(contains(message, part));
  });
}

TEST_CASE("cuda layer - memory that nobody wrote is NaN") {
  in_every_schedule([] {
    const Floats device = unwritten_device_memory(), shared = unwritten_shared_memory();
    for (std::size_t i = 0; i < 64; ++i) CHECK(std::isnan(device[i]) == (i >= 32));
    for (std::size_t i = 0; i < 32; ++i) CHECK(std::isnan(shared[i]) == (i == 31));
  });
}

#if !defined(__SANITIZE_ADDRESS__)  // which stops the program at the line itself
TEST_CASE("cuda layer - guard words name the buffer") {
  check_message(one_past_the_end, {"a kernel wrote 0 bytes past the end of 'out'"});
  check_message(one_before_the_start, {"a kernel wrote 1 byte(s) before 'out'"});
}
#endif

TEST_CASE("cuda layer - too little shared memory") {
  check_message(too_little_shared_memory, {"the kernel uses 256 bytes of shared memory (" + line_of("storage") + "), but was launched with 255"});
}

TEST_CASE("cuda layer - block barriers that not all threads reach") {
  check_message(barrier_in_a_branch, {"barrier divergence in block (", "16 thread(s) at __syncthreads (" + line_of("branch") + "), first (0,0,0)",
                                      "48 thread(s) returned from the kernel, first (16,0,0)"});
  check_message(barrier_on_two_lines, {"barrier divergence in block (0,0,0)", "16 thread(s) at __syncthreads (" + line_of("first") + "), first (0,0,0)",
                                       "16 thread(s) at __syncthreads (" + line_of("second") + "), first (16,0,0)"});
  check_message(early_return, {"40 thread(s) at __syncthreads (" + line_of("early") + ")", "24 thread(s) returned from the kernel, first (40,0,0)"});
}

TEST_CASE("cuda layer - a barrier may wait for fewer threads on request") {
  const Restore restore;
  settings().returned_may_miss_barrier = true;
  CHECK(message_of(early_return).empty());
}

TEST_CASE("cuda layer - warp operations that not all lanes reach") {
  check_message(sync_in_a_branch,
                {"warp divergence in block (0,0,0)", "31 thread(s) at __syncwarp (" + line_of("syncwarp") + ")", "1 thread(s) returned from the kernel"});
}

TEST_CASE("cuda layer - masks") {
  check_message(not_in_its_mask, {"is not in the mask that it gave to a shuffle (" + line_of("mask") + ")", "of block (0,0,0)"});
  check_message(different_masks, {"warp divergence in block (0,0,0)", "at a shuffle with mask 0xffff0001 (" + line_of("masks") + ")"});
  const Floats x = absent_lane();
  for (std::size_t i = 0; i < 16; ++i) CHECK(std::isnan(x[i]) == (i >= 8));  // lanes 16 and on take no part
}

TEST_CASE("cuda layer - matrix operations need whole warps and copies an end") {
  check_message(short_warp_mma, {"mma in a warp of fewer than 32 threads (" + line_of("short") + ")"});
  check_message(copy_in_flight, {"returned with asynchronous copies in flight", "of block (0,0,0)"});
  check_message(misaligned_load, {"a load of 16 bytes by thread (", "is not aligned to them (" + line_of("misaligned") + ")"});
}

TEST_CASE("cuda layer - a missing wait shows when copies land late") {
  const Restore restore;
  settings().landing = Landing::early;
  CHECK(copy_without_wait()[0] == 63);
  settings().landing = Landing::late;
  CHECK(std::isnan(copy_without_wait()[0]));
  // A missing barrier after the wait shows in one order of the warps or the other
  CHECK((std::isnan(copy_without_barrier()[0]) || std::isnan(copy_without_barrier()[63])));
}

#if !defined(__SANITIZE_ADDRESS__)  // which handles the signal itself
TEST_CASE("cuda layer - a stack that overflows") { check_message(endless_recursion, {"thread (0,0,0) of block (0,0,0) overflowed its stack of 65536 bytes"}); }
#endif

TEST_CASE("cuda layer - limits of a launch") {
  CHECK(message_of([] { launch_empty(1, 1, 1, 1024, 1, 1, 99 * 1024); }).empty());
  CHECK(message_of([] { launch_empty(1, 65535, 1, 1, 1, 1, 0); }).empty());
  CHECK(contains(message_of([] { launch_empty(1, 1, 1, 1025, 1, 1, 0); }), "a block has 1 to 1024 threads, not (1025,1,1)"));
  CHECK(contains(message_of([] { launch_empty(1, 1, 1, 0, 1, 1, 0); }), "a block has 1 to 1024 threads, not (0,1,1)"));
  CHECK(contains(message_of([] { launch_empty(1, 65536, 1, 1, 1, 1, 0); }), "65535 x 65535 blocks, not (1,65536,1)"));
  CHECK(contains(message_of([] { launch_empty(1, 1, 65536, 1, 1, 1, 0); }), "65535 x 65535 blocks, not (1,1,65536)"));
  CHECK(contains(message_of([] { launch_empty(0, 1, 1, 1, 1, 1, 0); }), "blocks, not (0,1,1)"));
  CHECK(contains(message_of([] { launch_empty(1, 1, 1, 32, 1, 1, 99 * 1024 + 1); }), "asks for 101377 bytes of shared memory a block; the device has 101376"));
  const Restore restore;
  settings().shared_bytes = 64 * 1024;
  CHECK(contains(message_of([] { launch_empty(1, 1, 1, 32, 1, 1, 65 * 1024); }), "the device has 65536"));
}

TEST_CASE("cuda layer - a launch after a failed one") {
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(message_of(barrier_in_a_branch).empty());
    CHECK(divergent_paths().size() == 32);
  }
}

TEST_CASE("cuda layer - tracing without the tracer is refused") {
  const Restore restore;
  settings().trace = true;
  CHECK(contains(message_of(divergent_paths), "not linked with the tracer"));
}

TEST_CASE("cuda layer - what is counted without the tracer") {
  cuda_on_cpu::reset_stats();
  block_reductions(Floats(256));
  const auto s = cuda_on_cpu::stats();
  CHECK((s.blocks == 2 && s.barriers == 2 && s.shuffles == 2 * 4 * (5 + 5 + 3) && s.syncs == 0 && s.votes == 0 && s.mma == 0));
}

}  // namespace
}  // namespace flashsteps::cuda_layer
