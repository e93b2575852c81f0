// Steps 05 to 08 as a shared library with a C interface, for compare.py: attention of [batch, heads, rows, columns], computed by what the
// programs compute with (execute_once), on a copy of somebody else's numbers. binding.py calls it.
#include "common/runner/execute.hpp"
#include "common/runner/tile_choice.hpp"
#include "steps/all.hpp"
#include "tests/benchmarks/peak.hpp"

#include <fmt/format.h>

#define FLASHSTEPS_C extern "C" [[gnu::visibility("default")]]

/// What attention is computed of. binding.py has the same struct.
struct FlashstepsProblem {
  std::int64_t size;      ///< bytes of this struct
  std::int64_t bytes;     ///< of an element: 4 or 8
  std::int64_t batch,     ///< batch entries
      heads,              ///< query heads of a batch entry
      kv_heads,           ///< heads of K and V of a batch entry
      seq_q,              ///< Nq
      seq_k,              ///< Nk
      head_dim,           ///< d
      value_dim;          ///< dv; each of these is at least 1
  double scale;           ///< tau
  const void *q, *k, *v,  ///< [batch, heads, rows, columns], without gaps
      *d_o;               ///< as O; null if there is no backward pass
};

/// One pass over all heads. binding.py has the same struct.
struct FlashstepsPass {
  std::int64_t size;      ///< bytes of this struct
  std::int64_t step,      ///< 5 to 8
      backward,           ///< 1: the gradients, from O and L of the last forward pass
      causal,             ///< 1: with a mask
      threads;            ///< of the parallel loop
  std::int64_t br, bc;    ///< tiles; both 0: those that the programs take
  std::int64_t taken_br,  ///< is written: Br
      taken_bc;           ///< is written: Bc
  double seconds;         ///< is written: the time as the programs report it, without the NaN that outputs hold before
};

namespace flashsteps {
namespace {

std::string message;  // of the last error

/// The threads of the parallel loops, while it lives.
class Threads {
 public:
  explicit Threads(std::int64_t n) : before_(omp_get_max_threads()) { omp_set_num_threads(int(n)); }
  Threads(const Threads&) = delete;
  ~Threads() { omp_set_num_threads(before_); }

 private:
  const int before_;
};

const Step& step_of(std::int64_t number) {
  for (const Step* step : {&step05::step(), &step06::step(), &step07::step(), &step08::step()})
    if (step->number == number) return *step;
  throw BadInput(fmt::format("step is {}: it is 5, 6, 7 or 8", number));
}

/// A problem with its results, in either type.
class Session {
 public:
  virtual ~Session() = default;
  virtual void run(FlashstepsPass& pass) = 0;
  /// The elements of o, lse, dq, dk or dv, and how many there are.
  virtual std::pair<const void*, std::size_t> result(std::string_view name) const = 0;
};

template <class T> class SessionOf : public Session {
 public:
  explicit SessionOf(const FlashstepsProblem& x) : problem_(problem(x)), out_(problem_) {}

  void run(FlashstepsPass& pass) override {
    const Step& step = step_of(pass.step);
    if (pass.backward && !step.has_backward()) throw BadInput(fmt::format("step {} has no backward pass", step.number));
    if (pass.backward && !problem_.gradients) throw BadInput("a backward pass needs d_o");
    if (pass.backward && forward_ != std::pair(true, pass.causal != 0)) throw BadInput("a backward pass needs a forward pass with the same mask before it");
    if (pass.causal && !step.causal) throw BadInput(fmt::format("step {} has no mask", step.number));
    if (problem_.heads() != problem_.kv_heads() && !step.gqa)
      throw BadInput(fmt::format("step {} cannot read {} heads of K and V for {} of Q", step.number, problem_.kv_heads(), problem_.heads()));
    if (pass.threads < 1 || pass.threads > 4096) throw BadInput(fmt::format("threads is {}: it is 1 to 4096", pass.threads));
    if ((pass.br == 0) != (pass.bc == 0) || std::min(pass.br, pass.bc) < 0 || std::max(pass.br, pass.bc) > kLongestAxis)
      throw BadInput(fmt::format("tiles of {} x {}: both are 0, or both 1 to {}", pass.br, pass.bc, kLongestAxis));

    problem_.causal = pass.causal != 0;
    const Form& form = pass.backward ? *step.backward() : step.forward();
    Options options;  // the tiles that the programs take on a chip as large as a core's second-level cache, or those given
    options.dtype = std::is_same_v<T, float> ? Dtype::float32 : Dtype::float64;
    if (pass.br != 0) options.br = pass.br, options.bc = pass.bc, options.sram = kMostElements;
    const TileChoice choice = tiles_of(step, form, problem_, options, cache_bytes() / Index(sizeof(T)));
    Memory memory(choice.capacity);
    const Threads threads(pass.threads);
    if (!pass.backward) forward_ = {false, false};
    pass.seconds = execute_once(form, problem_, out_, choice.tiles, step.kv_head, memory);
    if (!pass.backward) forward_ = {true, problem_.causal};
    pass.taken_br = choice.tiles.br, pass.taken_bc = choice.tiles.bc;
  }

  std::pair<const void*, std::size_t> result(std::string_view name) const override {
    const std::pair<std::string_view, const Tensor<T>*> all[]{{"o", &out_.o}, {"lse", &out_.lse}, {"dq", &out_.dq}, {"dk", &out_.dk}, {"dv", &out_.dv}};
    for (const auto& [known, tensor] : all)
      if (known == name) return {tensor->numbers.data(), tensor->numbers.size()};
    throw BadInput("a result is o, lse, dq, dk or dv");
  }

 private:
  static Problem<T> problem(const FlashstepsProblem& x) {
    const auto tensor = [&](const void* data, Index heads, Index rows, Index cols) {
      Tensor<T> copy(x.batch, heads, rows, cols, Layout::bhsd, T(0));
      std::memcpy(copy.numbers.data(), data, copy.numbers.size() * sizeof(T));
      return copy;
    };
    Problem<T> p;
    p.q = tensor(x.q, x.heads, x.seq_q, x.head_dim);
    p.k = tensor(x.k, x.kv_heads, x.seq_k, x.head_dim);
    p.v = tensor(x.v, x.kv_heads, x.seq_k, x.value_dim);
    if (x.d_o) p.d_o = tensor(x.d_o, x.heads, x.seq_q, x.value_dim), p.gradients = true;
    p.scale = T(x.scale);
    return p;
  }

  Problem<T> problem_;
  Output<T> out_;
  std::pair<bool, bool> forward_{false, false};  // are O and L there, and with a mask?
};

std::unique_ptr<Session> open(const FlashstepsProblem* x) {
  if (!x || x->size != std::int64_t(sizeof *x)) throw BadInput("the struct is not a FlashstepsProblem of this library");
  if (x->bytes != 4 && x->bytes != 8) throw BadInput(fmt::format("bytes is {}: an element has 4 or 8", x->bytes));
  for (const std::int64_t axis : {x->batch, x->heads, x->kv_heads, x->seq_q, x->seq_k, x->head_dim, x->value_dim})
    if (axis < 1 || axis > kLongestAxis) throw BadInput(fmt::format("an axis is {}: it is 1 to {}", axis, kLongestAxis));
  const double most =
      double(x->batch) * double(std::max(x->heads, x->kv_heads)) * double(std::max(x->seq_q, x->seq_k)) * double(std::max(x->head_dim, x->value_dim));
  if (!(most <= double(kMostElements))) throw BadInput(fmt::format("a tensor would have {:.0f} elements: at most {} are taken", most, kMostElements));
  if (x->heads % x->kv_heads != 0) throw BadInput(fmt::format("{} query heads cannot share {} heads of K and V", x->heads, x->kv_heads));
  if (!std::isfinite(x->scale)) throw BadInput("scale is not finite");
  if (!x->q || !x->k || !x->v) throw BadInput("q, k or v is null");
  if (x->bytes == 4) return std::make_unique<SessionOf<float>>(*x);
  return std::make_unique<SessionOf<double>>(*x);
}

/// What `work` returns, or `otherwise` after what it throws, which is kept as the message.
template <class Result, class Work> Result guarded(Result otherwise, Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    message = error.what();
    return otherwise;
  }
}

#ifdef NDEBUG
constexpr bool assertions = false;
#else
constexpr bool assertions = true;
#endif

}  // namespace
}  // namespace flashsteps

