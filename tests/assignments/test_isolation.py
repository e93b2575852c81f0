#!/usr/bin/env python3
"""Tests isolation.py: each mechanism by trying to break it, with the others and, where that can be told apart, alone.

    test_isolation.py [GROUP ...]

Groups: files, outside, processes, resources, rights, left_behind, ordinary. The last runs the others as an ordinary user, if this one is root.
Exit status 0: all is held. 1: something is not, and is printed. 77: the rest is held, and something this machine cannot hold was not tried."""
import contextlib
import hashlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import isolation  # noqa: E402

PYTHON = "/usr/bin/python3"  # what the attacks are written in: it must lie where a run can read it
ORDINARY = 54321             # a user without any process, for the group "ordinary"
TELLING = ("Landlock", "user", "process namespace", "network namespace", "IPC namespace", "seccomp")
failures, skipped = [], []

BEFORE = """
import ctypes, errno, os, resource, signal, socket, stat, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, deed):
    "Says what could be done, and nothing of what was refused."
    try:
        got = deed()
    except (OSError, MemoryError, ValueError):
        return False
    print("did", what, "" if got is None else repr(got)[:200], flush=True)
    return True
def c(function, *arguments):
    got = getattr(libc, function)(*arguments)
    if got < 0:
        raise OSError(ctypes.get_errno(), function)
"""


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"FAILED  {what}", flush=True)


def described(leave_out=()):
    """What a run says of its isolation."""
    with isolation.scratch() as folder:
        return isolation.run(["true"], folder_write=[folder], leave_out=leave_out).isolation


def in_force(*mechanisms, leave_out=()):
    """Is one of these in force in a run?"""
    there = described(leave_out).partition("; missing")[0]
    return any(name in there for name in mechanisms)


def needs(danger, leave_out=()):
    """Whether this danger is held here; if not, what follows must not be tried."""
    if danger in isolation.contained(described(leave_out)):
        return True
    if danger not in isolation.contained():  # else it is held, but not by so few mechanisms
        skipped.append(danger)
        print(f"SKIPPED  not held on this machine: {danger}", flush=True)
    return False


def attack(code, arguments=(), scratch=None, **limits):
    """Runs Python code in isolation. It prints what it managed to do."""
    with contextlib.ExitStack() as stack:
        scratch = scratch or stack.enter_context(isolation.scratch())
        limits = {"seconds": 20, "mebibytes": 512, "output_kib": 64, "processes": 16} | limits
        return isolation.run([PYTHON, "-I", "-S", "-c", BEFORE + textwrap.dedent(code), *map(str, arguments)], folder_write=[scratch], **limits)


def managed(ended):
    return ended.output.decode("utf-8", "replace")


def only(*mechanisms):
    """What to leave out so that of those that tell the submission apart only these remain."""
    return [name for name in TELLING if name not in mechanisms]


def newest():
    """The version of Landlock in force here; 0: none."""
    return next((int(word.split()[1]) for word in isolation.describe().split(", ") if word.startswith("Landlock ")), 0)


def listing(folder):
    """All that lies in a folder, with contents, modes and times."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in [".", *files]:
            path = os.path.normpath(os.path.join(place, name))
            seen = os.lstat(path)
            content = b""
            if stat.S_ISREG(seen.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            found[path] = (seen.st_mode, seen.st_uid, seen.st_nlink, seen.st_mtime_ns, hashlib.sha256(content).hexdigest())
    return found


@contextlib.contextmanager
def canary():
    """A folder outside of all that a run may see, open to everybody; with it whatever happens in the system's scratch folders is looked at."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        for name, mode in (("secret.txt", 0o666), ("private.txt", 0o600)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write("do not read\n")
            os.chmod(file.name, mode)
        before = listing(folder)
        yield folder
        check(listing(folder) == before, "something outside the scratch folder has changed")


