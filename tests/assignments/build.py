"""Compiles compute programs and runs them: the only place where a submission's code is executed, always in a process of its own.

A folder as it was handed out is configured and compiled once by CMake: what no submission changes is never compiled again. For a
submission only the translation units that include one of its files are compiled, in a scratch folder, with the commands that CMake wrote.
"""
import collections
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
import isolation  # noqa: E402

COMPILE_SECONDS = 150
COMPILE_LIMITS = {"seconds": COMPILE_SECONDS, "mebibytes": 4096, "output_kib": 512, "processes": 64}
ERROR_LINES = 12

# A case that was run: the folder that its program wrote into; and, where that has no result, a sentence why
Ran = collections.namedtuple("Ran", "folder problem timed_out", defaults=(None, False))


class NotBuilt(Exception):
    """A program that could not be compiled: .lines are what a student is shown of the compiler's words."""

    def __init__(self, program, lines):
        super().__init__(f"{program} does not compile")
        self.program, self.lines = program, lines


def cores():
    """How much is done at once."""
    return int(os.environ.get("JOBS") or os.cpu_count() or 1)


def clean_environment(temporary):
    """No variable of who grades, and numbers with a point."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": temporary, "TMPDIR": temporary, "LC_ALL": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=0"}


def first_lines(text, *folders):
    """The first lines of a compiler's output from the first error on, without the folders in which it worked."""
    for folder in sorted((f for f in folders if f), key=len, reverse=True):
        text = text.replace(folder + "/", "")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if re.search(r"\b(error|undefined reference|multiple definition)\b", line)), 0)
    return [line[:300] for line in lines[at : at + ERROR_LINES]] or ["the compiler said nothing"]


def words_of(ended):
    """Why a program ended without a result, as a sentence."""
    said = [line.strip() for line in ended.output.decode("utf-8", "replace").splitlines() if line.strip()]
    sanitizer = next((line for line in said if "ERROR: AddressSanitizer" in line or "runtime error:" in line), None)
    if sanitizer:
        return sanitizer[:300]
    return f"the program {ended.reason}" if ended.reason else f"the program ended with status {ended.status} before its results were written"


# As it was handed out


def configure(starter, build, flags="", keep=None):
    """Lets CMake write the build of a starter. flags  in place of those of a release, such as a sanitizer's; keep  a folder for headers
    that are compiled once for many starters"""
    command = ["cmake", "-S", starter, "-B", build, "-G", "Unix Makefiles", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *(["-DCMAKE_BUILD_TYPE=Other"] if flags else [])]
    if was_moved(starter, build):
        shutil.rmtree(build)
    if not os.path.isfile(os.path.join(build, "CMakeCache.txt")):
        run_cmake([*command, f"-DCMAKE_CXX_FLAGS={flags}"])
        if keep:
            import precompiled

            run_cmake([*command, f"-DCMAKE_CXX_FLAGS={flags} {precompiled.flags(keep, build)}".rstrip()])
    else:
        run_cmake(command)


def was_moved(starter, build):
    """Was this build made for another place? CMake would refuse it."""
    path = os.path.join(build, "CMakeCache.txt")
    if not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8", errors="replace") as file:
        home = re.search(r"(?m)^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", file.read())
    return home is not None and os.path.realpath(home[1]) != os.path.realpath(starter)


