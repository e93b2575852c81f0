"""Grades: a starter by itself, or submissions in the project.

    grade.py --self [--task T] [--case NAME]                     in a starter: a check of the student's own files
    grade.py SLUG SUBMISSION [--variant NAME] [--seed N]         in the project: a zip, a folder, or a folder of them
    grade.py --prepared FOLDER SUBMISSION                        the same with what kits.py made, without the project
    grade.py --prepare FOLDER                                    compiles there what no submission changes
    ... [--format text|json|gradescope|classroom] [--out FILE]

A submission's code runs in programs that only compute: inputs in, results out, as files. What is read here is text, and what is
compared is compared in this process. A folder of submissions gives a table, one row a student, and a report for each beside it.

Exit status: 0 full marks (of a folder: all were graded), 1 not, 2 usage, or nothing could be graded.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import filecmp
import os
import re
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import build  # noqa: E402
import compare  # noqa: E402
import isolation  # noqa: E402
import manifest as manifests  # noqa: E402
import report  # noqa: E402

SEED = 2  # of grading, unless another is given; starters have 1

# What came of one case for one task: its state, by which other task it is blocked, what is wrong
Verdict = collections.namedtuple("Verdict", "state by difference", defaults=(None, None))
RIGHT = Verdict("right")


def wrong(message):
    return Verdict("wrong", None, compare.Difference("", message=message))


# The verdicts, from what lies in folders


def judge(case, task, ran, expected, ids, sources=None):
    """The verdict on one case for one task (None: a given case). ran  build.Ran, or None where its program does not compile

    ids      of all tasks; what else a program says it reached is not believed
    sources  text of the submission's files by path, to tell a probe that was removed from one that was not reached
    """
    if ran is None:
        return Verdict("does not compile", None, compare.Difference("", message=f"{manifests.program_of(case)} does not compile"))
    end = compare.end_of(ran.folder)
    if end is None:
        return wrong(ran.problem)
    word, rest = end
    if word == "not implemented":
        if rest not in ids:
            return wrong("it says that a task is not implemented which does not exist")
        if task and rest == task["id"]:
            return Verdict("not attempted")
    if case.get("expect"):
        if word == "not implemented":
            return Verdict("blocked", rest)
        if not f"{word} {rest}".startswith(case["expect"]):
            return wrong(f"it should end with “{case['expect']}”, and ended with “{word} {rest}”".replace(" ”", "”"))
    for name in case["judge"]:
        verdict = judge_one(case, name, ran.folder, expected, word, rest, sources)
        if verdict.state != "right":
            return verdict
    return RIGHT


def judge_one(case, name, out, expected, word, rest, sources):
    """The verdict on one judged result of a case. word, rest  how the program ended"""
    fifty = case["type"] == "fifty"
    if name.startswith("probe "):
        task_id = name[6:]
        difference, recorded = compare.compare_probe(out, expected, task_id, fifty, word != "done", case.get("tolerance", 1e-4))
        if recorded == 0 and difference is not None or recorded == 0 and word != "done":
            if sources is not None and not any(f'probe("{task_id}"' in text for text in sources):
                return wrong(f'the line probe("{task_id}", …) is missing: put it back')
            if word == "not implemented":
                return Verdict("blocked", rest)
            if word != "done":
                return wrong(f"it ended with “{word} {rest}”")
        return RIGHT if difference is None else Verdict("wrong", None, difference)
    if word == "not implemented":
        return Verdict("blocked", rest)
    if word != "done" and not case.get("expect"):
        return wrong(f"it ended with “{word} {rest}”")
    if name in ("counts", "peak"):
        difference = compare.compare_counts(out, expected, name)
    elif name.split()[0] == "trace":
        difference = compare.compare_trace(out, name.split()[1:])
    else:
        difference = compare.compare_result(out, expected, name, fifty)
    return RIGHT if difference is None else Verdict("wrong", None, difference)


def grade_task(task, verdicts, states):
    """State, points and the first failing case of a task.

    verdicts  by name of its cases, in their order, visible before hidden
    states    of the tasks before it, by id: those not graded this time are not there
    """
    failed = [name for name, verdict in verdicts.items() if verdict.state != "right"]
    passed = len(verdicts) - len(failed)
    result = {"state": "right", "by": None, "score": task["points"], "passed": passed, "cases": len(verdicts), "failed": failed[0] if failed else None, "gate": None}
    if not failed:
        return result
    result["score"] = 0
    for state in ("not attempted", "blocked"):
        at = next((name for name in failed if verdicts[name].state == state), None)
        if at:
            return {**result, "state": state, "by": verdicts[at].by, "failed": at}
    if all(verdicts[name].state == "does not compile" for name in failed):
        return {**result, "state": "does not compile"}
    by = next((other for other in task.get("depends", []) if states.get(other, "right") != "right"), None)
    if by:
        return {**result, "state": "blocked", "by": by}
    result["state"] = "wrong"
    if task.get("gate") in failed:
        return {**result, "gate": task["gate"], "failed": task["gate"]}
    return {**result, "score": task["points"] * passed // len(verdicts)}


def has_hole(task_id, sources):
    """Does a todo of this task still stand in the files?"""
    return any(re.search(rf'\btodo\b[^;"]*\("{re.escape(task_id)}"', text) for text in sources or ())


def visible(name):
    return re.sub(r" \(hidden\)$", "", name)


def sorted_cases(task, cases):
    """The cases of a task among those that there are: as the manifest names them, then their hidden companions."""
    return [name for hidden in (False, True) for wanted in task["cases"] for name in cases if visible(name) == wanted and (name != wanted) == hidden]


def first_of(name, case, verdict):
    """What a report tells of a case that failed."""
    difference = verdict.difference or compare.Difference("", message=f"blocked by {verdict.by}" if verdict.by else verdict.state)
    first = {"case": name, "sizes": case["sizes"], "inputs": case.get("inputs", "normal"), "type": case["type"], "form": case["form"], "step": case["step"], "seed": case.get("seed"),
             "what": difference.what, "index": None, "head": None, "got": difference.got, "want": difference.want, "share": difference.share, "message": difference.message}
    if difference.index is not None:
        row, col = difference.index
        heads = case["sizes"].get("kv_heads" if difference.what in ("dk", "dv") else "heads", 1) if not difference.what.startswith("record") else 1
        rows = case["sizes"].get("seq_k" if difference.what in ("dk", "dv") else "seq_q", 0)
        if heads > 1 and rows and row < heads * rows:
            first["head"], row = divmod(row, rows)
        first["index"] = [row, col]
    return first


def grade_all(data, cases, runs, expected, sources, only_task=None, only_case=None):
    """The tasks and given cases of a grade. data  the manifest's JSON; cases  by name; runs  by name: build.Ran or None; expected  by name"""
    ids = [task["id"] for task in data["tasks"]]
    verdict = lambda name, task: judge(cases[name], task, runs[name], expected[name], ids, sources)
    tasks, states, again = [], {}, {}
    for task in data["tasks"]:
        entry = {"id": task["id"], "title": task["title"], "points": task["points"], "equation": task.get("equation"), "page": task.get("page"),
                 "hint": f"make hint T={task['id']}", "first": None, "again": None, "written": task.get("kind") == "written"}
        if entry["written"]:
            if not only_task:
                tasks.append({**entry, "state": "manual", "score": 0, "by": None, "passed": 0, "cases": 0, "gate": None})
            continue
        names = [name for name in sorted_cases(task, cases) if name in runs and (not only_case or name == only_case)]
        if not names:
            continue
        verdicts = {name: verdict(name, task) for name in names}
        result = grade_task(task, verdicts, states)
        if result["state"] == "blocked" and has_hole(task["id"], sources):  # it is not attempted either; what is before it only came first
            result.update(state="not attempted", by=None)
        failed = result.pop("failed")
        states[task["id"]] = result["state"]
        if failed:
            entry["first"] = first_of(failed, cases[failed], verdicts[failed])
            entry["again"] = f"make grade T={task['id']} CASE={shlex.quote(failed)}"
        if not only_task or task["id"] == only_task:
            tasks.append({**entry, **result})
    given = []
    for name in cases:
        if visible(name) in data.get("given", []) and name in runs and not only_task:
            found = verdict(name, None)
            first = first_of(name, cases[name], found)
            given.append({"name": name, "state": found.state, "message": None if found.state == "right" else report.difference_of(first)})
    return tasks, given


