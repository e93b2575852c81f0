"""The manifest of an assignment: read, held to its rules, and asked.

    manifest.py FILE...        every fault is one line `file: key: what is wrong`; the exit status is 2 if there are any

In the project the regions of the tasks are looked up in the steps as well; in a starter there are none.
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
IN_STARTER = os.path.basename(HERE) == "grader"
FOLDER = os.path.join(ROOT, "docs", "assignments")

STEPS = 8
TYPES = ("float", "double", "fifty")
INPUTS = ("normal", "peaked", "equal", "first_largest", "last_largest", "huge", "minus_inf", "all_minus_inf", "zero")
ATTENTION_SIZES = {"seq_q", "seq_k", "head_dim", "value_dim", "br", "bc", "causal", "heads", "kv_heads"}
# By form: its steps, what it gives, and its sizes
FORMS = {
    "softmax": ((1, 2), ("a",), {"n"}),
    "max_sum": ((2,), ("m", "l"), {"n", "bc"}),
    "merge": ((2,), ("m", "l"), {"n"}),
    "standard": ((1,), ("o", "lse"), ATTENTION_SIZES),
    "three_sweeps": ((1,), ("o", "lse"), ATTENTION_SIZES),
    "two_sweeps": ((2,), ("o", "lse"), ATTENTION_SIZES),
    "one_sweep": ((3,), ("o", "lse"), ATTENTION_SIZES),
    "one_sweep_normalised": ((3,), ("o", "lse"), ATTENTION_SIZES),
    "forward": ((4, 5, 7, 8), ("o", "lse"), ATTENTION_SIZES),
    "traffic": ((5,), (), ATTENTION_SIZES),
    "backward": ((6, 7, 8), ("dq", "dk", "dv"), ATTENTION_SIZES),
    "backward_row_order": ((6,), ("dq", "dk", "dv"), ATTENTION_SIZES),
    "backward_standard": ((6,), ("dq", "dk", "dv"), ATTENTION_SIZES),
    "kind_of_tile": ((7,), ("kind",), {"seq_q", "seq_k", "br", "bc"}),
    "kv_head": ((8,), ("index",), {"heads", "kv_heads"}),
}
CAUSAL_STEPS = (7, 8)

KEYS = {
    "assignment": ({"slug", "title", "version", "last_step", "limits", "tasks", "cases"}, {"given", "hidden", "omit", "extra", "about"}),
    "limits": ({"seconds", "mebibytes", "output_kib"}, set()),
    "task": ({"id", "title", "points", "file", "stub", "equation", "hints", "cases", "gate"}, {"kind", "function", "region", "lines", "also", "probe", "page", "depends"}),
    "written": ({"id", "kind", "title", "points", "question"}, {"page"}),
    "place": ({"file"}, {"function", "region", "lines", "stub"}),
    "case": ({"step", "form", "type", "sizes", "judge"}, {"inputs", "seed", "program", "dlse", "scale", "capacity", "expect", "reference", "arguments", "tolerance"}),
}

NOTE = "submission.json"  # beside the files of a zip that was packed: of which assignment, and which version


class ManifestError(Exception):
    """What is wrong with a manifest: .faults, one line each."""

    def __init__(self, faults):
        super().__init__("\n".join(faults))
        self.faults = faults


def drop_absent_pages(data, folder):
    """A starter has no pages of the steps with holes: what is not there is not pointed to."""
    for task in data["tasks"]:
        if not os.path.isfile(os.path.join(folder, task.get("page", "").partition("#")[0])):
            task.pop("page", None)
    return data


class Manifest:
    """A manifest that keeps the rules.

    .tasks        all, as the file has them     .graded   those with points, in order
    .cases        by name, hidden ones too; those have "hidden": true
    .given        names of cases that a starter passes
    .folder       docs/assignments/SLUG, or that of a variant, or the starter's grader/
    """

    def __init__(self, data, path, variant=None):
        self.data, self.path, self.folder, self.variant = data, path, os.path.dirname(os.path.abspath(path)), variant
        self.slug, self.title, self.version, self.last_step = data["slug"], data["title"], data["version"], data["last_step"]
        self.limits, self.tasks, self.given = data["limits"], data["tasks"], data.get("given", [])
        self.graded = [task for task in self.tasks if task.get("kind") != "written"]
        self.written = [task for task in self.tasks if task.get("kind") == "written"]
        self.cases = {name: {**case, "name": name, "hidden": False} for name, case in data["cases"].items()}
        self.cases.update({name: {**case, "name": name, "hidden": True} for name, case in data.get("hidden", {}).items()})
        self.omit = data.get("omit", [])

    def task(self, task_id):
        return next((task for task in self.tasks if task["id"] == task_id), None)

    def places(self, task):
        """Where a task's stub goes: its own place first."""
        return [task, *task.get("also", [])]

    def files(self):
        """What a student may change."""
        return sorted({place["file"] for task in self.graded for place in self.places(task)})

    def cases_of(self, task, hidden=True):
        """Names of the cases of a task; with the hidden ones, "NAME (hidden)" for NAME."""
        names = list(task["cases"])
        if hidden:
            names += [f"{name} (hidden)" for name in task["cases"] if f"{name} (hidden)" in self.cases]
        return names

    def steps_with_holes(self):
        return sorted({step_of(file) for file in self.files()} - {0})

    def program(self, case):
        return program_of(case)

    def programs(self):
        """Of each program the types that some case wants: {"compute_05": ["float", "fifty"]}."""
        wanted = {}
        for case in self.cases.values():
            wanted.setdefault(program_of(case), set()).add(case["type"])
        return {program: [kind for kind in TYPES if kind in types] for program, types in sorted(wanted.items())}


