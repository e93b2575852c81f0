"""Holds what a compute program wrote to what was expected. It reads text files, and nothing in them can be run.

A file of numbers: a line `rows cols`, then one number a line: a hexadecimal float as C's %a prints it, or for fifty digits a decimal;
inf, -inf or nan. A file that is missing, short, a link or not text is wrong, and so is NaN where a number was expected.
"""
import collections
import decimal
import os
import re
import stat

CAP = 64 << 20  # bytes of one file that are read at all
FIFTY = decimal.Context(prec=80, Emax=10**9, Emin=-(10**9), traps=[])
ALLOWED_FIFTY = decimal.Decimal("1e-40")  # of what is computed in fifty digits, relative to max(1, |want|)
HEXADECIMAL = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][-+]?\d{1,5})?|inf|nan)", re.ASCII)
DECIMAL = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d{1,8})?|inf|nan)", re.ASCII)

Matrix = collections.namedtuple("Matrix", "rows cols values")
# What is wrong: in which result, at which index (row, column), the two numbers, the share of what is allowed; or a sentence alone
Difference = collections.namedtuple("Difference", "what index got want share message", defaults=(None,) * 5)


class Unreadable(Exception):
    """Says in one sentence what is wrong with a file."""


def text_of(folder, name, cap=CAP):
    """The text of a plain file in a folder. Never follows a link, never waits, never reads more than the cap."""
    try:
        handle = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unreadable(f"{name} was not written") from None
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(handle)
        raise Unreadable(f"{name} is not a plain file")
    with open(handle, "rb") as file:
        data = file.read(cap + 1)
    if len(data) > cap:
        raise Unreadable(f"{name} has more than {cap} bytes")
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise Unreadable(f"{name} is not a file of numbers") from None


def number(text, fifty):
    """One number as it is written. Python's readers know nothing of the locale."""
    if not (DECIMAL if fifty else HEXADECIMAL).fullmatch(text):
        raise Unreadable(f"“{text[:40]}” is not a number")
    return FIFTY.create_decimal(text) if fifty else float.fromhex(text)


def sizes(text, name):
    if not re.fullmatch(r"\d{1,9} \d{1,9}", text, re.ASCII):
        raise Unreadable(f"{name} begins with “{text[:40]}” instead of rows and columns")
    return tuple(int(n) for n in text.split())


def matrix(text, name, fifty):
    lines = text.split()
    if len(lines) < 2:
        raise Unreadable(f"{name} is empty")
    rows, cols = sizes(" ".join(lines[:2]), name)
    values = lines[2:]
    if len(values) != rows * cols:
        raise Unreadable(f"{name} has {len(values)} numbers instead of {rows} x {cols}")
    return Matrix(rows, cols, [number(value, fifty) for value in values])


def probes(text, fifty):
    """What was recorded, by task, in the order of the calls."""
    recorded = collections.defaultdict(list)
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        head = re.fullmatch(r"probe (\S{1,20}) (\d{1,9}) (\d{1,9})", lines[at], re.ASCII)
        if not head:
            raise Unreadable(f"probes.txt: “{lines[at][:40]}” is not the head of a record")
        rows, cols = int(head[2]), int(head[3])
        values = [number(value, fifty) for line in lines[at + 1 : at + 1 + rows * cols] for value in [line.strip()]]
        if len(values) != rows * cols:
            raise Unreadable(f"probes.txt: a record of task {head[1]} is cut short")
        recorded[head[1]].append(Matrix(rows, cols, values))
        at += 1 + rows * cols
    return recorded


def within(got, want, allowed):
    """Is got as near to want as is allowed? False wherever a NaN takes part, unless NaN was wanted."""
    if want != want:
        return got != got
    if got != got:
        return False
    if got == want:  # also infinities of one sign
        return True
    distance = abs(FIFTY.subtract(got, want)) if isinstance(want, decimal.Decimal) else abs(got - want)
    return distance == distance and distance <= allowed and not distance == float("inf")


def share(got, want, allowed):
    """By how many times what is allowed they differ; None if that is no number."""
    if isinstance(want, decimal.Decimal):
        if not (got.is_finite() and want.is_finite() and allowed):
            return None
        times = FIFTY.divide(abs(FIFTY.subtract(got, want)), allowed)
        return float(times) if times < decimal.Decimal("1e300") else None
    times = abs(got - want) / allowed if allowed else float("inf")
    return times if times - times == 0 else None


def printed(value):
    """A number for a person: 8 digits are enough to tell two apart, and more if they are not."""
    if isinstance(value, decimal.Decimal):
        return "nan" if value.is_nan() else ("-inf" if value < 0 else "inf") if value.is_infinite() else f"{value:.8g}"
    return f"{value:.8g}"


def printed_apart(got, want):
    """Both numbers, with as many digits as it takes to see that they differ."""
    pair = printed(got), printed(want)
    if pair[0] != pair[1] or got == want or got != got:
        return pair
    for digits in (12, 17, 30, 50):
        pair = f"{got:.{digits}g}", f"{want:.{digits}g}"
        if pair[0] != pair[1]:
            break
    return pair