def run_cmake(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise NotBuilt("CMake", first_lines(done.stdout + done.stderr))


def make(build, programs, jobs):
    """Compiles programs with CMake; returns by program what the compiler said of those that do not compile, and all that was said."""
    limit = 6 * COMPILE_SECONDS

    def ended(targets, *more):
        """(status, what was said); the status of what did not end is None"""
        try:
            done = subprocess.run(["cmake", "--build", build, "-j", str(jobs), "--target", *targets, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit,
                                  stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            return None, f"the compiler did not end within {limit} seconds\n"

    status, said = ended(programs, "--", "--keep-going") if programs else (0, "")  # at once: no core waits for the last unit of a program
    failed = {}
    for program in programs if status != 0 else []:
        status, words = ended([program])
        if status is None:
            failed[program] = [words.rstrip()]
        elif status != 0:
            failed[program] = first_lines(words, os.path.dirname(build))
    return failed, said


# What a submission changes


def command_of(entry):
    """The words of an entry of compile_commands.json, without what CMake lets compile in the compiler's place."""
    words = entry.get("arguments") or shlex.split(entry["command"])
    return words[1:] if os.path.basename(words[0]) == "ccache" else words


Unit = collections.namedtuple("Unit", "source object arguments")  # one translation unit: its command without -o and the object


class Prepared:
    """A starter that is compiled: the objects that stay, and how the others are compiled and linked.

    .folder, .build, .files (what a student may change), .units and .links by program
    """

    def __init__(self, folder, build, files, programs):
        self.folder, self.build, self.files, self.programs = os.path.realpath(folder), os.path.realpath(build), files, programs
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            commands = json.load(file)
        self.units, self.links = {}, {}
        for program in programs:
            with open(os.path.join(self.build, "CMakeFiles", f"{program}.dir", "link.txt"), encoding="utf-8") as file:
                self.links[program] = shlex.split(file.read())
            objects = {os.path.normpath(os.path.join(self.build, word)) for word in self.links[program] if word.endswith(".o")}
            self.units[program] = [unit for unit in (self.unit_of(command) for command in commands) if unit.object in objects and self.is_students(unit)]

    def unit_of(self, command):
        words = command_of(command)
        at = words.index("-o")
        return Unit(command["file"], os.path.normpath(os.path.join(command["directory"], words[at + 1])), words[:at] + words[at + 2 :])

    def includes(self, unit):
        """The files of the folder that a unit includes, as the compiler listed them."""
        with open(unit.object + ".d", encoding="utf-8") as file:
            names = shlex.split(file.read().replace("\\\n", " ").partition(": ")[2])
        full = [os.path.realpath(os.path.join(self.build, name)) for name in names]
        return {os.path.relpath(name, self.folder) for name in full if name.startswith(self.folder + os.sep)}

    def is_students(self, unit):
        return bool(self.includes(unit) & set(self.files))


def without_listing(command):
    """A compiler's command that does not list what it includes."""
    return [word for at, word in enumerate(command) if word not in ("-MD", "-MT", "-MF") and not (at and command[at - 1] in ("-MT", "-MF"))]


class Workshop:
    """A scratch folder with the sources of a starter in which one submission after another is compiled and run.

    Nothing of the expected values is in it. Objects are kept by what they are made of, as long as the workshop lives.
    """

    def __init__(self, prepared, limits, jobs):
        self.prepared, self.limits, self.jobs, self.trusted = prepared, limits, jobs, False
        self.kept = {}
        self.lock = threading.Lock()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(isolation.scratch("flashsteps-grade-"))
        self.starter, self.objects, self.store, self.work = (make_folder(self.folder, name) for name in ("starter", "objects", "store", "work"))
        self.readable = [os.path.join(self.starter, name) for name in ("steps", "common", os.path.join("grader", "compute"))]
        for place in self.readable:
            shutil.copytree(os.path.join(self.prepared.folder, os.path.relpath(place, self.starter)), place)
        isolation.make_readable(self.starter)
        return self

    def __exit__(self, *error):
        self.stack.close()

    def isolated(self, command, write, read, **limits):
        return (run_trusted if self.trusted else isolation.run)(command, folder_write=write, folders_read=read, env=clean_environment(write[0]), cwd=write[0], **limits)

    def put(self, files, trusted=False):
        """Puts a submission's files in the place of the starter's. files  by path, in bytes; trusted  they are the project's own, and run
        without isolation, so ten times as fast"""
        self.trusted = trusted
        isolation.clear(self.work)
        make_folder(self.work, "bin")
        for path in self.prepared.files:
            target = os.path.join(self.starter, path)
            if path in files:
                with open(target, "wb") as file:
                    file.write(files[path])
            else:
                shutil.copyfile(os.path.join(self.prepared.folder, path), target)
            os.chmod(target, 0o644)

    def compile(self, unit, number):
        """The object of a unit with the files that were put; compiled unless it is kept."""
        digest = hashlib.sha256("\0".join(unit.arguments).encode())
        changed = False
        for path in sorted(self.prepared.includes(unit) & set(self.prepared.files)):
            with open(os.path.join(self.starter, path), "rb") as file, open(os.path.join(self.prepared.folder, path), "rb") as before:
                text = file.read()
                changed = changed or text != before.read()
                digest.update(f"\0{path}\0".encode() + hashlib.sha256(text).digest())
        if not changed:
            return self.stays(unit.object)
        kept = os.path.join(self.store, digest.hexdigest() + ".o")
        if digest.hexdigest() in self.kept:
            if self.kept[digest.hexdigest()]:
                raise NotBuilt(None, self.kept[digest.hexdigest()])
            return kept
        place = make_folder(self.work, f"compile{number}")
        command = [self.header(word) if word.endswith("system.hpp") else word.replace(self.prepared.folder, self.starter) for word in unit.arguments]
        command = without_listing(command)
        ended = self.isolated([*command, "-o", os.path.join(place, "unit.o")], [place], [*self.readable, self.objects], compiler=True, **COMPILE_LIMITS)
        lines = None
        if not ended.ok or not is_plain(os.path.join(place, "unit.o")):
            lines = [f"the compiler {ended.reason}"] if ended.reason else first_lines(ended.output.decode("utf-8", "replace"), self.starter, place)
        self.kept[digest.hexdigest()] = lines
        if lines:
            raise NotBuilt(None, lines)
        copy(os.path.join(place, "unit.o"), kept)
        return kept

    def header(self, source):
        """A precompiled header, where the compiler may read it."""
        target = os.path.join(self.objects, os.path.basename(source))
        if not os.path.exists(target):
            with self.lock:
                for end in (".gch", ""):
                    if os.path.isfile(source + end) and not os.path.exists(target + end):
                        try:
                            os.chmod(source + end, 0o644)
                            os.link(source + end, target + end)  # it is large
                        except OSError:
                            copy(source + end, target + end)
        return target

    def stays(self, word):
        """An object or library of the build, where the linker may read it."""
        source = os.path.normpath(os.path.join(self.prepared.build, word))
        target = os.path.join(self.objects, hashlib.sha256(source.encode()).hexdigest()[:12] + "-" + os.path.basename(source))
        with self.lock:
            if not os.path.exists(target):
                copy(source, target)
        return target

    def build(self, programs, without=()):
        """Compiles and links these programs; returns the paths of those that could be, and by name the lines of those that could not.
        without  number types that are left out"""
        left = tuple(f"-DSTUDENT_{kind.upper()}" for kind in without)
        units = {unit.object: unit for program in programs for unit in self.prepared.units[program] if not set(left) & set(unit.arguments)}
        objects, failed = {}, {}
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            running = {name: pool.submit(self.compile, unit, number) for number, (name, unit) in enumerate(units.items())}
        for name, future in running.items():
            try:
                objects[name] = future.result()
            except NotBuilt as error:
                failed[name] = error.lines
        paths, errors = {}, {}
        for program in programs:
            mine = [unit.object for unit in self.prepared.units[program] if unit.object in units]
            broken = [failed[name] for name in mine if name in failed]
            if broken:
                errors[program] = broken[0]
                continue
            try:
                paths[program] = self.link(program, {unit.object: objects.get(unit.object) for unit in self.prepared.units[program]})
            except NotBuilt as error:
                errors[program] = error.lines
        return paths, errors

    def link(self, program, objects):
        """objects  by those of the build that they replace; None: left out"""
        place = make_folder(self.work, f"link-{program}")
        command, words = [], iter(self.prepared.links[program])
        for word in words:
            full = os.path.normpath(os.path.join(self.prepared.build, word))
            if word == "-o":
                next(words)
                command += ["-o", os.path.join(place, program)]
            elif full in objects:
                command += [objects[full]] if objects[full] else []
            elif word.endswith((".o", ".a")) and os.path.isfile(full) and full.startswith(self.prepared.build + os.sep):
                command.append(self.stays(word))
            else:
                command.append(word)
        ended = self.isolated(command, [place], [self.store, self.objects], compiler=True, **COMPILE_LIMITS)
        if not ended.ok or not is_plain(os.path.join(place, program)):
            raise NotBuilt(program, [f"the linker {ended.reason}"] if ended.reason else first_lines(ended.output.decode("utf-8", "replace"), self.objects, self.store, place))
        path = os.path.join(self.work, "bin", program)  # out of the folder that was written: nothing can change it any more
        copy(os.path.join(place, program), path, 0o755)
        return path

    def run(self, path, case, starter, number, seconds):
        """Runs a program on one case of a starter. It may write into one empty folder, and read its inputs."""
        return run_case(path, case, starter, make_folder(self.work, f"case{number}"), self.limits, seconds, trusted=self.trusted)


def run_case(path, case, starter, place, limits, seconds, sanitized=False, trusted=False):
    """One run of a compute program on a case of a starter, in a folder of its own: build.Ran. trusted  without isolation"""
    source, out = os.path.join(starter, "grader", case["folder"], "in"), make_folder(place, "out")
    if trusted and os.path.isdir(source):
        inputs = source
    else:  # copies: no path leads to the expected values beside them
        inputs = make_folder(place, "in")
        for name in os.listdir(source) if os.path.isdir(source) else []:
            copy(os.path.join(source, name), os.path.join(inputs, name))
    ended = (run_trusted if trusted else isolation.run)([path, *case["arguments"], "--in", inputs, "--out", out], folder_write=[out], folders_read=[os.path.dirname(path), inputs], env=clean_environment(out), cwd=out,
                          seconds=seconds * (4 if sanitized else 1), mebibytes=None if sanitized else limits["mebibytes"], output_kib=limits["output_kib"], processes=16)
    return Ran(out, words_of(ended), ended.timed_out)


def run_trusted(command, *, env, cwd, seconds, output_kib, **_):
    """As isolation.run, without any: for the project's own solutions and mistakes alone."""
    try:
        done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    except subprocess.TimeoutExpired:
        return isolation.Ended(None, None, True, b"", False, "none", f"ran longer than {seconds:g} s")
    if done.returncode < 0:
        return isolation.Ended(None, -done.returncode, False, done.stdout, False, "none", f"crashed (signal {-done.returncode})")
    return isolation.Ended(done.returncode, None, False, done.stdout[: output_kib << 10], False, "none")


def make_folder(*path):
    """A new folder that every user may pass and read."""
    path = os.path.join(*path)
    os.mkdir(path)
    os.chmod(path, 0o755)
    return path


def copy(source, target, mode=0o644):
    """A copy that every user may read. Never follows a link."""
    shutil.copyfile(source, target, follow_symlinks=False)
    os.chmod(target, mode)


def is_plain(path):
    return os.path.isfile(path) and not os.path.islink(path)