def living(marker):
    """The processes that have this word in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if marker.encode() in file.read().split(b"\0"):
                    found.append(int(name))
    return found


READ = """
    secret = sys.argv[1] + "/secret.txt"
    attempt("read", lambda: open(secret).read())
    attempt("list", lambda: os.listdir(sys.argv[1]))
    attempt("list the root", lambda: os.listdir("/"))
    attempt("list processes", lambda: os.listdir("/proc"))
    attempt("see a process", lambda: open(f"/proc/{sys.argv[2]}/environ", "rb").read())
    attempt("see memory", lambda: open("/proc/self/mem", "rb"))
    attempt("read through a root", lambda: open("/proc/self/root" + secret).read())
    attempt("read through a descriptor", lambda: open(secret, opener=lambda path, flags: os.open("secret.txt", flags, dir_fd=os.open(sys.argv[1], os.O_PATH))).read())
    attempt("read passwords", lambda: open("/etc/passwd").read())
    attempt("read a disk", lambda: [open("/dev/" + name, "rb") for name in ("sda", "vda", "nvme0n1", "mem", "kmsg")])
    attempt("link", lambda: os.link(secret, "linked"))
    attempt("link symbolically", lambda: os.symlink(secret, "pointing") or open("pointing").read())
    attempt("execute", lambda: os.execv(sys.argv[1] + "/secret.txt", ["secret"]))
"""
WRITE = """
    outside, secret = sys.argv[1], sys.argv[1] + "/secret.txt"
    for place in (outside, "/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/usr", os.path.dirname(os.getcwd()), sys.argv[2]):
        attempt("create in " + place, lambda: open(place + "/flashsteps-made-by-an-attack", "x"))
        attempt("make a folder in " + place, lambda: os.mkdir(place + "/flashsteps-made-by-an-attack"))
    attempt("append", lambda: open(secret, "a").write("x"))
    attempt("empty", lambda: os.truncate(secret, 0))
    attempt("empty while reading", lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC))
    attempt("remove", lambda: os.remove(secret))
    attempt("rename", lambda: os.rename(secret, outside + "/other"))
    attempt("take", lambda: os.rename(secret, "mine"))
    attempt("give", lambda: (open("gift", "w"), os.rename("gift", outside + "/gift"))[1])
    attempt("remove the scratch folder", lambda: os.rmdir(os.getcwd()))
    for what, path in (("file", secret), ("folder", outside), ("given", sys.argv[2] + "/given.txt")):
        attempt("change the mode of a " + what, lambda: os.chmod(path, 0o777))
        attempt("change the times of a " + what, lambda: os.utime(path, (0, 0)))
        if sys.argv[3] == "1":
            attempt("touch a " + what, lambda: os.utime(path))
            attempt("set an attribute of a " + what, lambda: os.setxattr(path, "user.x", b"x"))
    attempt("write what was given", lambda: open(sys.argv[2] + "/given.txt", "a").write("x"))
    attempt("empty what was given", lambda: os.truncate(sys.argv[2] + "/given.txt", 0))
    attempt("make a pipe", lambda: os.mkfifo("pipe"))
    attempt("make a device", lambda: os.mknod("device", stat.S_IFBLK | 0o666, os.makedev(8, 0)))