def program_of(case):
    return case.get("program", f"compute_{case['step']:02}")


def is_kernel(case):
    return "program" in case and not case["program"].startswith("compute_")


def step_of(path):
    """The number of the step that a file belongs to; 0 if to none."""
    match = re.match(r"steps/(\d\d)_", path)
    return int(match.group(1)) if match else 0


def base_of(folder):
    """The folder of the assignment that a variant's folder belongs to; None if it is no variant's."""
    above = os.path.dirname(os.path.abspath(folder))
    return os.path.dirname(above) if os.path.basename(above) == "variants" else None


def solution_path(folder, path):
    """The file of a solution: a variant's own, that of the assignment alone, or that of the project."""
    for place in filter(None, (folder, base_of(folder))):
        own = os.path.join(place, "solution", path)
        if os.path.isfile(own):
            return own
    return os.path.join(ROOT, path)


class Check:
    """Collects what is wrong, with the key at which it stands."""

    def __init__(self, path):
        self.path, self.faults = os.path.relpath(path, ROOT) if os.path.abspath(path).startswith(ROOT + os.sep) else path, []

    def wrong(self, key, text):
        self.faults.append(f"{self.path}: {key}: {text}")

    def keys(self, at, data, kind):
        if not isinstance(data, dict):
            self.wrong(at, "must be an object")
            return False
        must, may = KEYS[kind]
        for key in sorted(must - data.keys()):
            self.wrong(at, f"has no “{key}”")
        for key in sorted(data.keys() - must - may):
            self.wrong(at, f"has an unknown key “{key}”")
        return must <= data.keys()

    def names(self, at, value, known, what):
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self.wrong(at, f"must be a list of {what}s")
            return []
        for name in value:
            if name not in known:
                self.wrong(at, f"there is no {what} “{name}”")
        for name in sorted({name for name in value if value.count(name) > 1}):
            self.wrong(at, f"“{name}” stands there twice")
        return value


