// Which tiles are taken where nobody typed any: the largest of 64, 48, 32, 16 and 8 with which what is alive on chip stays in a
// core's second-level cache.
#include "common/runner/tile_choice.hpp"
#include "steps/all.hpp"
#include "tests/catch.hpp"

namespace flashsteps {
namespace {

HeadSizes square(Index n, Index d) { return {.nq = n, .nk = n, .d = d, .dv = d, .diagonal = n}; }

TEST_CASE("the default tile is the largest of 64, 48, 32, 16 and 8 whose footprint the cache holds step04 step05 step06 step07 step08") {
  CHECK(cache_bytes() > 0);
  for (const Step* step : {&step04::step(), &step05::step(), &step06::step(), &step07::step(), &step08::step()})
    for (const Index bytes : {4, 8})
      for (const Index d : {1, 32, 64, 128, 256, 1000})
        for (const Index cache : {Index(1), Index(32 << 10), Index(256 << 10), Index(512 << 10), Index(2 << 20), Index(1) << 40}) {
          CAPTURE(step->name, bytes, d, cache);
          const Form& form = step->main();
          const Index side = default_side(form, square(4096, d), bytes, cache);
          const auto fits = [&](Index b) {
            HeadSizes x = square(4096, d);
            x.br = x.bc = b;
            return form.on_chip(x) * bytes <= cache;
          };
          CHECK((side == 64 || side == 48 || side == 32 || side == 16 || side == 8));
          if (side > 8) CHECK(fits(side));
          if (side < 64) CHECK(!fits(side == 8 ? 16 : side + 16));
        }
}

TEST_CASE("typed tiles override the default") {
  Options options;
  options.br = 24;
  const TileChoice choice = choose_tiles({{&step05::step().main(), square(4096, 64)}}, options, false);
  CHECK(choice.tiles.br == 24);
  CHECK(choice.tiles.bc == default_side(step05::step().main(), square(4096, 64), 4, cache_bytes()));
}

}  // namespace
}  // namespace flashsteps
