"""Steps 05 to 08 beside PyTorch's scaled_dot_product_attention on the CPU, in one process.

    python3 tests/benchmarks/compare.py build/tests/libcompare_binding.so [--avx2 build/tests/libcompare_binding_avx2.so]

`make compare ARGS=...` builds the libraries and calls this. Prints a table and the targets, met or not; slow is no error.
Exit status: 0; 1 a result is wrong; 2 wrong arguments or a library with assertions on; 77 torch or NumPy is missing.
"""

import argparse
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import tempfile

import compare_cases
import compare_report
from binding import Library

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(argv):
    parser = argparse.ArgumentParser(prog="compare.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", help="libcompare_binding.so")
    parser.add_argument("--avx2", metavar="FILE", help="the same held to AVX2; is used where the processor has AVX-512, with PyTorch held to AVX2")
    parser.add_argument("--quick", action="store_true", help="the cases of N 1024 alone")
    parser.add_argument("--seq", metavar="N,...", type=numbers, help="to try it out: these lengths in place of those that the targets are for")
    parser.add_argument("--threads", metavar="T,...", type=numbers, default=[1, 2], help="numbers of threads (1,2)")
    parser.add_argument("--case", metavar="WORDS", action="append", default=[], help='cases with all of these words in their name, as "pytorch backward d64"; see --list')
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--rounds", type=int, default=5, help="at least 5 (5)")
    parser.add_argument("--step", type=int, choices=(5, 6, 7, 8), help="time this step where it can (05 and 06 without a mask, 07 with one)")
    parser.add_argument("--tiles", metavar="BRxBC", type=tiles, default=(0, 0), help="tiles (those that the programs take)")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--markdown", metavar="FILE", help="write the table")
    parser.add_argument("--check", action="store_true", help="only say whether torch and NumPy are there")
    parser.add_argument("--held-to-avx2", action="store_true", help=argparse.SUPPRESS)  # the process that does the cases of --avx2
    options = parser.parse_args(argv)
    if options.rounds < 5:
        parser.error("--rounds is at least 5")
    if not options.library and not (options.list or options.check):
        parser.error("the library is missing")
    options.case = " ".join(options.case).split()
    return options


def numbers(text):
    values = [int(x) for x in text.split(",")]
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError("numbers from 1 on")
    return values


def tiles(text):
    br, bc = (int(x) for x in text.split("x"))
    if br < 1 or bc < 1:
        raise argparse.ArgumentTypeError("tiles from 1x1 on")
    return br, bc


def missing():
    """What is not there, a line."""
    absent = [name for name in ("torch", "numpy") if importlib.util.find_spec(name) is None]
    return f"compare needs {' and '.join(absent)} for {sys.executable}: PYTHON=... chooses another python3" if absent else ""


def refusal(description):
    """Why a library is not timed, a line."""
    if description["assertions"]:
        return f"built with assertions on ({description['build_type']}), which cost a third of the speed: build with -DCMAKE_BUILD_TYPE=Release"
    return ""


def processor_flags():
    try:
        with open("/proc/cpuinfo") as f:
            lines = dict(line.split(":", 1) for line in f.read().split("\n\n")[0].replace("\t", "").splitlines() if ":" in line)
    except OSError:
        lines = {}
    return lines.get("model name", platform.processor() or platform.machine()).strip(), lines.get("flags", "").split()


def hyperthreads():
    """Do two of the processors that this process may run on share a core?"""
    mine = os.sched_getaffinity(0)
    cores = []
    for cpu in mine:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
                cores.append(f.read().strip())
        except OSError:
            return False
    return len(set(cores)) < len(cores)


