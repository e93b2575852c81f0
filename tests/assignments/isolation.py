"""Runs a command of a submission, the compiler or the program, where it can do no harm; says what held it and what did not.

    ended = run([...], folder_write=[scratch], folders_read=[build], seconds=10, mebibytes=1024, output_kib=4096, processes=16)
    ended.status, ended.reason, ended.output, ended.isolation

A supervisor, a process of its own (this file, started as a program), starts the command, watches it and ends it with all that descends from it.
Every mechanism that the kernel grants is used, each for itself; one that it refuses is named as missing, in `isolation` and in describe():

    Landlock          only folder_write can be written, only folders_read and the system's folders can be read; no TCP (ABI 4), no signal to the outside (ABI 6)
    user of its own   as root: a user without name, files or rights, another one for every run
    namespaces        processes, network and IPC of its own: nothing outside can be signalled, nothing can be reached, and all ends with the first process
    seccomp           no socket, no tracing, no memory outside the limits, no mount, no change of a file's mode, times or attributes, no signal as the grader's user
    limits            time, memory, size and number of files, processes, output; no core dump

Standard library only; Linux on x86-64 and AArch64 (elsewhere without seccomp). contained() lists what cannot happen on this machine."""
import collections
import ctypes
import errno
import functools
import marshal
import os
import resource
import select
import signal
import stat
import struct
import sys
import time

# The supervisor is started anew for every run: what only the grader needs (subprocess, tempfile) is imported where it is used.

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store", "/etc/alternatives",
          "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
USERS = range(61184, 65520)  # no person's and no service's: one of them for every run as root
DISK_MEBIBYTES = 256         # all that a run may leave in folder_write, and the largest single file
FILES = 1000                 # the number of files and folders there
WATCH_SECONDS = 0.2          # between two looks at memory and disk
SWEEP_SECONDS = 20           # after that, what does not end is reported as left


class Ended(collections.namedtuple("Ended", "status signal timed_out output truncated isolation reason left seconds", defaults=("", 0, 0.0))):
    """How a run came to its end.

    status     the exit status; None if a signal ended it, or if it could not be started
    signal     the number of that signal, else None
    timed_out  it ran longer than it may
    output     bytes: stdout and stderr together, at most output_kib
    truncated  it wrote more than that, and was ended for it
    isolation  what was in force, and what was missing
    reason     in words: why it was ended, or how it crashed; "" after an exit of its own
    left       processes that could not be ended: 0
    seconds    how long it ran
    """

    @property
    def ok(self):
        return self.status == 0 and not self.reason