def wanted_cases(data, cases, only_task=None, only_case=None):
    """The names of the cases that are to be run."""
    if only_case:
        return [only_case]
    if not only_task:
        return list(cases)
    wanted, at = set(), [only_task]  # with the tasks that it depends on: they say what it is blocked by
    tasks = {task["id"]: task for task in data["tasks"]}
    while at:
        task = tasks[at.pop()]
        wanted.update(sorted_cases(task, cases) if task.get("kind") != "written" else [])
        at += task.get("depends", [])
    return [name for name in cases if name in wanted]


def grade_of(data, checks, tasks, given, errors, messages, grading, partial):
    graded = [task for task in tasks if not task["written"]]
    return {"slug": data["slug"], "title": data["title"], "version": data["version"], "seed": checks["seed"], "grading": grading, "isolated": isolation.isolated(), "isolation": isolation_words(),
            "score": sum(task["score"] for task in graded), "out_of": sum(task["points"] for task in graded), "complete": not partial, "messages": messages,
            "errors": [{"program": program, "lines": lines} for program, lines in sorted(errors.items())], "tasks": tasks, "given": given}


def isolation_words():
    """The isolation in force, the same in every run: not which user it was."""
    return re.sub(r"\buser \d+", "a user of its own", isolation.describe())


def is_full(grade):
    return grade["score"] == grade["out_of"] and not grade["errors"] and all(case["state"] == "right" for case in grade["given"])


