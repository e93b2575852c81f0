"""What a grade looks like: for a person, as JSON, as Gradescope's results.json, as a result of GitHub Classroom, as a row of a table.

A grade is a dictionary:

    slug, title, version, seed, grading (False in a starter), isolation, isolated, score, out_of, complete (all tasks were graded),
    messages: [sentence], errors: [{"program", "lines"}],
    tasks: [{"id", "title", "points", "score", "state", "by", "passed", "cases", "page", "equation", "written", "first", "again"}],
    given: [{"name", "state", "message"}]

`state` is right, wrong, not attempted, blocked, does not compile or manual; `first` tells of the first case that failed: name, sizes,
inputs, seed, type, what, index, got, want, share, message.
"""
import base64
import csv
import io
import json

FORMATS = ("text", "json", "gradescope", "classroom")
WIDTH = 58  # of a task's number, title and dots
NO_ISOLATION = "No isolation: the submission ran with all rights of the user who graded it."


def plain(text):
    """Text that a submission may have a part in, as one printable line."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def sizes_of(first):
    """The sizes of a case and where its numbers come from: seq_q 4, seq_k 5, causal, normal, seed 7."""
    words = [name if value is True else f"{name} {value}" for name, value in (first.get("sizes") or {}).items()
             if value is not False and (name not in ("heads", "kv_heads") or value != 1)]
    words += [first[key] for key in ("inputs", "type") if first.get(key)]
    return ", ".join(str(word) for word in words) + (f", seed {first['seed']}" if first.get("seed") is not None else "")


def times(share):
    return "" if share is None else f", error {share:.3g} x budget" if share < 1e6 else f", error {share:.0e} x budget"


def difference_of(first):
    """O[1,4] got 0.81 want 0.64, error 41 x budget."""
    if first.get("index") is None:
        return plain(first.get("message") or "")
    index = ",".join(str(i) for i in first["index"])
    head = f"head {first['head']}: " if first.get("head") is not None else ""
    return f"{head}{plain(first['what'])}[{index}] got {first['got']} want {first['want']}{times(first.get('share'))}"


def outcome_of(task):
    """The words behind the points."""
    if task["state"] == "blocked":
        return f"blocked by {plain(task['by'])}"
    if task["state"] == "wrong":
        return f"wrong: {task['cases'] - task['passed']} of {task['cases']} cases" + (f"; the case “{task['gate']}” must be right for any point" if task.get("gate") else "")
    return task["state"]


def details(task):
    """The lines under a task that is not right."""
    first = task.get("first")
    lines = []
    if first and task["state"] not in ("right", "not attempted", "manual", "does not compile"):
        lines.append(f"first: {first['case']}: {sizes_of(first)}")
        lines.append(f"       {difference_of(first)}")
    where = "; ".join(text for text in ((f"equation {task['equation']}" if task.get("equation") else ""), task.get("page") or "") if text)
    if task["state"] in ("wrong", "not attempted", "blocked") and where:
        lines.append(f"see:   {where}")
    if task.get("again") and lines and first and task["state"] != "not attempted":
        lines.append(f"again: {task['again']}")
    if task["state"] in ("wrong", "not attempted"):
        lines.append(f"hint:  {task['hint']}")
    return lines


def as_text(grade):
    lines = [f"{grade['title']} ({grade['slug']} {grade['version']}), seed {grade['seed']}"]
    lines.append(f"Isolation: {grade['isolation']}" if grade["isolated"] else NO_ISOLATION)
    lines += [f"Note: {plain(message)}" for message in grade["messages"]]
    for error in grade["errors"]:
        lines += ["", f"{error['program']} does not compile:", *(f"    {plain(line)}" for line in error["lines"])]
    lines.append("")
    for case in grade["given"]:
        if case["state"] != "right":
            lines.append(f"given: {case['name']}: {plain(case['message'])}")
    if grade["given"] and all(case["state"] == "right" for case in grade["given"]):
        lines.append(f"given: {len(grade['given'])} of {len(grade['given'])} cases right")
    for task in grade["tasks"]:
        name = f"{task['id']} {task['title']} "
        points = "" if task["state"] == "manual" else f"{task['score']}/{task['points']}  "
        lines.append(f"{name}{'.' * max(3, WIDTH - len(name))} {points}{outcome_of(task)}")
        lines += [f"       {line}" for line in details(task)]
    lines += ["", f"Score: {grade['score']}/{grade['out_of']}"]
    return "\n".join(lines) + "\n"


def as_json(grade):
    return json.dumps(grade, indent=1, ensure_ascii=False) + "\n"


def explained(task):
    return "\n".join([outcome_of(task), *details(task)])


def as_gradescope(grade):
    """One test a task, with its own number; what is read by a person has no points there. The sum is stated, so none is computed."""
    notes = [f"Isolation: {grade['isolation']}" if grade["isolated"] else NO_ISOLATION, *grade["messages"]]
    tests = []
    for error in grade["errors"]:
        tests.append({"name": f"{error['program']} compiles", "status": "failed", "output": "\n".join(plain(line) for line in error["lines"]), "output_format": "text"})
    for case in grade["given"]:
        if case["state"] != "right":
            tests.append({"name": f"given: {case['name']}", "status": "failed", "output": plain(case["message"]), "output_format": "text"})
    for task in grade["tasks"]:
        test = {"number": task["id"], "name": task["title"], "output": explained(task), "output_format": "text", "visibility": "visible"}
        if task["state"] != "manual":
            test.update(score=task["score"], max_score=task["points"], status="passed" if task["state"] == "right" else "failed")
        tests.append(test)
    return json.dumps({"score": grade["score"], "output": "\n".join(plain(note) for note in notes), "output_format": "text", "visibility": "visible",
                       "stdout_visibility": "hidden", "extra_data": {"assignment": grade["slug"], "version": grade["version"], "seed": grade["seed"]},
                       "tests": tests}, indent=1, ensure_ascii=False) + "\n"


def as_classroom(grade):
    """What a step of a workflow hands to classroom-resources/autograding-grading-reporter, once it is in base64: the points are summed."""
    graded = [task for task in grade["tasks"] if task["state"] != "manual"]
    tests = [{"name": f"{task['id']} {task['title']}", "status": "pass" if task["state"] == "right" else "fail", "score": task["score"],
              "message": explained(task) + ("" if grade["isolated"] else f"\n{NO_ISOLATION}"), "test_code": task["again"] or "", "filename": "", "line_no": 0, "duration": 0} for task in graded]
    status = "pass" if all(test["status"] == "pass" for test in tests) else "fail"
    return json.dumps({"version": 1, "status": status, "max_score": sum(task["points"] for task in graded), "tests": tests}, ensure_ascii=False) + "\n"


def in_base64(text):
    return base64.b64encode(text.encode()).decode() + "\n"


def render(grade, form):
    return {"text": as_text, "json": as_json, "gradescope": as_gradescope, "classroom": as_classroom}[form](grade)


def cell(text):
    """A spreadsheet takes what begins so for a formula."""
    text = plain(text)
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def as_csv(rows, tasks):
    """One row a student: rows are (name, grade, or the sentence why there is none)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", "score", *(task["id"] for task in tasks), "remarks"])
    for name, grade in rows:
        if isinstance(grade, str):
            writer.writerow([cell(name), 0, *("manual" if task.get("kind") == "written" else 0 for task in tasks), cell(grade)])
            continue
        points = ["manual" if task["state"] == "manual" else task["score"] for task in grade["tasks"]]
        remarks = [*grade["messages"], *(f"{error['program']} does not compile" for error in grade["errors"]), *([] if grade["isolated"] else [NO_ISOLATION])]
        writer.writerow([cell(name), grade["score"], *points, cell("; ".join(remarks))])
    return out.getvalue()
