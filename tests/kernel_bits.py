"""The digests of every kernel's results, compiled with another compiler or at another level, are those of kernel_digests.txt.

    python3 tests/kernel_bits.py OBJECTS COMPILER LEVEL

OBJECTS is a file made by CMake that lists the sources. Exit status: 0 the same bits, 1 not, 77 there is no such compiler.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    settings, compiler, level = json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2], sys.argv[3]
    if shutil.which(compiler) is None:
        print(f"there is no {compiler} here")
        return 77
    flags = ["-x", "c++", "-std=c++20", level, "-w", "-ffp-contract=off", "-fno-strict-aliasing", f"-I{ROOT}"]
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for n, source in enumerate(settings["kernel_sources"] + settings["layer_sources"] + ["tests/kernel_driver.cpp"]):
            objects.append(f"{folder}/{n}.o")
            if subprocess.run([compiler, *flags, "-c", str(ROOT / source), "-o", objects[-1]]).returncode != 0:
                return 1
        program = f"{folder}/driver"
        if subprocess.run([compiler, *objects, "-o", program, *settings["libraries"]]).returncode != 0:
            return 1
        return subprocess.run([program, "digests", str(ROOT / "tests" / "kernel_digests.txt")]).returncode


if __name__ == "__main__":
    sys.exit(main())