class Folder:
    """A starter's folder as the grader sees it: manifest, stored cases, files that count."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.manifest = manifests.Manifest(manifests.read_json(os.path.join(self.folder, "grader", "assignment.json")), os.path.join(self.folder, "grader", "assignment.json"))
        self.data = manifests.drop_absent_pages(self.manifest.data, self.folder)
        self.checks = manifests.read_json(os.path.join(self.folder, "grader", "checks", "cases.json"))
        self.cases = {case["name"]: case for case in self.checks["cases"]}
        self.files = self.manifest.files()

    def expected(self, name):
        return os.path.join(self.folder, "grader", self.cases[name]["folder"], "expected")

    def programs(self, names):
        return sorted({manifests.program_of(self.cases[name]) for name in names})

    def sources(self, put=None):
        """The text of the files that count: those that were put, and the folder's own."""
        texts = []
        for path in self.files:
            if put and path in put:
                texts.append(put[path].decode("utf-8", "replace"))
            else:
                with open(os.path.join(self.folder, path), encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
        return texts

    def check_names(self, task, case):
        """Refuses a task or a case that is not there, and says which are."""
        ids = [t["id"] for t in self.data["tasks"] if t.get("kind") != "written"]
        if task and task not in ids:
            raise Usage(f"there is no task {task} to grade: there are {', '.join(ids)}")
        if case and case not in self.cases:
            raise Usage(f"there is no case “{case}”: there are {', '.join(self.cases)}")


class Usage(Exception):
    """Says in one sentence what there is not."""


# A starter by itself


def grade_self(folder, task=None, case=None, jobs=None, sanitized=False, keep=None, wanted=lambda case: True, trusted=False):
    """Builds a starter with CMake where it stands, and grades it with the numbers that it holds. keep  as for build.configure; wanted  is a
    case run at all? trusted  it is the project's own, and run without isolation"""
    starter = Folder(folder)
    starter.check_names(task, case)
    jobs = jobs or build.cores()
    names = [name for name in wanted_cases(starter.data, starter.cases, task, case) if wanted(starter.cases[name])]
    place = os.path.join(starter.folder, "build-sanitized" if sanitized else "build")
    if not os.path.isfile(os.path.join(place, "CMakeCache.txt")):
        print("The first build takes a minute or two; later ones compile only what you changed.", file=sys.stderr, flush=True)
    build.configure(starter.folder, place, SANITIZERS if sanitized else "", keep)
    errors, _ = build.make(place, starter.programs(names), jobs)
    with isolation.scratch("flashsteps-check-") as scratch:
        programs = {}
        for name in set(starter.programs(names)) - errors.keys():
            programs[name] = os.path.join(build.make_folder(scratch, name), name)
            build.copy(os.path.join(place, name), programs[name], 0o755)

        def run(name, number, seconds):
            case = starter.cases[name]
            return build.run_case(programs[manifests.program_of(case)], case, starter.folder, build.make_folder(scratch, f"case{number}"), starter.data["limits"], seconds, sanitized, trusted)

        runs = run_all(starter, names, errors, run, jobs)
        tasks, given = grade_all(starter.data, starter.cases, runs, {name: starter.expected(name) for name in names}, starter.sources(), task, case)
    return grade_of(starter.data, starter.checks, tasks, given, errors, [], False, bool(task or case))


SANITIZERS = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
TIMEOUTS = 2  # of a program; after so many its other cases get LITTLE seconds: they need a few hundredths
LITTLE = 1


def run_all(starter, names, errors, run, jobs):
    """Runs the cases whose program was built; several at once. run  (name, number, seconds) -> build.Ran"""
    timed_out = collections.Counter()

    def one(name, number):
        program = manifests.program_of(starter.cases[name])
        ran = run(name, number, min(LITTLE, starter.data["limits"]["seconds"]) if timed_out[program] >= TIMEOUTS else starter.data["limits"]["seconds"])
        timed_out[program] += ran.timed_out
        return ran

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {name: pool.submit(one, name, number) for number, name in enumerate(names) if manifests.program_of(starter.cases[name]) not in errors}
    return {name: running[name].result() if name in running else None for name in names}


# Submissions, in the project


def prepared_folder(slug, variant=None, seed=SEED):
    """A starter with the grading seed and the hidden cases, built by CMake, made once: build.Prepared and its Folder."""
    import expected
    import starter

    loaded = manifests.load(slug, variant)
    place = os.path.join(expected.BUILD, loaded.slug + (f"-{loaded.variant}" if loaded.variant else ""))
    os.makedirs(place, exist_ok=True)
    folder = os.path.join(place, f"grade-{seed}")
    with open(os.path.join(place, "lock"), "w") as lock, tempfile.TemporaryDirectory(dir=place) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = os.path.join(scratch, "starter")
        starter.make_starter(slug, made, seed=seed, hidden=True, git=False, variant=variant)
        changed = bring_up_to_date(made, folder)
        if changed and warnings_of(os.path.join(folder, "build")):  # all is compiled again, to see whether they are gone
            shutil.rmtree(os.path.join(folder, "build"))
        return open_prepared(folder, keep=expected.BUILD)


def bring_up_to_date(made, folder):
    """Makes a folder equal to one just made, but for what was built in it; what is the same keeps its time, so it is not compiled again.
    Returns whether something was not the same."""
    changed = False
    for place, folders, names in os.walk(made):
        target = os.path.join(folder, os.path.relpath(place, made))
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(target):
            path = os.path.join(target, name)
            if name not in folders and name not in names and not (place == made and name.startswith("build")):
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        for name in names:
            if not os.path.isfile(os.path.join(target, name)) or not filecmp.cmp(os.path.join(place, name), os.path.join(target, name), shallow=False):
                shutil.copyfile(os.path.join(place, name), os.path.join(target, name))
                changed = True
    return changed


LOG = "compile.log"  # what the compiler said in a build


def warnings_of(place):
    """The warnings that the compiler gave in a build, since it began."""
    path = os.path.join(place, LOG)
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.rstrip() for line in file if re.search(r"\bwarning\b", line, re.IGNORECASE)]


