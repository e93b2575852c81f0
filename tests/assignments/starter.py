#!/usr/bin/env python3
"""Makes the starter of an assignment: a small project that builds and checks itself, with holes where the tasks are.

    starter.py SLUG DIR                    also: make starter A=SLUG DIR=DIR
    starter.py SLUG DIR --solved           with all tasks done, for tests
    starter.py SLUG DIR --solved-up-to 2.1 with the tasks up to this one done
    starter.py SLUG DIR --check-leaks      also looks for solutions in what was made
      --seed N      of the inputs that it is checked with; 1
      --hidden      with the cases that only grading uses
      --variant V   the variant of that name

SLUG may be the path of an assignment.json. Exit status: 0 made; 1 something of a solution is left; 2 wrong manifest or arguments.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import expected  # noqa: E402
import manifest as manifests  # noqa: E402
import regions  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = manifests.ROOT
COMMON = ("common/memory/*.hpp", "common/attention/exp.hpp", "common/attention/head.hpp", "common/attention/loops.hpp", "common/attention/verbs.hpp",
          "common/attention/verbs_columns.hpp", "common/attention/verbs.cpp", "common/attention/watch.hpp")
KERNEL_COMMON = ("common/cuda/*.hpp", "common/cuda/device_memory.cpp", "common/cuda_on_cpu/*.hpp", "common/cuda_on_cpu/*.cpp")
GRADER_FILES = ("manifest.py", "cases.py", "grade.py", "compare.py", "report.py", "hint.py", "submit.py", "isolation.py", "build.py")
NOT_IN_STARTERS = ("expected.cpp", "CMakeLists.txt")
NAVIGATION = re.compile(r"(?<=\n\n)(\[All pages\]\([^()]*\)\.\s+|[^\n]*[Aa]ll pages:[^\n]*\n([^\n]+\n)*\n)")  # leads to pages that a starter has not
GUIDE = "FIRST-STEPS.md"  # the students' page
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


class StarterError(Exception):
    """A starter cannot be made."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def matching(patterns):
    import glob

    paths = [os.path.relpath(path, ROOT) for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern))]
    return sorted(set(paths))


def step_folders(last_step):
    names = sorted(name for name in os.listdir(os.path.join(ROOT, "steps")) if re.match(r"\d\d_", name))
    return [f"steps/{name}" for name in names if int(name[:2]) <= last_step]


def solved_tasks(manifest, upto):
    """The ids of the tasks that are done in a starter. upto  None, the id of a task, or "all" """
    ids = [task["id"] for task in manifest.graded]
    if upto is None:
        return []
    if upto == "all":
        return ids
    if upto not in ids:
        raise StarterError(f"{manifest.slug} has no task {upto}: it has {', '.join(ids)}")
    return ids[: ids.index(upto) + 1]


def step_file(manifest, path, solved):
    """A file of a step with its holes. solved  the ids of the tasks whose code stays"""
    edits = []
    for task in manifest.graded:
        for number, place in enumerate(manifest.places(task)):
            if place["file"] == path:
                stub = None if task["id"] in solved else place.get("stub", task["stub"])
                edits.append((place, stub, task.get("probe", []) if number == 0 else []))
    text = read(manifests.solution_path(manifest.folder, path))
    return with_probes(path, regions.write_tasks(path, text, edits)) if edits else text


def with_probes(path, text):
    """A file with holes knows todo() and probe()."""
    lines = text.split("\n")
    last = max((at for at, line in enumerate(lines) if line.startswith(("#include", "#pragma once"))), default=-1)
    name = "kernel_probe.hpp" if path.endswith(".cu") else "probe.hpp"
    return "\n".join([*lines[: last + 1], f'#include "grader/compute/{name}"', *lines[last + 1 :]])


def with_links(text, where_from, where_to, files):
    """A page at another place: links to what a starter has are turned, of the others the text stays."""

    def turn(match):
        image, label, target = match.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return match.group(0)
        path, hash_mark, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(where_from, path))
        if full in files or any(name.startswith(full + "/") for name in files):
            return f"{image}[{label}]({os.path.relpath(full, where_to or '.')}{hash_mark}{anchor})"
        return label

    return LINK.sub(turn, text)


def has_kernels(manifest):
    return any(manifests.is_kernel(case) for case in manifest.cases.values())


