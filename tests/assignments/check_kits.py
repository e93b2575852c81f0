"""Tries what students, GitHub Classroom and Gradescope do with an assignment, in folders laid out as theirs, in a path with spaces.

Called by check.py kits. The assignment is the one with the least to compile.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile

import build
import expected
import grade
import kits
import manifest as manifests
import starter


def with_precompiled(folder):
    """Takes what is compiled already: what is tried here is not how long the first build takes."""
    build.configure(folder, os.path.join(folder, "build"), keep=expected.BUILD)


def run(command, folder, **variables):
    """Runs a command as a student would: what make above us said, does not matter. Returns status and output."""
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=folder, env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout


def steps_of(text):
    """The steps of our workflow with a script: (id or None, script). It is only as much YAML as kits.py writes."""
    found = []
    for block in re.split(r"\n(?=      - )", text):
        name, script = re.search(r"\n        id: (\S+)", block), re.search(r"\n        run: (?:\|\n((?:          .*\n?)+)|(.*))", block)
        if script:
            found.append((name and name[1], re.sub(r"(?m)^          ", "", script[1]) if script[1] else script[2]))
    return found


def check_student(checks, loaded, own, upto):
    """The commands of a starter: what its Makefile offers."""
    before = run(["git", "status", "--porcelain"], own)[1]
    first = loaded.graded[0]["id"]
    hints = [run(["make", "--no-print-directory", "hint", f"T={first}", f"LEVEL={level}"], own) for level in (1, 2, 3)]
    checks.hold(all(status == 0 and text in said for (status, said), text in zip(hints, loaded.task(first)["hints"])), "make hint does not show three hints", str(hints))
    checks.hold(run(["make", "hint", "T=99"], own)[0] != 0 and run(["make", "hint"], own)[0] != 0, "make hint without a task does not fail")
    status, said = run(["make", "--no-print-directory", "grade"], own)
    score = sum(task["points"] for task in loaded.graded if task["id"] in starter.solved_tasks(loaded, upto))
    checks.hold(status != 0 and f"\nScore: {score}/100\n" in said, f"make grade in a starter with the tasks up to {upto} does not say {score}", said)
    status, said = run(["make", "--no-print-directory", "grade", f"T={first}"], own)
    checks.hold(status == 0 and f"Score: {loaded.task(first)['points']}/{loaded.task(first)['points']}" in said, f"make grade T={first} does not give its points", said)
    status, said = run(["make", "--no-print-directory", "grade", f"T={first}", f"CASE={loaded.task(first)['cases'][-1]}"], own)
    checks.hold(status == 0, "make grade of one case alone does not end well", said)
    checks.hold(run(["make", "grade", "T=99"], own)[0] != 0, "make grade of a task that is not there does not fail")
    after = run(["git", "status", "--porcelain"], own)[1]
    checks.hold(before == after, "make hint and make grade leave files behind", after)
    checks.say("make hint, make grade in a starter")


def check_submit(checks, loaded, own):
    """make submit, and what it refuses. Returns the zip."""
    status, said = run(["make", "--no-print-directory", "submit"], own)
    path = os.path.join(own, f"{loaded.slug}.zip")
    if checks.hold(status == 0 and os.path.isfile(path), "make submit does not pack", said):
        with zipfile.ZipFile(path) as archive:
            checks.hold(sorted(archive.namelist()) == sorted([*loaded.files(), "submission.json"]), f"make submit packs {archive.namelist()}")
            checks.hold(json.loads(archive.read("submission.json"))["version"] == loaded.version, "make submit does not note the version")
    file = os.path.join(own, loaded.files()[0])
    with open(file, encoding="utf-8") as source:
        text = source.read()
    kept = path + ".kept"
    os.rename(path, kept)
    with open(file, "w", encoding="utf-8") as target:
        target.write(text.replace("namespace", "nämespace", 1) + "\n}")
    status, said = run(["make", "--no-print-directory", "submit"], own)
    checks.hold(status != 0 and not os.path.exists(path) and "does not compile" in said and "error" in said, "make submit packs what does not compile", said)
    status, said = run(["make", "--no-print-directory", "grade"], own)
    checks.hold(status != 0 and "does not compile:" in said and "\nScore: 0/100" in said and loaded.files()[0] in said, "make grade does not report what does not compile", said)
    with open(file, "w", encoding="utf-8") as target:
        target.write(text)
    os.rename(kept, path)
    checks.say("make submit")
    return path


def check_github(checks, loaded, own, folder, upto):
    """The steps of the workflow, run in the order in which GitHub would; then what the reporter reads."""
    with open(os.path.join(folder, "github", ".github", "workflows", "classroom.yml"), encoding="utf-8") as file:
        text = file.read()
    temporary = os.path.join(folder, "runner temp")
    os.makedirs(temporary, exist_ok=True)
    results = {}
    for name, script in steps_of(text):
        if "apt-get" in script:
            continue
        output = os.path.join(temporary, "output")
        open(output, "w").close()
        status, said = run(["bash", "-e", "-c", script], own, RUNNER_TEMP=temporary, GITHUB_OUTPUT=output)
        checks.hold(status == 0, f"the step {name or 'Compile'} of the workflow fails", said)
        with open(output, encoding="utf-8") as file:
            results.update({name: line.partition("=")[2].strip() for line in file if name})
    runners = re.search(r"runners: (\S+)", text)[1].split(",")
    named = dict(re.findall(r'\n          (\S+)_RESULTS: "\$\{\{ steps\.(\S+)\.outputs\.result \}\}"', text))
    checks.hold(all(named.get(name.upper()) == name for name in runners) and set(runners) == results.keys(), f"the reporter is not told of every step: {runners}, {named}")
    read = [json.loads(base64.b64decode(results[name])) for name in runners if name in results]
    score = sum(test["score"] for result in read for test in result["tests"])
    right = sum(task["points"] for task in loaded.graded if task["id"] in starter.solved_tasks(loaded, upto))
    checks.hold((score, sum(result["max_score"] for result in read)) == (right, 100), f"the workflow gives {score} points instead of {right} of 100")
    checks.hold("\t" not in text and all(len(line) - len(line.lstrip()) in (0, 2, 4, 6, 8, 10) for line in text.splitlines()), "the workflow is not indented as YAML wants")
    checks.say("workflow of GitHub Classroom")


def check_gradescope(checks, loaded, folder, submission, upto):
    """The folders of an autograder: source, submission, results. The packages are there already."""
    home = os.path.join(folder, "auto grader")
    shutil.rmtree(home, ignore_errors=True)
    with zipfile.ZipFile(os.path.join(folder, "gradescope.zip")) as archive:
        archive.extractall(os.path.join(home, "source"))
        for entry in archive.infolist():
            os.chmod(os.path.join(home, "source", entry.filename), entry.external_attr >> 16 & 0o777)
    with_precompiled(os.path.join(home, "source", "assignment"))
    fake = os.path.join(home, "bin")
    os.makedirs(fake)
    with open(os.path.join(fake, "apt-get"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(os.path.join(fake, "apt-get"), 0o755)
    variables = {"AUTOGRADER": home, "PATH": f"{fake}:{os.environ['PATH']}"}
    status, said = run(["bash", os.path.join(home, "source", "setup.sh")], home, **variables)
    checks.hold(status == 0, "setup.sh fails", said)
    with zipfile.ZipFile(submission) as archive:  # Gradescope unpacks what is handed in
        archive.extractall(os.path.join(home, "submission"))
    right = sum(task["points"] for task in loaded.graded if task["id"] in starter.solved_tasks(loaded, upto))
    for what, score in (("as handed in", right), ("empty", 0)):
        if what == "empty":
            shutil.rmtree(os.path.join(home, "submission"))
            os.mkdir(os.path.join(home, "submission"))
        shutil.rmtree(os.path.join(home, "results"), ignore_errors=True)
        status, said = run(["bash", os.path.join(home, "source", "run_autograder")], home, **variables)
        try:
            with open(os.path.join(home, "results", "results.json"), encoding="utf-8") as file:
                result = json.load(file)
        except (OSError, ValueError) as error:
            checks.hold(False, f"run_autograder: {error}", said)
            continue
        numbers = [test["number"] for test in result["tests"] if "number" in test] if "tests" in result else []
        checks.hold(result["score"] == score and numbers == [task["id"] for task in loaded.tasks], f"run_autograder, {what}: {result['score']} instead of {score}; tests {numbers}", said)
    checks.say("autograder of Gradescope")


def check_project(checks, loaded, submission, folder, upto):
    """A zip, and a folder of submissions with one that is refused, in the project."""
    hand_out, prepared = grade.prepared_folder(loaded.slug)
    right = sum(task["points"] for task in loaded.graded if task["id"] in starter.solved_tasks(loaded, upto))
    place = os.path.join(folder, "handed in")
    os.makedirs(os.path.join(place, "bob"))
    shutil.copyfile(submission, os.path.join(place, "ada.zip"))
    with open(os.path.join(place, "bob", "notes.txt"), "w", encoding="utf-8") as file:
        file.write("I could not do it.\n")
    with zipfile.ZipFile(os.path.join(place, "eve.zip"), "w") as archive:
        archive.writestr("../../outside.txt", "x")
        archive.writestr(loaded.files()[0], "")
    out = os.path.join(folder, "grades", "grades.csv")
    status, said = run(["python3", os.path.join(starter.HERE, "grade.py"), loaded.slug, place, "--out", out], manifests.ROOT)
    checks.hold(status == 0, "a folder of submissions is not graded", said)
    with open(out, encoding="utf-8") as file:
        rows = [line.split(",") for line in file.read().splitlines()]
    checks.hold(len(rows) == 4 and [row[:2] for row in rows[1:]] == [["ada", str(right)], ["bob", "0"], ["eve", "0"]], f"the table is {rows}")
    checks.hold(rows[0][2:-1] == [task["id"] for task in loaded.tasks], f"the head of the table is {rows[0]}")
    with grade.Grader(hand_out, prepared) as grader:
        alone = grade.grade_submission(grader, submission)
    checks.hold(alone["score"] == right, f"the zip scores {alone['score']} instead of {right}")
    checks.say("a zip and a folder of submissions in the project")


def check(checks):
    """The faults of what students and hosts use."""
    slugs = manifests.slugs()
    if not slugs:
        checks.hold(False, "there is no assignment")
        return checks.faults
    loaded = min((manifests.load(slug) for slug in slugs), key=lambda one: (starter.has_kernels(one), sum(len(kinds) for kinds in one.programs().values()), one.slug))
    upto = loaded.graded[-2]["id"]  # not full marks: partial ones must come through, too
    os.makedirs(expected.BUILD, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=expected.BUILD, prefix="kits of ") as folder:
        own = os.path.join(folder, "a starter")
        starter.make_starter(loaded.slug, own)
        for path in loaded.files():
            with open(os.path.join(own, path), "w", encoding="utf-8") as file:
                file.write(starter.step_file(loaded, path, starter.solved_tasks(loaded, upto)))
        with_precompiled(own)
        kits.make_kits(loaded.slug, folder)
        for slug in slugs:
            other = manifests.load(slug)
            names = [name for name, _ in steps_of(kits.workflow(other)) if name]
            checks.hold(names == [kits.step_id(task["id"]) for task in other.graded], f"the workflow of {slug} has the steps {names}")
        checks.say(f"kits of {loaded.slug}")
        check_student(checks, loaded, own, upto)
        check_github(checks, loaded, own, folder, upto)
        submission = check_submit(checks, loaded, own)
        check_gradescope(checks, loaded, folder, submission, upto)
        check_project(checks, loaded, submission, folder, upto)
    return checks.faults
