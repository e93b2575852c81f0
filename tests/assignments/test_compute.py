#!/usr/bin/env python3
"""All eight steps as a starter runs them: what the solution gives is what `expected` allows, in float, double and 50 digits,
and a hole says its name.

    test_compute.py [WORK_DIR]      builds in WORK_DIR, or in build/assignments/all-steps
"""
import concurrent.futures
import decimal
import json
import math
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import all_steps  # noqa: E402
import build as builds  # noqa: E402
import expected  # noqa: E402
import manifest as manifests  # noqa: E402
import precompiled  # noqa: E402
import starter  # noqa: E402

EXACT = decimal.Decimal("1e-45")
decimal.DefaultContext.prec = 70  # in every thread
decimal.setcontext(decimal.DefaultContext)


def number(text):
    if "x" in text or text in ("inf", "-inf", "nan"):
        return float.fromhex(text)
    return decimal.Decimal(text)


def read_matrix(path):
    with open(path, encoding="ascii") as file:
        shape, *numbers = file.read().split("\n")
    return shape, [number(text) for text in numbers if text]


def read_probes(path):
    with open(path, encoding="ascii") as file:
        return [line if line.startswith("probe") else number(line) for line in file.read().splitlines()]


def fault_of(got, want, allowed, same):
    """What is wrong with a list of numbers; None if nothing is. same  must infinities agree?"""
    if len(got) != len(want):
        return f"{len(got)} numbers, not {len(want)}"
    for index, (x, y) in enumerate(zip(got, want)):
        if isinstance(y, str) or isinstance(x, str):
            if x != y:
                return f"{x}, not {y}"
        elif not math.isfinite(y):
            if math.isfinite(x) or same and str(float(x)) != str(float(y)):
                return f"[{index}] is {x}, not {y}"
        elif not math.isfinite(x) or not abs(decimal.Decimal(x) - decimal.Decimal(y)) <= (decimal.Decimal(allowed) if allowed is not None else EXACT * max(1, abs(decimal.Decimal(y)))):
            return f"[{index}] is {x}, not {y}, and the budget is {allowed}"
    return None


def run(build, case, inside, out):
    os.makedirs(out)
    program = os.path.join(build, case["program"])
    result = subprocess.run([program, *case["arguments"], "--in", inside, "--out", out], capture_output=True, text=True)
    if result.returncode != 0:
        return f"exit status {result.returncode}: {result.stderr}"
    with open(os.path.join(out, "end.txt"), encoding="ascii") as file:
        return file.read().strip()


def judge(case, out, want):
    for name in case["judge"]:
        if name.startswith("probe "):
            fault = fault_of(read_probes(os.path.join(out, "probes.txt")), read_probes(os.path.join(want, "probes.txt")), None, True)
        elif name in ("counts", "peak"):
            fault = None if open(os.path.join(out, "counts.txt")).read() == open(os.path.join(want, "counts.txt")).read() else "counts differ"
        else:
            budget = os.path.join(want, f"budget_{name}.txt")
            allowed = read_matrix(budget)[1][0] if os.path.isfile(budget) else None
            shape, got = read_matrix(os.path.join(out, f"{name}.txt"))
            right, wanted = read_matrix(os.path.join(want, f"{name}.txt"))
            fault = fault_of(got, wanted, allowed, name not in ("o", "dq", "dk", "dv")) if shape == right else f"is {shape}, not {right}"
        if fault:
            return f"{name}: {fault}"
    return None


def fault_in(case, build, checks, solved):
    """What is wrong with a program's result for a case; None if nothing is."""
    inputs = os.path.join(checks, case["folder"].removeprefix("checks/"))
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out")
        end = run(build, case, os.path.join(inputs, "in"), out)
        if not solved:
            return None if reaches_no_hole(case) or end == f"not implemented {case['step']}" else f"ends with {end}"
        right = end.startswith(case["expect"]) if "expect" in case else end == "done"
        return f"ends with {end}" if not right else judge(case, out, os.path.join(inputs, "expected"))


def main(folder):
    precompiled.share_objects(expected.BUILD)
    path = os.path.join(folder, "manifest", "assignment.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(all_steps.manifest(), file)
    manifest, faults, count = manifests.load(path), [], 0
    checks = expected.make_checks(manifest, 1, False)
    with open(os.path.join(checks, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    # The solution in all types; the holes in float
    data = all_steps.manifest()
    only = {name: case for name, case in data["cases"].items() if case["type"] == "float"}
    with_holes = manifests.Manifest({**data, "cases": only}, path)
    for upto, source, place in (("all", manifest, os.path.join(expected.BUILD, "solved", manifest.slug)), (None, with_holes, os.path.join(folder, "holes"))):
        starter.write_files(place, starter.contents(source, upto))
        build = os.path.join(place, "build")
        wanted = [case for case in cases if case["name"] in source.cases]
        expected.build(place, build, sorted({case["program"] for case in wanted}))
        with concurrent.futures.ThreadPoolExecutor(builds.cores()) as pool:
            found = list(pool.map(lambda case: fault_in(case, build, checks, upto), wanted))
        count += len(found)
        faults += [f"{'solved' if upto else 'holes'}: {case['name']}: {fault}" for case, fault in zip(wanted, found) if fault]
    for fault in faults:
        print(fault)
    print(f"{count} runs, {len(faults)} wrong")
    return 1 if faults else 0


def reaches_no_hole(case):
    """Does this case lead past the hole of its step?"""
    own = {1: "three_sweeps", 2: "merge", 3: "one_sweep", 6: "backward", 7: "backward"}
    sizes = case["sizes"]
    if "expect" in case or case["form"] != own.get(case["step"], case["form"]):
        return case["step"] != 8 or case["form"] == "backward" or "expect" in case
    return case["step"] == 8 and case["form"] == "backward" or 0 in (sizes.get("seq_q"), ) or case["step"] not in (1, 8) and sizes.get("seq_k") == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(expected.BUILD, "all-steps")))
