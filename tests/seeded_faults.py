"""Seeds faults into the project's own kernels, and demands that each is caught by the detector that should catch it.

    python3 tests/seeded_faults.py OBJECTS [NAME ...]

OBJECTS is a file made by CMake: the compiler, and the object files to link with. A fault is a replacement of a text that must stand exactly
once in its file (several texts: at least once each): one that no longer applies fails. Detectors:

    wrong           the values are wrong in at least one schedule (kernel_driver ends with 1)
    error: REGEX    the layer reports this, in every build
    traced: REGEX   the tracer reports this
    asan: REGEX     AddressSanitizer or UndefinedBehaviorSanitizer report this
    counted: REGEX  nothing fails, but the tracer's table of accesses has such a line
    unseen          and the plain run notices nothing: only the other detectors stated tell

Exit status: 0 all caught and the clean kernels pass, 1 not, 2 usage.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from seeded_faults_list import FAULTS

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-x", "c++", "-std=c++20", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unknown-pragmas", "-Wno-restrict"]
BUILDS = {
    "plain": ["-O1"],
    "traced": ["-O1", "-g", "-fsanitize=thread"],
    "asan": ["-O1", "-g1", "-fsanitize=address,undefined,bounds-strict", "-fno-sanitize-recover=all"],
}


def only_small(text):
    """Leaves out the compiled shapes of wide heads: kernel_driver does not run them, and they take time to compile."""

    def keep(match):
        entries = re.findall(r"compiled<[^()]*>\(\w*\)", match.group(2))
        numbers = [[int(n) for n in re.findall(r"\b\d+\b", e)] for e in entries]
        small = [e for e, n in zip(entries, numbers) if n[2 if len(n) > 2 else 0] <= 64]  # br, bc, dim; or the dim alone
        return match.group(1) + ", ".join(small) + "};"

    return re.sub(r"(all\[\]\s*=\s*\{)(.*?)\};", keep, text, flags=re.S)


class Bench:
    def __init__(self, objects, folder):
        self.settings = json.loads(pathlib.Path(objects).read_text())
        self.folder = folder
        self.asan_layer = []

    def compile(self, source, output, build, include=()):
        command = [self.settings["compiler"], *FLAGS, *BUILDS[build], *[f"-I{i}" for i in include], f"-I{ROOT}", "-c", str(source), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{source} does not compile:\n{done.stderr[:3000]}")

    def layer(self, build):
        """The layer's objects. Under the sanitizers it has to know of them, so it is compiled once more."""
        if build != "asan":
            return self.settings[build]["layer"]
        if not self.asan_layer:
            for name in self.settings["layer_sources"] + ["tests/kernel_driver.cpp"]:
                output = self.folder / (pathlib.Path(name).stem + ".asan.o")
                self.compile(ROOT / name, output, "asan")
                self.asan_layer.append(str(output))
        return self.asan_layer

    def program(self, fault, build):
        """kernel_driver with one faulty kernel (or, without a fault, as it is)."""
        kernels = list(self.settings["traced" if build == "traced" else "plain"]["kernels"])
        extra = []
        if fault:
            place = self.folder / "src"
            faulty = place / fault.file
            faulty.parent.mkdir(parents=True, exist_ok=True)
            text = (ROOT / fault.file).read_text()
            for old, new in fault.texts():
                if text.count(old) != 1 and not isinstance(fault.old, tuple):
                    return None
                if old not in text:
                    return None
                text = text.replace(old, new)
            faulty.write_text(only_small(text) if fault.file.endswith(".cu") else text)
            if fault.unit and fault.unit != fault.file:
                (place / fault.unit).parent.mkdir(parents=True, exist_ok=True)
                (place / fault.unit).write_text(only_small((ROOT / fault.unit).read_text()))
            unit = fault.unit or fault.file
            output = self.folder / f"faulty.{build}.o"
            self.compile(place / unit, output, build, include=[place])
            faulty.unlink()
            kernels = [k for k in kernels if not k.endswith(unit.split("/", 1)[1] + ".o")]
            extra = [str(output)]
        elif build == "asan":
            kernels = []
            for source in self.settings["kernel_sources"]:
                output = self.folder / (source.replace("/", "_") + ".asan.o")
                (self.folder / "small.cu").write_text(only_small((ROOT / source).read_text()))
                self.compile(self.folder / "small.cu", output, "asan")
                extra.append(str(output))
        program = self.folder / "driver"
        driver = [] if build == "asan" else [self.settings[build]["driver"]]
        link = [self.settings["compiler"], *driver, *kernels, *extra, *self.layer(build), "-o", str(program), *self.settings["libraries"]]
        if build == "asan":
            link += ["-fsanitize=address,undefined"]
        done = subprocess.run(link, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"does not link:\n{done.stderr[:3000]}")
        return program

    def run(self, fault, build, kernels):
        program = self.program(fault, build)
        if program is None:
            return None
        return subprocess.run([str(program), "check", *kernels], capture_output=True, text=True, timeout=300)


def complaint(fault, bench):
    """Why the fault was not caught as it should be; "" if it was."""
    runs = {}

    def run(build):
        if build not in runs:
            runs[build] = bench.run(fault, build, [fault.kernel])
        return runs[build]

    for detector in fault.detectors:
        kind, _, pattern = detector.partition(": ")
        done = run({"wrong": "plain", "error": "plain", "unseen": "plain"}.get(kind, "traced" if kind == "counted" else kind))
        if done is None:
            return f"the text to replace does not stand exactly once in {fault.file}"
        out = done.stdout + done.stderr
        if kind == "wrong" and done.returncode != 1:
            return f"the values are not wrong (exit status {done.returncode}): {done.stderr[:300]}"
        if kind == "unseen" and done.returncode != 0:
            return f"the plain run should notice nothing (exit status {done.returncode}): {done.stderr[:300]}"
        if kind in ("error", "traced") and (done.returncode != 3 or not re.search(pattern, done.stderr)):
            return f"no error like '{pattern}' (exit status {done.returncode}): {out[:600]}"
        if kind == "asan" and (done.returncode == 0 or not re.search(pattern, done.stderr)):
            return f"the sanitizers do not say '{pattern}' (exit status {done.returncode}): {done.stderr[:600]}"
        if kind == "counted" and (done.returncode != 0 or not re.search(pattern, done.stdout)):
            return f"no line like '{pattern}' (exit status {done.returncode}): {out[:1500]}"
    return ""


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    wanted = sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sys.argv[1], pathlib.Path(folder))
        if not wanted or "clean" in wanted:
            kernels = sorted({f.kernel for f in FAULTS})
            for build in BUILDS:
                done = bench.run(None, build, kernels)
                print(f"{'ok' if done.returncode == 0 else 'FALSE ALARM':12} the clean kernels, {build}")
                if done.returncode != 0:
                    failed += 1
                    print(done.stderr[:2000])
        for fault in FAULTS:
            if wanted and fault.name not in wanted:
                continue
            why = complaint(fault, bench)
            print(f"{'NOT CAUGHT' if why else 'caught':12} {fault.name} ({fault.kernel}): {'; '.join(fault.detectors)}", flush=True)
            if why:
                failed += 1
                print(f"             {why}")
    print(f"{len(FAULTS) if not wanted else len(wanted)} faults, {failed} not as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
