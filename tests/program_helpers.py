"""What the tests of the programs share: counting checks, running a program, reading what it says and writes."""

import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIP: no NumPy")
    sys.exit(77)

NAMES = {1: "01_safe_softmax_3pass", 2: "02_online_softmax_2pass", 3: "03_fa_1pass", 4: "04_fa1_tiled", 5: "05_fa2_loop_swap",
         6: "06_backward_recompute", 7: "07_causal_early_exit", 8: "08_gqa"}
STEPS = tuple(NAMES)
# The form whose results the program keeps, and the one of its gradients
FORWARD = {1: "standard", 2: "two sweeps", 3: "one sweep", 4: "column tiles outside", 5: "row tiles outside", 6: "row tiles outside", 7: "forward", 8: "forward"}
BACKWARD = {6: "column order", 7: "backward", 8: "backward"}

failures = []
checks = 0


def check(right, what):
    """Counts a check and keeps what failed; never true for anything but a plain truth."""
    global checks
    checks += 1
    if not bool(right):
        failures.append(what)
    return bool(right)


class Result:
    def __init__(self, status, out, err, call):
        self.status, self.out, self.err, self.call = status, out, err, call


class Programs:
    """The programs of a build folder, run from a folder of their own that they have no reason to write to."""

    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        self.elsewhere = os.path.join(folder, "elsewhere")
        os.mkdir(self.elsewhere)
        self.count = 0

    def path(self, step):
        return os.path.join(self.build, NAMES[step])

    def new(self, name=""):
        """A path that is not there."""
        self.count += 1
        return os.path.join(self.folder, f"{self.count:04}{name}")

    def execute(self, argv, env=None, stdout=subprocess.PIPE, cwd=None, preexec_fn=None):
        # A thread that waits may sleep: tests run beside one another
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "OMP_NUM_THREADS")} | {"OMP_WAIT_POLICY": "passive"} | (env or {})
        done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=environment,
                              cwd=cwd or self.elsewhere, preexec_fn=preexec_fn, timeout=300)
        return Result(done.returncode, (done.stdout or b"").decode("utf-8"), done.stderr.decode("utf-8"), " ".join(map(str, [os.path.basename(argv[0]), *argv[1:]])))

    def run(self, step, *arguments, **how):
        return self.execute([self.path(step), *arguments], **how)

    def right(self, step, *arguments, **how):
        """A run that must say equal and nothing else is wrong."""
        result = self.run(step, *arguments, **how)
        check(result.status == 0 and result.err == "", f"{result.call}: status {result.status}, stderr {result.err!r}, stdout {result.out[-300:]!r}")
        return result

    def json(self, step, *arguments, **how):
        return parsed(self.right(step, "--json", *arguments, **how))

    def solve(self, step, *arguments, **how):
        """The JSON and the output files, read by NumPy."""
        folder = self.new("out")
        report = self.json(step, "--output", folder, *arguments, **how)
        return report, self.read_outputs(step, folder)

    def read_outputs(self, step, folder):
        wanted = ["lse", "o"] + (["dk", "dq", "dv"] if step >= 6 else [])
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        check(there == sorted(w + ".npy" for w in wanted), f"{NAMES[step]}: files {there} in the output folder")
        return {w: np.load(os.path.join(folder, w + ".npy"), allow_pickle=False) for w in wanted if w + ".npy" in there}

    def save(self, array, name="x", order="C"):
        path = self.new(name + ".npy")
        np.save(path, np.asarray(array, order=order), allow_pickle=False)
        return path

    def files(self, q, k, v, do=None):
        arguments = ["--q", self.save(q, "q"), "--k", self.save(k, "k"), "--v", self.save(v, "v")]
        return arguments + ([] if do is None else ["--do", self.save(do, "do")])


def no_repeats(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def parsed(result):
    """The one JSON object on stdout, without NaN and Infinity, which JSON does not have."""
    def refuse(word):
        raise ValueError(word)
    try:
        report = json.loads(result.out, object_pairs_hook=no_repeats, parse_constant=refuse)
        check(isinstance(report, dict), f"{result.call}: not an object")
        return report
    except ValueError as error:
        check(False, f"{result.call}: not JSON ({error}): {result.out[:200]!r}")
        return {}


def temporary():
    return tempfile.TemporaryDirectory(prefix="flashsteps-programs-")
