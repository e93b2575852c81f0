"""Tests the programs of the steps as somebody would who has never seen their source: arguments in; exit status, text, JSON and .npy files out.

    python3 tests/programs.py BUILD_DIR [GROUP ...]

Without a group all are run. What comes out is held to NumPy and to numbers printed elsewhere.
Exit status 0: all right. 1: not (what failed is printed). 2: wrong use. 77: no NumPy.
"""

import sys
import traceback

sys.dont_write_bytecode = True

import program_helpers as helpers
import programs_bad
import programs_costs
import programs_kernels
import programs_numpy
import programs_output
import programs_reports
import programs_tiles
import programs_values
import programs_wrong

GROUPS = {
    "runs": programs_reports.runs,            # without arguments, from anywhere; --help
    "json": programs_reports.json_report,     # every key; costs and results on the shipped input
    "costs": programs_costs.costs,            # traffic, footprint, FLOPs on ragged shapes
    "trace": programs_reports.trace,          # m, l, o of a row after every key or tile
    "trace-tiles": programs_tiles.trace_tiles,  # one head, tile by tile
    "terminal": programs_reports.terminal,    # colour, silence
    "foreign": programs_values.foreign,       # sums that another implementation printed
    "files": programs_values.files,           # types, orders, layouts, scales, dO
    "seeded": programs_values.seeded_shapes,  # odd sizes
    "edge": programs_values.edge,             # axes of 0, NaN, infinity
    "causal": programs_values.causal,
    "gqa": programs_values.gqa,
    "threads": programs_output.threads,       # the same bits
    "output": programs_output.output,         # the folder
    "tiles": programs_bad.tiles,              # --br, --bc, --sram
    "bad": programs_bad.bad,                  # what is refused
    "kernels": programs_kernels.kernels,      # --device cuda-on-cpu, half, bfloat16, --trace-kernel
    "wrong": programs_wrong.wrong,            # a wrong step is found out
}


def main():
    if len(sys.argv) < 2 or any(name not in GROUPS for name in sys.argv[2:]):
        print(f"use: python3 tests/programs.py BUILD_DIR [GROUP ...], with groups {' '.join(GROUPS)}", file=sys.stderr)
        return 2
    programs_numpy.self_test()
    for name in sys.argv[2:] or GROUPS:
        before = helpers.checks
        with helpers.temporary() as folder:
            try:
                GROUPS[name](helpers.Programs(sys.argv[1], folder))
            except Exception:  # what failed before says why
                helpers.check(False, f"{name} ended early:\n{traceback.format_exc()}")
        print(f"{name}: {helpers.checks - before} checks")
    for failure in helpers.failures:
        print("FAILED:", failure)
    print(f"{helpers.checks - len(helpers.failures)} of {helpers.checks} checks are right (NumPy {helpers.np.__version__})")
    return 1 if helpers.failures else 0


if __name__ == "__main__":
    sys.exit(main())