"""


def files():
    """Nothing outside the folders is read or written; what was given is read, what is the run's own is written."""
    root = os.geteuid() == 0
    versions = [[]] + [[f"Landlock {n}"] for n in range(1, newest())] + [["seccomp"]]
    for leave_out in versions:
        with canary() as outside, isolation.scratch() as given:
            name = os.path.join(given, "given.txt")
            with open(name, "w", encoding="ascii") as file:
                file.write("given\n")
            os.chmod(given, 0o755)
            before = listing(given)
            if needs("reading", leave_out):
                got = managed(attack(READ, [outside, os.getpid()], leave_out=leave_out))
                check(got == "", f"reading without {leave_out}: {got}")
            if needs("writing", leave_out):
                got = managed(attack(WRITE, [outside, given, int("seccomp" not in leave_out)], folders_read=[given], leave_out=leave_out))
                check(got == "", f"writing without {leave_out}: {got}")
            got = managed(attack("""
                attempt("read", lambda: open(sys.argv[1]).read())
                attempt("write", lambda: (os.mkdir("a"), open("a/b", "w").write("x"), os.rename("a/b", "c"), os.remove("c"), os.rmdir("a"))[1])
                attempt("throw away", lambda: open("/dev/null", "w").write("x"))
            """, [name], folders_read=[given], leave_out=leave_out))
            allowed = got.replace("did write 1\n", "") if "Landlock 1" in leave_out else got  # version 1 moves nothing from folder to folder
            check(allowed.startswith("did read 'given\\n'\n") and allowed.endswith("did throw away 1\n") and ("did write 1\n" in got or "Landlock 1" in leave_out), f"what is allowed, without {leave_out}: {got}")
            check(listing(given) == before, "what was given to read has changed")
    if root and needs("signals"):  # the user of its own, without Landlock: what is closed to others stays closed
        with canary() as outside:
            got = managed(attack("""
                attempt("read", lambda: open(sys.argv[1] + "/private.txt").read())
                attempt("write", lambda: open(sys.argv[1] + "/private.txt", "w"))
                attempt("change the mode", lambda: os.chmod(sys.argv[1] + "/secret.txt", 0o777))
                attempt("write in the system", lambda: open("/usr/made-by-an-attack", "w"))
                attempt("read passwords", lambda: open("/etc/shadow").read())
                attempt("link", lambda: os.link(sys.argv[1] + "/private.txt", "linked"))
            """, [outside], leave_out=["Landlock"]))
            check(got == "", f"a user of its own alone: {got}")
    inside = isolation.around("/usr", "/usr/share/doc")
    check("/usr/bin" in inside and "/usr/share" not in inside and "/usr/share/doc" not in inside and "/usr/share/misc" in inside, "a project inside a system folder would be readable")
    check(isolation.around("/usr", "/usr2") == ["/usr"] and isolation.around("/usr", "/usr") == [], "a folder beside a system folder is taken for one inside")
    if root:
        with isolation.scratch() as closed:
            os.chmod(closed, 0o700)
            ended = attack("print('ran')", folders_read=[closed])
            check("is closed to other users" in ended.reason and not ended.output, f"a closed folder: {ended.reason}")


def outside():
    """No network, no other process's sockets, no environment, no descriptors."""
    code = """
        def tcp():
            with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2): pass
        def udp():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.sendto(b"x", ("127.0.0.1", int(sys.argv[2])))
        def unix(name):
            with socket.socket(socket.AF_UNIX) as s: s.connect(name)
        def listen():
            with socket.socket() as s: s.bind(("127.0.0.1", 0)); s.listen()
        attempt("connect", tcp)
        if len(sys.argv) > 3:
            attempt("send", udp); attempt("meet by name", lambda: unix("\\0" + sys.argv[3])); attempt("meet at a path", lambda: unix(sys.argv[4])); attempt("listen", listen) if sys.argv[5] == "1" else 0
    """
    with tempfile.TemporaryDirectory() as place, socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, \
            socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as path:
        os.chmod(place, 0o755)
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        name = f"flashsteps-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        path.bind(os.path.join(place, "socket"))
        path.listen()
        os.chmod(os.path.join(place, "socket"), 0o777)
        ports = [tcp.getsockname()[1], udp.getsockname()[1]]
        if needs("network"):
            got = managed(attack(code, [*ports, name, os.path.join(place, "socket"), 1]))
            check(got == "", f"network: {got}")
        if needs("network", only("seccomp", "user")):
            got = managed(attack(code, [*ports, name, os.path.join(place, "socket"), 1], leave_out=only("seccomp", "user")))
            check(got == "", f"network with seccomp alone: {got}")
        if needs("network", only("network namespace", "user")):
            attack(code, ports, leave_out=only("network namespace", "user"))
            got = managed(attack(code, [*ports, name, "/nowhere", 0], leave_out=only("network namespace", "user")))
            check(got == "", f"network with a namespace alone: {got}")
        if newest() >= 4:
            got = managed(attack(code, ports, leave_out=only("Landlock", "user")))
            check(got == "", f"TCP with Landlock alone: {got}")
        try:
            check(udp.recv(10) == b"", "a datagram came through")
        except BlockingIOError:
            pass
    os.environ["FLASHSTEPS_SECRET"] = "secret"
    got = managed(attack("""
        print(sorted(os.environ), os.getcwd() == os.environ["HOME"] == os.environ["TMPDIR"], os.umask(0), sys.stdin.read() == "")
        for descriptor in range(3, 1024):
            attempt(f"use descriptor {descriptor}", lambda: os.fstat(descriptor) and None)
        print([s for s in range(1, 65) if s not in (9, 19) and signal.getsignal(s) in (signal.SIG_IGN,)], signal.pthread_sigmask(signal.SIG_BLOCK, []))
    """, env={"GIVEN": "1"}))
    del os.environ["FLASHSTEPS_SECRET"]
    # SIGPIPE and SIGXFSZ are ignored by Python itself
    check(got.startswith("['GIVEN', 'HOME', 'LC_ALL', 'PATH', 'TMPDIR'] True 18 True\n") and "did" not in got and got.endswith(" set()\n"), f"environment: {got}")