def run(command, *, folder_write, folders_read=(), seconds=10.0, mebibytes=1024, output_kib=4096, processes=16, env=None, cwd=None,
        compiler=False, disk_mebibytes=DISK_MEBIBYTES, leave_out=()):
    """Runs `command` to its end. `compiler`: it is a compiler or a build, not a student's program, and may change the modes of its files.
    `mebibytes` None: no limit of address space (AddressSanitizer reserves terabytes), /proc/self is readable; half the machine's memory is still too much.
    `leave_out`: for tests, mechanisms to do without, by the names that describe() uses; "Landlock 3" means none newer."""
    if sys.platform != "linux":
        return without(command, folder_write, seconds, output_kib, env, cwd)
    import subprocess
    folder_write, folders_read = [os.path.realpath(f) for f in folder_write], [os.path.realpath(f) for f in folders_read]
    request = {"command": [os.fspath(word) for word in command], "write": folder_write, "read": folders_read, "seconds": seconds, "mebibytes": mebibytes,
               "output": output_kib * 1024, "processes": processes, "cwd": os.path.realpath(cwd or folder_write[0]), "compiler": compiler,
               "disk": disk_mebibytes << 20, "leave_out": list(leave_out), "env": clean(folder_write[0], env)}
    supervisor = subprocess.Popen([sys.executable, "-I", "-S", "-B", os.path.abspath(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  start_new_session=True, cwd="/", env={"LC_ALL": "C.UTF-8"})
    try:
        supervisor.stdin.write(marshal.dumps(request))
        supervisor.stdin.flush()  # and stays open: see below
        answer = supervisor.stdout.read()
    except BrokenPipeError:
        answer = b""
    finally:  # the end of its input, also when this process is interrupted or killed, tells the supervisor to end everything
        supervisor.stdin.close()
        supervisor.stdout.close()
        supervisor.wait()
    try:
        return Ended(**marshal.loads(answer))
    except (EOFError, ValueError, TypeError):
        return Ended(None, None, False, b"", False, "none: the supervisor was ended", "the process that watches it was ended")


def clean(folder, env):
    """The whole environment of a run."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": folder, "TMPDIR": folder, **(env or {})}


def without(command, folder_write, seconds, output_kib, env, cwd):
    """Where there is no Linux: only the time and the output kept are limited."""
    import subprocess
    import tempfile
    began = time.monotonic()
    with tempfile.TemporaryFile() as written:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, start_new_session=True,
                                       cwd=cwd or folder_write[0], env=clean(folder_write[0], env) | {"PATH": os.environ.get("PATH", os.defpath)})
        except OSError as error:
            return Ended(None, None, False, b"", False, "none", f"could not be started: {error}")
        reason = ""
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            reason, status = f"ran longer than {seconds:g} s", None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        process.wait()
        written.seek(0)
        output = written.read(output_kib * 1024 + 1)
    if status is not None and status < 0:
        reason = f"crashed: {signal.strsignal(-status)} (signal {-status})"
    return Ended(status if status is not None and status >= 0 else None, -status if status is not None and status < 0 else None, status is None,
                 output[:output_kib * 1024], len(output) > output_kib * 1024, "none", reason, 0, time.monotonic() - began)


@functools.lru_cache(maxsize=1)
def _trial():
    """What a run of nothing says of itself."""
    with scratch() as folder:
        return run(["true"], folder_write=[folder], folders_read=[], seconds=10).isolation


def describe():
    """The mechanisms in force on this machine, and those that are missing."""
    return _trial()


def isolated():
    """Whether a submission can neither read nor write outside its folders; if not, every output has to say so."""
    return {"reading", "writing"} <= contained()


def contained(isolation=None):
    """What a hostile submission cannot do on this machine (or in a run with this `isolation`): the names of the dangers that something in force holds."""
    in_force = (isolation or _trial()).partition("; missing: ")[0].split(", ")
    words = {word.split(" (")[0] for word in in_force}
    landlock = next((int(word.split()[1]) for word in words if word.startswith("Landlock ")), 0)
    user, namespace, seccomp = any(w.startswith("user ") for w in words), "process namespace" in words, "seccomp" in words
    held = set()
    if "limits" in words:
        held |= {"time", "memory", "disk", "output"}
        if user or os.geteuid() != 0:
            held.add("processes")
    if landlock:
        held.add("reading")
        if user or (landlock >= 3 and seccomp):
            held.add("writing")
    if user or namespace or seccomp:  # Landlock alone holds signals, but not priorities and limits
        held |= {"signals", "tracing", "descendants"}
    if "network namespace" in words or seccomp:
        held.add("network")
    return held


class scratch:
    """A new folder, removed at the end, whatever a submission left there. Other users may pass through it, if they know its name."""

    def __init__(self, prefix="flashsteps-"):
        self.prefix = prefix

    def __enter__(self):
        import tempfile
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix=self.prefix))
        os.chmod(self.folder, 0o711)
        return self.folder

    def __exit__(self, *_):
        remove(self.folder)


def make_readable(folder):
    """Lets the user of a run read `folder`: for the grader's own copies, which a strict umask made private."""
    for place, _, files in os.walk(folder):
        os.chmod(place, stat.S_IMODE(os.stat(place).st_mode) | 0o555)
        for name in files:
            path = os.path.join(place, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                os.chmod(path, stat.S_IMODE(mode) | 0o444 | (0o111 if mode & 0o100 else 0))


def read_output(folder, name, limit=64 << 20):
    """The bytes of the file `name` (may be "out/o.txt") below `folder`, as a submission left it; None unless it is a plain file of at most `limit` bytes
    with one name only. Follows no symbolic link and waits for no pipe."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *places, last = name.split("/")
        if ".." in places or last in ("", ".."):
            return None
        for place in places:
            inner = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        if not stat.S_ISREG(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode):
            return None
        with open(os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_size > limit:
                return None
            return file.read(limit)
    except OSError:
        return None
    finally:
        os.close(at)


def clear(folder):
    """Empties `folder`, however deep, closed or odd what lies in it; follows no symbolic link. Folders are lifted to the top, so no path grows long."""
    number = 0

    def lift(place):
        nonlocal number
        for name in os.listdir(place):
            path = os.path.join(place, name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                if place != folder:
                    os.chmod(path, 0o700)
                    while os.path.lexists(os.path.join(folder, f"lifted-{number}")):
                        number += 1
                    os.rename(path, os.path.join(folder, f"lifted-{number}"))
            else:
                os.unlink(path)

    lift(folder)
    while names := os.listdir(folder):
        for name in names:
            path = os.path.join(folder, name)
            os.chmod(path, 0o700)
            lift(path)
            os.rmdir(path)


def remove(folder):
    """Removes `folder` and all in it, as clear()."""
    clear(folder)
    os.rmdir(folder)


# ---- The supervisor: from here on, in a process of its own -----------------------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)  # on Linux; elsewhere nothing below is used
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
NEW_NS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
NEW_ANY = NEW_NS | NEW_IPC | NEW_USER | NEW_PID | NEW_NET | 0x2000000 | 0x4000000 | 0x80
CAP_CHOWN, CAP_SETGID, CAP_SETUID = 0, 6, 7


def call(result):
    """The result of a C function, or its error."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def syscall(number, *arguments):
    return call(LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))


def prctl(option, value, address=0):
    call(LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), ctypes.c_ulong(address), ctypes.c_ulong(0), ctypes.c_ulong(0)))


