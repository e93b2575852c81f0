// What the figures know of the steps' costs.
#include <fmt/format.h>

#include "common/runner/execute.hpp"
#include "common/runner/report.hpp"
#include "common/runner/tile_choice.hpp"
#include "figures.hpp"
#include "steps/all.hpp"

namespace flashsteps::figures {

Index moved(const Form& form, const HeadSizes& sizes) { return flashsteps::moved(form.traffic(sizes).total()); }

HeadSizes fitting(const Form& form, HeadSizes sizes, Index capacity) {
  const TileChoice choice = shrink_to_fit(form, sizes, {sizes.br, sizes.bc}, capacity);
  if (!choice.note.empty()) throw std::logic_error(form.home + ": no tile fits");
  sizes.br = choice.tiles.br, sizes.bc = choice.tiles.bc;
  return sizes;
}

HeadSizes default_sizes() { return make_problem<float>(step01::step(), Options{}).sizes(Pieces::heads); }

std::vector<Cost> default_costs() {
  std::vector<Cost> costs;
  double standard_forward = 0, standard_backward = 0;
  for (const Step* step : all_steps()) {
    const Problem<float> p = make_problem<float>(*step, Options{});
    const auto cost = [&](const Form& form) { return formula_of(form, p, tiles_of(*step, form, p, Options{}).tiles); };
    for (const Form& form : step->forms)
      if (form.name == "standard" && form.home == step->name)
        (form.backward() ? standard_backward : standard_forward) = double(flashsteps::moved(cost(form).traffic_formula));
    // "04 FlashAttention-1", "05 FlashAttention-2": the name that everybody knows; otherwise the form's
    const bool known = step->title.starts_with("FlashAttention");
    for (const Form& form : step->forms) {
      if (form.home != step->name) continue;
      const FormOutcome outcome = cost(form);
      costs.push_back({step, &form, fmt::format("{:02} {}", step->number, known ? step->title.substr(0, step->title.find(':')) : form.name),
                       outcome.traffic_formula, outcome.peak_formula,
                       double(flashsteps::moved(outcome.traffic_formula)) / (form.backward() ? standard_backward : standard_forward)});
    }
  }
  return costs;
}

}  // namespace flashsteps::figures