def open_prepared(folder, keep=None):
    """Builds a starter's programs, as far as that was not done, for the objects that stay: build.Prepared and its Folder."""
    starter = Folder(folder)
    place = os.path.join(starter.folder, "build")
    programs = starter.programs(starter.cases)
    build.configure(starter.folder, place, keep=keep)
    errors, said = build.make(place, programs, build.cores())
    with open(os.path.join(place, LOG), "a", encoding="utf-8") as file:
        file.write(said)
    if errors:
        raise build.NotBuilt(", ".join(errors), next(iter(errors.values())))
    return starter, build.Prepared(starter.folder, place, starter.files, programs)


class Grader:
    """Grades submissions of one assignment, one after another.

        with Grader(*prepared_folder("a3-loop-swap")) as grader:
            grade = grader.grade({"steps/...": b"..."})
    """

    def __init__(self, starter, prepared, jobs=None):
        self.starter, self.jobs = starter, jobs or build.cores()
        self.workshop = build.Workshop(prepared, starter.data["limits"], self.jobs)

    def __enter__(self):
        self.workshop.__enter__()
        return self

    def __exit__(self, *error):
        self.workshop.__exit__(*error)

    def grade(self, files, task=None, case=None, starter=None, without=(), trusted=False):
        """A grade. files  the submission's by path, in bytes; those that are missing are the starter's

        starter  another one, with its numbers; without  cases of these number types are left out; trusted  what is graded is the project's own: no isolation
        """
        starter = starter or self.starter
        names = [name for name in wanted_cases(starter.data, starter.cases, task, case) if starter.cases[name]["type"] not in without]
        messages = [f"{path} is not in the submission; the starter's stands in its place" for path in starter.files if path not in files]
        self.workshop.put(files, trusted)
        paths, errors = self.workshop.build(starter.programs(names), without)
        run = lambda name, number, seconds: self.workshop.run(paths[manifests.program_of(starter.cases[name])], starter.cases[name], starter.folder, number, seconds)
        runs = run_all(starter, names, errors, run, self.jobs)
        tasks, given = grade_all(starter.data, starter.cases, runs, {name: starter.expected(name) for name in names}, starter.sources(files), task, case)
        return grade_of(starter.data, starter.checks, tasks, given, errors, messages, True, bool(task or case))


