#include "common/runner/tile_trace.hpp"
#include "common/runner/execute.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flashsteps {
namespace {

/// A number as JSON, with as many digits as it takes to read the same number again; what JSON cannot say is a word.
template <class T> std::string number(T x) {
  return std::isfinite(x) ? fmt::format("{}", x) : std::isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"";
}
/// [at(0), ..., at(n - 1)]
template <class At> std::string list(Index n, At at) {
  std::string text = "[";
  for (Index i = 0; i < n; ++i) text += (i > 0 ? "," : "") + at(i);
  return text + "]";
}
std::string range(Range x) { return fmt::format("[{},{}]", x.begin, x.end); }
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }
std::string_view text_of(Name name) { return tensor::text[int(name)]; }

/// Writes down every event as it happens. A visit and the name of a tile are known only later: the visit goes to where the operands
/// of the tile had been loaded, and a birth says its name when the trace is put together.
template <class T> class Recorder : public Observer, public TileObserver<T> {
 public:
  explicit Recorder(const HeadSizes& sizes) : x_(sizes) {}

  void moved(Move move, Name name, Range rows, Index elements, Index tile) override {
    if (move == Move::store && name == tensor::o) add_skipped(rows);
    if (tile > 0) names_.try_emplace(tile, text_of(name == tensor::lse ? tensor::m : name));  // L comes to stand where m was
    if (move == Move::store && name == tensor::lse) name_rest(tensor::l, std::numeric_limits<Index>::max());
    (move == Move::load ? total_.reads : total_.writes) += elements;
    const char* const verb = move == Move::load ? "load" : move == Move::store ? "store" : "fill";
    add(fmt::format(R"({{"event":"{}","tensor":"{}","rows":{},"elements":{},"reads":{},"writes":{}}})", verb, text_of(name), range(rows), elements, total_.reads, total_.writes));
    loaded_ = move == Move::load ? text_of(name) : "";
    if (move == Move::load) before_visit_ = events_.size();
  }
  void born(Index tile, Index elements) override {
    peak_ = std::max(peak_, on_chip_ += elements);
    live_.insert(tile);
    add_tile("alive", tile, elements);
    if (loaded_.empty()) return;
    names_.emplace(tile, loaded_);
    loaded_ = "";
    before_visit_ = events_.size();
  }
  void died(Index tile, Index elements) override {
    on_chip_ -= elements;
    live_.erase(tile);
    add_tile("dies", tile, elements);
  }
  void visited(Range i, Range j, const Tile<T>& m, const Tile<T>& l, const Tile<T>& o) override {
    if (kind_of_tile(i, j, x_.diagonal) == skip) throw std::logic_error("a tile was visited that no row sees");
    // The first that is born on chip when all operands are there is S, as large as the tile
    const Event& scores = events_.at(before_visit_);
    if (scores.tile > 0 && scores.elements == i.size() * j.size()) names_.try_emplace(scores.tile, text_of(tensor::s));
    const Index before = scores.tile;
    events_.insert(events_.begin() + before_visit_, visit(i, j));
    names_.try_emplace(m.id(), text_of(tensor::m));
    names_.try_emplace(l.id(), text_of(tensor::l));
    names_.try_emplace(o.id(), text_of(tensor::o));
    name_rest(tensor::m, before);  // m of the row tile before its first tile; it has become alpha
    const Index rows = i.size();
    add(fmt::format(R"({{"event":"values","i":{},"j":{},"rows":{},"m":{},"l":{},"o":{}}})", i.begin / x_.br, j.begin / x_.bc, range(i),
                    list(rows, [&](Index r) { return number(m(r)); }), list(rows, [&](Index r) { return number(l(r)); }),
                    list(rows, [&](Index r) { return list(o.cols(), [&](Index e) { return number(o(r, e)); }); })));
  }

  /// The events, a line each.
  std::string text() const {
    std::string all;
    for (const Event& event : events_) {
      all += (all.empty() ? "  " : ",\n  ") + event.before;
      if (event.tile > 0) all += names_.contains(event.tile) ? fmt::format("\"{}\"", names_.at(event.tile)) : "null";
      all += event.after;
    }
    return all;
  }
  const Traffic& total() const { return total_; }
  Index peak() const { return peak_; }

 private:
  struct Event {
    std::string before, after = "";  // for a birth or a death, the name of the tile stands between them
    Index tile = 0, elements = 0;
  };
  HeadSizes x_;
  std::vector<Event> events_;
  std::map<Index, std::string_view> names_;
  std::set<Index> live_;
  Traffic total_;
  Index on_chip_ = 0, peak_ = 0;
  std::string_view loaded_;      // the tensor of which rows were just loaded: they are born next
  std::size_t before_visit_ = 0; // where the operands that were loaded last are on chip

  /// Names what was born before a tile, is alive and has no name.
  void name_rest(Name name, Index before) {
    for (const Index tile : live_)
      if (tile < before) names_.try_emplace(tile, text_of(name));
  }
  void add(std::string text) { events_.push_back({std::move(text)}); }
  void add_tile(const char* what, Index tile, Index elements) {
    events_.push_back({fmt::format(R"({{"event":"{}","tile":{},"name":)", what, tile),
                       fmt::format(R"(,"elements":{},"on_chip":{},"peak":{}}})", elements, on_chip_, peak_), tile, elements});
  }
  Event visit(Range i, Range j) const {
    const TileKind kind = kind_of_tile(i, j, x_.diagonal);
    return {fmt::format(R"({{"event":"visit","i":{},"j":{},"rows":{},"keys":{},"kind":"{}"}})", i.begin / x_.br, j.begin / x_.bc, range(i), range(j),
                        kind == skip ? "skip" : kind == full ? "full" : "partial")};
  }
  /// When O of a row tile is complete, the tiles of its row that no query sees have been passed over.
  void add_skipped(Range i) {
    for (const Range j : tiles(x_.nk, x_.bc))
      if (kind_of_tile(i, j, x_.diagonal) == skip) events_.push_back(visit(i, j));
  }
};

}  // namespace