# Landlock. Numbers and bits are those of the kernel's linux/landlock.h.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_DIR, MAKE_REG, REFER, TRUNCATE, IOCTL_DEV = 1 << 7, 1 << 8, 1 << 13, 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
WRITING = READING | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER | TRUNCATE  # no devices, sockets, pipes or symbolic links
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


def landlock_abi():
    try:
        return syscall(CREATE_RULESET, 0, 0, 1)
    except OSError:
        return 0


def handled(abi):
    """All rights to files that this version knows: what no rule grants is refused."""
    return (1 << (13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16)) - 1


def around(folder, hidden):
    """`folder`, or, if `hidden` lies in it, all else that lies in it."""
    if hidden != folder and not hidden.startswith(folder.rstrip("/") + "/"):
        return [folder]
    if hidden == folder:
        return []
    return [part for name in os.listdir(folder) for part in around(os.path.join(folder, name), hidden)]


def restrict_files(abi, read, write, more):
    """Landlock: from here on this process and its descendants reach nothing but these folders."""
    attributes = struct.pack("QQQ", handled(abi), 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)[:8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = syscall(CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)

    def allow(path, rights):
        try:
            at = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(os.fstat(at).st_mode):
            rights &= OF_FILES
        syscall(ADD_RULE, ruleset, 1, ctypes.c_char_p(struct.pack("=Qi", rights & handled(abi), at)), 0)
        os.close(at)

    # This file lies in the project, or in a starter, two folders below its root: were that inside /usr, the solution would be readable with it.
    project = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    for folder in SYSTEM:
        for part in around(folder, project):
            allow(part, READING)
    for device in DEVICES:
        allow(device, READ_FILE | WRITE_FILE)
    for folder in [*read, *more]:
        allow(folder, READING)
    for folder in write:
        allow(folder, WRITING)
    syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


# seccomp. For each architecture: its number in a filter, and the calls' numbers (x86-64, AArch64; None: it has no such call).
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
NEVER = {
    "socket": (41, 198), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "io_uring_setup": (425, 425), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "pidfd_getfd": (438, 438), "fanotify_init": (300, 262), "quotactl": (179, 60),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466), "file_setattr": (469, 469)}
OF_COMPILERS = {  # Landlock does not look at these: modes, owners, times. A compiler makes its program executable, a program has no need of them
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None),
    "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88)}