def grade_submission(grader, path, task=None, case=None):
    """The grade of a zip or a folder, or the sentence why there is none."""
    import intake

    try:
        files = intake.take(path, grader.starter.files)
    except intake.Refused as refused:
        return f"refused: {refused}"
    graded = grader.grade(files, task=task, case=case)
    other = intake.mismatch(path, graded["slug"], graded["version"])
    graded["messages"] += [other] if other else []
    return graded


def refused_grade(starter, sentence):
    """The grade of a submission that could not be taken: nothing was run, and nothing counts."""
    tasks = []
    for task in starter.data["tasks"]:
        written = task.get("kind") == "written"
        tasks.append({"id": task["id"], "title": task["title"], "points": task["points"], "equation": None, "page": None, "hint": "", "first": None, "again": None, "written": written,
                      "state": "manual" if written else "not attempted", "score": 0, "by": None, "passed": 0, "cases": 0, "gate": None})
    return grade_of(starter.data, starter.checks, tasks, [], {}, [sentence], True, False)


def again_in_project(grade, arguments):
    """In the project the command that repeats a case names the submission."""
    words = [f"A={arguments.slug}", f"SUBMISSION={shlex.quote(arguments.submission)}", *([f"V={arguments.variant}"] if arguments.variant else []), *([f"SEED={arguments.seed}"] if arguments.seed != SEED else [])]
    for task in grade["tasks"]:
        if task["again"]:
            task["again"] = task["again"].replace("make grade ", f"make grade {' '.join(words)} ", 1)
        if task["hint"]:
            task["hint"] = task["hint"].replace("make hint ", f"make hint A={arguments.slug} ", 1)


