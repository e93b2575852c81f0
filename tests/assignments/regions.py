"""Regions of a step's code: what a task takes out of a file, what stands in its place, and what must not be found elsewhere.

A region is the block under a title comment, as the pages show it, or the whole body of a function. Lines are counted from 0.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "docs", "site"))
import assemble  # noqa: E402

Fault = assemble.Fault


def code_range(path, lines, place):
    """The lines of code of a region, without its title comment: first, and the one behind the last.

    A place has "region", "function" or both, and perhaps "lines": a text of the first line and one of the last.
    """
    function, title = place.get("function"), place.get("region")
    if title:
        begin, end = assemble.block_range(path, lines, title, function)
        while assemble.title_of(lines[begin]) is not None:
            begin += 1
    else:
        begin, end = assemble.body_range(path, lines, function)
    if "lines" in place:
        first_text, last_text = place["lines"]
        first = next((at for at in range(begin, end) if first_text in lines[at]), None)
        last = next((at for at in range(end - 1, begin - 1, -1) if last_text in lines[at]), None)
        if first is None or last is None or first > last:
            raise Fault(f"{path}: the region has no lines from “{first_text}” to “{last_text}”")
        begin, end = first, last + 1
    return begin, end


def indented(lines, like):
    """Lines of a manifest with the indent of a line of the file."""
    indent = " " * assemble.indent_of(like)
    return [indent + line if line and not line.startswith("#") else line for line in lines]


def write_tasks(path, text, edits):
    """A file with its tasks in it.

    edits  list of (place, stub lines or None to keep the code, probe lines)
    """
    lines = text.split("\n")
    ranges = sorted(((*code_range(path, lines, place), stub, probe) for place, stub, probe in edits), key=lambda one: one[:2])
    for one, following in zip(ranges, ranges[1:]):
        if one[1] > following[0]:
            raise Fault(f"{path}: two regions overlap in line {following[0] + 1}")
    for begin, end, stub, probe in reversed(ranges):
        like = lines[begin]
        kept = lines[begin:end] if stub is None else indented(stub, like)
        lines[begin:end] = kept + indented(probe, like)
    return "\n".join(lines)


def code_of(path, text, place):
    """The lines of code of a region."""
    lines = text.split("\n")
    begin, end = code_range(path, lines, place)
    return lines[begin:end]


def normal(line):
    """A line without comments and spaces; "" if nothing is left."""
    line = re.sub(r"^\s*(//+|/?\*+|#|>|\||\d+[.)]|[-*+])\s*", "", line) if not line.lstrip().startswith("#pragma") else line
    return re.sub(r"\s+", "", re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", line)))


def normal_lines(text):
    """The lines of a text that say something, normalised. Commented code counts as code."""
    return [line for line in map(normal, text.split("\n")) if line not in ("", "{", "}", "};", "*/", "/*")]


def windows(lines, size=3):
    """All runs of so many normalised lines; of a shorter region the whole, if it says more than a brace."""
    if len(lines) < size:
        return [tuple(lines)] if lines else []
    return [tuple(lines[at : at + size]) for at in range(len(lines) - size + 1)]
