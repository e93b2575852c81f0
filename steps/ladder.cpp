#include "common/runner/ladder.hpp"
#include "steps/all.hpp"

int main(int argc, char** argv) { return flashsteps::run_ladder(flashsteps::all_steps(), argc, argv); }
