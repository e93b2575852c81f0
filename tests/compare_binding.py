"""Tests the library of `make compare`, and of compare.py what needs no torch and no clock.

    python3 tests/compare_binding.py BUILD_DIR [GROUP ...]

Groups: programs, definition, wrong, compare. Exit status 0: all right. 1: not (what failed is printed). 77: no NumPy.
"""

import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "benchmarks"))

from program_helpers import Programs, check, failures, np, temporary
import program_helpers
import programs_numpy
import binding
import compare
import compare_cases
import compare_report

BACKWARD_NAMES = ("dq", "dk", "dv")


def numbers(seed, kind, heads, kv_heads, seq_q, seq_k, dim, value_dim, batch=2):
    random = np.random.default_rng(seed)
    shapes = ((heads, seq_q, dim), (kv_heads, seq_k, dim), (kv_heads, seq_k, value_dim), (heads, seq_q, value_dim))
    return [np.ascontiguousarray(random.standard_normal((batch, *shape)).astype(kind)) for shape in shapes]


def results_of(session, names, kind):
    return {of: np.frombuffer(session.copy_of(of), kind).reshape(session.shapes[of]) for of in names}


def computed(library, step, arrays, causal=False, threads=1, tiles=(0, 0), scale=None):
    """O, L and, if the step has them, the gradients."""
    backward = step >= 6
    with binding.Session(library, *arrays[:3], arrays[3] if backward else None, scale) as session:
        session.compute(step, False, causal, threads, tiles)
        if backward:
            session.compute(step, True, causal, threads, tiles)
        return results_of(session, ("o", "lse", *(BACKWARD_NAMES if backward else ())), arrays[0].dtype)


# step, type, (heads, kv_heads, seq_q, seq_k, dim, value_dim), causal, threads, tiles
RUNS = [(5, "float32", (3, 3, 70, 129, 64, 32), False, 2, (0, 0)), (5, "float64", (2, 2, 65, 64, 24, 24), False, 1, (16, 32)),
        (6, "float32", (2, 2, 130, 70, 40, 40), False, 2, (0, 0)), (6, "float64", (1, 1, 40, 90, 16, 8), False, 2, (32, 16)),
        (7, "float32", (2, 2, 150, 150, 64, 64), True, 2, (0, 0)), (7, "float64", (1, 1, 33, 97, 16, 16), True, 2, (8, 8)), (7, "float32", (1, 1, 97, 33, 16, 16), True, 1, (16, 16)),
        (8, "float32", (6, 2, 100, 130, 32, 48), True, 2, (0, 0)), (8, "float64", (4, 1, 65, 65, 16, 16), False, 2, (32, 32)), (8, "float32", (1, 1, 1, 1, 1, 1), False, 1, (1, 1))]


def test_programs(library, build):
    """Bit for bit what the program of the step writes."""
    with temporary() as folder:
        programs = Programs(build, folder)
        for step, kind, sizes, causal, threads, tiles in RUNS:
            arrays = numbers(step, kind, *sizes)
            found = computed(library, step, arrays, causal, threads, tiles)
            arguments = programs.files(*arrays[:3], arrays[3] if step >= 6 else None) + ["--dtype", "float" if kind == "float32" else "double"]
            arguments += ["--causal"] if causal else ["--no-causal"] if step >= 7 else []
            arguments += ["--br", tiles[0], "--bc", tiles[1]] if tiles[0] else []
            _, written = programs.solve(step, *arguments, env={"OMP_NUM_THREADS": str(threads)})
            for of, x in written.items():
                check(of in found and x.tobytes() == found[of].tobytes(), f"step {step}, {kind}, {sizes}: {of} is not what the program writes")


def test_definition(library, _):
    """As near to the definition as a program must be; and the same bits from the same call."""
    for step, kind, sizes, causal, threads, tiles in RUNS:
        arrays = numbers(step + 10, kind, *sizes)
        judge = programs_numpy.Judge(*arrays[:3], None, causal, arrays[3] if step >= 6 else None, "float" if kind == "float32" else "double")
        found = computed(library, step, arrays, causal, threads, tiles, judge.scale)
        for of, right in judge.right.items():
            error = programs_numpy.distance(found[of], right, of)
            check(error <= judge.budget[of], f"step {step}, {kind}, {sizes}: {of} is {error} from the definition, {judge.budget[of]} are allowed")
        again = computed(library, step, arrays, causal, threads, tiles, judge.scale)
        check(all(again[of].tobytes() == found[of].tobytes() for of in found), f"step {step}, {kind}, {sizes}: not the same bits again")
    q, k, v, d_o = numbers(1, "float32", 1, 1, 8, 8, 4, 4)
    with binding.Session(library, q, k, v, d_o) as session:
        check(np.isnan(results_of(session, ("o",), "float32")["o"]).all(), "o is not NaN before it is written")
        done = session.compute(7, False, True, 1)
        check(done.taken_br >= 1 and done.taken_bc >= 1 and done.seconds >= 0, "no tiles or no seconds are reported")
        check(session.compute(7, False, True, 1, (3, 5)).taken_br == 3, "the tiles given are not those taken")


