"""Tests of the programs: the folder of results, and that results do not depend on threads."""

import os
import resource
import signal

from program_helpers import NAMES, STEPS, check, np


def threads(programs):
    """1, 2 and 5 threads, and run after run, give the same bits, forward and backward; only dQ of fewer groups of heads than threads has
    bits that depend on the number of threads."""
    for step in STEPS:
        shape = ["--batch", 2, "--heads", 3, "--seq-q", 61, "--seq-k", 53, "--head-dim", 7, "--value-dim", 9]
        if step == 8:
            shape += ["--kv-heads", 1]
        for more in ([], ["--dtype", "double"], ["--causal"])[:2 + (step >= 7)]:
            tile = ["--br", 16, "--bc", 8] if step >= 4 else []
            first, report = None, None
            groups, dq_of = 2 if step == 8 else 6, {}
            for count in (1, 2, 5, 5, 2):
                said, out = programs.solve(step, *shape, *tile, *more, env={"OMP_NUM_THREADS": str(count)})
                costs = {key: said[key] for key in ("traffic", "on_chip", "flops", "checks")}
                if first is None:
                    first, report = out, costs
                for of in first:
                    wanted = dq_of.setdefault(count, out[of]) if of == "dq" and groups < count else first[of]
                    check(out[of].tobytes() == wanted.tobytes(), f"{NAMES[step]} {more}, {count} threads: {of} has other bits than before")
                same = {k: v for k, v in report.items() if k != "checks"} == {k: v for k, v in costs.items() if k != "checks"}
                check(same, f"{NAMES[step]} {more}, {count} threads: other costs, {costs}")


def below(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, names in os.walk(folder) for name in folders + names)


def output(programs):
    """Names, types and order of the files; folders are made with their parents; older files are replaced, others left alone."""
    small = ["--heads", 2, "--seq-q", 5, "--seq-k", 7, "--head-dim", 3, "--value-dim", 4, "--batch", 2]
    for step in STEPS:
        top = programs.new("deep")
        folder = os.path.join(top, "a", "ü b", "c") + "/"
        programs.right(step, *small, "--output", folder)
        out = programs.read_outputs(step, folder)
        shapes = {"o": (2, 2, 5, 4), "lse": (2, 2, 5), "dq": (2, 2, 5, 3), "dk": (2, 2, 7, 3), "dv": (2, 2, 7, 4)}
        for of, x in out.items():
            check(x.shape == shapes[of] and x.dtype == np.dtype("<f4") and x.flags.c_contiguous, f"{NAMES[step]}: {of} is {x.dtype} {x.shape}")
            with open(os.path.join(folder, of + ".npy"), "rb") as file:
                check(file.read(8) == b"\x93NUMPY\x01\x00", f"{NAMES[step]}: {of}.npy is not of format 1.0")
        check(below(top) == sorted(["a", "a/ü b", "a/ü b/c"] + [f"a/ü b/c/{of}.npy" for of in out]), f"{NAMES[step]}: left {below(top)}")

        # A folder that is there, with an older result and a file of somebody else
        with open(os.path.join(folder, "o.npy"), "wb") as file:
            file.write(b"old")
        with open(os.path.join(folder, "mine.txt"), "w", encoding="utf-8") as file:
            file.write("mine")
        programs.right(step, *small, "--dtype", "double", "--layout", "bshd", "--output", ".", cwd=folder)
        again = {of: np.load(os.path.join(folder, of + ".npy")) for of in out}
        for of, x in again.items():
            shape = shapes[of] if of == "lse" else tuple(np.array(shapes[of])[[0, 2, 1, 3]])
            check(x.shape == shape and x.dtype == np.dtype("<f8"), f"{NAMES[step]} --dtype double --layout bshd: {of} is {x.dtype} {x.shape}")
        check(sorted(os.listdir(folder)) == sorted(["mine.txt"] + [of + ".npy" for of in out]), f"{NAMES[step]}: {os.listdir(folder)}")
        # Input and output in one folder, results over the input
        for name, shape in (("o", (1, 1, 5, 3)), ("k", (1, 1, 7, 3)), ("v", (1, 1, 7, 4))):
            np.save(os.path.join(folder, name + ".npy"), np.ones(shape, "<f4"))
        programs.right(step, "--q", "o.npy", "--k", "k.npy", "--v", "v.npy", "--output", ".", cwd=folder)
        check((np.load(os.path.join(folder, "o.npy")) == 1).all() and np.load(os.path.join(folder, "o.npy")).shape == (1, 1, 5, 4), f"{NAMES[step]}: results over the input")

    # What cannot be written: nothing is left, and what was there stays
    def refuse(step, folder, *arguments, says, what, **how):
        result = programs.run(step, *small, *arguments, "--output", folder, **how)
        check(result.status == 2 and result.out == "" and result.err.startswith(NAMES[step] + ": ") and result.err.count("\n") == 1 and says in result.err,
              f"{NAMES[step]}, {what}: status {result.status}, {result.err!r}")
    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    for step in STEPS:
        file = programs.new("file")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write("here")
        refuse(step, file, says="is not a folder", what="the folder is a file")
        refuse(step, os.path.join(file, "a", "b"), says=file, what="below a file")
        refuse(step, "/dev/full", says="/dev/full", what="/dev/full")
        refuse(step, "/dev/full/a", says="/dev/full", what="below /dev/full")
        refuse(step, "/proc/flashsteps/a", says="/proc/flashsteps", what="/proc")
        refuse(step, "", says="", what="no name")
        with open(file, encoding="utf-8") as stream:
            check(stream.read() == "here", f"{NAMES[step]}: a file that was there is changed")
        top = programs.new("full")
        refuse(step, os.path.join(top, "a", "b"), says="cannot write this file", what="a full disk", preexec_fn=small_disk)
        check(not os.path.exists(top), f"{NAMES[step]}, a full disk: left {below(top)}")
        os.makedirs(os.path.join(top, "lse.npy"))
        with open(os.path.join(top, "o.npy"), "wb") as stream:
            stream.write(b"old")
        refuse(step, top, says="is a folder", what="a folder where a file should be")
        with open(os.path.join(top, "o.npy"), "rb") as stream:
            check(below(top) == ["lse.npy", "o.npy"] and stream.read() == b"old", f"{NAMES[step]}: {below(top)} after a failure")
        if os.geteuid() != 0:
            locked = programs.new("locked")
            os.mkdir(locked, 0o500)
            refuse(step, locked, says="cannot write", what="a folder without permission")
        # A report that cannot be written is no success
        with open("/dev/full", "wb") as full:
            result = programs.run(step, *small, stdout=full)
        check(result.status == 2 and result.err.count("\n") == 1, f"{NAMES[step]}: stdout is full, status {result.status}, {result.err!r}")
