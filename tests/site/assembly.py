#!/usr/bin/env python3
"""What does not resolve in a page is refused, with the page and the line: the assembly of the site against pages with one fault each."""
import contextlib
import io
import os
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "docs", "site"))
import assemble  # noqa: E402
import make_site  # noqa: E402

CODE = """// What this is
int f() {
  // Add the two
  int a = 1;
  int b = a + 1;

  // Give it back
  return b;
}
// Nothing follows
"""
FILES = {
    "README.md": "# Main\n\n[docs](docs/README.md)\n",
    "docs/README.md": "# Pages\n\n[05](../steps/05_x/README.md) [06](../steps/06_y/README.md)\n",
    "docs/figures/one.svg": '<svg xmlns="http://www.w3.org/2000/svg"><title>One</title></svg>\n',
    "steps/05_x/README.md": "# 05 X\n\n## The code\n\n@\n",
    "steps/06_y/README.md": "# 06 Y\n",
    "steps/05_x/forward.hpp": CODE,
    "steps/06_y/forward.hpp": CODE.replace("a + 1", "a + 2"),
    "steps/05_x/same.hpp": CODE,
    "steps/06_y/same.hpp": CODE,
    "steps/05_x/main.cpp": "int main() {}\n",
    "docs/assignments/a1/staff/answers.md": "# Answers\n\nNobody reads this on the site.\n",
}
PROGRAM = "#!/bin/sh\n[ \"$1\" = --bad ] && { echo no such thing >&2; exit 2; }\n[ \"$1\" = --mute ] && exit 0\necho \"counted & shown\"\n"

# A paragraph of the page of step 05, and what is said of it
REFUSED = [
    ("[A title that is nowhere](forward.hpp)", "no comment “A title that is nowhere”"),
    ("[Nothing follows](forward.hpp)", "no code follows"),
    ("[Add the two](absent.hpp)", "there is no steps/05_x/absent.hpp"),
    ("a [link](absent.hpp) in a text", "there is no steps/05_x/absent.hpp"),
    ("a [link](../07_z/README.md) in a text", "there is no steps/07_z/README.md"),
    ("a [link](../../docs/assignments/a1/staff/answers.md) in a text", "is for teachers alone"),
    ("a [link](../06_y/README.md#the-code) in a text", "no heading with the anchor #the-code"),
    ("![What is seen.](../../docs/figures/two.svg)", "there is no docs/figures/two.svg"),
    ("![](../../docs/figures/one.svg)", "no text alternative"),
    ("[`make diff FROM=05 TO=06`](same.hpp)", "are the same"),
    ("[`make diff FROM=05 TO=09`](forward.hpp)", "wanted is make diff FROM=NN TO=NN"),
    ("[`make diff FROM=05 TO=06 KERNELS=1`](forward.hpp)", "need KERNELS=1"),
    ("[`make diff FROM=06 TO=05`](forward.hpp)", "a file of the step FROM"),
    ("[`build/05_x`](forward.hpp)", "must point to the program's main.cpp"),
    ("[`build/05_x --bad`](main.cpp)", "exit status 2: no such thing"),
    ("[`build/05_x --mute`](main.cpp)", "prints nothing"),
    ("| a | b |\n|---|---|\n| 1 | 2 | 3 |", "this row of the table has 3 cells, the head has 2"),
    ("| a |\n|---|\n| $`|x|`$ |", "a | in a formula"),
    ("the formula $`\\frac{1}{2`$", "unbalanced braces"),
    ("the formula $`a", "never closed"),
    ("```math\n\\left( a\n```", "\\left without \\right"),
    ("```cpp\nint a;", "a fence is opened and never closed"),
]
# What stands in the page's place
SHOWN = [
    ("[Add the two](forward.hpp)", "// Add the two\nint a = 1;\nint b = a + 1;\n~~~~"),
    ("[forward.hpp](forward.hpp)", CODE.rstrip("\n")),
    ("[`make diff FROM=05 TO=06`](forward.hpp)", '<span class="fs-added">+  int b = a + 2;</span>'),
    ("[`build/05_x`](main.cpp)", "counted &amp; shown"),
    ("![What is seen.](../../docs/figures/one.svg)", "<title>One</title>"),
    ("a [link](../06_y/README.md) in a text", '<a href="step06.html">link</a>'),
    ("a [link](#the-code) in a text", '<a href="step05.html#step05-the-code">link</a>'),
    ("a [link](forward.hpp) in a text", '<a href="file_steps_05_x_forward_hpp.html">link</a>'),
    ("$`a_b`$ and `$x`", "\\f$a_b\\f$ and `$x`"),
    ("```math\na \\tag{1}\n```", "\\f[\na \\tag{1}\n\\f]"),
]
HTML = {
    "index.html": '<a id="a"></a><a href="other.html#b">x</a><a href="#a">x</a><img src="x.svg"/>',
    "other.html": '<h1 id="b">x</h1>',
    "x.svg": "",
}
BROKEN = [
    ('<a href="absent.html">x</a>', "there is no absent.html"),
    ('<a href="other.html#c">x</a>', "other.html has no anchor c"),
    ('<a href="#c">x</a>', "index.html has no anchor c"),
    ('<img src="absent.svg">', "there is no absent.svg"),
]


def write(folder, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)


def assembled(paragraph):
    """The faults, and the page of step 05 if there were none."""
    with tempfile.TemporaryDirectory() as root:
        write(root, {**FILES, "steps/05_x/README.md": FILES["steps/05_x/README.md"].replace("@", paragraph), "build/05_x": PROGRAM})
        os.chmod(os.path.join(root, "build/05_x"), 0o755)
        assemble.ROOT = root
        try:
            site = assemble.Site(os.path.join(root, "build"))
            site.write(os.path.join(root, "out"))
        except assemble.Fault as error:
            return [str(error)], ""
        if site.faults:
            assert not os.path.exists(os.path.join(root, "out")), "a page was written in spite of a fault"
            return site.faults, ""
        written = os.listdir(os.path.join(root, "out", "pages"))
        assert not any("staff" in name or "answers" in name for name in written), "a page for teachers alone is on the site"
        names = [name for name in written if name.endswith("_step05.md")]
        with open(os.path.join(root, "out", "pages", names[0]), encoding="utf-8") as file:
            return [], file.read()


def main():
    wrong = []
    for paragraph, message in REFUSED:
        with contextlib.redirect_stderr(io.StringIO()):
            faults, _ = assembled(paragraph)
        if not any(message in fault for fault in faults):
            wrong.append(f"{paragraph!r}: wanted a fault with {message!r}, got {faults}")
        elif not any("steps/05_x/README.md" in fault or "`build/" in fault for fault in faults):
            wrong.append(f"{paragraph!r}: the fault does not name the page: {faults}")
    for paragraph, text in SHOWN:
        faults, page = assembled(paragraph)
        if faults or text not in page:
            wrong.append(f"{paragraph!r}: wanted {text!r}, got {faults or page}")
    for extra, message in [("", None), *BROKEN]:
        with tempfile.TemporaryDirectory() as folder:
            write(folder, {**HTML, "index.html": HTML["index.html"] + extra})
            found = list(make_site.broken_links(folder))
        if (message is None and found) or (message and not any(message in fault for fault in found)):
            wrong.append(f"{extra!r}: wanted {message!r}, got {found}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(REFUSED) + len(SHOWN) + len(BROKEN) + 1} pages, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