def refused(what, words, call):
    try:
        call()
    except binding.Wrong as error:
        text = str(error)
        check(all(word in text for word in words.split()) and "\n" not in text, f"{what}: refused with {text!r}")
        return
    check(False, f"{what}: taken")


def test_wrong(library, _):
    q, k, v, d_o = numbers(1, "float32", 2, 2, 8, 8, 4, 4)
    session = binding.Session(library, q, k, v, d_o)
    for what, words, arguments in (
            ("step 4", "step 5, 6, 7", (4,)), ("step 9", "step", (9,)), ("a backward pass of 05", "no backward", (5, True)), ("a mask in 05", "no mask", (5, False, True)),
            ("a mask in 06", "no mask", (6, False, True)), ("no threads", "threads", (7, False, False, 0)), ("too many threads", "threads", (7, False, False, 5000)),
            ("one tile edge", "tiles", (7, False, False, 1, (0, 8))), ("a negative tile", "tiles", (7, False, False, 1, (-1, -1))), ("gradients before O", "forward", (7, True))):
        refused(what, words, lambda: session.compute(*arguments))
    session.compute(7, False, False)
    refused("gradients with another mask", "same mask", lambda: session.compute(7, True, True))
    session.compute(7, True, False)
    refused("an unknown result", "dq", lambda: library.c.flashsteps_result(session.handle, b"x", ctypes.byref(ctypes.c_int64())) or raise_error(library))
    session.close()
    for what, words, arguments in (
            ("keys of another length", "fit", (q, k, v[:, :, :7])), ("dO of another shape", "d_o", (q, k, v, d_o[:, :1])), ("gaps", "gaps", (q[:, :, ::2], k, v)),
            ("two types", "type", (q, k.astype("float64"), v)), ("integers", "float", (q.astype("int32"), k, v)), ("three axes", "four", (q[0], k, v)),
            ("3 heads for 2", "share", (np.zeros((2, 3, 8, 4), "float32"), k, v)), ("no rows", "axis", (q[:, :, :0], k, v)), ("a scale of NaN", "scale", (q, k, v, None, float("nan")))):
        refused(what, words, lambda: binding.Session(library, *arguments))
    with binding.Session(library, q, k, v) as session:
        session.compute(6, False)
        refused("gradients without dO", "d_o", lambda: session.compute(6, True))
        refused("dQ without dO", "dq", lambda: session.result("dq"))
    with binding.Session(library, q, k[:, :1].copy(), v[:, :1].copy()) as session:
        session.compute(8)
        refused("shared K and V in 07", "heads", lambda: session.compute(7))
    good = binding.Problem(ctypes.sizeof(binding.Problem), 4, 1, 1, 1, 1, 1, 1, 1, 1.0)
    for what, words, changed in (("null pointers", "null", {}), ("a struct of another size", "struct", {"size": 8}), ("two bytes", "bytes", {"bytes": 2}), ("too many elements", "elements", {"seq_q": 1 << 30, "heads": 1 << 20})):
        problem = binding.Problem.from_buffer_copy(good)
        for name, value in changed.items():
            setattr(problem, name, value)
        refused(what, words, lambda: library.c.flashsteps_open(ctypes.byref(problem)) or raise_error(library))
    refused("no problem", "problem", lambda: library.c.flashsteps_run(None, ctypes.byref(binding.Pass(ctypes.sizeof(binding.Pass)))) and raise_error(library))
    refused("no struct", "struct", lambda: library.c.flashsteps_open(None) or raise_error(library))
    library.c.flashsteps_close(None)
    check(library.peak(0) == 0, "the peak of no threads is not 0")


def raise_error(library):
    raise binding.Wrong(library.error())


def run_compare(*arguments, **environment):
    return subprocess.run([sys.executable, os.path.join(HERE, "benchmarks", "compare.py"), *arguments], capture_output=True, text=True, env=os.environ | environment)


def made_up(case, **more):
    return case | {"isa": "native", "value": 1.25, "min": 1.0, "max": 1.5, "target": compare_cases.target_of(case, 32)[0], "target_row": "AVX2", "met": True, "tiles": [64, 64],
                   "gflops": 50.0, "share_of_peak": 0.5, "theirs_gflops": 40.0} | more


