#!/usr/bin/env python3
"""Hands hostile submissions in to the grader, as a teacher would grade them, and looks at what they could do.

    hostile.py [NAME ...]        only these; all: see hostile/*.hpp and HANDED_IN
    hostile.py --list

Each must get the score that it deserves, with words that say why; nothing outside its folders may have changed, no process may be left,
no word may have been sent, and the grader must end in time. Before anything is run, the limits are proven without harm; a case that
this machine does not contain is skipped, never run.

Exit status: 0 all are held. 1 one is not. 77 the others are held, and one was skipped.

A file hostile/NAME.hpp says in its first lines what it does, onto which file it is put (starter: with the hole; solved; none), its score,
words that the report must have, and what must be held for it to be run (isolation.contained). Then come lines for the top of the file,
and after `// in kv_head` statements for the function of the task.
"""
import contextlib
import glob
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import build  # noqa: E402
import expected  # noqa: E402
import grade  # noqa: E402
import isolation  # noqa: E402
import manifest  # noqa: E402
import precompiled  # noqa: E402
import report  # noqa: E402
import starter  # noqa: E402
from test_isolation import PYTHON, attack, listing, managed  # noqa: E402

ASSIGNMENT = os.path.join(HERE, "hostile", "assignment.json")
FILE = "steps/08_gqa/forward.hpp"
FUNCTION = "inline Index kv_head(Index h, Index heads, Index kv_heads) {\n"
MARK = "// in kv_head\n"


class Case:
    """One hostile submission: .name .title .base .score .says .needs, .compiler (seconds that the compiler may take), and how it is made."""

    def __init__(self, name, title, score=0, says="", needs=(), base="solved", top="", inside="", compiler=None, make=None):
        self.name, self.title, self.score, self.says, self.needs = name, title, score, says, set(needs)
        self.base, self.top, self.inside, self.compiler, self.make = base, top, inside, compiler, make