def compare(got, want, allowed, what, head=None):
    """The first number that is not as near as allowed, or None. `head` names what the matrix is, for the sentence."""
    if (got.rows, got.cols) != (want.rows, want.cols):
        return Difference(what, message=f"{what} is {got.rows} x {got.cols}, and should be {want.rows} x {want.cols}")
    for at, (x, y) in enumerate(zip(got.values, want.values)):
        limit = allowed(at, y)
        if not within(x, y, limit):
            index = divmod(at, want.cols)
            pair = printed_apart(x, y)
            return Difference(head or what, index, pair[0], pair[1], share(x, y, limit))
    return None


def near(fifty, tolerance=1e-4):
    """What is allowed at a number of which no budget says it, relative to max(1, |want|)."""
    if fifty:
        return lambda at, y: FIFTY.multiply(ALLOWED_FIFTY, max(decimal.Decimal(1), abs(y))) if y.is_finite() else decimal.Decimal(0)
    return lambda at, y: tolerance * max(1.0, abs(y)) if y - y == 0 else 0.0


def compare_result(out, want, name, fifty):
    """One result (o, lse, dq, ...): the file NAME.txt beside the expected one and its budget."""
    expected = matrix(text_of(want, f"{name}.txt"), f"{name}.txt", fifty)
    allowed = near(True)
    if not fifty:
        budget = matrix(text_of(want, f"budget_{name}.txt"), f"budget_{name}.txt", False).values
        if len(budget) not in (1, len(expected.values)) or not all(b >= 0 for b in budget):
            raise ValueError(f"{want}: budget_{name}.txt does not fit {name}.txt")
        allowed = (lambda at, y: budget[0]) if len(budget) == 1 else (lambda at, y: budget[at])
    try:
        got = matrix(text_of(out, f"{name}.txt"), f"{name}.txt", fifty)
    except Unreadable as error:
        return Difference(name, message=str(error))
    return compare(got, expected, allowed, name)


def compare_probe(out, want, task, fifty, prefix, tolerance=1e-4):
    """What probe(task, ...) recorded, beside what it should have. With `prefix` records may be missing at the end: another task cut the
    run short. Returns the difference or None, and the number of records."""
    expected = probes(text_of(want, "probes.txt"), fifty)[task]
    try:
        got = probes(text_of(out, "probes.txt"), fifty)[task]
    except Unreadable as error:
        return Difference(f"probe {task}", message=str(error)), 0
    for record, (x, y) in enumerate(zip(got, expected), 1):
        difference = compare(x, y, near(fifty, tolerance), f"record {record} of probe {task}")
        if difference:
            return difference, len(got)
    if len(got) > len(expected) or (len(got) < len(expected) and not prefix):
        return Difference(f"probe {task}", message=f"probe {task} recorded {len(got)} times, and should {len(expected)} times"), len(got)
    return None, len(got)


def compare_counts(out, want, name):
    """What was read, written and added to ("counts"), or held on chip at most ("peak"): exactly. A line is words and then numbers."""

    def table(folder):
        rows = [re.fullmatch(r"([A-Za-z_ ]{1,40}?)((?: +\d{1,18})+) *", line, re.ASCII) for line in text_of(folder, "counts.txt").split("\n") if line.strip()]
        if not all(rows):
            raise Unreadable("counts.txt is not a table of counts")
        return {row[1]: row[2].split() for row in rows if (row[1] == "peak") == (name == "peak")}

    def told(row):
        words = ["read", "written", "added to"] if len(row or "") == 3 else [""]
        return ", ".join(f"{n} {word}".strip() for n, word in zip(row, words)) if row else "nothing"

    expected = table(want)
    try:
        got = table(out)
    except Unreadable as error:
        return Difference(name, message=str(error))
    for row in [*expected, *(other for other in got if other not in expected)]:
        x, y = got.get(row), expected.get(row)
        if x != y and any(n.strip("0") for n in [*(x or []), *(y or [])]):
            return Difference(name, message=f"counted for {row}: {told(x)}; expected: {told(y)}")
    return None


def compare_trace(out, arrays):
    """What the tracer found in a kernel: nothing, or nothing that concerns one of these arrays (all, if none is named)."""
    try:
        lines = text_of(out, "trace.txt").splitlines()
    except Unreadable as error:
        return Difference("trace", message=str(error))
    if not lines or lines[0] != "traced":
        return Difference("trace", message="the kernel did not run under the tracer")
    for line in lines[1:]:
        concerned, _, text = line.partition(": ")
        if line.strip() and (not arrays or concerned == "-" or set(concerned.split(",")) & set(arrays)):
            return Difference("trace", message=text or line)
    return None


def end_of(out):
    """The last file that a compute program writes: ("done" | "not implemented" | "does not fit" | "exception", the rest), or None."""
    try:
        text = text_of(out, "end.txt", 1 << 16).strip()
    except Unreadable:
        return None
    for word in ("done", "not implemented", "does not fit", "exception"):
        if text == word or text.startswith((word + " ", word + ":")):
            return word, text[len(word) :].strip(" :")
    return None
