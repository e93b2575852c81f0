"""Packs what a student hands in: exactly the files that may be changed, and a note of the assignment and its version.

    submit.py [FOLDER] [--out FILE.zip]        FOLDER is a starter; without one, that in which this file lies

Refuses what does not compile: nobody should lose all points to a last-minute slip. The same files make the same zip.
"""
import argparse
import json
import os
import sys
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import build  # noqa: E402
import grade  # noqa: E402
import manifest as manifests  # noqa: E402


def pack(starter, path):
    """Writes the zip."""
    note = {"assignment": starter.data["slug"], "version": starter.data["version"], "files": starter.files}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in [*starter.files, manifests.NOTE]:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            if name == manifests.NOTE:
                archive.writestr(entry, json.dumps(note, indent=1) + "\n")
            else:
                with open(os.path.join(starter.folder, name), "rb") as file:
                    archive.writestr(entry, file.read())


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.path.dirname(HERE))
    parser.add_argument("--out")
    arguments = parser.parse_args(words)
    if not os.path.isfile(os.path.join(arguments.folder, "grader", "assignment.json")):
        print(f"{arguments.folder} is not a starter: it has no grader/assignment.json", file=sys.stderr)
        return 2
    starter = grade.Folder(arguments.folder)
    missing = [name for name in starter.files if not os.path.isfile(os.path.join(starter.folder, name))]
    if missing:
        print(f"Nothing was packed: {', '.join(missing)} is missing", file=sys.stderr)
        return 1
    place = os.path.join(starter.folder, "build")
    build.configure(starter.folder, place)
    errors, _ = build.make(place, starter.programs(starter.cases), build.cores())
    if errors:
        program, lines = next(iter(sorted(errors.items())))
        print(f"Nothing was packed: {program} does not compile.", *lines, sep="\n    ", file=sys.stderr)
        return 1
    out = arguments.out or os.path.join(starter.folder, f"{starter.data['slug']}.zip")
    pack(starter, out)
    print(f"{os.path.basename(out)}: {', '.join(starter.files)}")
    print("Hand in this file. make grade says what it would score here; the grade is given with other numbers and sizes.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except build.NotBuilt as fault:
        print(fault, *fault.lines, sep="\n    ", file=sys.stderr)
        sys.exit(2)
