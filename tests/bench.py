"""Tests the programs of `make bench` for what does not depend on the clock.

    python3 tests/bench.py BUILD_DIR

Builds them first: they are no part of the default build. Exit status 0: all right. 1: not (what failed is printed). 77: no Google Benchmark.
"""

import json
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True

import program_helpers as helpers
from program_helpers import check, failures

# Step, form, backward: in every problem, and those with a mask once more
FORMS = [("01_safe_softmax_3pass", "standard", False), ("01_safe_softmax_3pass", "three sweeps", False), ("02_online_softmax_2pass", "two sweeps", False),
         ("03_fa_1pass", "one sweep", False), ("03_fa_1pass", "one sweep, normalised", False), ("04_fa1_tiled", "column tiles outside", False),
         ("05_fa2_loop_swap", "row tiles outside", False), ("06_backward_recompute", "standard", True), ("06_backward_recompute", "column order", True),
         ("06_backward_recompute", "row order", True), ("07_causal_early_exit", "forward", False), ("07_causal_early_exit", "backward", True),
         ("08_gqa", "forward", False), ("08_gqa", "backward", True)]
# What each is laid beside: step, form, under the same mask?
BESIDE = {("02_online_softmax_2pass", "two sweeps"): ("three sweeps", True), ("03_fa_1pass", "one sweep"): ("two sweeps", True),
          ("03_fa_1pass", "one sweep, normalised"): ("two sweeps", True), ("04_fa1_tiled", "column tiles outside"): ("one sweep", True),
          ("05_fa2_loop_swap", "row tiles outside"): ("column tiles outside", True), ("06_backward_recompute", "column order"): ("standard", True),
          ("06_backward_recompute", "row order"): ("standard", True), ("07_causal_early_exit", "forward"): ("row tiles outside", False),
          ("07_causal_early_exit", "backward"): ("column order", False), ("08_gqa", "forward"): ("forward", True), ("08_gqa", "backward"): ("backward", True)}
CASE = {"step", "form", "pass", "causal", "element", "n", "d", "threads", "heads", "kv_heads"}
RESULT = {"br", "bc", "runs", "seconds", "least_seconds", "most_seconds", "flop", "gflops", "share_of_peak", "moved_bytes", "bytes_per_element", "extra_bytes"}


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def built(folder):
    """Brings the programs up to date; their paths, and whether the build has assertions."""
    cache = open(os.path.join(folder, "CMakeCache.txt")).read()
    if not re.search(r"^benchmark_DIR:\w+=(?!.*NOTFOUND).+", cache, re.M):
        skip("Google Benchmark was not found when the build was configured")
    names = ["bench", "bench_with_assertions", "against_eigen", "against_eigen_tuned"]
    subprocess.run(["cmake", "--build", folder, "--target", *names], check=True, stdout=subprocess.DEVNULL)
    mode = re.search(r"^CMAKE_BUILD_TYPE:\w+=(.*)", cache, re.M)[1]
    flags = "".join(re.findall(rf"^CMAKE_CXX_FLAGS(?:_{mode.upper()})?:\w+=(.*)", cache, re.M))
    return [os.path.join(os.path.abspath(folder), "tests", name) for name in names], "-DNDEBUG" not in flags


def refused(programs, argv, says, name):
    result = programs.execute(argv)
    check(result.status == 2 and result.out == "" and result.err.count("\n") == 1 and result.err.startswith(name) and says in result.err,
          f"{result.call}: status {result.status}, stderr {result.err!r}, stdout {result.out[:100]!r}")


def read(folder):
    return json.load(open(os.path.join(folder, "bench.json")))


def bad_arguments(programs, bench, against_eigen):
    for argv, says in ([["--frob"], "--frob"], [["--n"], "needs a value"], [["--n", "0"], "--n 0"], [["--n", "512,256"], "rise"], [["--n", "64,"], "--n"], [["--d", "x"], "--d x"],
                       [["--threads", "1,1"], "rise"], [["--seconds", "nan"], "--seconds"], [["--seconds", "-1"], "--seconds"], [["--least", "0"], "--least"],
                       [["--memory", "1.5"], "--memory"], [["--group", "0"], "--group"], [["--n", "64", "--out", "not/there"], "not/there"]):
        refused(programs, [bench, *argv], says, "bench: ")
    for argv in (["x"], ["5", "0"], ["0"]):
        refused(programs, [against_eigen, *argv], argv[-1], "against_eigen")
    result = programs.execute([bench, "--help"])
    check(result.status == 0 and "--seconds" in result.out and result.err == "", f"--help: {result.out!r} {result.err!r}")


