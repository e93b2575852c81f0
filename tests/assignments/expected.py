"""What a submission is held to: inputs and expected values of every case, made once for an assignment and a seed.

Results come from the definition (compute/expected.cpp); probes and counts from the solution, run in the same way as a submission.
All is kept in build/assignments.
"""
import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import build as builds  # noqa: E402
import cases as case_files  # noqa: E402
import manifest as manifests  # noqa: E402
import precompiled  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = manifests.ROOT
BUILD = os.environ.get("FLASHSTEPS_ASSIGNMENTS_BUILD") or os.path.join(ROOT, "build", "assignments")
DEFINITION = ("common/attention/definition.hpp", "common/attention/budget.hpp", "common/attention/compare.hpp", "tests/fifty.hpp",
              "tests/assignments/compute/expected.cpp", "tests/assignments/cases.py", "tests/assignments/expected.py")
FROM_SOLUTION = ("counts", "peak")


class ExpectedError(Exception):
    """Expected values cannot be made."""


@contextlib.contextmanager
def locked(name):
    """One process at a time."""
    os.makedirs(BUILD, exist_ok=True)
    with open(os.path.join(BUILD, f"{name}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(command, what):
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment)
    if result.returncode != 0:
        raise ExpectedError(f"{what}: {' '.join(command)}: exit status {result.returncode}\n{result.stdout[-3000:]}")


def build(source, folder, targets):
    """Builds targets of a CMake project; their programs lie in the folder."""
    if not os.path.isfile(os.path.join(folder, "CMakeCache.txt")):
        run(["cmake", "-S", source, "-B", folder, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"], "cmake does not configure")
        flags = precompiled.flags(BUILD, folder)
        if flags:
            run(["cmake", "-S", source, "-B", folder, f"-DCMAKE_CXX_FLAGS={flags}"], "cmake does not configure")
    run(["cmake", "--build", folder, "-j", str(builds.cores()), "--target", *targets], "the programs that make expected values do not build")


def expected_program():
    folder = os.path.join(BUILD, "expected")
    build(os.path.join(HERE, "compute"), folder, ["expected"])
    return os.path.join(folder, "expected")


def wants_solution(case):
    return "expect" not in case and (manifests.is_kernel(case) or case.get("reference") == "solution" or any(name in FROM_SOLUTION or name.startswith("probe ") for name in case["judge"]))


def results_of(case):
    """What the definition gives for a case."""
    names = manifests.FORMS[case["form"]][1] if case["form"] in manifests.FORMS else ("o", "lse")
    return [name for name in names if name in case["judge"]]


def key_of(manifest, wanted, seed, files):
    total = hashlib.sha256()
    for path in DEFINITION:
        with open(os.path.join(ROOT, path), "rb") as file:
            total.update(file.read())
    for path in sorted(files):
        if path.startswith(("steps/", "common/", "grader/compute/")) and not path.endswith(".md"):
            total.update(f"{path}\0{files[path]}\0".encode())
    total.update(json.dumps([manifest.slug, manifest.version, wanted, seed], sort_keys=True).encode())
    return total.hexdigest()[:20]


def only_probes(text, ids):
    """Of the lines of probes.txt those of some tasks."""
    lines, keep = [], False
    for line in text.splitlines():
        if line.startswith("probe "):
            keep = line.split()[1] in ids
        if keep:
            lines.append(line)
    return "\n".join(lines) + "\n" if lines else ""


def make_case(case, folder, seed, programs, solved):
    """Writes inputs and expected values of one case. programs  expected, by path; solved  the folder of the solution's programs"""
    inside, outside = os.path.join(folder, "in"), os.path.join(folder, "expected")
    os.makedirs(outside)
    case_files.write_inputs(case, seed, inside)
    arguments, results = case_files.arguments_of(case), results_of(case)
    backward = case["form"].startswith("backward")
    with tempfile.TemporaryDirectory() as scratch:
        if (results or backward) and "expect" not in case or backward:
            definition, reference = [], case.get("reference")
            for name, value in reference.items() if isinstance(reference, dict) else ():
                definition += [f"--{name}", str(value)]
            form = ["--form", "forward", *case_files.arguments_of({**case, "arguments": []})[2:]] if manifests.is_kernel(case) and not backward else arguments
            run([programs, *form, *definition, "--in", inside, "--out", scratch], f"case “{case['name']}”")
            for name in ("o", "lse") if backward else ():
                os.replace(os.path.join(scratch, f"{name}.txt"), os.path.join(inside, f"{name}.txt"))
            for name in results:
                for file in (f"{name}.txt", f"budget_{name}.txt"):
                    if os.path.isfile(os.path.join(scratch, file)):
                        os.replace(os.path.join(scratch, file), os.path.join(outside, file))
        if not wants_solution(case):
            return
        run([os.path.join(solved, manifests.program_of(case)), *arguments, "--in", inside, "--out", scratch], f"the solution of case “{case['name']}”")
        with open(os.path.join(scratch, "end.txt"), encoding="utf-8") as file:
            end = file.read().strip()
        if end != "done":
            raise ExpectedError(f"the solution of case “{case['name']}” ends with: {end}")
        ids = {name.removeprefix("probe ") for name in case["judge"] if name.startswith("probe ")}
        for name in os.listdir(scratch):
            stem = name.removesuffix(".txt")
            if name == "probes.txt" and ids:
                with open(os.path.join(scratch, name), encoding="utf-8") as file:
                    text = only_probes(file.read(), ids)
                if not text:
                    raise ExpectedError(f"the solution of case “{case['name']}” reaches no probe of {', '.join(sorted(ids))}")
                with open(os.path.join(outside, name), "w", encoding="utf-8") as file:
                    file.write(text)
            elif name == "counts.txt" and {"counts", "peak"} & set(case["judge"]) or case.get("reference") == "solution" and stem in results:
                shutil.copy(os.path.join(scratch, name), os.path.join(outside, name))
            elif stem in case["judge"] and not os.path.isfile(os.path.join(outside, name)):
                shutil.copy(os.path.join(scratch, name), os.path.join(outside, name))


def make_checks(manifest, seed, hidden):
    """The folder with the checks of an assignment: cases.json, and NNN/in, NNN/expected for each case."""
    import starter

    wanted = [case for case in manifest.cases.values() if hidden or not case["hidden"]]
    files = starter.contents(manifest, "all", hidden)
    name = manifest.slug + (f"-{manifest.variant}" if manifest.variant else "")
    made = os.path.join(BUILD, "checks", f"{name}-{seed}-{key_of(manifest, wanted, seed, files)}")
    with locked(name):
        if os.path.isfile(os.path.join(made, "cases.json")):
            return made
        with locked("expected"):
            definition = expected_program()
        solved = os.path.join(BUILD, "solved", name)
        targets = sorted({manifests.program_of(case) for case in wanted if wants_solution(case)})
        if targets:
            code = {path: text for path, text in files.items() if path == "CMakeLists.txt" or path.startswith(("steps/", "common/", "grader/compute/"))}
            starter.write_files(solved, code)
            build(solved, os.path.join(solved, "build"), targets)
        os.makedirs(os.path.dirname(made), exist_ok=True)
        scratch = tempfile.mkdtemp(dir=os.path.dirname(made))
        try:
            listed = []
            with concurrent.futures.ThreadPoolExecutor(builds.cores()) as pool:
                made_cases = [pool.submit(make_case, case, os.path.join(scratch, f"{number:03}"), seed, definition, os.path.join(solved, "build")) for number, case in enumerate(wanted, 1)]
            for number, case in enumerate(wanted, 1):
                made_cases[number - 1].result()
                listed.append({**case, "sizes": case_files.full_sizes(case), "inputs": case.get("inputs", "normal"), "seed": case_files.seed_of(case, seed),
                               "program": manifests.program_of(case), "arguments": case_files.arguments_of(case), "folder": f"checks/{number:03}"})
            with open(os.path.join(scratch, "cases.json"), "w", encoding="utf-8") as file:
                json.dump({"slug": manifest.slug, "version": manifest.version, "seed": seed, "cases": listed}, file, ensure_ascii=False, indent=1)
            os.chmod(scratch, 0o755)
            shutil.rmtree(made, ignore_errors=True)
            os.rename(scratch, made)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return made