void check_tile_trace(const HeadSizes& x, TileShape tiles) {
  const Index rows = tile_count(x.nq, tiles.br), columns = tile_count(x.nk, tiles.bc);
  if (double(rows) * double(columns) > double(most_traced_tiles))
    throw BadInput(fmt::format("--trace-tiles: {} x {} tiles are more than {}, the most that a trace takes", rows, columns, most_traced_tiles));
  const double numbers = double(columns + 1) * double(x.nq) * double(x.dv + 2);
  if (numbers > double(most_traced_numbers))
    throw BadInput(fmt::format("--trace-tiles: m, l and o after every tile would be {:.0f} numbers, a trace takes {} at most", numbers, most_traced_numbers));
}

template <class T> std::string tile_trace(const Step& step, const Options& options, const Problem<T>& p, const TileChoice& choice) {
  const Form& form = step.forward();
  const Index h = options.trace_head, kv = step.kv_head(h, p.heads(), p.kv_heads());
  const HeadSizes sizes = sizes_of(form, p, choice.tiles);
  Output<T> out(p);
  Recorder<T> recorder(sizes);
  Memory memory(choice.capacity, &recorder);
  Head<T> head = head_of(p, out, 0, h, kv, choice.tiles);
  head.watch = Watch<T>(recorder);
  form.algorithm<T>().forward(head, memory);
  const Traffic total = memory.counts().total();
  if (recorder.total() != total || recorder.peak() != memory.peak()) throw std::logic_error("the trace has lost an event");

  std::string text = "{\n";
  text += R"( "flashsteps":"tiles","version":1,)" "\n";
  text += fmt::format(R"( "step":{},"name":{},"form":{},"dtype":"{}","input":{},)" "\n", step.number, quoted(step.name), quoted(form.name), word(options.dtype), quoted(p.source));
  text += fmt::format(R"( "head":{},"kv_head":{},"shape":{{"seq_q":{},"seq_k":{},"head_dim":{},"value_dim":{}}},)" "\n", h, kv, sizes.nq, sizes.nk, sizes.d, sizes.dv);
  text += fmt::format(R"( "tiles":{{"br":{},"bc":{}}},"causal":{},"diagonal":{},"scale":{},"capacity":{},)" "\n", sizes.br, sizes.bc, p.causal,
                      p.causal ? fmt::format("{}", sizes.diagonal) : "null", number(p.scale), choice.capacity);
  text += fmt::format(R"( "o_is_normalised":{},)" "\n", step.number == 4);  // while it is on the way: 05 and after divide at the end
  text += R"( "events":[)" "\n" + recorder.text() + "\n ],\n";
  text += fmt::format(R"( "o":{},)" "\n", list(sizes.nq, [&](Index i) { return list(sizes.dv, [&](Index e) { return number(out.o.at(0, h, i, e)); }); }));
  text += fmt::format(R"( "lse":{},)" "\n", list(sizes.nq, [&](Index i) { return number(out.lse.at(0, h, i, 0)); }));
  text += fmt::format(R"( "totals":{{"reads":{},"writes":{},"peak":{}}})" "\n}}\n", total.reads, total.writes, memory.peak());
  return text;
}

template std::string tile_trace(const Step&, const Options&, const Problem<float>&, const TileChoice&);
template std::string tile_trace(const Step&, const Options&, const Problem<double>&, const TileChoice&);

}  // namespace flashsteps