def test_compare(library, _):
    description = library.description()
    check(set(description) == {"assertions", "simd_bytes", "simd_registers", "build_type", "compiler", "flags"} and description["simd_bytes"] in (16, 32, 64), f"described as {description}")
    check(compare.refusal(description | {"assertions": False}) == "" and "assertions" in compare.refusal(description | {"assertions": True}), "a library with assertions is not refused")

    # Where torch is not there, one line says so
    with temporary() as folder:
        for arguments in ([library.path], ["--check"]):
            done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {os.path.join(HERE, 'benchmarks')!r}); sys.argv = ['compare.py'] + {arguments!r}\n"
                                   "import compare; sys.exit(compare.main())"], capture_output=True, text=True, cwd=folder)
            check(done.returncode == 77 and done.stdout == "" and done.stderr.count("\n") == 1 and "needs torch and numpy" in done.stderr, f"without torch: {done.returncode}, {done.stderr!r}")
    for arguments in ([], ["--rounds", "4", "x"], ["--threads", "0", "x"], ["--tiles", "8", "x"], ["--step", "4", "x"], ["--seq", "a", "x"]):
        done = run_compare(*arguments)
        check(done.returncode == 2 and done.stdout == "" and "error" in done.stderr, f"compare {arguments}: {done.returncode}, {done.stderr!r}")

    names = run_compare("--list").stdout.split("\n")[:-1]
    check(len(names) == len(set(names)) == 64 + 12 + 2 + 8 + 2 + 4, f"{len(names)} cases")
    quick = run_compare("--list", "--quick", "--case", "pytorch backward", "--case", "d64 1-thread").stdout.split("\n")[:-1]
    check(quick == ["pytorch backward d64 N1024 full 1-thread", "pytorch backward d64 N1024 causal 1-thread"], f"chosen are {quick}")
    check(len(compare_cases.cases("avx2")) == 16, "not the cases of the row for AVX2")

    targets = {}
    for case in compare_cases.cases("native"):
        check(case["heads"] % case["threads"] == 0 and case["heads"] >= 1, f"{case['name']}: {case['heads']} heads")
        check(case["step"] == (7 if case["causal"] else 6 if case["backward"] else 5), f"{case['name']}: step {case['step']}")
        for simd_bytes in (32, 64):
            targets.setdefault((case["kind"], case["d"] if case["kind"] == "pytorch" else None, case["causal"], simd_bytes), set()).add(compare_cases.target_of(case, simd_bytes)[0])
    expected = {("pytorch", 64, False, 64): 1.2, ("pytorch", 64, True, 64): 1.3, ("pytorch", 128, False, 64): 1.1, ("pytorch", 128, True, 64): 1.2, ("pytorch", 256, False, 64): 1.05,
                ("pytorch", 96, True, 64): 1.2, ("pytorch", 64, False, 32): 1.05, ("pytorch", 64, True, 32): 1.2, ("sgemm", None, False, 64): 0.9, ("sgemm", None, True, 32): 0.85,
                ("threads", None, True, 64): 1.8, ("causal", None, True, 32): 1.85, ("error", None, False, 64): 1.5}
    for key, value in expected.items():
        check(targets.get(key) == {value}, f"the target of {key} is {targets.get(key)}, not {value}")
    ratio, error = {"kind": "pytorch"}, {"kind": "error"}
    check([compare_cases.met(ratio, x, 1.2) for x in (1.2, 1.1, float("nan"))] == [True, False, False], "met is wrong for ratios")
    check([compare_cases.met(error, x, 1.5) for x in (1.5, 1.6, float("nan"))] == [True, False, False], "met is wrong for errors")

    # Losing cases stand in the table like winning ones, and what does not agree says so
    first, second, third = compare_cases.cases("native")[:3]
    report = {"machine": {"processor": "P", "cores": 2, "hyperthreads": False, "system": "S", "instructions": "AVX2"}, "libraries": {"native": description}, "rounds": 5, "commit": "",
              "torch": {"version": "2", "blas": "B", "onednn": "D", "capability": "AVX2", "flash": False, "back_end": "why", "openmp": []},
              "results": [made_up(first), made_up(second, value=0.5, met=False), dict(third) | {"isa": "native", "wrong": ["o of step is wrong"], "target": 1.05, "target_row": "AVX2", "met": False}]}
    text = compare_report.markdown(json.loads(json.dumps(report)))
    for words in ("1.25 [1.00, 1.50]", "0.50 [1.00, 1.50]", "not timed: o of step is wrong", "≥ 1.05 (AVX2)", "| no |", "Targets met: 1 of 3", second["name"], "why", "5 rounds"):
        check(words in text, f"the table lacks {words!r}:\n{text}")
    with contextlib.redirect_stderr(io.StringIO()):
        check(compare.arguments(["x", "--case", "a b", "--case", "c", "--tiles", "8x16"]).case == ["a", "b", "c"], "words of --case")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(2)
    # Loaded before all else: FLASHSTEPS_PRELOAD, without looking for what Python itself never frees
    preload = os.environ.pop("FLASHSTEPS_PRELOAD", None)
    if preload:
        options = {"ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": preload}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | options)
    build = sys.argv[1]
    groups = {"programs": test_programs, "definition": test_definition, "wrong": test_wrong, "compare": test_compare}
    library = binding.Library(os.path.join(os.path.abspath(build), "tests", "libcompare_binding.so"))
    for name in sys.argv[2:] or groups:
        groups[name](library, build)
    print("\n".join(failures[:50]))
    print(f"{program_helpers.checks} checks, {len(failures)} failed")
    sys.exit(1 if failures or not program_helpers.checks else 0)


if __name__ == "__main__":
    main()
