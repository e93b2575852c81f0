"""The numbers of the page on speed. Its table is what `make compare` wrote, and is not computed again."""
from computed import run

PAGE = "docs/performance.md"
NUMBERS = {"49,152": lambda: run("05_fa2_loop_swap")["on_chip"]["capacity"]}
QUOTED = {
    "1.05": "the target of make compare without AVX-512, tests/benchmarks/compare_cases.py",
    "0.91": "products of step 05 beside a loop of multiply-adds, measured once",
    "0.83": "the same",
}