using namespace flashsteps;

/// How the library was built, as one JSON object.
/// @return a text that lives as long as the library
FLASHSTEPS_C const char* flashsteps_description() {
  static const std::string text =
      fmt::format(R"({{"assertions": {}, "simd_bytes": {}, "simd_registers": {}, "build_type": "{}", "compiler": "{} {}", "flags": "{}"}})", assertions,
                  simd_bytes, simd_registers, FLASHSTEPS_BUILD_TYPE, FLASHSTEPS_COMPILER, __VERSION__, FLASHSTEPS_FLAGS);
  return text.c_str();
}

/// @return one line about the last call that failed
FLASHSTEPS_C const char* flashsteps_error() { return message.c_str(); }

/// Copies a problem.
/// @param problem  the problem
/// @return it, to be closed, or null if it cannot be computed
FLASHSTEPS_C void* flashsteps_open(const FlashstepsProblem* problem) {
  return guarded<void*>(nullptr, [&] { return open(problem).release(); });
}

/// Computes a pass, after its outputs have been filled with NaN.
/// @param session  what flashsteps_open returned
/// @param pass     what is computed; what is written there is written
/// @return 0, or 1 if it cannot be computed
FLASHSTEPS_C int flashsteps_run(void* session, FlashstepsPass* pass) {
  return guarded(1, [&] {
    if (!session) throw BadInput("there is no problem");
    if (!pass || pass->size != std::int64_t(sizeof *pass)) throw BadInput("the struct is not a FlashstepsPass of this library");
    static_cast<Session*>(session)->run(*pass);
    return 0;
  });
}

/// The elements of one result, NaN until a pass writes them.
/// @param session  what flashsteps_open returned
/// @param name     o, lse, dq, dk or dv
/// @param count    is written: how many elements there are
/// @return the first element, which stays there until the session is closed; null if there is no such result
FLASHSTEPS_C const void* flashsteps_result(void* session, const char* name, std::int64_t* count) {
  return guarded<const void*>(nullptr, [&] {
    if (!session || !name || !count) throw BadInput("there is no problem, no name or no count");
    const auto [data, n] = static_cast<Session*>(session)->result(name);
    *count = std::int64_t(n);
    if (n == 0) throw BadInput(fmt::format("there is no {} without d_o", name));
    return data;
  });
}

/// Forgets a problem and its results.
/// @param session  what flashsteps_open returned, or null
FLASHSTEPS_C void flashsteps_close(void* session) { delete static_cast<Session*>(session); }

/// Multiply-adds on registers alone, in float, on so many threads at once.
/// @param threads  at least 1
/// @return billions of operations a second of all threads together, two for a multiply-add; 0 if that cannot be measured
FLASHSTEPS_C double flashsteps_peak(std::int64_t threads) {
  return guarded(0., [&] {
    if (threads < 1 || threads > 4096) throw BadInput(fmt::format("threads is {}: it is 1 to 4096", threads));
    return bench::peak<float>(int(threads));
  });
}