def is_count(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_case(check, at, case, last_step, task_ids):
    if not check.keys(at, case, "case"):
        return
    step, form, kind, sizes = case["step"], case["form"], case["type"], case["sizes"]
    if not is_count(step, 1) or step > last_step:
        return check.wrong(f"{at}.step", f"must be a step from 1 to {last_step}")
    if kind not in TYPES:
        check.wrong(f"{at}.type", f"must be one of {', '.join(TYPES)}")
    if case.get("inputs", "normal") not in INPUTS:
        check.wrong(f"{at}.inputs", f"must be one of {', '.join(INPUTS)}")
    kernel = is_kernel(case)
    if kernel:
        gives, known = ("o", "lse"), ATTENTION_SIZES
    elif form not in FORMS or step not in FORMS[form][0]:
        return check.wrong(f"{at}.form", f"step {step} has no form “{form}”: it has {', '.join(name for name, row in FORMS.items() if step in row[0])}")
    else:
        _, gives, known = FORMS[form]
    if not isinstance(sizes, dict):
        return check.wrong(f"{at}.sizes", "must be an object")
    for key in sorted(sizes.keys() - known):
        check.wrong(f"{at}.sizes", f"has an unknown size “{key}”: a {form} has {', '.join(sorted(known))}")
    for key in sorted(known - {"value_dim", "br", "bc", "causal", "heads", "kv_heads"} - sizes.keys() if known is ATTENTION_SIZES else known - sizes.keys()):
        check.wrong(f"{at}.sizes", f"has no “{key}”")
    for key, value in sizes.items():
        least = 0 if key in ("seq_q", "seq_k", "n") else 1
        if key == "causal":
            if not isinstance(value, bool):
                check.wrong(f"{at}.sizes.causal", "must be true or false")
            elif value and step not in CAUSAL_STEPS and not kernel and not case.get("reference"):
                check.wrong(f"{at}.sizes.causal", f"step {step} knows no mask")
        elif key in known and not is_count(value, least):
            check.wrong(f"{at}.sizes.{key}", f"must be a whole number, at least {least}")
    reference = case.get("reference", {})
    if reference != "solution" and not (isinstance(reference, dict) and reference.keys() <= {"window", "softcap", "slope"}):
        check.wrong(f"{at}.reference", "must be “solution”, or an object with window, softcap or slope")
    heads, kv_heads = sizes.get("heads", 1), sizes.get("kv_heads", sizes.get("heads", 1))
    if is_count(heads, 1) and is_count(kv_heads, 1) and (heads % kv_heads or heads != kv_heads and step != 8):
        check.wrong(f"{at}.sizes.kv_heads", "must divide heads" if step == 8 else f"must be heads: step {step} shares no heads")
    if not isinstance(case["judge"], list) or not case["judge"] and "expect" not in case:
        return check.wrong(f"{at}.judge", f"must be a list of {', '.join(gives)}, counts, peak or “probe ID”")
    for name in case["judge"]:
        if isinstance(name, str) and name.startswith("probe "):
            if name[6:] not in task_ids:
                check.wrong(f"{at}.judge", f"there is no task with a probe “{name[6:]}”")
            elif kind != "fifty" and not kernel:
                check.wrong(f"{at}.judge", "probes are judged in fifty digits: the type must be fifty")
        elif name not in (*gives, "counts", "peak") and not kernel:
            check.wrong(f"{at}.judge", f"a {form} gives no “{name}”: it gives {', '.join(gives)}, counts, peak")


def check_task(check, at, task, names, ids, seen):
    """A task with code. seen  the ids of the tasks before it"""
    if not check.keys(at, task, "task"):
        return
    if not is_count(task["points"], 1):
        check.wrong(f"{at}.points", "must be a whole number, at least 1")
    check.names(f"{at}.cases", task["cases"], names, "case")
    if len(task["cases"]) < 3:
        check.wrong(f"{at}.cases", "a task has at least 3 cases")
    if task["gate"] not in task["cases"]:
        check.wrong(f"{at}.gate", "must be one of the task's cases")
    for name in check.names(f"{at}.depends", task.get("depends", []), ids, "task"):
        if name in ids and name not in seen:
            check.wrong(f"{at}.depends", f"“{name}” must stand before “{task['id']}”")
    for key in ("stub", "probe", "hints"):
        if not isinstance(task.get(key, []), list) or not all(isinstance(line, str) for line in task.get(key, [])):
            check.wrong(f"{at}.{key}", "must be a list of lines")
            return
    if len(task["hints"]) != 3:
        check.wrong(f"{at}.hints", "there are three levels of hints")
    if not any(f'("{task["id"]}"' in line and "todo" in line for line in task["stub"]):
        check.wrong(f"{at}.stub", f"no line has todo(\"{task['id']}\") or todo<Type>(\"{task['id']}\")")
    if task.get("probe") and not any(f'probe("{task["id"]}"' in line for line in task["probe"]):
        check.wrong(f"{at}.probe", f"no line begins with probe(\"{task['id']}\", …)")
    for number, place in enumerate(task.get("also", [])):
        check.keys(f"{at}.also[{number}]", place, "place")


def check_regions(check, tasks, folder):
    """The regions stand in the steps, once each."""
    import regions

    for at, task in tasks:
        for place in [task, *task.get("also", [])]:
            path = place.get("file", "")
            if not isinstance(path, str) or not re.fullmatch(r"(steps/\d\d_\w+/\w+\.(hpp|cu)|common/attention/\w+\.hpp)", path):
                check.wrong(f"{at}.file", f"“{path}” is no steps/NN_name/file.hpp or .cu, and no common/attention/file.hpp")
                continue
            if not ("region" in place or "function" in place):
                check.wrong(at, "needs “region”, “function” or both")
                continue
            if not os.path.isfile(solution_path(folder, path)):
                check.wrong(f"{at}.file", f"there is no {path}")
                continue
            with open(solution_path(folder, path), encoding="utf-8") as file:
                text = file.read()
            try:
                regions.code_of(path, text, place)
            except regions.Fault as fault:
                check.wrong(f"{at}.region", str(fault))


def check_manifest(data, path, places=not IN_STARTER):
    """What is wrong with a manifest, one line each."""
    check = Check(path)
    if not check.keys("assignment", data, "assignment"):
        return check.faults
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(data["slug"])):
        check.wrong("slug", "must be lower-case words joined by -")
    if not is_count(data["last_step"], 1) or data["last_step"] > STEPS:
        check.wrong("last_step", f"must be a step from 1 to {STEPS}")
        return check.faults
    if check.keys("limits", data["limits"], "limits"):
        for key, value in data["limits"].items():
            if not is_count(value, 1):
                check.wrong(f"limits.{key}", "must be a whole number, at least 1")
    for key in ("cases", "hidden"):
        if not isinstance(data.get(key, {}), dict):
            check.wrong(key, "must be an object")
            return check.faults
    if not isinstance(data["tasks"], list) or not all(isinstance(task, dict) for task in data["tasks"]):
        check.wrong("tasks", "must be a list of objects")
        return check.faults
    ids = [task.get("id") for task in data["tasks"]]
    for task_id in ids:
        if not isinstance(task_id, str) or not re.fullmatch(r"[A-Z]?\d+(\.\d+)?", task_id):
            check.wrong("tasks", f"“{task_id}” is no id such as 2.1 or W1")
        elif ids.count(task_id) > 1:
            check.wrong("tasks", f"two tasks are “{task_id}”")
    with_probe = {task.get("id") for task in data["tasks"] if task.get("probe")}
    for key in ("cases", "hidden"):
        for name, case in data.get(key, {}).items():
            check_case(check, f"{key} “{name}”", case, data["last_step"], with_probe)
    for name in data.get("hidden", {}):
        if not name.endswith(" (hidden)") or name.removesuffix(" (hidden)") not in data["cases"]:
            check.wrong(f"hidden “{name}”", "must be the name of a case, and “ (hidden)”")
    graded, points = [], 0
    for number, task in enumerate(data["tasks"]):
        at = f"task {task.get('id', number)}"
        if task.get("kind", "code") == "written":
            check.keys(at, task, "written")
            if task.get("points") != 0:
                check.wrong(f"{at}.points", "a written question has 0 points")
            continue
        if task.get("kind", "code") != "code":
            check.wrong(f"{at}.kind", "must be “code” or “written”")
            continue
        before = len(check.faults)
        check_task(check, at, task, data["cases"], ids, ids[:number])
        points += task["points"] if is_count(task.get("points"), 1) else 0
        if len(check.faults) == before:
            graded.append((at, task))
    if points != 100:
        check.wrong("tasks", f"the points are {points} together, not 100")
    check.names("given", data.get("given", []), data["cases"], "case")
    used = {name for task in data["tasks"] for name in task.get("cases", []) if isinstance(name, str)} | set(data.get("given", []))
    for name in data["cases"]:
        if name not in used:
            check.wrong(f"cases “{name}”", "no task has it, and it is not given")
    fifty = {name for name, case in data["cases"].items() if isinstance(case, dict) and case.get("type") == "fifty"}
    counted = {name for name, case in data["cases"].items() if isinstance(case, dict) and set(map(str, case.get("judge", []))) <= {"counts", "peak", "index", "kind"} or is_kernel(case)}
    for at, task in graded:
        if not fifty & set(task["cases"]) and not set(task["cases"]) <= counted and not any(place["file"].endswith(".cu") for place in [task]):
            check.wrong(f"{at}.cases", "a task that computes has at least one case in fifty digits")
    if places:
        check_regions(check, graded, os.path.dirname(os.path.abspath(path)))
    return check.faults