def contents(manifest, upto=None, hidden=False, without=()):
    """The files of a starter but for its checks: text by path. without  number types that its programs leave out"""
    solved, files, kernels = solved_tasks(manifest, upto), {}, has_kernels(manifest)
    for path in matching(COMMON + (KERNEL_COMMON if kernels else ())):
        files[path] = read(os.path.join(ROOT, path))
    mine = manifest.files()
    for folder in step_folders(manifest.last_step):
        for path in matching((f"{folder}/*.hpp",)):
            if kernels or os.path.basename(path) not in ("kernels.hpp", "block_reduction.hpp"):
                files[path] = ""
    files.update(dict.fromkeys(mine + manifest.data.get("extra", []), ""))
    for path in manifest.omit:
        if path not in files:
            raise StarterError(f"{manifest.path}: omit: a starter has no {path}")
        del files[path]
    for path in [path for path in files if path.startswith("steps/") or path in mine]:
        files[path] = step_file(manifest, path, solved)
    # Compute
    for path in matching(("tests/assignments/compute/*",)):
        name = os.path.basename(path)
        number = re.match(r"student_(\d\d)", name)
        unused = number and f"compute_{number.group(1)}" not in manifest.programs()
        if name in NOT_IN_STARTERS or not os.path.isfile(os.path.join(ROOT, path)) or unused or name.startswith("kernel") and not kernels or name.endswith(".in"):
            continue
        files[f"grader/compute/{name}"] = read(os.path.join(ROOT, path))
    files["grader/compute/fifty.hpp"] = read(os.path.join(ROOT, "tests", "fifty.hpp"))
    for name in GRADER_FILES:
        if os.path.isfile(os.path.join(HERE, name)):
            files[f"grader/{name}"] = read(os.path.join(HERE, name))
    own = {key: value for key, value in manifest.data.items() if hidden or key != "hidden"}
    files["grader/assignment.json"] = json.dumps(own, ensure_ascii=False, indent=1) + "\n"
    # The project around it
    template = {name: read(os.path.join(HERE, "starter", name)) for name in os.listdir(os.path.join(HERE, "starter"))}
    programs = [f"compute({' '.join([program[-2:], *(kind for kind in kinds if kind not in without)])})" for program, kinds in manifest.programs().items() if program.startswith("compute_")]
    if kernels:
        programs.append("include(grader/compute/kernels.cmake)")
        steps = {manifests.program_of(case): case["step"] for case in manifest.cases.values() if manifests.is_kernel(case)}
        programs += [f"flashsteps_compute_kernel({program} {step_folders(step)[-1]}/forward.cu)" for program, step in sorted(steps.items())]
    values = {"PROJECT": manifest.slug.replace("-", "_"), "PROGRAMS": "\n".join(programs), "TITLE": manifest.title, "SLUG": manifest.slug, "FILES": "\n".join(f"* `{path}`" for path in mine)}
    for name, place in (("CMakeLists.txt.in", "CMakeLists.txt"), ("Makefile.in", "Makefile"), ("AGENTS.md.in", "AGENTS.md"), ("gitignore", ".gitignore"),
                        ("devcontainer.json", ".devcontainer/devcontainer.json"), ("Dockerfile", ".devcontainer/Dockerfile")):
        files[place] = re.sub(r"@([A-Z]+)@", lambda match: values[match.group(1)], template[name])
    files["LICENSE"] = read(os.path.join(ROOT, "LICENSE"))
    # Pages: the handout, and those of the given steps
    for folder in step_folders(manifest.last_step):
        if int(folder[6:8]) not in manifest.steps_with_holes():
            files[f"{folder}/README.md"] = ""
    for path in [path for path in files if path.endswith("/README.md")]:
        files[path] = with_links(NAVIGATION.sub("", read(os.path.join(ROOT, path)), 1), os.path.dirname(path), os.path.dirname(path), {*files, "README.md"} - {"README.md"})
    handouts = [os.path.join(manifest.folder, "README.md")]
    if manifest.variant:  # its handout speaks of the other one, which stays where it is
        handouts.append(os.path.join(os.path.dirname(os.path.dirname(manifest.folder)), "README.md"))
        files[os.path.relpath(handouts[1], ROOT)] = ""
    text, *others = [NAVIGATION.sub("", read(path)) if os.path.isfile(path) else f"# {manifest.title}\n" for path in handouts]
    for path, other in zip(handouts[1:], others):
        place = os.path.relpath(path, ROOT)
        files[place] = with_links(other, os.path.dirname(place), os.path.dirname(place), files)
    in_project = os.path.relpath(manifest.folder, ROOT) if manifest.folder.startswith(ROOT + os.sep) else f"docs/assignments/{manifest.slug}"
    guide = os.path.join("docs", "assignments", "student.md")
    files[GUIDE] = with_links(NAVIGATION.sub("", read(os.path.join(ROOT, guide))), os.path.dirname(guide), "", files)
    files["README.md"] = with_links(text, in_project, "", files) + read(os.path.join(HERE, "starter", "README.md.in"))
    return files


