#!/usr/bin/env python3
"""Checks the numbers that the pages print: every one that the project can compute is computed again.

    check.py --build BUILD_DIR [PAGE.md ...]

Beside this file stands a table for each page, NAME.py:

    PAGE = "steps/05_fa2_loop_swap/README.md"
    NUMBERS = {"1,652,352": lambda: run("05_fa2_loop_swap")["traffic"]["reads"]}   # as printed: what computes it
    QUOTED = {"6.2776": "FlashAttention-2 as printed; tests/errata.cpp"}          # as printed: where it comes from

A computed value, rounded to as many decimals as are printed, must be the printed number. A number with a thousands
separator, or with two or more decimals, that stands in a page and in no table is an error, and so is an entry whose
number the page does not print. Exit status 1 if anything is wrong.
"""
import argparse
import os
import re
import sys
from decimal import ROUND_HALF_EVEN, Decimal

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import computed  # noqa: E402

# 1,652,352 and 1,652.5 and 0.641 and 12.50, but not 5.1 (a section), 3.1.1 or 2205.14135 (arXiv)
NUMBER = re.compile(r"(?<![\w.,/:])-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d{2,})(?![\w.,]*\d)")
FORMULA_COMMA = re.compile(r"\{,\}")  # 4{,}456 in TeX


def text_of(page):
    """The text of a page in which numbers are looked for: without the targets of links, without what a generated table holds."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.S)
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    text = re.sub(r"arXiv:\s?\d+\.\d+", "", text)
    return FORMULA_COMMA.sub(",", text)


def numbers_in(text):
    return [match.group(0) for match in NUMBER.finditer(text)]


def as_printed(value, printed):
    """The computed value with as many decimals, and with separators if the printed number has them."""
    decimals = len(printed.partition(".")[2])
    exact = Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)
    return f"{rounded:,}" if "," in printed or abs(rounded) < 1000 else f"{rounded}"


def tables():
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".py") and name not in ("check.py", "computed.py"):
            yield __import__(name[:-3])


def pages():
    """All pages: README.md, docs/*.md, the page of each step, and what stands in docs/assignments for students."""
    found = ["README.md"] + [f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]
    found += [f"docs/zh/{name}" for name in os.listdir(os.path.join(ROOT, "docs", "zh"))] if os.path.isdir(os.path.join(ROOT, "docs", "zh")) else []
    for folder, folders, names in os.walk(os.path.join(ROOT, "docs", "assignments")):
        folders[:] = [name for name in folders if name not in ("staff", "solution")]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".md")]
    found += [f"steps/{name}/README.md" for name in os.listdir(os.path.join(ROOT, "steps")) if name[:2].isdigit()]
    return sorted(found)


def check(page, numbers, quoted):
    """What is wrong with the numbers of one page, and how many were computed."""
    wrong = []
    present = numbers_in(text_of(page))
    for printed in sorted(set(present) - set(numbers) - set(quoted)):
        wrong.append(f"{page}: {printed} stands in no table of tests/pages: say what computes it, or where it is quoted from")
    text = text_of(page)
    for printed in [*numbers, *quoted]:
        if printed not in present and not re.search(rf"(?<![\d.,]){re.escape(printed)}(?![\d]|[.,]\d)", text):
            wrong.append(f"{page}: the table of tests/pages has {printed}, which the page does not print")
    for printed in set(numbers) & set(quoted):
        wrong.append(f"{page}: {printed} is computed, so it need not be quoted")
    for printed, compute in numbers.items():
        value = compute()
        if as_printed(value, printed) != printed:
            wrong.append(f"{page}: prints {printed}, computed is {value}")
    return wrong, len(numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="the folder in which the programs stand")
    parser.add_argument("pages", nargs="*", help="only these pages")
    options = parser.parse_args()
    computed.use(options.build)

    known = {}
    for table in tables():
        known[table.PAGE] = (dict(table.NUMBERS), dict(getattr(table, "QUOTED", {})))
    wrong = [f"tests/pages: {page} is no page" for page in known if page not in pages()]
    count = 0
    for page in options.pages or pages():
        found, computed_here = check(page, *known.get(page, ({}, {})))
        wrong += found
        count += computed_here
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{count} numbers computed, {len(wrong)} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
