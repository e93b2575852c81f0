"""Takes a submission in: of a zip, a folder or a folder of them only the files that a student may change, as bytes.

Nothing is unpacked onto the disk, and no link is followed. A zip that tries to get out of its folder is refused as a whole.
"""
import json
import os
import stat
import sys
import zipfile

sys.dont_write_bytecode = True
import manifest as manifests  # noqa: E402

FILE_CAP = 256 << 10  # bytes of one file: the longest of the steps has 8 KiB
ZIP_CAP = 16 << 20  # bytes of a zip, and of all that it holds when unpacked
NAMES_CAP = 5000  # names in a zip, or in a folder as deep as DEPTH
DEPTH = 3  # folders between a submission's top and its steps/


class Refused(Exception):
    """Says in one sentence why a submission cannot be taken."""


def pick(names, allowed):
    """Of the names in a submission the allowed files: {allowed path: name}. All lie under one folder, the least deep one.

    Files without their folders count if no two allowed files have the same name.
    """
    found = {}
    for name in names:
        for path in allowed:
            if name == path or name.endswith("/" + path):
                found.setdefault(name[: len(name) - len(path)], {})[path] = name
    if found:
        least = min(prefix.count("/") for prefix in found)
        tops = sorted(prefix for prefix in found if prefix.count("/") == least)
        if len(tops) > 1:
            raise Refused(f"the files to grade stand there more than once: under {tops[0] or './'} and under {tops[1]}")
        return found[tops[0]]
    bare = {os.path.basename(path): path for path in allowed}
    if len(bare) == len(allowed):
        return {bare[name]: name for name in names if name in bare}
    return {}


def outside(name):
    """Does this name in a zip point out of the folder in which it would be unpacked?"""
    parts = name.replace("\\", "/").split("/")
    return name.startswith(("/", "\\")) or ".." in parts or (len(parts[0]) == 2 and parts[0][1] == ":") or "\0" in name


def from_zip(path, allowed):
    if os.path.getsize(path) > ZIP_CAP:
        raise Refused(f"the zip has more than {ZIP_CAP >> 20} MiB")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > NAMES_CAP:
                raise Refused(f"the zip has more than {NAMES_CAP} names")
            for entry in entries:
                if outside(entry.filename):
                    raise Refused(f"the zip has a name that leaves its folder: {entry.filename[:80]!r}")
                mode = entry.external_attr >> 16
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise Refused(f"the zip has a link or a device: {entry.filename[:80]!r}")
                if entry.flag_bits & 1:
                    raise Refused("the zip is encrypted")
            if sum(entry.file_size for entry in entries) > ZIP_CAP:
                raise Refused(f"the zip unpacks to more than {ZIP_CAP >> 20} MiB")
            files = [entry for entry in entries if not entry.is_dir()]
            if len({entry.filename for entry in files}) != len(files):
                raise Refused("the zip has a name twice")
            by_name = {entry.filename.removeprefix("./"): entry for entry in files if not entry.filename.startswith("__MACOSX/")}
            taken = {}
            for target, name in pick(by_name, allowed).items():
                with archive.open(by_name[name]) as file:
                    taken[target] = read_capped(file, name)  # the size that a zip states may be a lie
            return taken
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise Refused(f"the zip cannot be read: {str(error)[:120]}") from error
    except Refused:
        raise
    except Exception as error:  # zlib.error, lzma.LZMAError: of damaged data
        raise Refused(f"the zip cannot be read: {type(error).__name__}") from error


def read_capped(file, name):
    data = file.read(FILE_CAP + 1)
    if len(data) > FILE_CAP:
        raise Refused(f"{name} has more than {FILE_CAP >> 10} KiB")
    return data


def names_in(folder):
    """Plain files of a folder, down to the depth at which steps may stand; names with /."""
    names = []
    for place, folders, files in os.walk(folder):
        below = os.path.relpath(place, folder)
        depth = 0 if below == "." else below.count(os.sep) + 1
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not os.path.islink(os.path.join(place, name))) if depth < DEPTH + 2 else []
        names += [os.path.normpath(os.path.join(below, name)).replace(os.sep, "/") for name in files]
        if len(names) > 10 * NAMES_CAP:
            raise Refused(f"the folder has more than {10 * NAMES_CAP} files")
    return names


def from_folder(folder, allowed):
    taken = {}
    for target, name in pick(names_in(folder), allowed).items():
        try:
            handle = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(f"{name} is a link or cannot be read") from error
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Refused(f"{name} is not a plain file")
            taken[target] = read_capped(file, name)
    return taken


def take(path, allowed):
    """The files of one submission by their path in the starter. allowed  the files that count"""
    if os.path.isdir(path):
        taken = from_folder(path, allowed)
    elif zipfile.is_zipfile(path):
        taken = from_zip(path, allowed)
    else:
        raise Refused("it is neither a folder nor a zip")
    if not taken:
        raise Refused(f"it has none of the files to grade: {', '.join(allowed)}")
    for name, data in taken.items():
        if b"\0" in data:
            raise Refused(f"{name} is not text")
    return taken


def mismatch(path, slug, version):
    """A sentence if the note that `make submit` put into a zip names another assignment or another version of it."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(manifests.NOTE) as file:
            note = json.loads(file.read(FILE_CAP))
        packed = str(note["assignment"])[:60], str(note["version"])[:20]
    except Exception:  # a folder, a zip without a note, or with anything in its place
        return None
    if packed == (slug, version):
        return None
    return f"it was packed from {packed[0]!r}, version {packed[1]!r}; this is {slug}, version {version}"


def is_one(path, allowed):
    """Is this one submission, and not a folder of them? A zip, or a folder with a steps/ or an allowed file at its top."""
    if not os.path.isdir(path):
        return True
    bare = {os.path.basename(name) for name in allowed}
    return os.path.isdir(os.path.join(path, "steps")) or any(os.path.lexists(os.path.join(path, name)) for name in bare)


def students(folder):
    """The submissions of a folder: (name, path), one for each zip and each folder in it."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.startswith(".") or name == "__MACOSX" or os.path.islink(path):
            continue
        if os.path.isdir(path) or name.lower().endswith(".zip"):
            found.append((name[:-4] if not os.path.isdir(path) else name, path))
    return found