def alive(process):
    with contextlib.suppress(OSError):
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    return False


SIGNALS = """
    victim, grader = int(sys.argv[1]), int(sys.argv[2])
    targets = {"victim": victim, "grader": grader, "parent": os.getppid(), "all": -1}
    # First without harm: only who is refused there goes on.
    if any([attempt("reach the " + name, lambda: os.kill(process, 0)) for name, process in targets.items() if name in ("victim", "grader")]):
        sys.exit()
    def owned(process, number):
        import fcntl
        ends = os.pipe()
        fcntl.fcntl(ends[0], 8, process)
        fcntl.fcntl(ends[0], 10, number)
        fcntl.fcntl(ends[0], fcntl.F_SETFL, os.O_ASYNC)
        os.write(ends[1], b"x")
    for name, process in targets.items():
        if process == -1:  # reports success even if it reached nobody
            for number in (signal.SIGTERM, signal.SIGKILL):
                try: os.kill(-1, number)
                except OSError: pass
            continue
        if process <= 1: continue
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            attempt(f"send {number} to the {name}", lambda: os.kill(process, number))
        attempt(f"signal a thread of the {name}", lambda: c("syscall", 200 if os.uname().machine == "x86_64" else 130, process, 9))
        attempt(f"signal {name} by a descriptor", lambda: signal.pidfd_send_signal(os.pidfd_open(process), 9))
        if sys.argv[3] == "1": continue  # Landlock does not look at these
        attempt(f"slow the {name}", lambda: os.setpriority(os.PRIO_PROCESS, process, 19))
        attempt(f"limit the {name}", lambda: resource.prlimit(process, resource.RLIMIT_CPU, (1, 1)))
    for process in (victim, grader):
        try: owned(process, signal.SIGKILL)
        except OSError: pass
"""
LEAVE = """
    # A daemon: forks twice, a session of its own, no signal ends it but the one that none can catch, and it holds the output.
    def daemon(depth):
        if os.fork(): return
        os.setsid()
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        if depth: daemon(depth - 1); daemon(depth - 1)
        while True: time.sleep(0.01); open("beat", "a").write(".")
    daemon(2)
    time.sleep(0.2)
    print("did leave")
    sys.stdout.flush()
    os._exit(0)
"""


