#include "common/runner/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace flashsteps {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity. A measure that is one becomes null.
Json measure(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }
/// In a trace they say something: "-inf" is the maximum before the first key.
Json value(double x) { return std::isfinite(x) ? Json(x) : Json(std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"); }

Json traffic(const FormOutcome& form) {
  return {{"reads", form.traffic.reads},
          {"writes", form.traffic.writes},
          {"atomics", form.traffic.atomics},
          {"formula", {{"reads", form.traffic_formula.reads}, {"writes", form.traffic_formula.writes}, {"atomics", form.traffic_formula.atomics}}}};
}
Json on_chip(const FormOutcome& form) {
  return {{"peak", form.peak}, {"formula", form.peak_formula}, {"capacity", form.tiled && form.capacity > 0 ? Json(form.capacity) : Json(nullptr)}};
}
Json flops(const FormOutcome& form) { return {{"matmul", form.flops.matmul}, {"other", form.flops.other}}; }
Json tile_shape(const FormOutcome& form) { return form.tiled ? Json{{"br", form.tiles.br}, {"bc", form.tiles.bc}} : Json(nullptr); }

Json seconds(const Outcome& outcome, const FormOutcome& form) {
  const FormOutcome* before = outcome.beside(form);
  return {{"this", form.seconds}, {"before", before ? Json(before->seconds) : Json(nullptr)}};
}

Json kernel(const KernelOutcome& k) {
  Json json{{"name", k.name},
            {"form", k.form.empty() ? Json(nullptr) : Json(k.form)},
            {"tiles", {{"br", k.tiles.br}, {"bc", k.tiles.bc}}},
            {"threads", k.threads},
            {"shared_bytes", k.shared_bytes},
            {"seconds", {{"this", k.seconds}, {"before", k.before_name.empty() ? Json(nullptr) : Json(k.before_seconds)}}},
            {"before", k.before_name.empty() ? Json(nullptr) : Json(k.before_name)}};
  for (int n = 0; n < name_count; ++n) {
    const Traffic& t = k.traffic_formula.of[n];
    const Index bytes = k.bytes_of(Name{n});
    if (t.reads + t.writes + t.atomics > 0)
      json["formula"][std::string(tensor::text[n])] = {{"bytes_read", bytes * t.reads}, {"bytes_written", bytes * (t.writes + t.atomics)}};
  }
  if (!k.traced) return json;
  Json& traced = json["traced"];
  traced["equals_formula"] = k.traced_is_formula;
  for (const gpu::Counters::Array& a : k.traced->arrays)
    traced["arrays"][a.name] = {{"bytes_read", a.read_bytes}, {"sectors_read", a.read_sectors}, {"bytes_written", a.written_bytes}, {"sectors_written", a.written_sectors}};
  const gpu::Counters& c = *k.traced;
  for (const auto& [name, count] : {std::pair{"bank_passes", c.passes}, {"bank_passes_without_conflict", c.ideal_passes}, {"blocks", c.blocks}, {"barriers", c.barriers},
                                    {"shuffles", c.shuffles}, {"warp_syncs", c.syncs}, {"ldmatrix", c.ldmatrix}, {"mma", c.mma}})
    traced[name] = count;
  return json;
}

Json trace(const TraceOutcome& t) {
  Json moments = Json::array();
  for (const Moment<double>& m : t.moments) {
    Json held = Json::array(), normalised = Json::array();
    // The forms that normalise at every key or tile hold o itself, the others l o
    const bool is_normalised = t.form == "column tiles outside" || t.form == "three sweeps" || t.form == "two sweeps";
    for (const double x : m.o) held.push_back(value(x)), normalised.push_back(value(is_normalised ? x : m.l == 0 ? 0 : x / m.l));
    moments.push_back({{"sweep", m.sweep}, {"keys", m.keys}, {"m", value(m.m)}, {"l", value(m.l)}, {"o", held}, {"normalised", normalised}});
  }
  return {{"row", t.row}, {"head", t.head}, {"form", t.form}, {"moments", moments}};
}

}  // namespace

std::string json_report(const Outcome& outcome) {
  const FormOutcome& main = outcome.forms.front();
  Json json;
  json["step"] = outcome.step->number;
  json["name"] = outcome.step->name;
  json["device"] = std::string(word(outcome.device));
  json["dtype"] = std::string(word(outcome.dtype));
  json["causal"] = outcome.causal;
  json["scale"] = outcome.scale;
  json["shape"] = {{"batch", outcome.batch},   {"heads", outcome.heads},       {"kv_heads", outcome.kv_heads},  {"seq_q", outcome.seq_q},
                   {"seq_k", outcome.seq_k},   {"head_dim", outcome.head_dim}, {"value_dim", outcome.value_dim}};
  json["input"] = outcome.source;
  json["tiles"] = tile_shape(main);
  json["equal"] = outcome.equal();
  json["checks"] = Json::array();
  for (const Check& check : outcome.checks)
    json["checks"].push_back({{"form", check.form}, {"against", check.against}, {"of", check.of}, {"max_error", measure(check.comparison.max_error)},
                              {"budget", measure(check.comparison.budget)}, {"share", measure(check.comparison.share())}, {"equal", check.comparison.equal()}});
  json["rows_checked"] = {{"checked", outcome.rows_checked}, {"of", outcome.rows}};
  json["traffic"] = traffic(main);
  json["on_chip"] = on_chip(main);
  json["flops"] = flops(main);
  json["extra_bytes"] = main.extra_bytes ? Json(*main.extra_bytes) : Json(nullptr);
  json["seconds"] = outcome.kernels.empty() ? seconds(outcome, main) : kernel(outcome.kernels.front())["seconds"];
  if (const FormOutcome* before = outcome.beside(main))
    json["before"] = {{"name", outcome.beside_name(main)}, {"form", before->name}, {"traffic", traffic(*before)}, {"on_chip", on_chip(*before)}, {"flops", flops(*before)}};
  json["forms"] = Json::array();
  for (std::size_t f = 1; f < outcome.forms.size(); ++f) {
    const FormOutcome& form = outcome.forms[f];
    json["forms"].push_back({{"form", form.name}, {"home", form.home}, {"tiles", tile_shape(form)}, {"traffic", traffic(form)}, {"on_chip", on_chip(form)},
                             {"flops", flops(form)}, {"extra_bytes", form.extra_bytes ? Json(*form.extra_bytes) : Json(nullptr)}, {"seconds", seconds(outcome, form)}});
  }
  if (!outcome.kernels.empty()) json["runs_on"] = outcome.device_name;
  for (const KernelOutcome& k : outcome.kernels) json["kernels"].push_back(kernel(k));
  if (!outcome.notes.empty()) json["notes"] = outcome.notes;
  if (outcome.unsafe)
    json["unsafe_softmax_in_half"] = {{"rows", outcome.unsafe->rows}, {"nan", outcome.unsafe->nan_rows}, {"zero", outcome.unsafe->zero_rows},
                                      {"float_headroom", measure(outcome.unsafe->headroom)}};
  if (outcome.trace) json["trace"] = trace(*outcome.trace);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace flashsteps
