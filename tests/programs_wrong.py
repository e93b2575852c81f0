"""Tests of the programs: a step that is wrong is found out, by its exit status, its JSON and its text. wrong_program (tests/wrong_program.cpp) has the mistakes."""

import os

from program_helpers import check, parsed

# What must be unequal: checks (form, of) in which some `against` fails; whether an error is null; whether traffic differs from its formula
MISTAKES = {
    "scale": ("row tiles outside", "o lse", False), "lse in base 2": ("row tiles outside", "lse", False), "one row": ("row tiles outside", "o", False),
    "nan": ("row tiles outside", "o", True), "infinity": ("row tiles outside", "lse", True), "unwritten": ("row tiles outside", "o", True),
    "other form": ("one sweep, normalised", "o", False), "gradients": ("column order", "dk", False), "gradients nan": ("column order", "dv", True),
    "gradients unwritten": ("backward", "dq", True), "mask": ("forward", "o lse", False), "no mask": ("forward", "o lse", False),
    "head of K and V": ("forward", "o lse", False)}
COSTS = {"traffic": ("reads", 1), "extra read": ("reads", 1), "traffic of another tensor": (None, 0), "footprint": (None, 0)}


def wrong(programs):
    program = os.path.join(programs.build, "tests", "wrong_program")
    if not check(os.path.exists(program), f"{program} is not built"):
        return
    result = programs.execute([program, "none"])
    check(result.status == 0 and result.err == "" and "NOT EQUAL" not in result.out, f"no mistake: status {result.status}, {result.err!r}")
    known = programs.execute([program]).err.splitlines()[1:]
    check(sorted(known) == sorted(["none", *MISTAKES, *COSTS]), f"mistakes {sorted(set(known) ^ {'none', *MISTAKES, *COSTS})} are in one list only")
    for arguments in ([], ["--heads", "6", "--seq-q", "19", "--head-dim", "5"], ["--batch", "2", "--heads", "4", "--seq-q", "70", "--seq-k", "131"]):
        for mistake in [*MISTAKES, *COSTS]:
            more = arguments
            if mistake == "head of K and V" and arguments:
                more = [*arguments, "--kv-heads", "3" if "6" in arguments else "2"]
            if mistake in ("mask", "no mask") and arguments:
                more = [*arguments, "--causal"]
            if not arguments and mistake not in ("scale", "gradients", "head of K and V"):
                continue                                                       # the shipped input for some
            what = f"{mistake} {' '.join(more)}"
            folder = programs.new("out")
            result = programs.execute([program, mistake, *more, "--json", "--output", folder])
            report = parsed(result)
            check(result.status == 1 and result.err == "", f"{what}: status {result.status}, {result.err!r}")
            check(report.get("equal") is False, f"{what}: equal is {report.get('equal')}")
            unequal = [c for c in report.get("checks", []) if c["equal"] is not True]
            check(all(c["max_error"] is None or c["max_error"] > c["budget"] for c in unequal), f"{what}: {unequal}")
            if mistake in MISTAKES:
                form, tensors, null = MISTAKES[mistake]
                for of in tensors.split():
                    here = [c for c in unequal if (c["form"], c["of"], c["against"]) == (form, of, "definition")]
                    check(len(here) == 1 and (here[0]["max_error"] is None) == null, f"{what}: {of} of {form} beside the definition: {here}")
                    check(len([c for c in unequal if c["of"] == of and c["against"] != "definition"]) >= 1, f"{what}: nothing but the definition finds {of}")
            else:
                key, most = COSTS[mistake]
                check(unequal == [], f"{what}: values are right, but {unequal}")
                if key:
                    check(report["traffic"][key] != report["traffic"]["formula"][key], f"{what}: traffic {report['traffic']}")
                if mistake == "footprint":
                    check(report["on_chip"]["peak"] == report["on_chip"]["formula"] - 1, f"{what}: {report['on_chip']}")
            text = programs.execute([program, mistake, *more])
            check(text.status == 1 and text.err == "", f"{what}: status {text.status}, {text.err!r} with text")
            check(("NOT EQUAL" if mistake in MISTAKES else "IS NOT the formula") in text.out, f"{what}: the text does not say it: {text.out[-600:]}")
    # The float code is wrong, that in double is not
    check(programs.execute([program, "scale", "--dtype", "double"]).status == 0, "scale, --dtype double")
