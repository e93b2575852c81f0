#include "common/runner/program.hpp"
#include "steps/all.hpp"

int main(int argc, char** argv) { return flashsteps::run_program(flashsteps::all_steps(), 8, argc, argv); }