def again_in_starter(grade):
    """For who has a starter, without the hidden cases."""
    for task in grade["tasks"]:
        task["again"] = task["again"] and task["again"].replace(" (hidden)", "")


def write(text, out):
    if out:
        os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
        with open(out, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def show(grade, arguments):
    """Writes a grade as it was asked for; if into a file, then also for a person."""
    write(report.render(grade, arguments.format), arguments.out)
    if arguments.out and arguments.out != os.devnull:
        sys.stdout.write(report.as_text(grade))


def grade_folder(grader, arguments):
    """A folder of submissions: grades.csv, and a report for each student beside it."""
    import intake

    students = intake.students(arguments.submission)
    if not students:
        raise Usage(f"{arguments.submission}: neither a submission nor a folder of them")
    out = arguments.out or os.path.join(os.path.dirname(grader.starter.folder), "grades.csv")
    reports = os.path.splitext(out)[0]
    os.makedirs(reports, exist_ok=True)
    rows = []
    for name, path in students:
        try:
            grade = grade_submission(grader, path)
        except Exception as error:  # one submission must not end the others' grading
            grade = f"not graded: {type(error).__name__}: {error}"
        rows.append((name, grade))
        if isinstance(grade, str):
            text = grade + "\n"
        else:
            again_in_starter(grade)  # a student reads it
            text = report.render(grade, arguments.format)
        write(text, os.path.join(reports, f"{name}.{'txt' if isinstance(grade, str) or arguments.format == 'text' else 'json'}"))
        print(f"{name}: {grade if isinstance(grade, str) else str(grade['score']) + '/' + str(grade['out_of'])}", flush=True)
        write(report.as_csv(rows, grader.starter.data["tasks"]), out)
    print(f"{out}: {len(rows)} submissions; reports in {reports}/. Isolation: {isolation_words()}")
    return 0 if all(not isinstance(grade, str) or grade.startswith("refused") for _, grade in rows) else 1


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self", dest="own", nargs="?", const=os.path.dirname(HERE), metavar="FOLDER")
    parser.add_argument("--prepared", metavar="FOLDER")
    parser.add_argument("--prepare", metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="SLUG SUBMISSION")
    parser.add_argument("--variant")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--task")
    parser.add_argument("--case")
    parser.add_argument("--format", choices=report.FORMATS, default="text")
    parser.add_argument("--out")
    arguments = parser.parse_args(words)
    arguments.submission = arguments.names[-1] if arguments.names else None
    arguments.slug = arguments.names[0] if arguments.names else None
    if len(arguments.names) != (0 if arguments.own or arguments.prepare else 1 if arguments.prepared else 2):
        parser.error("name the assignment and the submission: grade.py SLUG SUBMISSION")
    if arguments.own:
        grade = grade_self(arguments.own, arguments.task, arguments.case)
        show(grade, arguments)
        return 0 if is_full(grade) else 1
    if arguments.prepare:
        open_prepared(arguments.prepare)
        return 0
    if not os.path.exists(arguments.submission):
        raise Usage(f"there is no {arguments.submission}")
    starter, prepared = open_prepared(arguments.prepared) if arguments.prepared else prepared_folder(arguments.slug, arguments.variant, arguments.seed)
    starter.check_names(arguments.task, arguments.case)
    import intake

    with Grader(starter, prepared) as grader:
        if not intake.is_one(arguments.submission, starter.files) and not arguments.prepared and intake.students(arguments.submission):
            return grade_folder(grader, arguments)
        grade = grade_submission(grader, arguments.submission, arguments.task, arguments.case)
    if isinstance(grade, str):
        grade = refused_grade(starter, grade)
    elif not arguments.prepared:
        again_in_project(grade, arguments)
    else:
        again_in_starter(grade)
    show(grade, arguments)
    return 0 if is_full(grade) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Usage, manifests.ManifestError) as fault:
        print(fault, file=sys.stderr)
        sys.exit(2)
    except build.NotBuilt as fault:
        print(f"{fault}, as it was handed out:", *fault.lines, sep="\n", file=sys.stderr)
        sys.exit(2)
