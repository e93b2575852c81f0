// Known faults of other implementations, tried on every step: masks, empty rows, and numbers that must not be seen.
// Ids and values: shared/cases/attention-faults.md. Numbers of softmax itself are in faults_numbers.cpp, shapes and heads in
// faults_shapes.cpp, gradients in faults_backward.cpp.
//
// The steps know one mask, the causal one. A step without it gets a causal head row by row, with the keys that the row sees. Other
// masks are given by scores of -inf, which say the same (E1): a further feature in which q = 1 and k = -inf hides a key from all rows,
// and one in which q = -inf and k = 1 hides all keys from a row.
//   C01, C02     boolean masks: both kinds of feature. C02's lowest finite float is a feature, too, and a bias, not a mask
//   C05          a band, given once as boolean and once as additive: every row alone, since the keys that it may not see have k = -inf
//   C06, C07     k = -inf
//   C11          "both rows may see key 0 only": each of them as the first of two causal rows; the second sees the number, NaN or not
//   C37          block-sparse: every row of blocks is a head of its own, its other keys have k = -inf
//   C38          a sliding window is not built; as for C05, every row alone, so that the right values are held to what is built
// Without a test, because they concern nothing that the steps on the CPU are made of:
//   C23          arguments that do not fit: the tests of the command line
//   C32          a barrier between use and refill of shared memory: CUDA
//   C39, C40     the build: configuring without a GPU; common/memory/packet.hpp refuses -ffast-math at compile time
//   C41          MPI is not built; the head map that it needs is C21's
//   C43          dropout is not built
#include "tests/fault_masks.hpp"

namespace flashsteps {
namespace {

TEMPLATE_TEST_CASE("C01 rows that allow no key - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c01); }

TEMPLATE_TEST_CASE("C02 an empty row is not the mean of V - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c02); }

TEMPLATE_TEST_CASE("C03 causal with more queries than keys - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c03); }

TEMPLATE_TEST_CASE("C05 first key tile masked - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c05); }

TEMPLATE_TEST_CASE("C10 NaN comes out where NaN is seen - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c10); }

TEMPLATE_TEST_CASE("C11 whatever a masked key holds - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c11); }

TEMPLATE_TEST_CASE("C12 causal is aligned to the bottom right - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c12); }

TEMPLATE_TEST_CASE("C13 the last row of a query tile sees the most keys - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  on_cpu<TestType>(c13);
}

TEMPLATE_TEST_CASE("C24 LSE of an empty row - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c24); }

TEMPLATE_TEST_CASE("C37 a partial query block without a key block - step01 step02 step03 step04 step05 step07 step08", "", float, double) {
  on_cpu<TestType>(c37);
}

TEMPLATE_TEST_CASE("C38 the keys of a window - step01 step02 step03 step04 step05 step07 step08", "", float, double) { on_cpu<TestType>(c38); }

}  // namespace
}  // namespace flashsteps
