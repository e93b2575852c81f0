#!/usr/bin/env python3
"""Makes the pages of the site from the pages that GitHub shows: code, diffs, outputs and figures are put in, taken live.

    assemble.py --build BUILD_DIR --out DIR

Reads README.md, docs/**/*.md and steps/*/README.md; writes DIR/pages/*.md for Doxygen. A paragraph that is one link, and nothing
else, to a file that is no page becomes what it names:

    [Weigh the tile against the new maximum](forward.hpp)            the block of code that this comment opens
    [forward.hpp](forward.hpp)                                       the file
    [`make diff FROM=04 TO=05`](../04_fa1_tiled/forward.hpp)         what changes from this file to that of step 05
    [`build/05_fa2_loop_swap --bc 16`](main.cpp)                     what the program prints, run now
    ![What is seen.](../../docs/figures/loop-order.svg)              the figure

Every fault is one line on stderr, `page:line: what is wrong`; then nothing is written and the exit status is 1.
"""
import argparse
import concurrent.futures
import difflib
import html
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import markdown  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LANGUAGE = {".hpp": "cpp", ".cpp": "cpp", ".cu": "cpp", ".py": "py"}
SECONDS = 60  # more than any command of a page may take


class Fault(Exception):
    """Something in a page that does not resolve."""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def page_id(path):
    """The name of a page's HTML file, without its end."""
    folder, name = os.path.split(path)
    if path == "README.md":
        return "index"
    if path.startswith("steps/"):
        return "step" + os.path.basename(folder)[:2]
    stem = name[:-3].lower()
    if folder == "docs":
        return "pages" if stem == "readme" else stem.replace("-", "_")
    prefix = folder.removeprefix("docs/").replace("/", "_").replace("-", "_")
    return prefix if stem == "readme" else f"{prefix}_{stem}"


def file_id(path):
    """The same for a file that is shown as it is."""
    return "file_" + re.sub(r"[^a-z0-9]+", "_", path.lower()).strip("_")


def tracked_files():
    result = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if result.returncode == 0:
        return [path for path in result.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, path))]
    return [os.path.relpath(os.path.join(folder, name), ROOT) for folder, _, names in os.walk(ROOT) for name in names]


def title_of(line):
    """What a line that is a comment says; None if it is code."""
    return re.sub(r"^\s*//+ ?<? ?", "", line) if line.lstrip().startswith("//") else None


def indent_of(line):
    return len(line) - len(line.lstrip())


def body_range(path, lines, function):
    """The first line of the body of a function, and the one that closes it."""
    name = re.compile(rf"(?<![\w.:>]){re.escape(function)}\(")
    found = []
    for at, line in enumerate(lines):
        if not name.search(line) or title_of(line) is not None or not re.match(r"\s*(template|inline|static|constexpr|__|void|auto|[A-Z]\w*\b)", line):
            continue
        opens = next((number for number in range(at, len(lines)) if re.search(r"[{;]\s*(//.*)?$", lines[number])), None)
        if opens is None or not re.search(r"\{\s*(//.*)?$", lines[opens]):
            continue
        ends = next((number for number in range(opens + 1, len(lines)) if lines[number].startswith(" " * indent_of(line) + "}")), None)
        if ends is not None:
            found.append((opens + 1, ends))
    if len(found) != 1:
        raise Fault(f"{path} has {'no' if not found else str(len(found))} function “{function}”")
    return found[0]


def block_range(path, lines, title, function=None):
    """The lines, by number, from the comment that is this title to before the next empty line, or the end of its scope."""
    begin, end = body_range(path, lines, function) if function else (0, len(lines))
    at = [number for number in range(begin, end) if title_of(lines[number]) == title]
    if len(at) != 1:
        where = f"{path}, function {function}," if function else path
        raise Fault(f"{where} has {'no' if not at else str(len(at))} comment “{title}”: the text of the link must be the one line that opens a block")
    indent, last = indent_of(lines[at[0]]), at[0]
    for line in lines[at[0] :]:
        pragma = line.startswith("#")  # stands at the margin in the middle of a block
        if not line.strip() or indent_of(line) < indent and not pragma:
            break
        last += 1
    if all(title_of(line) is not None for line in lines[at[0] : last]):
        raise Fault(f"{path}: no code follows the comment “{title}”")
    return at[0], last