def processes():
    """No other process is reached; none remains, however it was left behind."""
    victim = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(600)"])
    variants = [(), only("user", "process namespace"), only("user")] if os.geteuid() == 0 else [(), only("Landlock", "process namespace"), only("process namespace"), only("seccomp")]
    if os.geteuid() != 0 and newest() >= 6:
        variants.append(only("Landlock"))
    for leave_out in variants:
        if "Landlock" not in leave_out or needs("signals", leave_out):
            landlock_alone = not in_force("user", "process namespace", "seccomp", leave_out=leave_out)
            ended = attack(SIGNALS, [victim.pid, os.getpid(), int(landlock_alone)], leave_out=leave_out)
            check(managed(ended) == "" and ended.status is not None or ended.signal in (9, 15), f"signals without {leave_out}: {ended}")
            check(alive(victim.pid) and victim.poll() is None, f"a signal reached another process, without {leave_out}")
    victim.kill()
    victim.wait()
    for leave_out in ((), ("process namespace",), ("process namespace", "user", "Landlock 5") if os.geteuid() else ("process namespace", "seccomp")):
        if needs("descendants", leave_out):
            with isolation.scratch() as scratch:
                marker = f"marker-{os.getpid()}-{time.monotonic_ns()}"
                began = time.monotonic()
                ended = attack(LEAVE, [marker], scratch, leave_out=leave_out)
                check(ended.status == 0 and managed(ended) == "did leave\n" and ended.left == 0, f"daemons without {leave_out}: {ended}")
                check(time.monotonic() - began < 5, f"daemons held the run up, without {leave_out}")
                check(not living(marker), f"daemons remain, without {leave_out}: {living(marker)}")
    for leave_out in ((), ("process namespace",)):
        if not needs("processes", leave_out):
            continue
        # First a few, then a bomb
        got = managed(attack("""
            children = 0
            for _ in range(40):
                try: child = os.fork()
                except OSError: break
                if child == 0: time.sleep(30); os._exit(0)
                children += 1
            print(children)
        """, processes=12, leave_out=leave_out))
        check(got == "11\n", f"40 processes where 12 are allowed, without {leave_out}: {got}")
        if got == "11\n":
            marker = f"bomb-{os.getpid()}-{time.monotonic_ns()}"
            began = time.monotonic()
            ended = attack("""
                while True:
                    try: os.fork()
                    except OSError: pass
            """, [marker], processes=12, seconds=2, leave_out=leave_out)
            check(ended.timed_out and ended.left == 0 and time.monotonic() - began < 8, f"a fork bomb, without {leave_out}: {ended}")
            check(not living(marker), f"a fork bomb remains, without {leave_out}")
        ended = attack("""
            import threading
            started = 0
            try:
                for _ in range(40): threading.Thread(target=time.sleep, args=(3,), daemon=True).start(); started += 1
            except RuntimeError: pass
            print(started, flush=True); os._exit(0)
        """, processes=12, leave_out=leave_out)
        check(managed(ended) == "11\n", f"40 threads where 12 are allowed, without {leave_out}: {ended}")
    interrupted()
    side_by_side()
    beside_threads()


def interrupted():
    """The grader dies in the middle of a run: what it started dies too. The supervisor dies: the run does, and the grader says so."""
    for leave_out in ((), ("process namespace",)):
        for which in ("grader", "supervisor"):
            marker = f"marker-{os.getpid()}-{time.monotonic_ns()}"
            program = f"import sys; sys.dont_write_bytecode = True; sys.path.insert(0, {os.path.dirname(isolation.__file__)!r}); import isolation\n" \
                      f"with isolation.scratch() as folder: print(isolation.run([{PYTHON!r}, '-c', 'import time; time.sleep(300)', {marker!r}], folder_write=[folder], seconds=300, leave_out={leave_out!r}).reason)"
            grader = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
            until = time.monotonic() + 20
            while not living(marker) and time.monotonic() < until:
                time.sleep(0.05)
            check(len(living(marker)) == 1, "the run to be interrupted did not start")
            if which == "grader":
                grader.kill()
                grader.wait()
            else:
                for process, parent in isolation.parents().items():
                    if parent == grader.pid:
                        os.kill(process, signal.SIGKILL)
                check(grader.communicate(timeout=20)[0] == "the process that watches it was ended\n", "the end of the supervisor was not reported")
            grader.stdout.close()
            until = time.monotonic() + 10
            while living(marker) and time.monotonic() < until:
                time.sleep(0.05)
            check(not living(marker), f"what the {which} had started lives on, without {leave_out}")


def side_by_side():
    """Runs at the same time do not disturb each other."""
    results = {}
    processes = 8 if in_force("user", "namespace") else 8 * 6  # else they are counted together with all of this user

    def one(number):
        results[number] = attack("attempt('see the others', lambda: os.listdir('..')); time.sleep(0.3); print(len([1 for _ in range(5) if os.fork() or os._exit(0)]))", processes=processes)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check([managed(results[number]) for number in range(6)] == ["5\n"] * 6, f"six runs at once: {results}")


