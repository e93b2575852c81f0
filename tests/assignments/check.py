#!/usr/bin/env python3
"""Checks the assignments themselves: make check-assignments.

    check.py SLUG ...      [--only starter,steps,sanitized,chaffs,variants] [--chaff NAME]
    check.py kits

For each assignment:

    starter     it shows nothing of a solution and has a history of one commit; it compiles without a warning; it scores 0, with every
                graded task not attempted, and every given case right
    steps       with the solutions of the tasks up to one it scores exactly their points, and with all of them 100, with the numbers of
                grading and with those of the starter
    sanitized   the solution scores 100 also under AddressSanitizer and UndefinedBehaviorSanitizer, in float and in 50 digits
    chaffs      every mistake of chaffs/SLUG.json, in the solution, loses points in the task that it breaks and in no other, save those
                that it may block; and the first failing case that is shown is one of that task
    variants    each variant scores 0 with holes and 100 solved

Exit status: 0 all is as it should be, 1 not, 77 there is no such assignment yet.
"""
import argparse
import collections
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import batch  # noqa: E402
import build  # noqa: E402
import expected  # noqa: E402
import grade  # noqa: E402
import manifest as manifests  # noqa: E402
import precompiled  # noqa: E402
import report  # noqa: E402
import starter  # noqa: E402

PARTS = ("starter", "steps", "sanitized", "chaffs", "variants")

# What is to be graded: files, by path in bytes; number types in which it is not run; a check of the grade that says whether it is as it should be
Work = collections.namedtuple("Work", "files without check")


class Checks:
    """Collects what is wrong, and says what was looked at."""

    def __init__(self, name):
        self.name, self.faults, self.began, self.processor = name, [], time.monotonic(), processor_seconds()

    def hold(self, true, text, shown=""):
        if not true:
            self.faults.append(text)
            print(f"WRONG {self.name}: {text}" + (f"\n{shown}" if shown else ""), flush=True)
        return true

    def say(self, text):
        print(f"{self.name}: {text} (so far {time.monotonic() - self.began:.0f} s, {processor_seconds() - self.processor:.0f} s of processors)", flush=True)