def write_files(folder, files):
    """Writes files, those alone that are not there yet as they should be."""
    for path, text in files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        try:
            if read(full) == text:
                continue
        except (OSError, UnicodeDecodeError):
            pass
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def commit(folder, manifest):
    """One commit, whose bits depend on the files alone."""
    if not shutil.which("git"):
        print("without git the starter has no history", file=sys.stderr)
        return
    person = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "flashsteps"), ("EMAIL", "flashsteps@example.invalid"), ("DATE", "2000-01-01T00:00:00+0000"))}
    keep = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment = {**keep, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for command in (["init", "-q", "-b", "main", "--template="], ["add", "-A"], ["commit", "-q", "-m", f"Begin {manifest.slug} {manifest.version}: {manifest.title}"]):
        subprocess.run(["git", "-c", "core.autocrlf=false", "-c", "gc.auto=0", *command], cwd=folder, env=environment, check=True)


def make_starter(slug, folder, upto=None, seed=None, hidden=False, git=True, variant=None, checks=True, without=()):
    """Makes a starter in a folder that is empty or not there yet.

    slug     of the assignment, or the path of a manifest
    upto     None: with all holes; an id: tasks up to this one are done; "all": all are
    seed     of the inputs that it is checked with; 1
    hidden   with the cases that only grading uses
    git      with a history of one commit
    checks   with inputs and expected values
    without  number types that its programs leave out
    """
    manifest = manifests.load(slug, variant)
    if os.path.isdir(folder) and os.listdir(folder):
        raise StarterError(f"{folder} is there already, and not empty")
    files = contents(manifest, upto, hidden, without)
    made = expected.make_checks(manifest, 1 if seed is None else seed, hidden) if checks else None
    os.makedirs(folder, exist_ok=True)
    write_files(folder, files)
    if made:
        shutil.copytree(made, os.path.join(folder, "grader", "checks"))
    if git:
        commit(folder, manifest)
    return folder


# Leaks

def object_texts(folder):
    """The texts in the git objects of a starter that are no files of it."""
    output = subprocess.run(["git", "cat-file", "--batch-all-objects", "--batch"], cwd=folder, capture_output=True).stdout
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        name, kind, size = output[at:end].decode().split()
        if kind != "tree":
            yield f"git object {name[:10]}", output[end + 1 : end + 1 + int(size)].decode("utf-8", "replace")
        at = end + int(size) + 2


def starter_texts(folder):
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", "build", "checks")]
        for name in sorted(names):
            full = os.path.join(place, name)
            with open(full, encoding="utf-8", errors="replace") as file:
                yield os.path.relpath(full, folder), file.read()


def manifest_strings(data):
    """The texts in a JSON file, for each is a line or several."""
    if isinstance(data, str):
        yield data
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from manifest_strings(value)


def check_leaks(folder, slug, variant=None):
    """What a starter shows of the regions that were taken out, one line each: a region, or three consecutive lines of one, that no earlier step shows."""
    manifest, found = manifests.load(slug, variant), []
    texts = dict(starter_texts(folder))
    if os.path.isdir(os.path.join(folder, ".git")):
        known = set(texts.values())
        for name, text in object_texts(folder):
            if text not in known:
                texts[name] = text
    seen = {}  # windows of each text, by size
    for name, text in texts.items():
        if name.startswith("grader/checks/") or re.match(r"\d+ \d+\n", text):
            continue
        if name.endswith(".json"):
            # hints and stubs, one after the other as a reader sees them
            text = "\n".join(manifest_strings(json.loads(text)))
        lines = regions.normal_lines(text)
        seen[name] = {size: set(regions.windows(lines, size)) if len(lines) >= size else set() for size in (1, 2, 3)}
    for task in manifest.graded:
        for place in manifest.places(task):
            path = place["file"]
            step = manifests.step_of(path)
            code = "\n".join(regions.code_of(path, read(manifests.solution_path(manifest.folder, path)), place))
            stub = set(regions.normal_lines("\n".join(place.get("stub", task["stub"]))))
            lines = regions.normal_lines(code)
            size = min(3, len(lines))
            given = set()
            for name, windows in seen.items():
                if 0 < manifests.step_of(name) < step:
                    given |= windows[size]
            for window in regions.windows(lines, 3):
                if window in given or set(window) <= stub:
                    continue
                for name, windows in seen.items():
                    if window in windows[size]:
                        found.append(f"task {task['id']}: {name} shows of {path}: {' / '.join(window)}")
    return sorted(set(found))


def main(words):
    parser = argparse.ArgumentParser(description="Makes the starter of an assignment.")
    parser.add_argument("slug")
    parser.add_argument("folder")
    parser.add_argument("--solved", action="store_true")
    parser.add_argument("--solved-up-to")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--variant")
    parser.add_argument("--check-leaks", action="store_true")
    arguments = parser.parse_args(words)
    try:
        manifests.load(arguments.slug, arguments.variant)
        print(f"Making the starter of {arguments.slug}; the first time, what its numbers come from is compiled: a minute or two", flush=True)
        upto = "all" if arguments.solved else arguments.solved_up_to
        make_starter(arguments.slug, arguments.folder, upto, arguments.seed, arguments.hidden, variant=arguments.variant)
        leaks = check_leaks(arguments.folder, arguments.slug, arguments.variant) if arguments.check_leaks else []
    except manifests.ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    except (StarterError, regions.Fault, expected.ExpectedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for leak in leaks:
        print(leak, file=sys.stderr)
    if not leaks:
        print(f"{arguments.folder}: the starter of {arguments.slug}. Read its README.md, then type: cd {arguments.folder} && make grade")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