def beside_threads():
    """Where a run is counted together with all of its user, the threads of others take none of its processes."""
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait) for _ in range(40)]
    for thread in threads:
        thread.start()
    run = attack("print(len([1 for _ in range(5) if os.fork() or os._exit(0)]))", processes=12, leave_out=only("Landlock", "seccomp"))
    ended.set()
    check(managed(run) == "5\n", f"beside 40 threads: {run}")


def resources():
    """Time, memory, disk and output end where they should."""
    for what, code in (("sleep", "time.sleep(100)"), ("loop", "while True: pass"), ("stop", "os.kill(os.getpid(), signal.SIGSTOP)"),
                       ("wait without signals", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); time.sleep(100)")):
        ended = attack(code, seconds=1)
        check(ended.timed_out and ended.reason == "ran longer than 1 s" and ended.status is None and ended.seconds < 3, f"{what}: {ended}")
    if needs("memory"):
        # First a reservation, then use
        ended = attack("attempt('reserve', lambda: len(bytearray(600 << 20)))", mebibytes=256)
        check(ended.status == 0 and managed(ended) == "", f"600 MiB where 256 are allowed: {ended}")
        if managed(ended) == "":
            ended = attack("import mmap; attempt('map 100 GB', lambda: len(mmap.mmap(-1, 100 << 30))); attempt('hold 100 GB', lambda: [bytearray(1 << 20) for _ in range(100 << 10)] and None)", mebibytes=256)
            check(ended.status == 0 and managed(ended) == "", f"100 GB: {ended}")
            ended = attack("""
                held = []
                try:
                    while True: held.append(bytearray(b"x") * (64 << 10))
                except MemoryError: time.sleep(1)
            """, mebibytes=256)
            check(ended.status == 0 and ended.reason == "", f"all that one process may reserve: {ended}")
            ended = attack("""
                for _ in range(8):
                    if not os.fork(): held = bytearray(b"x") * (90 << 20); time.sleep(10); os._exit(0)
                time.sleep(10)
            """, mebibytes=256)
            check(ended.reason == "used more than 256 MiB of memory", f"memory in many processes: {ended}")
            got = managed(attack("""
                attempt("memory without a name", lambda: os.memfd_create("x"))
                attempt("shared memory", lambda: c("shmget", 0, ctypes.c_size_t(64 << 20), 0o1600))
                attempt("locked memory", lambda: c("mlockall", 3))
                attempt("a lower limit", lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)))
            """)) if in_force("seccomp") else ""
            check(got == "", f"memory by other ways: {got}")
    if needs("disk"):
        code = """
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL if sys.argv[1] == "one" else signal.SIG_IGN)
            block, held = b"x" * (1 << 20), []
            for n in range(60):
                if n == 0: libc.prctl(4, 0, 0, 0, 0)
                if sys.argv[1] == "one": file = open("one", "ab")
                else: file = open(f"file{n}", "wb")
                if sys.argv[1] == "hidden": os.unlink(file.name); held.append(file)
                file.write(block); file.flush()
            if sys.argv[1] == "one": os._exit(0)
            time.sleep(10)
        """
        ended = attack(code, ["one"], disk_mebibytes=20)
        check(ended.signal == signal.SIGXFSZ and ended.reason == "wrote a file larger than 20 MiB", f"a large file: {ended}")
        for way in ("many", "hidden"):
            ended = attack(code, [way], disk_mebibytes=20)
            check(ended.reason == "wrote more than 20 MiB of files", f"files, {way}: {ended}")
        ended = attack("signal.signal(signal.SIGXFSZ, signal.SIG_IGN); attempt('a hole of 100 GB', lambda: os.ftruncate(os.open('hole', os.O_CREAT | os.O_RDWR), 100 << 30))")
        check(managed(ended) == "" and ended.status == 0, f"a file with a hole: {ended}")
        ended = attack("for n in range(10 ** 7): os.mkdir(f'd{n}')")
        check(ended.reason.startswith("made more than"), f"many folders: {ended.reason}")
    ended = attack("while True: os.write(1, b'x' * 4096)", output_kib=100)
    check(ended.truncated and ended.reason == "wrote more than 100 KiB of output" and len(ended.output) == 100 * 1024 and ended.seconds < 3, f"a flood: {ended.reason}, {len(ended.output)}")
    ended = attack("os.write(1, b'x' * 60000); os.write(2, b'y' * 5536)", output_kib=64)
    check(ended.status == 0 and len(ended.output) == 65536 and not ended.truncated, f"output up to the limit: {ended.reason}, {len(ended.output)}")
    ended = attack("os.close(1); os.close(2); time.sleep(0.3); os._exit(3)")
    check(ended.status == 3 and ended.seconds > 0.25, f"closed output: {ended}")
    ended = attack("os.kill(os.getpid(), signal.SIGSEGV)")
    check(ended.signal == 11 and ended.status is None and ended.reason == "crashed: Segmentation fault (signal 11)" and not ended.timed_out, f"a crash: {ended}")
    ended = attack("os.abort()")
    check(ended.signal == 6 or ended.signal == 11, f"abort: {ended}")
    with isolation.scratch() as scratch:
        ended = isolation.run(["flashsteps-no-such-program"], folder_write=[scratch])
        check(ended.reason.startswith("could not be started") and ended.status is None, f"no such program: {ended}")
        ended = attack("os.abort()", scratch=scratch)
        check(os.listdir(scratch) == [], f"a core dump: {os.listdir(scratch)}")
        ended = isolation.run([os.path.join(scratch, "nothing")], folder_write=[scratch], mebibytes=None)
        check(ended.reason.startswith("could not be started"), f"no such program: {ended}")


def rights():
    """No right comes back: no other user, no capability, no tracing, no mount, no namespace of its own."""
    got = managed(attack("""
        libc.unshare.argtypes = [ctypes.c_int]
        attempt("become root", lambda: os.setuid(0))
        attempt("become another", lambda: os.setresuid(1, 1, 1))
        attempt("join a group", lambda: os.setgroups([0]))
        for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("process", 0x20000000)):
            attempt(f"have a namespace: {name}", lambda: c("unshare", flag))
            attempt(f"clone into a namespace: {name}", lambda: c("syscall", ctypes.c_long(56 if os.uname().machine == "x86_64" else 220), ctypes.c_long(flag | 17), 0, 0, 0, 0) or os._exit(0))
        attempt("mount", lambda: c("mount", b"none", os.getcwd().encode(), b"tmpfs", 0, None))
        attempt("change the root", lambda: os.chroot("."))
        libc.ptrace.argtypes = [ctypes.c_long] * 4
        attempt("trace", lambda: c("ptrace", 16, int(sys.argv[1]), 0, 0))
        attempt("trace the parent", lambda: c("ptrace", 16, os.getppid(), 0, 0))
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
        attempt("read memory", lambda: c("process_vm_readv", int(sys.argv[1]), vector, 1, vector, 1, 0))
        attempt("lift a limit", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (100000, 100000)))
        attempt("get rights back", lambda: c("prctl", 38, 0, 0, 0, 0))
        attempt("use a ring", lambda: c("syscall", ctypes.c_long(425), 8, ctypes.create_string_buffer(120)))
    """, [os.getpid()])) if needs("tracing") and in_force("seccomp") else ""
    check(got == "", f"rights: {got}")
    ended = attack("""
        print(os.getuid() != int(sys.argv[1]), os.getgroups(), os.getgid() == os.getuid())
        print("NoNewPrivs", c and ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))
    """, [os.getuid()])
    user = in_force("user")
    check(not user or managed(ended).startswith("True [") and "True\n" in managed(ended).splitlines(True)[0], f"the user of a run: {managed(ended)}")
    check("NoNewPrivs 1" in managed(ended), f"new privileges: {managed(ended)}")
    if os.path.exists("/usr/bin/su"):
        ended = attack("os.execv('/usr/bin/su', ['su', '-c', 'id'])", seconds=5)
        check(b"uid=0" not in ended.output, f"su: {ended}")


def left_behind():
    """What a submission leaves in its folder neither misleads the grader nor outlives it."""
    with canary() as outside, isolation.scratch() as folder:
        def make(name, content=b"x"):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)

        os.mkdir(os.path.join(folder, "out"))
        make("out/good.txt", b"good")
        make("long.txt", b"x" * 1001)
        os.link(os.path.join(folder, "long.txt"), os.path.join(folder, "two.txt"))
        os.symlink(os.path.join(outside, "secret.txt"), os.path.join(folder, "link.txt"))
        os.symlink(outside, os.path.join(folder, "elsewhere"))
        os.mkfifo(os.path.join(folder, "pipe.txt"))
        for name, want in (("out/good.txt", b"good"), ("long.txt", None), ("two.txt", None), ("link.txt", None), ("elsewhere/secret.txt", None), ("pipe.txt", None), ("out", None),
                           ("nothing.txt", None), ("../" + os.path.basename(folder) + "/out/good.txt", None), ("out/..", None), ("", None), ("/etc/passwd", None)):
            got = isolation.read_output(folder, name, 1000)
            check(got == want, f"read_output({name!r}): {got!r}")
        place = os.open(folder, os.O_RDONLY)
        for depth in range(1500):
            os.mkdir("a" * 100, dir_fd=place)
            inner = os.open("a" * 100, os.O_RDONLY, dir_fd=place)
            os.close(place)
            place = inner
        os.close(os.open("deep", os.O_CREAT, dir_fd=place))
        os.close(place)
        make(b"\xff\xfe odd \n name".decode("utf-8", "surrogateescape"))
        os.makedirs(os.path.join(folder, "shut", "in"))
        os.chmod(os.path.join(folder, "shut", "in"), 0)
        os.chmod(os.path.join(folder, "shut"), 0)
        os.mkdir(os.path.join(folder, "lifted-0"))
        os.chmod(folder, 0o711)
        ended = attack("print('ran')", scratch=folder)
        check(managed(ended) == "ran\n", f"a run in a folder full of oddities: {ended}")
        isolation.clear(folder)
        check(os.listdir(folder) == [], f"clear() left {os.listdir(folder)}")
    with canary() as outside, isolation.scratch() as folder:  # a run that hands the next one's folder a file of somebody else
        attack("attempt('link', lambda: os.link(sys.argv[1] + '/private.txt', 'x'))", [outside], scratch=folder)
        attack("pass", scratch=folder)
        check(os.stat(os.path.join(outside, "private.txt")).st_uid == os.geteuid(), "a file outside was given away")
    check(not os.path.exists(folder), "the scratch folder is still there")


