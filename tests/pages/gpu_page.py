"""The numbers of the page on GPUs. What a GPU measures stands in no page."""
PAGE = "docs/gpu.md"
NUMBERS = {}
QUOTED = {
    "16,384": "tests/benchmarks/gpu.cpp, default",
    "2,048": "tests/benchmarks/gpu.cpp, default",
    "24.04": "a version of Ubuntu",
    "3.25": "CMakeLists.txt, cmake_minimum_required",
}