def processor_seconds():
    """What this process and those that it waited for have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def points(graded):
    return {task["id"]: task["score"] for task in graded["tasks"] if not task["written"]}


def files_of(loaded, upto):
    """What a student would hand in who has done the tasks up to one."""
    return {path: starter.step_file(loaded, path, starter.solved_tasks(loaded, upto)).encode() for path in loaded.files()}


def check_score(checks, what, graded, loaded, solved):
    """A grade has full points for the tasks that are solved and none for others, which are not attempted."""
    right = {task["id"]: task["points"] if task["id"] in solved else 0 for task in loaded.graded}
    good = points(graded) == right and not graded["errors"] and all(case["state"] == "right" for case in graded["given"])
    good = good and all(task["state"] == "not attempted" for task in graded["tasks"] if not task["written"] and task["id"] not in solved)
    return checks.hold(good, f"{what}: scores {points(graded)} instead of {right}", report.as_text(graded))


def check_starter(checks, slug, loaded, prepared, own):
    """own  the folder of a starter as students get it"""
    for leak in starter.check_leaks(own, slug, loaded.variant):
        checks.hold(False, leak)
    history = subprocess.run(["git", "log", "--format=%an %s"], cwd=own, capture_output=True, text=True).stdout.splitlines()
    checks.hold(len(history) == 1, f"the history of a starter has {len(history)} commits")
    clean = subprocess.run(["git", "status", "--porcelain", "--ignored"], cwd=own, capture_output=True, text=True).stdout
    checks.hold(not clean, f"a new starter has files that are not in its history: {clean}")
    for place, folders, names in os.walk(own):
        for name in folders + names:
            checks.hold(not re.search(r"(staff|variants|solution|chaffs|answers|expected\.(py|cpp)|definition\.hpp|budget\.hpp)$", name) or place.endswith(tuple("0123456789")),
                        f"a starter has {os.path.relpath(os.path.join(place, name), own)}")
    warnings = grade.warnings_of(prepared.build)
    checks.hold(not warnings, "a starter compiles with warnings", "\n".join(warnings[:20]))


def side_by_side(hand_out, prepared, works):
    """Does works, functions of a grader, as many at once as there are cores: then no core waits for the longest unit of another's work.
    Returns what they return."""
    waiting, done = queue.SimpleQueue(), [None] * len(works)
    for work in enumerate(works):
        waiting.put(work)

    def take():
        with grade.Grader(hand_out, prepared, jobs=1) as grader:
            while True:
                try:
                    number, work = waiting.get_nowait()
                except queue.Empty:
                    return
                done[number] = work(grader)

    with concurrent.futures.ThreadPoolExecutor(build.cores()) as pool:
        for one in [pool.submit(take) for _ in range(min(build.cores(), len(works)))]:
            one.result()
    return done


def grades_of(hand_out, prepared, works):
    """The grades of works, in their order. What can stand side by side is compiled together."""
    grades, groups = {}, {}
    for number, work in enumerate(works):
        groups.setdefault(batch.common_part(work.files), []).append(number)
    alone = [number for part, numbers in groups.items() if part is None or len(numbers) == 1 for number in numbers]
    graded = side_by_side(hand_out, prepared, [lambda grader, work=works[number]: grader.grade(work.files, without=work.without, trusted=True) for number in alone])
    grades.update(zip(alone, graded))
    for part, numbers in groups.items():
        if part is not None and len(numbers) > 1:
            grades.update(zip(numbers, grades_together(hand_out, prepared, [works[number] for number in numbers])))
    return [grades[number] for number in range(len(works))]


def grades_together(starters, prepared, works):
    """starters  the grade.Folder that was handed out"""
    grades = []
    with tempfile.TemporaryDirectory(prefix="flashsteps-check-") as folder:
        together = batch.Batch(prepared, starters.programs(starters.cases), [work.files for work in works], [work.without for work in works], folder, build.cores())
        for number, work in enumerate(works):
            names = [name for name in grade.wanted_cases(starters.data, starters.cases) if starters.cases[name]["type"] not in work.without]
            place = build.make_folder(folder, f"runs{number}")

            def run(name, at, seconds):
                case = starters.cases[name]
                return together.run(manifests.program_of(case), number, case, starters.folder, build.make_folder(place, f"{at}"), starters.data["limits"], seconds)

            runs = grade.run_all(starters, names, {}, run, build.cores())
            tasks, given = grade.grade_all(starters.data, starters.cases, runs, {name: starters.expected(name) for name in names}, starters.sources(work.files))
            grades.append(grade.grade_of(starters.data, starters.checks, tasks, given, {}, [], True, False))
            shutil.rmtree(place)
    return grades


def check_steps(checks, loaded, hand_out, prepared, own):
    """The solution as submissions are graded, and the starter, which hostile.py hands in so. own  a starter with the numbers that students have"""
    with grade.Grader(hand_out, prepared) as grader:
        for upto in (None, "all"):
            solved = starter.solved_tasks(loaded, upto)
            what = "the solution" if upto else "the starter"
            check_score(checks, what, grader.grade(files_of(loaded, upto), trusted=not upto), loaded, solved)
            graded = grader.grade(files_of(loaded, upto), starter=own, trusted=True)  # the same programs, other numbers
            check_score(checks, f"{what} with a starter's own numbers", graded, loaded, solved)
    checks.say("scores of the starter and the solution")


def states_of(checks, loaded):
    """The states between: each with the tasks up to one solved."""
    for task in loaded.graded[:-1]:
        what, solved = f"the tasks up to {task['id']}", starter.solved_tasks(loaded, task["id"])
        yield Work(files_of(loaded, task["id"]), (), lambda graded, what=what, solved=solved: check_score(checks, what, graded, loaded, solved))


def grade_solution(slug, loaded, place, without=(), **how):
    """The grade of the solution, compiled by CMake in the folder `place`. without  as for starter.make_starter; how  as for grade.grade_self"""
    made = place + "-made"
    shutil.rmtree(made, ignore_errors=True)
    starter.make_starter(slug, made, upto="all", seed=grade.SEED, hidden=True, git=False, variant=loaded.variant, without=without)
    grade.bring_up_to_date(made, place)
    shutil.rmtree(made)
    return grade.grade_self(place, keep=expected.BUILD, trusted=True, **how)


def check_sanitized(checks, slug, loaded, folder, prepared):
    """The solution with sanitizers: what a student writes, in one type of packets and one of single numbers."""
    wanted = lambda case: case["type"] != "double" and prepared.units[manifests.program_of(case)]
    graded = grade_solution(slug, loaded, os.path.join(folder, "sanitized"), ("double",), sanitized=True, wanted=wanted)
    check_score(checks, "the solution under sanitizers", graded, loaded, [task["id"] for task in loaded.graded])
    checks.say("solution under sanitizers")


def check_chaff(checks, chaff, graded, loaded):
    """What one mistake in the solution costs."""
    name = f"chaff “{chaff['name']}”"
    by_id = {task["id"]: task for task in graded["tasks"] if not task["written"]}
    good = checks.hold(not graded["errors"], f"{name}: does not compile", "\n".join(line for error in graded["errors"] for line in error["lines"]))
    for task in loaded.graded:
        found = by_id[task["id"]]
        lost = found["score"] < task["points"]
        if task["id"] in chaff["breaks"]:
            good &= checks.hold(lost, f"{name}: task {task['id']} keeps all its points")
        elif task["id"] not in chaff.get("may_block", []):
            good &= checks.hold(not lost, f"{name}: task {task['id']} loses points, and has nothing to do with it")
    first = by_id[chaff["breaks"][0]]
    own = [*loaded.task(chaff["breaks"][0])["cases"]]
    good &= checks.hold(first["state"] == "wrong" and bool( first["first"] and grade.visible(first["first"]["case"]) in own), f"{name}: the message for task {chaff['breaks'][0]} is “{report.outcome_of(first)}”")
    if not good:
        print(report.as_text(graded), flush=True)
    return good


def chaffs_of(checks, loaded, only=None):
    """The solution with one mistake, for each mistake."""
    path = os.path.join(HERE, "chaffs", f"{loaded.slug}.json")
    chaffs = manifests.read_json(path) if os.path.isfile(path) else []
    checks.hold(len(chaffs) >= 8, f"there are {len(chaffs)} chaffs, and should be at least 8")
    checks.hold({task["id"] for task in loaded.graded} <= {task for chaff in chaffs for task in chaff["breaks"]}, "some task has no chaff")
    files = files_of(loaded, "all")
    for chaff in chaffs if not only else [chaff for chaff in chaffs if chaff["name"] == only]:
        text = files[chaff["file"]].decode()
        count = text.count(chaff["old"])
        if checks.hold(count == 1, f"chaff “{chaff['name']}”: its text stands {count} times in {chaff['file']}"):
            changed = {**files, chaff["file"]: text.replace(chaff["old"], chaff["new"]).encode()}
            yield Work(changed, ("double",), lambda graded, chaff=chaff: check_chaff(checks, chaff, graded, loaded))


def check_works(checks, hand_out, prepared, states, chaffs):
    """States and mistakes, compiled together."""
    works = [*states, *chaffs]
    if works:
        right = [work.check(graded) for work, graded in zip(works, grades_of(hand_out, prepared, works))]
        checks.say(f"{sum(right[:len(states)])} of {len(states)} states between, {sum(right[len(states):])} of {len(chaffs)} chaffs caught")


def check_assignment(slug, parts=PARTS, variant=None, only=None):
    """The faults of an assignment."""
    loaded = manifests.load(slug, variant)
    checks = Checks(loaded.slug + (f", variant {variant}" if variant else ""))
    hand_out, prepared = grade.prepared_folder(slug, variant)
    folder = os.path.dirname(hand_out.folder)
    checks.say("compiled as it is graded")
    own = os.path.join(folder, "as handed out")
    shutil.rmtree(own, ignore_errors=True)
    starter.make_starter(slug, own, variant=variant)
    if "starter" in parts:
        check_starter(checks, slug, loaded, prepared, own)
        checks.say("starter")
    if "steps" in parts:
        check_steps(checks, loaded, hand_out, prepared, grade.Folder(own))
    check_works(checks, hand_out, prepared, [*states_of(checks, loaded)] if "steps" in parts else [], [*chaffs_of(checks, loaded, only)] if "chaffs" in parts else [])
    if "sanitized" in parts:
        check_sanitized(checks, slug, loaded, folder, prepared)
    if "variants" in parts and not variant:
        names = variants_of(slug)
        checks.hold(names, "there is no variant")
        for name in names:
            checks.faults += check_variant(slug, name)
    checks.say("as it should be" if not checks.faults else f"{len(checks.faults)} faults")
    return checks.faults


def variants_of(slug):
    folder = os.path.join(manifests.FOLDER, slug, "variants")
    return sorted(name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if os.path.isfile(os.path.join(folder, name, "assignment.json")))


def check_variant(slug, name):
    """The faults of a variant: 0 with holes, 100 solved."""
    loaded = manifests.load(slug, name)
    checks = Checks(f"{slug}, variant {name}")
    hand_out, prepared = grade.prepared_folder(slug, name)
    folder = os.path.dirname(hand_out.folder)
    with grade.Grader(hand_out, prepared) as grader:
        check_score(checks, "the starter", grader.grade(files_of(loaded, None), trusted=True), loaded, [])
    # As expected.py compiled it: where there is ccache, it is not compiled again
    check_score(checks, "the solution", grade_solution(slug, loaded, os.path.join(folder, "solved")), loaded, starter.solved_tasks(loaded, "all"))
    own = os.path.join(folder, "as handed out")
    shutil.rmtree(own, ignore_errors=True)
    starter.make_starter(slug, own, variant=name)
    check_starter(checks, slug, loaded, prepared, own)
    checks.say("variant")
    return checks.faults


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slugs", nargs="*")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--chaff")
    arguments = parser.parse_args(words)
    precompiled.share_objects(expected.BUILD)
    faults = []
    for slug in arguments.slugs or manifests.slugs():
        if slug == "kits":
            import check_kits

            faults += check_kits.check(Checks("kits"))
            continue
        if slug not in manifests.slugs():
            print(f"there is no assignment {slug}: there are {', '.join(manifests.slugs())}", file=sys.stderr)
            return 77
        try:
            faults += check_assignment(slug, arguments.only.split(","), only=arguments.chaff)
        except (manifests.ManifestError, starter.StarterError, expected.ExpectedError, build.NotBuilt) as fault:
            faults.append(f"{slug}: {fault}")
            print(faults[-1], *getattr(fault, "lines", []), sep="\n", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