def read_json(path):
    def once(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"“{twice[0]}” stands twice in one object")
        return dict(pairs)

    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=once)
    except OSError as error:
        raise ManifestError([f"{path}: {error.strerror}"]) from error
    except ValueError as error:
        raise ManifestError([f"{path}: {error}"]) from error


def path_of(slug, variant=None):
    """The file of an assignment, or of one of its variants. slug  its name, or already a path"""
    if slug.endswith(".json"):
        return slug
    folder = os.path.join(FOLDER, slug)
    return os.path.join(folder, "variants", variant, "assignment.json") if variant else os.path.join(folder, "assignment.json")


def load(slug, variant=None):
    """The manifest of an assignment. slug  its name, or the path of an assignment.json"""
    path = path_of(slug, variant)
    folder = os.path.dirname(os.path.abspath(path))
    data, base = read_json(path), base_of(folder)
    if base and isinstance(data, dict):  # a variant says what differs
        data = {**read_json(os.path.join(base, "assignment.json")), **data}
    faults = check_manifest(data, path)
    if faults:
        raise ManifestError(faults)
    return Manifest(data, path, os.path.basename(folder) if base else None)


def slugs():
    """The assignments of the project."""
    return sorted(name for name in (os.listdir(FOLDER) if os.path.isdir(FOLDER) else []) if os.path.isfile(os.path.join(FOLDER, name, "assignment.json")))


def main(paths):
    faults = []
    for path in paths or [path_of(slug) for slug in slugs()]:
        try:
            load(path)
        except ManifestError as error:
            faults += error.faults
    for fault in faults:
        print(fault, file=sys.stderr)
    return 2 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