def block_of(path, title, function=None):
    """The block of code that this comment opens, without its indent; the comment may be looked for in one function alone."""
    lines = read(path).split("\n")
    begin, end = block_range(path, lines, title, function)
    indent = indent_of(lines[begin])
    return [line if line.startswith("#") else line[indent:] for line in lines[begin:end]]


def is_page(path):
    """Is this Markdown file a page of the site? What is for teachers alone is none: it lies in a folder staff/."""
    return path == "README.md" or bool(re.match(r"(docs/(?!(.*/)?staff/).*\.md|steps/\d\d_[^/]*/README\.md)$", path))


class Site:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.all_files = tracked_files()
        self.pages = sorted(path for path in self.all_files if is_page(path))
        self.anchors = {path: self.anchors_of(path) for path in self.pages}
        self.files, self.outputs, self.faults = set(), {}, []
        ids = [page_id(path) for path in self.pages]
        assert len(ids) == len(set(ids)), "two pages have the same name"

    def anchors_of(self, path):
        """GitHub's anchor of each heading of a page, and the one on the site, which no other page has."""
        try:
            headings = markdown.headings(read(path))
        except ValueError as error:
            raise Fault(f"{path}: {error}") from error
        return {anchor: f"{page_id(path)}-{anchor if anchor.isascii() else f's{index}'}" for index, (_, _, anchor) in enumerate(headings)}

    # Links

    def resolve(self, page, target):
        """The address on the site of what a page links to."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if "staff" in full.split("/"):
            raise Fault(f"the link to {target}: {full} is for teachers alone, and not on the site")
        if full in self.anchors:
            if anchor and anchor not in self.anchors[full]:
                raise Fault(f"the link to {target}: {full} has no heading with the anchor #{anchor}")
            return f"{page_id(full)}.html" + (f"#{self.anchors[full][anchor]}" if anchor else "")
        if full in self.all_files or any(name.startswith(full + "/") for name in self.all_files):
            if anchor:
                raise Fault(f"the link to {target}: #{anchor} is an anchor in a file that has none")
            self.files.add(full)
            return f"{file_id(full)}.html"
        raise Fault(f"the link to {target}: there is no {full} in the project")

    def path_of(self, page, target):
        full = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if full not in self.all_files:
            raise Fault(f"the live part {target}: there is no {full} in the project")
        return full

    # Live parts

    def live(self, page, is_image, text, target):
        """What stands in the place of a paragraph that is one link; None if it is an ordinary one."""
        if is_image:
            return self.figure(page, text, target)
        if re.match(r"[a-z]+:", target) or target.partition("#")[0].endswith(".md"):
            return None
        path = self.path_of(page, target)
        command = re.fullmatch(r"`([^`]+)`", text)
        if command and command.group(1).startswith("make diff "):
            return self.diff(path, command.group(1))
        if command and command.group(1).startswith("build/"):
            return self.output(path, command.group(1))
        if path.endswith(".html"):
            return f"@htmlonly[block]\n{read(path)}\n@endhtmlonly"
        self.files.add(path)
        if text == os.path.basename(path):
            return self.code(path, read(path).rstrip("\n").split("\n"))
        return self.code(path, block_of(path, text))

    def code(self, path, lines):
        language = LANGUAGE.get(os.path.splitext(path)[1], "txt")
        caption = f'<p class="fs-source"><a href="{file_id(path)}.html">{html.escape(path)}</a></p>'
        return f"@htmlonly[block]\n{caption}\n@endhtmlonly\n\n~~~~{{.{language}}}\n" + "\n".join(lines) + "\n~~~~"

    def figure(self, page, alternative, target):
        path = self.path_of(page, target)
        if not alternative.strip():
            raise Fault(f"the figure {target} has no text alternative")
        drawing = re.sub(r"^\s*<\?xml.*?\?>\s*", "", read(path), flags=re.S)
        return f'@htmlonly[block]\n<figure class="fs-drawing">\n{drawing}\n</figure>\n@endhtmlonly'

    def diff(self, path, command):
        match = re.fullmatch(r"make diff FROM=(\d\d) TO=(\d\d)( KERNELS=1)?", command)
        steps = {name[6:8]: name.split("/")[1] for name in self.all_files if re.match(r"steps/\d\d_", name)}
        if not match or match.group(1) not in steps or match.group(2) not in steps or not path.startswith(f"steps/{steps[match.group(1)]}/"):
            raise Fault(f"`{command}` and {path}: wanted is make diff FROM=NN TO=NN and a file of the step FROM")
        if bool(match.group(3)) != path.endswith(".cu"):
            raise Fault(f"`{command}` and {path}: kernels, and only kernels, need KERNELS=1")
        other = path.replace(steps[match.group(1)], steps[match.group(2)])
        if other not in self.all_files:
            raise Fault(f"`{command}`: there is no {other}")
        lines = list(difflib.unified_diff(read(path).split("\n"), read(other).split("\n"), path, other, n=3, lineterm=""))
        if not lines:
            raise Fault(f"`{command}`: {path} and {other} are the same")
        kinds = {"+": "fs-added", "-": "fs-removed", "@": "fs-place"}
        rows = [f'<span class="{kinds.get(line[:1], "fs-same")}">{html.escape(line, quote=False) or " "}</span>' for line in lines]
        return self.printed(command, "".join(rows), "fs-diff")

    def output(self, path, command):
        program = shlex.split(command)[0].removeprefix("build/")
        if path != "steps/ladder.cpp" and path != f"steps/{program}/main.cpp":
            raise Fault(f"`{command}`: the link must point to the program's main.cpp, not to {path}")
        self.outputs.setdefault(command, None)
        return ("output", command)

    def run(self, command):
        """Runs a command of a page; its output, as a person sees it."""
        program, *arguments = shlex.split(command)
        environment = {**os.environ, "NO_COLOR": "1"}
        try:
            path = os.path.join(self.build, program.removeprefix("build/"))
            result = subprocess.run([program, *arguments], executable=path, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Fault(f"`{command}`: {error}") from error
        if result.returncode != 0:
            raise Fault(f"`{command}`: exit status {result.returncode}: {result.stderr.strip()}")
        if not result.stdout.strip():
            raise Fault(f"`{command}`: prints nothing")
        return self.printed(command, html.escape(result.stdout.rstrip(), quote=False), "fs-output")

    def printed(self, command, text, kind):
        return f'@htmlonly[block]\n<p class="fs-source"><code>{html.escape(command)}</code></p>\n<pre class="{kind}" tabindex="0">{text}</pre>\n@endhtmlonly'

    # Pages

    def assemble(self, page):
        """The pieces of a page: text for Doxygen, or ("output", command)."""
        pieces, anchors, first = [], iter(self.anchors[page].items()), True
        for block in markdown.blocks(read(page)):
            try:
                for line, fault in markdown.table_faults(block) + markdown.formula_faults(block):
                    self.faults.append(f"{page}:{line}: {fault}")
                pieces.append(self.piece(page, block, anchors, first))
            except Fault as fault:
                self.faults.append(f"{page}:{block.line}: {fault}")
            first = first and block.kind != "heading"
        return pieces

    def piece(self, page, block, anchors, first):
        if block.kind == "heading":
            marks, title = markdown.HEADING.match(block.text).groups()
            _, anchor = next(anchors)
            title = markdown.inline(title, lambda target: self.resolve(page, target))
            if first:
                return f"# {title} {{#{'mainpage' if page == 'README.md' else page_id(page)}}}\n\n[TOC]"
            return f"{marks} {title} {{#{anchor}}}"
        if block.kind == "fence":
            if block.info == "math":
                return "\\f[\n" + block.text + "\n\\f]"
            language = {"cpp": "cpp", "cuda": "cpp", "python": "py", "cmake": "txt"}.get(block.info, "txt")
            indent = block.indent
            return f"{indent}~~~~{{.{language}}}\n" + "\n".join(indent + line for line in block.lines) + f"\n{indent}~~~~"
        lone = markdown.only_link(block)
        if lone:
            live = self.live(page, *lone)
            if live is not None:
                return live
        return markdown.inline(block.text, lambda target: self.resolve(page, target))

    def show_file(self, path):
        """The page of a file, or of a folder, that some page links to."""
        inside = [name for name in self.all_files if os.path.dirname(name) == path]
        title = f"# {path} {{#{file_id(path)}}}\n\n"
        if inside:
            self.files.update(inside)
            return title + "\n".join(f'* <a href="{file_id(name) if name not in self.anchors else page_id(name)}.html">{os.path.basename(name)}</a>' for name in inside) + "\n"
        language = LANGUAGE.get(os.path.splitext(path)[1], "txt")
        return title + f"~~~~~~~~{{.{language}}}\n" + read(path).rstrip("\n") + "\n~~~~~~~~\n"

    def order(self):
        """The pages in the order in which docs/README.md links to them, the main page first, the others behind."""
        linked = [os.path.normpath(os.path.join("docs", match.group(3).partition("#")[0])) for match in markdown.LINK.finditer(read("docs/README.md"))]
        wanted = ["README.md", "docs/README.md", *linked]
        missing = [path for path in self.pages if path not in wanted]
        self.faults += [f"docs/README.md: {path} is a page, and this list does not link to it" for path in missing if not path.startswith("docs/zh/")]
        missing.sort(key=lambda path: (os.path.dirname(path), not path.endswith("README.md"), path))
        return list(dict.fromkeys([path for path in wanted if path in self.pages] + missing))

    def write(self, out):
        order = self.order()
        pieces = {page: self.assemble(page) for page in order}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            futures = {command: pool.submit(self.run, command) for command in self.outputs}
        for command, future in futures.items():
            try:
                self.outputs[command] = future.result()
            except Fault as fault:
                self.faults.append(str(fault))
        if self.faults:
            return
        folder = os.path.join(out, "pages")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for number, page in enumerate(order):
            body = "\n\n".join(self.outputs[piece[1]] if isinstance(piece, tuple) else piece for piece in pieces[page])
            if page.startswith("docs/zh/"):
                head, body = body.split("\n\n", 1)
                body = f'{head}\n\n@htmlonly[block]\n<div lang="zh-Hans">\n@endhtmlonly\n\n{body}\n\n@htmlonly[block]\n</div>\n@endhtmlonly'
            if page == "README.md":
                body += "\n\n## All pages {#index-all-pages}\n\n" + "\n".join(f"* @subpage {page_id(path)}" for path in order[1:]) + "\n* @subpage files\n"
            self.save(folder, f"{number:03}_{page_id(page)}", body)
        shown = set()
        while shown != self.files:  # showing a folder adds its files
            for path in sorted(self.files - shown):
                self.save(folder, f"900_{file_id(path)}", self.show_file(path))
                shown.add(path)
        self.save(folder, "800_files", "# Files that the pages link to {#files}\n\n" + "\n".join(f"* @subpage {file_id(path)}" for path in sorted(shown)))

    def save(self, folder, name, body):
        with open(os.path.join(folder, name + ".md"), "w", encoding="utf-8") as file:
            file.write(body.rstrip("\n") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="the folder in which the programs stand")
    parser.add_argument("--out", required=True, help="the folder that gets the pages")
    options = parser.parse_args()
    try:
        site = Site(options.build)
        site.write(options.out)
        faults = site.faults
    except Fault as fault:
        faults = [str(fault)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