def lists(programs, bench):
    names = programs.execute([bench, "--list", "--double", "--threads", "1,2", "--n", "512,1024", "--d", "64"]).out.split("\n")[:-1]
    masked = sum(step >= "07" for step, _, _ in FORMS)
    check(len(names) == len(set(names)) == 4 * (len(FORMS) + masked) + 4, f"--list: {len(names)} names")
    check("05_fa2_loop_swap/row tiles outside/forward/full/double/threads:2/d:64/N:1024" in names, f"--list: {names[:3]}")
    default = programs.execute([bench, "--list"], env={"OMP_NUM_THREADS": "3"}).out
    check({*re.findall(r"N:(\d+)", default)} == {"512", "1024", "2048", "4096", "8192", "16384"}, "lengths by default")
    check({*re.findall(r"d:(\d+)/", default)} == {"32", "64", "128", "256"}, "head dimensions by default")
    check({*re.findall(r"threads:(\d+)", default)} == {"1", "3"}, "threads by default")


def runs(programs, bench):
    folder = programs.new("out")
    os.mkdir(folder)
    result = programs.execute([bench, "--n", "64,96", "--d", "16", "--threads", "1,2", "--least", "0.001", "--full", "--double", "--out", folder])
    check(result.status == 0 and result.err == "", f"{result.call}: status {result.status}, {result.err!r}")
    for words in ("assertions off", "mode ", "agrees with the definition", "Multiply-adds in registers, double, 2 threads", "float, d 16, N 96, 2 threads, 2 heads"):
        check(words in result.out, f"output without {words!r}")
    report = read(folder)
    check(set(report) == {"machine", "build", "flop", "peaks", "cases"}, f"keys {set(report)}")
    check(report["build"]["assertions"] is False and report["build"]["mode"] and report["machine"]["cores"] >= 1, "machine and build")
    peaks = {(p["element"], p["threads"]): p["gflops"] for p in report["peaks"]}
    check(set(peaks) == {(e, t) for e in ("float", "double") for t in (1, 2)} and all(p > 0 for p in peaks.values()), f"peaks {peaks}")
    expected = {(step, form, "backward" if backward else "forward", causal, element, n, threads) for step, form, backward in FORMS for causal in (False, True)
                for element in ("float", "double") for n in (64, 96) for threads in (1, 2) if (step >= "07" or not causal) and (element == "float" or step[:2] == "05")}
    cases = report["cases"]
    check({(c["step"], c["form"], c["pass"], c["causal"], c["element"], c["n"], c["threads"]) for c in cases} == expected and len(cases) == len(expected), "which cases there are")
    for c in cases:
        case_is_right(c, peaks)
    for c in cases:
        if (c["step"], c["form"]) == ("01_safe_softmax_3pass", "standard"):
            n, d = c["n"], c["d"]
            check(c["moved_bytes"] == 4 * c["heads"] * (4 * n * n + 4 * n * d + n), f"standard moves {c['moved_bytes']} bytes")
            check(c["extra_bytes"] >= 2 * 4 * n * n, f"standard takes {c['extra_bytes']} bytes")
    figure = xml.parse(os.path.join(folder, "bench.svg")).getroot()
    words = "".join(figure.itertext())
    check(all(w in words for w in ("seconds", "bytes moved", "bytes allocated", "01 standard", "08 causal", "d = 16", "1 thread,")), "words of the figure")
    check("prefers-color-scheme:dark" in words, "a figure for light and dark")