def from_file(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head = {}
    while text.startswith("// ") and not text.startswith(MARK):
        line, _, text = text.partition("\n")
        key, _, value = line[3:].partition(":")
        head[key] = value.strip()
    top, _, inside = text.partition(MARK) if not text.startswith(MARK) else ("", MARK, text[len(MARK):])
    return Case(os.path.basename(path)[:-4], head["title"], int(head["score"]), head["says"], head["needs"].split(), head["base"], top, inside,
                int(head["compiler"].split()[0]) if "compiler" in head else None)


# Submissions that are hostile by the way they are handed in. Each is made in a folder, around a solved file, and returns the path to grade


def zipped(folder, *entries):
    path = os.path.join(folder, "submission.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


def put(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return path


def link_in_zip(folder, text, words):
    return zipped(folder, (FILE, words["SOLUTION"].encode(), stat.S_IFLNK | 0o777))


def link_to_folder_in_zip(folder, text, words):
    return zipped(folder, ("steps", words["CANARY"].encode(), stat.S_IFLNK | 0o777), (FILE, text, stat.S_IFREG | 0o644))


def above_in_zip(folder, text, words):
    return zipped(folder, (FILE, text, stat.S_IFREG | 0o644), ("../../escaped.txt", b"x", stat.S_IFREG | 0o644))


def absolute_in_zip(folder, text, words):
    return zipped(folder, (FILE, text, stat.S_IFREG | 0o644), (words["CANARY"] + "/escaped.txt", b"x", stat.S_IFREG | 0o644))


def bomb_in_zip(folder, text, words):
    return zipped(folder, (FILE, text, stat.S_IFREG | 0o644), *((f"zeros{n}", bytes(8 << 20), stat.S_IFREG | 0o644) for n in range(8)))


def lying_zip(folder, text, words):
    path = zipped(folder, (FILE, text, stat.S_IFREG | 0o644))
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        at = data.rindex(b"PK\x01\x02") + 24  # the size that the directory states
        data[at : at + 4] = (8).to_bytes(4, "little")
        file.seek(0)
        file.write(data)
    return path


def link_in_folder(folder, text, words):
    os.makedirs(os.path.join(folder, os.path.dirname(FILE)))
    os.symlink(words["SOLUTION"], os.path.join(folder, FILE))
    return folder


def pipe_in_folder(folder, text, words):
    os.makedirs(os.path.join(folder, os.path.dirname(FILE)))
    os.mkfifo(os.path.join(folder, FILE))
    return folder


def long_file(folder, text, words):
    put(folder, FILE, text + b"\n//" + b"x" * (1 << 20))
    return folder


def other_files(folder, text, words):
    """Files that nobody asked for, of names that the grader uses."""
    for name in ("grader/compute/main.cpp", "grader/grade.py", "grader/checks/cases.json", "CMakeLists.txt", "Makefile", "common/attention/head.hpp", "steps/08_gqa/backward.hpp", "isolation.py"):
        put(folder, name, b"#error this file was taken\n")
    put(folder, FILE, text)
    return folder


HANDED_IN = [
    Case("link_in_zip", "a symbolic link in the zip, to the solution", says="link", make=link_in_zip),
    Case("link_to_folder_in_zip", "a symbolic link in the zip, to a folder outside", says="link", make=link_to_folder_in_zip),
    Case("above_in_zip", "../ in a name of the zip", says="leaves its folder", make=above_in_zip),
    Case("absolute_in_zip", "an absolute name in the zip", says="leaves its folder", make=absolute_in_zip),
    Case("bomb_in_zip", "a zip of 60 KB that unpacks to 64 MB", says="unpacks to more than", make=bomb_in_zip),
    Case("lying_zip", "a zip that states a wrong size", says="cannot be read", make=lying_zip),
    Case("link_in_folder", "a symbolic link in the folder, to the solution", says="link", make=link_in_folder),
    Case("pipe_in_folder", "a pipe in the place of the file", says="not a plain file", make=pipe_in_folder),
    Case("long_file", "a file of 1 MB", says="KiB", make=long_file),
    Case("other_files", "other files of the starter and of the grader in the submission, and a right one", 100, "right", make=other_files),
]


def cases():
    return [from_file(path) for path in sorted(glob.glob(os.path.join(HERE, "hostile", "*.hpp")))] + HANDED_IN


def source(case, solved, holed, words):
    """The submission's file."""
    if case.base == "none":
        text = case.top
    else:
        text = (solved if case.base == "solved" else holed).replace(FUNCTION, FUNCTION + case.inside)
        if case.inside:
            assert case.inside in text, f"{FILE} has no {FUNCTION}"
        lines = text.split("\n")
        last = max(at for at, line in enumerate(lines) if line.startswith("#include"))
        text = "\n".join([*lines[: last + 1], case.top, *lines[last + 1 :]])
    for name, value in words.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def prove():
    """Holds what the hostile cases rely on, without harm: each attempt here would do nothing, or next to nothing, if it succeeded."""
    found, faults = isolation.contained(), []
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        secret = put(place, "secret.txt", b"x")
        os.chmod(secret, 0o666)
        proofs = {
            "reading": ("attempt('read', lambda: open(sys.argv[1]).read())", [secret], {}),
            "writing": ("attempt('write', lambda: open(sys.argv[1], 'a')); attempt('make', lambda: open(sys.argv[1] + '2', 'w')); attempt('remove', lambda: os.remove(sys.argv[1]))", [secret], {}),
            "processes": ("n = 0\nfor _ in range(12):\n  if attempt('', lambda: os.fork() or (time.sleep(5), os._exit(0))): n += 1\nif n < 8: os.write(1, b'held')\nos._exit(0)", [], {"processes": 6}),
            "memory": ("attempt('hold', lambda: len(bytearray(400 << 20)))", [], {"mebibytes": 200}),
            "signals": ("attempt('reach', lambda: os.kill(int(sys.argv[1]), 0))", [os.getpid()], {}),
            "tracing": ("attempt('look', lambda: c('process_vm_readv', int(sys.argv[1]), 0, 0, 0, 0, 0))", [os.getpid()], {}),
            "network": ("attempt('reach', lambda: socket.create_connection(('127.0.0.1', 9), 1))", [], {}),
            "disk": ("signal.signal(signal.SIGXFSZ, signal.SIG_IGN); attempt('write', lambda: open('x', 'wb').write(b'x' * (6 << 20)))", [], {"disk_mebibytes": 5}),
            "time": ("time.sleep(4); print('did wait')", [], {"seconds": 0.5}),
            "output": ("print('x' * 5000)", [], {"output_kib": 2}),
            "descendants": ("if os.fork() == 0:\n  os.setsid(); time.sleep(3); open('late', 'w')\nos._exit(0)", [], {}),
        }
        for danger, (code, arguments, limits) in proofs.items():
            if danger not in found:
                continue
            ended = attack(code, arguments, **limits)
            held = {"processes": b"held" in ended.output, "output": ended.truncated, "time": ended.timed_out, "descendants": ended.left == 0}.get(danger, managed(ended) == "" and ended.status == 0)
            if not held:
                faults.append(f"{danger} should be held, and is not: {ended}")
    return found, faults


def processes_of(folder):
    """The processes that have this folder in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if folder.encode() in file.read():
                    found.append(int(name))
    return found


class Range:
    """A grader, a canary, a process to aim at and a line that nobody should call."""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        made = manifest.load(ASSIGNMENT)
        began = time.monotonic()
        self.starter, prepared = grade.prepared_folder(ASSIGNMENT)
        print(f"prepared in {time.monotonic() - began:.0f} s", flush=True)
        self.solved, self.holed = (starter.contents(made, upto)[FILE] for upto in ("all", None))
        self.grader = self.stack.enter_context(grade.Grader(self.starter, prepared))
        self.canary = os.path.realpath(self.stack.enter_context(tempfile.TemporaryDirectory()))
        os.chmod(self.canary, 0o777)
        os.chmod(put(self.canary, "index.txt", b"canary\n"), 0o666)
        os.chmod(put(self.canary, "in/deep.txt", b"canary\n"), 0o666)
        self.victim = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(36000)"])
        self.stack.callback(self.end_victim)
        self.line = self.stack.enter_context(socket.socket())
        self.line.bind(("127.0.0.1", 0))
        self.line.listen()
        self.line.settimeout(0)
        self.datagrams = self.stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.datagrams.bind(self.line.getsockname())
        self.datagrams.settimeout(0)
        wanted = {case["sizes"]["heads"]: os.path.join(self.starter.folder, "grader", case["folder"], "expected") for case in self.starter.checks["cases"] if case["form"] == "kv_head"}
        self.words = {"CANARY": self.canary, "SOLUTION": os.path.join(ROOT, FILE), "VICTIM": self.victim.pid, "GRADER": os.getpid(), "PORT": self.line.getsockname()[1],
                      "WORKSHOP": self.grader.workshop.folder, **{f"EXPECTED_{heads}": folder for heads, folder in wanted.items()}}
        return self

    def __exit__(self, *error):
        self.stack.close()

    def end_victim(self):
        self.victim.send_signal(signal.SIGCONT)
        self.victim.kill()
        self.victim.wait()

    def looked_at(self):
        """What no submission may change: the canary, and the prepared starter with its expected values. The project's own files may be edited meanwhile."""
        places = [self.canary, *(os.path.join(self.starter.folder, name) for name in ("grader", "steps", "common", "build"))]
        return {path: seen for place in places for path, seen in listing(place).items()}

    def grade(self, case):
        """The grade of a case, the report, and the seconds it took."""
        with tempfile.TemporaryDirectory() as folder:
            if case.make:
                path = case.make(folder, self.solved.encode(), self.words)
            else:
                put(folder, FILE, source(case, self.solved, self.holed, self.words).encode())
                path = folder
            limits = dict(build.COMPILE_LIMITS)
            if case.compiler:
                build.COMPILE_LIMITS["seconds"] = case.compiler
            began = time.monotonic()
            try:
                found = grade.grade_submission(self.grader, path)
            finally:
                build.COMPILE_LIMITS.update(limits)
            seconds = time.monotonic() - began
        if isinstance(found, str):
            found = grade.refused_grade(self.starter, found)
        return found, report.render(found, "text"), seconds

    def faults_of(self, case, usual):
        """What is wrong with how a case went; the seconds."""
        before = self.looked_at()
        found, text, seconds = self.grade(case)
        faults = []
        if found["score"] != case.score:
            faults.append(f"scores {found['score']}, and deserves {case.score}")
        if case.says not in text:
            faults.append(f"the report does not say “{case.says}”")
        after = self.looked_at()
        faults += [f"has changed: {path}" for path in sorted(set(before) | set(after)) if before.get(path) != after.get(path)]
        faults += [f"process {process} is left" for process in processes_of(self.grader.workshop.folder)]
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.victim.pid}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
            if self.victim.poll() is not None or state not in (b"S", b"R", b"D"):
                faults.append("another process was ended or stopped")
        for line in (self.line.accept, lambda: self.datagrams.recv(1)):
            with contextlib.suppress(OSError):
                line()
                faults.append("a word came through the network")
        in_time = 3 * usual + 60 + 2 * (case.compiler or 0)
        if seconds > in_time:
            faults.append(f"took {seconds:.0f} s, more than {in_time:.0f}")
        return faults + (["the report:\n" + text] if faults else []), seconds


def main(names):
    chosen = [case for case in cases() if not names or case.name in names]
    if names == ["--list"]:
        for case in cases():
            print(f"{case.name}: {case.title}; {case.score} points; {' '.join(sorted(case.needs)) or 'no danger'}")
        return 0
    if unknown := set(names) - {case.name for case in chosen}:
        print(f"there is no {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if sys.platform != "linux" or not os.path.exists(PYTHON):
        print("SKIPPED: no Linux, or no Python in /usr/bin")
        return 77
    print(f"isolation: {isolation.describe()}", flush=True)
    held, faults = prove()
    for fault in faults:
        print(f"FAILED  {fault}")
    if faults:
        return 1
    failed = skipped = 0
    precompiled.share_objects(expected.BUILD)
    with Range() as place:
        _, _, usual = place.grade(Case("solved", "nothing hostile"))
        print(f"a usual submission takes {usual:.1f} s", flush=True)
        for case in [Case("harmless", "right, and nothing hostile", 100, "right"), Case("empty", "the starter as it is", 0, "not attempted", base="starter"), *chosen]:
            if case.needs - held:
                skipped += 1
                print(f"SKIPPED  {case.name}: this machine does not hold {', '.join(sorted(case.needs - held))}", flush=True)
                continue
            faults, seconds = place.faults_of(case, usual)
            failed += bool(faults)
            print(f"{'FAILED ' if faults else 'held   '}  {case.name}: {case.title}: {case.score} points, {seconds:.1f} s", *(f"         {fault}" for fault in faults), sep="\n", flush=True)
    print(f"{len(chosen)} hostile submissions: {failed} not held, {skipped} skipped")
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
