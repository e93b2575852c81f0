"""Runs the kernel tests on a GPU.

    python3 tests/gpu.py test BUILD_DIR PROGRAM            builds a test program and runs it
    python3 tests/gpu.py check BUILD_DIR PROGRAM [FILTER]  runs it, or the test cases that FILTER names, under the four tools of compute-sanitizer

Exit status 0: all right. 1: not. 77: there is no GPU, no nvcc, or no compute-sanitizer; one line says which.
"""

import os
import re
import shutil
import subprocess
import sys

TOOLS = {
    "memcheck": ["--leak-check", "no"],
    "racecheck": ["--racecheck-report", "analysis"],
    "synccheck": [],
    "initcheck": [],
}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def gpu_there():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    except OSError:
        return False
    return listed.returncode == 0 and "GPU 0" in listed.stdout


def build(folder, program):
    """Brings the program up to date; its path."""
    cache = open(os.path.join(folder, "CMakeCache.txt")).read()
    if not re.search(r"^CMAKE_CUDA_COMPILER:\w+=(?!.*NOTFOUND).+", cache, re.M):
        skip("no nvcc 12 or newer was found when the build was configured")
    subprocess.run(["cmake", "--build", folder, "--target", program], check=True)
    return os.path.join(folder, "tests", program)


def passed(output):
    """Catch2 says so, and a test case ran."""
    found = re.search(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)", output)
    return found is not None and int(found[1]) > 0


def run(command):
    """Shows what comes out as it comes; the exit status, and the text."""
    print("+ " + " ".join(command), flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    text = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        text.append(line)
    return process.wait(), "".join(text)


def test(folder, program):
    status, output = run([build(folder, program)])
    # Not the status of the program: with Catch2 it is the number of failures, which may be 77
    sys.exit(0 if status == 0 and passed(output) else 1)


def check(folder, program, which="*"):
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not sanitizer:
        skip("compute-sanitizer is not there; it comes with the CUDA Toolkit")
    path = build(folder, program)
    failed = []
    for tool, more in TOOLS.items():
        status, output = run([sanitizer, "--tool", tool, *more, "--error-exitcode", "1", path, which])
        if status != 0 or not passed(output):
            failed.append(tool)
    print("compute-sanitizer: " + ("no error" if not failed else "errors under " + ", ".join(failed)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in ("test", "check"):
        print(__doc__)
        sys.exit(2)
    if not gpu_there():
        skip("nvidia-smi lists no GPU here; docs/gpu.md says how to borrow one")
    {"test": test, "check": check}[sys.argv[1]](*sys.argv[2:])