def case_is_right(c, peaks):
    name = f"{c['step']} {c['form']} {c['causal']} {c['n']} {c['threads']}"
    if not check(CASE | RESULT <= set(c) <= CASE | RESULT | {"before"}, f"{name}: keys {set(c)}"):
        return
    check(c["heads"] >= c["threads"] and c["kv_heads"] == c["heads"], f"{name}: {c['heads']} heads")
    pairs = c["n"] * (c["n"] + 1) // 2 if c["causal"] else c["n"] ** 2
    check(c["flop"] == (10 if c["pass"] == "backward" else 4) * pairs * c["d"] * c["heads"], f"{name}: {c['flop']} operations")
    check(0 < c["least_seconds"] <= c["seconds"] <= c["most_seconds"] and c["runs"] >= 1, f"{name}: seconds")
    check(math.isclose(c["gflops"], c["flop"] / c["seconds"] / 1e9), f"{name}: GF/s")
    check(math.isclose(c["share_of_peak"], c["gflops"] / peaks[c["element"], c["threads"]]), f"{name}: share of the peak")
    check(math.isclose(c["bytes_per_element"], c["moved_bytes"] / (c["heads"] * c["n"] * c["d"])) and c["moved_bytes"] > 0, f"{name}: bytes per element")
    check(c["extra_bytes"] > 0, f"{name}: memory")
    beside = None if c["element"] == "double" else BESIDE.get((c["step"], c["form"]))
    if beside:
        before = c.get("before", {})
        check(before.get("form") == beside[0] and before["causal"] == (c["causal"] and beside[1]) and before["times_faster"] > 0, f"{name}: beside {before}")
    else:
        check("before" not in c, f"{name}: beside {c.get('before')}")


def skips(programs, bench):
    """What would not fit or takes too long is named with its reason."""
    folder = programs.new("out")
    os.mkdir(folder)
    for argv, reason in ((["--n", "64", "--memory", "1000"], "would not fit"), (["--n", "64,96", "--seconds", "0"], "would take about")):
        result = programs.execute([bench, "--d", "16", "--threads", "1", "--least", "0.001", "--out", folder, *argv])
        cases = read(folder)["cases"]
        out = [c for c in cases if "not_run" in c]
        check(result.status == 0 and len(out) == 18 and len(cases) == 18 * len(argv[1].split(",")), f"{result.call}: {len(out)} of {len(cases)} skipped")
        check(all(reason in c["not_run"] and set(c) == CASE | {"not_run"} for c in out), f"{result.call}: {out[:1]}")
        check(result.out.count(f"skipped: {reason}") == 18, f"{result.call}: {result.out[-300:]}")
    standard = programs.execute([bench, "--n", "1024", "--d", "16", "--threads", "1", "--memory", "4000000", "--full", "--benchmark_filter=01.*standard", "--out", folder]).out
    check("skipped: would not fit: 0.00781 GiB of scores" in standard, f"memory of S and P: {standard[-300:]}")


def groups(programs, bench):
    folder = programs.new("out")
    os.mkdir(folder)
    programs.execute([bench, "--n", "64", "--d", "16", "--threads", "2", "--group", "4", "--least", "0.001", "--benchmark_filter=0[78].*", "--out", folder])
    heads = {(c["step"], c["heads"], c["kv_heads"]) for c in read(folder)["cases"]}
    check(heads == {("07_causal_early_exit", 4, 4), ("08_gqa", 4, 1)}, f"--group 4: {heads}")


def eigen(programs, against_eigen):
    result = programs.execute([against_eigen, "1", "96"])
    lines = [line for line in result.out.split("\n") if line[:2] in ("05", "07")]
    check(result.status == 0 and result.err == "" and len(lines) == 8 and "DIFFER" not in result.out, f"{result.call}: status {result.status}, {result.out!r} {result.err!r}")


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    (bench, with_assertions, *against_eigen), asserting = built(sys.argv[1])
    with helpers.temporary() as folder:
        programs = helpers.Programs(sys.argv[1], folder)
        refused(programs, [with_assertions, "--n", "64"], "assertions", "bench: ")
        if asserting:
            refused(programs, [bench, "--n", "64"], "assertions", "bench: ")
            refused(programs, against_eigen[:1], "assertions", "against_eigen: ")
        else:
            bad_arguments(programs, bench, against_eigen[0])
            lists(programs, bench)
            runs(programs, bench)
            skips(programs, bench)
            groups(programs, bench)
            for program in against_eigen:
                eigen(programs, program)
    for failure in failures:
        print("FAILED:", failure)
    print(f"{helpers.checks - len(failures)} of {helpers.checks} checks are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
