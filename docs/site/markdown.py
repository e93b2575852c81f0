"""Reads a page in Markdown as GitHub shows it, and writes it as Doxygen wants it.

A page has headings, paragraphs, tables, lists, fenced code, ``$`formulas`$`` and links. This file knows nothing of steps or
programs: what links point to, and what a live part becomes, is decided in assemble.py.
"""
import html
import re

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*(\S*)\s*$")
HEADING = re.compile(r"^(#{1,6}) (.+?)\s*$")
MATH = re.compile(r"\$`(.+?)`\$", re.S)
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)>?\s*\)")
COMMENT = re.compile(r"<!--.*?-->", re.S)


class Block:
    """A piece of a page: kind is heading, fence or text; line is where it begins, counted from 1."""

    def __init__(self, kind, line, lines, info=""):
        self.kind, self.line, self.lines, self.info = kind, line, lines, info

    @property
    def text(self):
        return "\n".join(self.lines)


def blocks(text):
    """Cuts a page into headings, fences and runs of text between empty lines."""
    found, run, lines = [], [], text.split("\n")

    def end_run(line):
        if run:
            found.append(Block("text", line - len(run), list(run)))
            run.clear()

    index = 0
    while index < len(lines):
        line = lines[index]
        fence = FENCE.match(line)
        if fence:
            end_run(index + 1)
            close = re.compile(rf"^\s*{re.escape(fence.group(2))}\s*$")
            end = next((at for at in range(index + 1, len(lines)) if close.match(lines[at])), None)
            if end is None:
                raise ValueError(f"line {index + 1}: a fence is opened and never closed")
            indent = len(fence.group(1))
            body = [inner[indent:] if inner[:indent].strip() == "" else inner for inner in lines[index + 1 : end]]
            block = Block("fence", index + 1, body, fence.group(3))
            block.indent = fence.group(1)
            found.append(block)
            index = end
        elif HEADING.match(line):
            end_run(index + 1)
            found.append(Block("heading", index + 1, [line]))
        elif not line.strip():
            end_run(index + 1)
        else:
            run.append(line)
        index += 1
    end_run(len(lines) + 1)
    return found


def slug(title):
    """The anchor that GitHub gives a heading."""
    title = LINK.sub(lambda match: match.group(2), title)
    title = re.sub(r"[$`*]", "", title).strip().lower()
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def headings(text):
    """(level, title, anchor) of every heading, outside of fences."""
    found, seen = [], {}
    for block in blocks(text):
        if block.kind == "heading":
            marks, title = HEADING.match(block.text).groups()
            anchor = slug(title)
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            found.append((len(marks), title, anchor if count == 0 else f"{anchor}-{count}"))
    return found


def table_faults(block):
    """What is wrong with the tables in a run of text: rows with another number of cells than the head."""
    faults, width = [], None
    for number, line in enumerate(block.lines):
        if not line.lstrip().startswith("|"):
            width = None
            continue
        bare = CODE.sub(lambda match: match.group(0).replace("\\|", "").replace("|", "!"), line) if "$`" not in line else line
        for formula in MATH.findall(line):
            if "|" in formula:
                faults.append((block.line + number, "a | in a formula in a table breaks the table: write \\lvert, \\rvert or \\mid"))
        cells = len(re.findall(r"(?<!\\)\|", bare))
        if width is not None and cells != width:
            faults.append((block.line + number, f"this row of the table has {cells - 1} cells, the head has {width - 1}"))
        width = width or cells
    return faults


def formula_faults(block):
    """Unbalanced braces in formulas; a dollar sign that opens a formula and none that closes it."""
    faults = []
    formulas = MATH.findall(block.text) if block.kind == "text" else [block.text] if block.info == "math" else []
    for formula in formulas:
        bare = formula.replace("\\{", "").replace("\\}", "")
        if bare.count("{") != bare.count("}"):
            faults.append((block.line, f"unbalanced braces in the formula {formula.strip()}"))
        if formula.count("\\left") - formula.count("\\leftarrow") != formula.count("\\right") - formula.count("\\rightarrow"):
            faults.append((block.line, f"\\left without \\right in the formula {formula.strip()}"))
        if re.search(r"\\begin\{(\w+\*?)\}", formula) and sorted(re.findall(r"\\begin\{(\w+\*?)\}", formula)) != sorted(re.findall(r"\\end\{(\w+\*?)\}", formula)):
            faults.append((block.line, f"\\begin without \\end in the formula {formula.strip()}"))
    if block.kind == "text":
        rest = CODE.sub("", MATH.sub("", block.text))
        if "$`" in rest or "`$" in rest:
            faults.append((block.line, "a formula is opened and never closed"))
    return faults


def inline(text, resolve):
    """A run of text for Doxygen: formulas as \\f$, links as resolve(target) says."""
    kept = []

    def keep(piece):
        kept.append(piece)
        return f"\x00{len(kept) - 1}\x01"

    def code(match):
        body = " ".join(match.group(2).split())
        marks = "`" if "'" not in body and "`" not in body else "``"
        return keep(f"{marks}{body}{marks}")

    text = COMMENT.sub("", text)
    text = MATH.sub(lambda match: keep(f"\\f${' '.join(match.group(1).split())}\\f$"), text)
    text = CODE.sub(code, text)

    # Doxygen takes what stands in straight quotes as it is, formulas too
    text = re.sub(r'<[^>]*>|"', lambda match: match.group(0) if match.group(0) != '"' else "&quot;", text)

    def link(match):
        label = " ".join(match.group(2).split())
        target = resolve(match.group(3))
        return f'<a href="{html.escape(target)}">{label}</a>' if not match.group(1) else match.group(0)

    text = LINK.sub(link, text)
    text = re.sub(r"(?<![\w&])#(?=\w)", r"\\#", text)
    text = re.sub(r"(?<=\s)@(?=\w)", r"\\@", text)
    while "\x00" in text:
        text = re.sub("\x00(\\d+)\x01", lambda match: kept[int(match.group(1))], text)
    return text


def only_link(block):
    """(is an image, text, target) if a run of text is one link and nothing else."""
    match = LINK.fullmatch(block.text.strip()) if block.kind == "text" else None
    return (match.group(1) == "!", " ".join(match.group(2).split()), match.group(3)) if match else None
