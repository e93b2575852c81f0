"""Prints a hint for a task: a question, then where to look, then the shape of the answer.

    hint.py T [LEVEL]             in a starter
    hint.py --assignment SLUG [--variant NAME] T [LEVEL]

Asked for, and kept nowhere: whoever wants the next one names its level.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import manifest as manifests  # noqa: E402

KINDS = ("a question", "where to look", "the shape of the answer")


def hint(data, task_id, level, call):
    """The text of a hint. call  what make is given beside T and LEVEL"""
    tasks = {task["id"]: task for task in data["tasks"]}
    graded = [name for name, task in tasks.items() if task.get("hints")]
    if task_id not in tasks:
        raise SystemExit(f"make hint {call}T={graded[0]}: T is one of {', '.join(graded)}" + (f"; there is no task {task_id}" if task_id else ""))
    if task_id not in graded:
        raise SystemExit(f"Task {task_id} is a question to think about: there is no hint for it. Discuss it with somebody.")
    task, hints = tasks[task_id], tasks[task_id]["hints"]
    if not 1 <= level <= len(hints):
        raise SystemExit(f"LEVEL is 1 to {len(hints)}")
    lines = [f"{task_id} {task['title']}: hint {level} of {len(hints)}, {KINDS[min(level, len(KINDS)) - 1]}", "", hints[level - 1], ""]
    if level > 1 and task.get("equation"):
        lines.append(f"Equation {task['equation']}" + (f"; {task['page']}" if task.get("page") else ""))
    if level < len(hints):
        lines.append(f"Next: make hint {call}T={task_id} LEVEL={level + 1}")
    return "\n".join(lines).rstrip() + "\n"


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assignment")
    parser.add_argument("--variant")
    parser.add_argument("task", nargs="?", default="")
    parser.add_argument("level", nargs="?", type=int, default=1)
    arguments = parser.parse_args(words)
    if arguments.assignment:
        data = manifests.load(arguments.assignment, arguments.variant).data
        call = f"A={arguments.assignment} " + (f"V={arguments.variant} " if arguments.variant else "")
    else:
        data, call = manifests.drop_absent_pages(manifests.read_json(os.path.join(HERE, "assignment.json")), os.path.dirname(HERE)), ""
    sys.stdout.write(hint(data, arguments.task, arguments.level, call))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except manifests.ManifestError as fault:
        print(fault, file=sys.stderr)
        sys.exit(2)