AS_OWN_USER = {  # what the grader's own user may do to its other processes
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239), "process_mrelease": (448, 448), "pidfd_send_signal": (424, 424)}
TRUNCATE_CALL, FCNTL, PRLIMIT, PRCTL, CLONE, CLONE3 = (76, 45), (72, 25), (302, 261), (157, 167), (56, 220), (435, 435)
SIGNALLING = {"kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE, END = 0x7FFF0000, 0x00050000, 0x80000000


def restrict_calls(abi, own_user, compiler):
    """seccomp: calls that no computation needs fail with EPERM. `own_user`: nothing else keeps it from the other files and processes of the grader's user."""
    architecture, column = ARCHITECTURES[os.uname().machine]
    program = []

    def step(code, value, yes=0, no=0):
        program.append(struct.pack("HBBI", code, yes, no, value))

    def refuse(number, error=errno.EPERM):
        if number[column] is not None:
            step(EQUAL, number[column], 0, 1)
            step(RETURN, REFUSE | error)

    def look(number, argument, *tests):
        """Lets the tests decide, which look at the low half of one argument, then the call is allowed."""
        step(EQUAL, number[column], 0, 2 + sum(2 for _ in tests))
        step(LOAD, 16 + 8 * argument)
        for code, value, refused_if in tests:
            step(code, value, *((0, 1) if refused_if else (1, 0)))
            step(RETURN, REFUSE | errno.EPERM)
        step(RETURN, ALLOW)

    step(LOAD, 4)
    step(EQUAL, architecture, 1, 0)
    step(RETURN, END)
    step(LOAD, 0)
    if column == 0:  # the x32 calls have other numbers
        step(AT_LEAST, 0x40000000, 0, 1)
        step(RETURN, REFUSE | errno.ENOSYS)
    for number in NEVER.values():
        refuse(number)
    refuse(CLONE3, errno.ENOSYS)  # its flags lie in memory, where a filter cannot look; the C library then takes clone
    look(CLONE, 0, (ANY_BIT, NEW_ANY & ~0xFF, True))
    look(PRCTL, 0, (EQUAL, PR_SET_DUMPABLE, True))  # a process that may not be looked at could hide what it holds open
    if abi < 3:  # Landlock does not look at it yet
        refuse(TRUNCATE_CALL)
    if not compiler:
        for number in OF_COMPILERS.values():
            refuse(number)
    if own_user and not compiler:
        for number in AS_OWN_USER.values():
            refuse(number)
        look(FCNTL, 1, (EQUAL, 8, True), (EQUAL, 10, True), (EQUAL, 15, True))  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals by another way
        look(PRLIMIT, 0, (EQUAL, 0, False))
        if abi < 6:
            for number in SIGNALLING.values():
                look(number, 0, (EQUAL, os.getpid(), False))
    step(RETURN, ALLOW)
    code = ctypes.create_string_buffer(b"".join(program))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    prctl(PR_SET_SECCOMP, 2, ctypes.addressof(whole))


def has_seccomp():
    if os.uname().machine not in ARCHITECTURES or struct.calcsize("P") != 8:
        return False
    try:
        prctl(PR_SET_SECCOMP, 2)  # no filter at all: EFAULT if the kernel knows how
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


# Processes, as /proc shows them.
def parents():
    """The parent of every process."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                pass
    return found


def descendants(root):
    children = {}
    for process, parent in parents().items():
        children.setdefault(parent, []).append(process)
    found, todo = [], [root]
    while todo:
        more = children.get(todo.pop(), [])
        found += more
        todo += more
    return found


def resident(process):
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def unlinked(processes, user):
    """The bytes of files that they hold open and that have no name any more. It looks as their user: root in a container may not."""
    total = 0
    if user is not None:
        LIBC.setfsgid(user), LIBC.setfsuid(user)
    for process in processes:
        try:
            for name in os.listdir(f"/proc/{process}/fd"):
                found = os.stat(f"/proc/{process}/fd/{name}")
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    total += found.st_blocks * 512
        except OSError:
            pass
    if user is not None:
        LIBC.setfsuid(0), LIBC.setfsgid(0)
    return total


def used(folders):
    """Bytes and number of all that lies in the folders."""
    size = number = 0
    todo = list(folders)
    while todo and number <= FILES:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    number += 1
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    size += found.st_blocks * 512
                    if stat.S_ISDIR(found.st_mode):
                        todo.append(entry.path)
        except OSError:
            pass
    return size, number


def give(folders, user):
    """Makes `user` the owner of all in the folders, but of no file that has a second name elsewhere."""
    todo = list(folders)
    for folder in folders:
        os.chown(folder, user, user)
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        todo.append(entry.path)
                    elif found.st_nlink != 1:
                        continue
                    if found.st_uid != user:
                        os.chown(entry.path, user, user, follow_symlinks=False)
        except OSError:
            pass


def mapped(user):
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return any(int(first) <= user < int(first) + int(count) for first, _, count in map(str.split, file))


def capable(*wanted):
    with open("/proc/self/status", encoding="ascii") as file:
        effective = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))
    return all(effective >> capability & 1 for capability in wanted)


def free_user():
    """A user that no process has; None if there is none to change to."""
    if os.geteuid() != 0 or not capable(CAP_CHOWN, CAP_SETGID, CAP_SETUID):
        return None
    taken = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                taken.add(os.stat(f"/proc/{name}").st_uid)
            except OSError:
                pass
    for number in range(len(USERS)):
        user = USERS[(os.getpid() + number) % len(USERS)]
        if user not in taken and mapped(user):
            return user
    return 65534 if mapped(65534) else None


def closed(folders, to_write):
    """The first folder on the way to one of these that is closed to a user of its own."""
    for folder in [*folders, *to_write]:
        place = os.path.dirname(folder)
        if folder in folders and not os.stat(folder).st_mode & 0o004:
            return folder
        while True:
            if not os.stat(place).st_mode & 0o001:
                return place
            if place == "/":
                break
            place = os.path.dirname(place)
    return None


def unshare(flags):
    try:
        call(LIBC.unshare(ctypes.c_int(flags)))
        return True
    except OSError:
        return False


def map_own_user(user, group):
    """In a new user namespace: the same user and group as outside."""
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as out:
            out.write(text)


NAMESPACES = {"process namespace": NEW_PID, "network namespace": NEW_NET, "IPC namespace": NEW_IPC}


def enter_namespaces(left_out):
    """Namespaces for what this process starts: their names. Without rights of its own it needs a user namespace for them, and tries in a child first."""
    user, group = os.geteuid(), os.getegid()
    wanted = {name: flag for name, flag in NAMESPACES.items() if name not in left_out}
    if user != 0 and wanted:
        trial = os.fork()
        if trial == 0:
            try:
                good = unshare(NEW_USER)
                map_own_user(user, group)
                os._exit(0 if good and unshare(NEW_PID | NEW_NET | NEW_IPC) else 1)
            except OSError:
                os._exit(1)
        if os.waitpid(trial, 0)[1] != 0:
            return []
        unshare(NEW_USER)
        map_own_user(user, group)
    return [name for name, flag in wanted.items() if unshare(flag)]


def limit(what, value):
    """Lowers a limit; never above the one that holds already."""
    hard = resource.getrlimit(what)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def become(request, user, abi, seccomp, apart, output, fault):
    """In the new process: gives up every right but those of the request, then is the command. `apart`: in a user namespace processes are counted apart, and so
    many are the supervisor's; 0: all processes of the grader's user count."""
    try:
        os.setsid()
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(fault, 3, inheritable=False)
        os.closerange(4, 1 << 16)
        fault = 3
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if number < 32 or signal.SIGRTMIN <= number <= signal.SIGRTMAX:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.umask(0o022)
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("1000")  # should the machine run out of memory, this goes first
        except OSError:
            pass
        if user is not None:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        os.chdir(request["cwd"])
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if abi:
            restrict_files(abi, request["read"], request["write"], [] if request["mebibytes"] else [f"/proc/{os.readlink('/proc/self')}"])
        if seccomp:
            restrict_calls(abi, user is None, request["compiler"])
        seconds = int(request["seconds"]) * (os.cpu_count() or 1) + 2
        limit(resource.RLIMIT_CORE, 1)  # 1, not 0: so a core dump is not sent to a program either
        limit(resource.RLIMIT_CPU, seconds)
        limit(resource.RLIMIT_FSIZE, request["disk"])
        limit(resource.RLIMIT_NOFILE, 256)
        limit(resource.RLIMIT_MEMLOCK, 0)
        limit(resource.RLIMIT_NPROC, request["processes"] + (0 if user is not None else apart or request["running"]))
        if request["mebibytes"]:
            limit(resource.RLIMIT_AS, request["mebibytes"] << 20)
        os.execve(request["command"][0], request["command"], request["env"])
    except BaseException as error:  # noqa: B902: whatever it is, this process ends here
        os.write(fault, f"{request['command'][0]}: {error}".encode()[:2000])
    os._exit(127)


def start(request, user, abi, seccomp, apart, namespace, output, fault, report):
    """Starts the command; with a process namespace under its first process, which waits for it and reports its status. When that one ends, all in the
    namespace do. Returns the process to watch."""
    process = os.fork()
    if process:
        return process
    if not namespace:
        become(request, user, abi, seccomp, apart, output, fault)
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_DUMPABLE, 0)
        command = os.fork()
        if command == 0:
            become(request, user, abi, seccomp, apart, output, fault)
        os.close(output)
        os.close(fault)
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == command:
                os.write(report, struct.pack("i", status))
                break
    finally:
        os._exit(0)


def sweep():
    """Ends all that descends from this process, which is the parent of every orphan: stops first, so that nothing new is started meanwhile, then kills.
    Returns how many are left after SWEEP_SECONDS: none."""
    until = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < until:
        stopped = set()
        while new := set(descendants(os.getpid())) - stopped:
            for process in new:
                try:
                    os.kill(process, signal.SIGSTOP)
                except OSError:
                    pass
            stopped |= new
        for process in stopped:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        time.sleep(0.002)
    return len(descendants(os.getpid()))


def watch(request, user, output, pidfd, own):
    """Waits for the end of the process, reads what it writes, looks at what it uses, without the process `own`, which is this module's.
    Returns why it has to be ended, and what it wrote."""
    began = time.monotonic()
    look = began + WATCH_SECONDS
    with open("/proc/meminfo", encoding="ascii") as file:
        machine = int(file.readline().split()[1]) << 10
    most = (request["mebibytes"] << 20) if request["mebibytes"] else machine // 2
    written = bytearray()
    waiting = select.poll()
    for descriptor in (output, pidfd, 0):
        waiting.register(descriptor, select.POLLIN)
    while True:
        now = time.monotonic()
        if now >= began + request["seconds"]:
            return f"ran longer than {request['seconds']:g} s", written
        if now >= look:
            # Without this module's first process in a namespace: what one process may reserve, it may use
            running = [process for process in descendants(os.getpid()) if process != own]
            if sum(map(resident, running)) > most:
                return f"used more than {most >> 20} MiB of memory", written
            size, number = used(request["write"])
            if size + unlinked(running, user) > request["disk"]:
                return f"wrote more than {request['disk'] >> 20} MiB of files", written
            if number > FILES:
                return f"made more than {FILES} files", written
            look = time.monotonic() + WATCH_SECONDS
        ready = {descriptor for descriptor, _ in waiting.poll(max(0, min(look, began + request["seconds"]) - now) * 1000)}
        if output in ready:
            part = os.read(output, 1 << 16)
            written += part
            if len(written) > request["output"]:
                return f"wrote more than {request['output'] >> 10} KiB of output", written
            if not part:
                waiting.unregister(output)
        elif pidfd in ready:
            return "", written
        if 0 in ready and not os.read(0, 1 << 16):
            return "the grader has ended", written


def supervise():
    """Reads a request, answers with what came of it."""
    with open(0, "rb", closefd=False) as into:
        try:
            request = marshal.load(into)
        except EOFError:
            return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # it ends when the grader does, never without a sweep
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        left_out = request["leave_out"]
        user = free_user() if "user" not in left_out else None
        abi = landlock_abi() if "Landlock" not in left_out else 0
        abi = min([abi, *(int(name.split()[1]) for name in left_out if name.startswith("Landlock "))])
        seccomp = has_seccomp() and "seccomp" not in left_out
        request["running"] = sum(threads_of(name) for name in os.listdir("/proc") if name.isdigit() and owner(name) == os.geteuid()) if user is None else 0
        namespaces = enter_namespaces(left_out)
        in_force = ([f"Landlock {abi}"] if abi else []) + ([f"user {user}"] if user is not None else []) + namespaces + (["seccomp"] if seccomp else []) + ["limits"]
        missing = ([] if abi else ["Landlock"]) + ([] if user is not None else ["a user of its own (the grader is not root)"] if os.geteuid() else
                                                   ["a user of its own (root without the right to change it)"])
        missing += [name for name in NAMESPACES if name not in namespaces] + ([] if seccomp else ["seccomp"])
        answer = {"isolation": ", ".join(in_force) + ("; missing: " + ", ".join(missing) if missing else "")}
        answer |= conduct(request, user, abi, seccomp, namespaces)
    except OSError as error:
        answer = {"isolation": "none", "status": None, "signal": None, "timed_out": False, "output": b"", "truncated": False, "reason": f"could not be started: {error}", "left": sweep()}
    try:
        with open(1, "wb", closefd=False) as out:
            marshal.dump(answer, out)
    except BrokenPipeError:  # there is no grader any more
        pass


def threads_of(process):
    """How much of a limit of processes it takes: each thread counts."""
    try:
        return len(os.listdir(f"/proc/{process}/task"))
    except OSError:
        return 0


def owner(process):
    try:
        return os.stat(f"/proc/{process}").st_uid
    except OSError:
        return -1


def conduct(request, user, abi, seccomp, namespaces):
    """Runs the command of the request and ends all that comes of it."""
    nothing = {"status": None, "signal": None, "timed_out": False, "output": b"", "truncated": False}
    if "/" not in request["command"][0]:
        paths = [os.path.join(place, request["command"][0]) for place in request["env"]["PATH"].split(":")]
        request["command"][0] = next((path for path in paths if os.access(path, os.X_OK)), request["command"][0])
    if user is not None:
        place = closed(request["read"], request["write"])
        if place is not None:
            return nothing | {"reason": f"could not be started: {place} is closed to other users, so the user of the run cannot reach its folders"}
        give(request["write"], user)
    output, into = os.pipe()
    fault, fault_into = os.pipe()
    report, report_into = os.pipe()
    namespace = "process namespace" in namespaces
    began = time.monotonic()
    process = start(request, user, abi, seccomp, (1 + namespace) if namespaces else 0, namespace, into, fault_into, report_into)
    for descriptor in (into, fault_into, report_into):
        os.close(descriptor)
    pidfd = os.pidfd_open(process)
    reason, written = watch(request, user, output, pidfd, process if namespace else None)
    seconds = time.monotonic() - began
    status = None
    if namespace:
        if reason:
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        if not reason:
            told = os.read(report, 4)
            status = struct.unpack("i", told)[0] if len(told) == 4 else None
    elif not reason:
        status = os.waitpid(process, 0)[1]
    left = sweep()
    os.set_blocking(output, False)
    try:
        while len(written) <= request["output"] and (part := os.read(output, 1 << 16)):
            written += part
    except BlockingIOError:
        pass
    os.set_blocking(fault, False)
    try:
        failed = os.read(fault, 4000).decode("utf-8", "replace")
    except BlockingIOError:
        failed = ""
    answer = nothing | {"output": bytes(written[:request["output"]]), "truncated": len(written) > request["output"], "left": left, "seconds": seconds,
                        "timed_out": reason.startswith("ran longer")}
    if failed:
        return answer | {"reason": f"could not be started: {failed}"}
    if status is not None and os.WIFEXITED(status):
        answer["status"] = os.WEXITSTATUS(status)
    elif status is not None:
        answer["signal"] = os.WTERMSIG(status)
        reason = reason or {signal.SIGXCPU: "used more processor time than it may", signal.SIGXFSZ: f"wrote a file larger than {request['disk'] >> 20} MiB"}.get(
            answer["signal"], f"crashed: {signal.strsignal(answer['signal'])} (signal {answer['signal']})")
    elif not reason:
        reason = "ended without a status"
    if answer["truncated"] and not reason:
        reason = f"wrote more than {request['output'] >> 10} KiB of output"
    return answer | {"reason": reason}


if __name__ == "__main__":
    supervise()
