// Reads the arguments.
#include "options.hpp"
#include <cstdlib>
#include <stdexcept>

namespace flashsteps {

Options read_options(int count, char** words) {
  Options x;
  const auto whole = [](const char* text) { return Index(std::strtoll(text, nullptr, 10)); };
  for (int n = 1; n < count; ++n) {
    const std::string name = words[n];
    if (name == "--causal") {
      x.causal = true;
      continue;
    }
    if (n + 1 == count) throw std::invalid_argument(name + " wants a value");
    const char* const value = words[++n];
    if (name == "--form") x.form = value;
    else if (name == "--type") x.type = value;
    else if (name == "--in") x.in = value;
    else if (name == "--out") x.out = value;
    else if (name == "--br") x.br = whole(value);
    else if (name == "--bc") x.bc = whole(value);
    else if (name == "--heads") x.heads = whole(value);
    else if (name == "--kv-heads") x.kv_heads = whole(value);
    else if (name == "--capacity") x.capacity = whole(value);
    else if (name == "--scale") x.scale = std::strtod(value, nullptr);
    else if (name == "--window") x.window = std::strtod(value, nullptr);
    else if (name == "--softcap") x.softcap = std::strtod(value, nullptr);
    else if (name == "--slope") x.slope = std::strtod(value, nullptr);
    else throw std::invalid_argument("unknown argument " + name);
  }
  if (x.form.empty() || x.type.empty() || x.in.empty() || x.out.empty()) throw std::invalid_argument("wanted are --form, --type, --in and --out");
  if (x.br < 1 || x.bc < 1 || x.kv_heads < 1 || x.heads < x.kv_heads || x.heads % x.kv_heads != 0) throw std::invalid_argument("the sizes do not fit together");
  return x;
}

}  // namespace flashsteps