def torch_facts():
    import torch
    from compare_measure import back_end

    there, name = back_end()
    config = torch.__config__.show().splitlines()
    find = lambda *words: next((line.strip(" -") for line in config if all(word in line for word in words)), "not said")
    blas = find("Math Kernel Library") if torch.backends.mkl.is_available() else next((x.strip() for x in find("BLAS_INFO").split(",") if "BLAS_INFO" in x), "not said")
    with open("/proc/self/maps") as f:
        runtimes = sorted({line.split()[-1] for line in f if any(x in line for x in ("libgomp", "libiomp", "libomp"))})
    capability = torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends.cpu, "get_cpu_capability") else "not said"
    return {"version": torch.__version__, "blas": blas, "onednn": find("MKL-DNN"), "capability": capability, "flash": there, "back_end": name,
            "openmp": [os.path.join(*path.split(os.sep)[-3:]) for path in runtimes]}


def in_another_process(options):
    """The cases of the library held to AVX2: PyTorch reads its limits when it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        found = os.path.join(folder, "avx2.json")
        command = [sys.executable, os.path.abspath(__file__), options.avx2, "--held-to-avx2", "--json", found, "--rounds", str(options.rounds)]
        command += ["--threads", ",".join(map(str, options.threads))]
        command += ["--seq", ",".join(map(str, options.seq))] if options.seq else []
        command += ["--case", " ".join(options.case)] if options.case else []
        command += ["--quick"] if options.quick else []
        command += ["--step", str(options.step)] if options.step else []
        command += ["--tiles", "{}x{}".format(*options.tiles)] if options.tiles[0] else []
        status = subprocess.run(command, stdout=subprocess.DEVNULL, env=os.environ | {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}).returncode
        if status not in (0, 1) or not os.path.exists(found):
            sys.exit(status or 1)
        with open(found) as f:
            return json.load(f)


def without_nan(x):
    """JSON has no NaN and no infinity: they become words."""
    if isinstance(x, dict):
        return {key: without_nan(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [without_nan(value) for value in x]
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def commit():
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=HERE).stdout.strip()
    except OSError:
        return ""


def main():
    options = arguments(sys.argv[1:])
    isa = "avx2" if options.held_to_avx2 else "native"
    chosen = compare_cases.filtered(compare_cases.cases(isa, options.threads, options.seq, options.step), options.case + ["N1024"] * options.quick)
    if options.list:
        print("\n".join(case["name"] for case in chosen))
        return 0
    if missing():
        print(missing(), file=sys.stderr)
        return 77
    if options.check:
        return 0
    # Idle threads of one OpenMP runtime must not spin while the other works. Every runtime reads this when it is loaded
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import torch  # before the library: then both may share one runtime  # noqa: F401

    library = Library(os.path.abspath(options.library))
    description = library.description()
    if refusal(description):
        print(f"compare: {options.library}: {refusal(description)}", file=sys.stderr)
        return 2
    from compare_measure import measure

    processor, flags = processor_flags()
    report = {"machine": {"processor": processor, "cores": len(os.sched_getaffinity(0)), "hyperthreads": hyperthreads(), "system": platform.platform(),
                          "instructions": "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else platform.machine()},
              "libraries": {isa: description}, "torch": torch_facts(), "rounds": options.rounds, "commit": commit(), "results": []}
    for x, case in enumerate(chosen):
        print(f"[{x + 1} of {len(chosen)}] {case['name']}", end="", flush=True, file=sys.stderr)
        result = measure(library, case, options.rounds, options.tiles, report["machine"]["hyperthreads"]) | {"isa": isa}
        report["results"].append(result)
        print(f": {'; '.join(result['wrong'])}" if "wrong" in result else f": {result['value']:.2f}", file=sys.stderr)
    if options.avx2 and "avx512f" in flags:
        held = in_another_process(options)
        report["results"] += held["results"]
        report["libraries"] |= held["libraries"]
        report["torch_held_to_avx2"] = held["torch"]
    text = compare_report.markdown(report)
    print(text, end="")
    for path, content in ((options.json, json.dumps(without_nan(report), indent=1, allow_nan=False) + "\n"), (options.markdown, text)):
        if path:
            with open(path, "w") as f:
                f.write(content)
    return 1 if any("wrong" in result for result in report["results"]) else 0


if __name__ == "__main__":
    sys.exit(main())