def ordinary():
    """The same as an ordinary user."""
    if os.geteuid() != 0:
        return
    if os.stat(os.path.realpath(PYTHON)).st_mode & 1 == 0:
        return
    def drop():
        os.setgroups([])
        os.setresgid(ORDINARY, ORDINARY, ORDINARY)
        os.setresuid(ORDINARY, ORDINARY, ORDINARY)

    with tempfile.TemporaryDirectory() as place:  # a copy: the project may lie where others cannot read
        os.chmod(place, 0o755)
        for file in (__file__, isolation.__file__):
            with open(file, "rb") as source, open(os.path.join(place, os.path.basename(file)), "wb") as target:
                target.write(source.read())
            os.chmod(target.name, 0o644)
        command = [PYTHON, "-I", os.path.join(place, os.path.basename(__file__)), *[name for name in GROUPS if name != "ordinary"]]
        status = subprocess.run(command, preexec_fn=drop, cwd="/", env={"PATH": os.environ.get("PATH", os.defpath)}).returncode
    check(status in (0, 77), f"as an ordinary user: status {status}")
    if status == 77:
        skipped.append("as an ordinary user")


GROUPS = {"files": files, "outside": outside, "processes": processes, "resources": resources, "rights": rights, "left_behind": left_behind, "ordinary": ordinary}


def main(names):
    if sys.platform != "linux" or not os.path.exists(PYTHON):
        print("SKIPPED  no Linux, or no Python in /usr/bin")
        return 77
    print(f"user {os.geteuid()}: {isolation.describe()}", flush=True)
    for name in names or GROUPS:
        began = time.monotonic()
        GROUPS[name]()
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(failures)} failures, {len(skipped)} skipped")
    return 1 if failures else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
