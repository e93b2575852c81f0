#!/usr/bin/env python3
"""Makes the site, and fails on everything in it that is missing.

    make_site.py --build BUILD_DIR --out DIR [--doxygen PROGRAM]

Assembles the pages (assemble.py), runs Doxygen, puts MathJax and the tile player beside the pages and checks every link and anchor
of every page. DIR/html/index.html is the main page; it needs no network. Exit status 1 on any fault, each one line on stderr.
"""
import argparse
import html
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MATHJAX = ("/usr/share/javascript/mathjax", "/usr/share/javascript/mathjax2")
AWESOME = "/usr/share/doxygen-awesome-css"
LUNR = "/usr/share/javascript/lunr"
# The part of MathJax that TeX to SVG needs
MATHJAX_PARTS = ("MathJax.js", "extensions", "jax/input/TeX", "jax/element", "jax/output/SVG/config.js", "jax/output/SVG/jax.js", "jax/output/SVG/autoload", "jax/output/SVG/fonts/TeX")

# A row below the name; doxygen-awesome-css puts the switch between light and dark beside the box
SEARCH_BOX = """ </tr>
 <tr id="fs-search-row">
  <td>
   <div id="MSearchBox" role="search">
    <input type="search" id="fs-search" placeholder="Search" aria-label="Search" role="combobox" aria-expanded="false" aria-controls="fs-results" autocomplete="off" spellcheck="false"/>
   </div>
  </td>
"""


def stop(message):
    print(message, file=sys.stderr)
    sys.exit(1)


def command(*arguments, **options):
    result = subprocess.run(arguments, cwd=ROOT, **options)
    if result.returncode != 0:
        sys.exit(1)
    return result


def mathjax_folder():
    for folder in MATHJAX:
        if os.path.isfile(os.path.join(folder, "MathJax.js")):
            return folder
    stop("MathJax 2 was not found in " + " or ".join(MATHJAX) + ": install libjs-mathjax")


def settings(out):
    """Doxygen's settings with the places of this machine filled in."""
    with open(os.path.join(HERE, "Doxyfile"), encoding="utf-8") as file:
        text = file.read()
    places = {"OUT": out, "PAGES": os.path.join(out, "pages"), "AWESOME": AWESOME, "LUNR": LUNR}
    return re.sub(r"@([A-Z]+)@", lambda match: places[match.group(1)], text)


def header(doxygen, out):
    """Doxygen's own header, which is another one in every version, with our scripts."""
    path = os.path.join(out, "header.html")
    command(doxygen, "-w", "html", path, os.path.join(out, "footer.unused"), os.path.join(out, "style.unused"), stdout=subprocess.DEVNULL)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    names = ("doxygen-awesome-darkmode-toggle.js", "doxygen-awesome-fragment-copy-button.js", "site.js", "search.js")
    scripts = "".join(f'<script type="text/javascript" src="$relpath^{name}"></script>\n' for name in names)
    text, heads = re.subn("</head>", scripts + "</head>", text)
    text, languages = re.subn(r"<html ([^>]*?)(?: lang=\"[^\"]*\")?>", r'<html lang="en" \1>', text)
    text, boxes = re.subn(r"(<!--END !PROJECT_NAME-->\n)(?=\s*<!--BEGIN DISABLE_INDEX-->)", lambda match: match.group(1) + SEARCH_BOX, text)
    if (heads, languages, boxes) != (1, 1, 1):
        stop("Doxygen's header is not as expected: docs/site/make_site.py must learn this version")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def beside_the_pages(build, site):
    """What the pages load: MathJax, and the player with its traces."""
    source = mathjax_folder()
    for part in MATHJAX_PARTS:
        target = os.path.join(site, "mathjax", part)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(os.path.join(source, part)):
            shutil.copytree(os.path.join(source, part), target, dirs_exist_ok=True)
        else:
            shutil.copyfile(os.path.join(source, part), target)
    player = os.path.join(ROOT, "docs", "player")
    if os.path.isdir(player):
        os.makedirs(os.path.join(site, "player"), exist_ok=True)
        for name in ("player.js", "player.css"):
            shutil.copyfile(os.path.join(player, name), os.path.join(site, "player", name))
        command(sys.executable, os.path.join(player, "traces.py"), build, os.path.join(site, "player", "traces"))


def sections(text, page):
    """(title, address, text) of the page and of each of its headings, without markup."""
    head = re.compile(r"^#+ (.*?) \{#([\w-]+)\}$", re.M)
    heads = list(head.finditer(text))
    for match, after in zip(heads, [*heads[1:], None]):
        body = text[match.end() : after.start() if after else None]
        body = re.sub(r"@htmlonly.*?@endhtmlonly", lambda raw: " ".join(re.findall(r"(?<=>)[^<]+", raw.group(0))), body, flags=re.S)
        body = re.sub(r"<[^>]*>|\\f[$\[\]]|~~~~+(\{\.\w+\})?|\[TOC\]|@subpage \w+|[`*|]", " ", body)
        address = f"{page}.html" + ("" if match is heads[0] else f"#{match.group(2)}")
        yield re.sub(r"\\f\$|[`*\\]", "", match.group(1)), address, " ".join(html.unescape(body).split())


def write_search_data(out, site):
    """Everything that the search finds: the sections of the pages with their text, and the names in the code."""
    found = []
    for name in sorted(os.listdir(os.path.join(out, "pages"))):
        with open(os.path.join(out, "pages", name), encoding="utf-8") as file:
            text = file.read()
        page = name[4:-3]
        title = None
        for heading, address, body in sections(text, page):
            title = title or heading
            found.append([heading, address, "" if heading == title else title, body])
    for compound in xml.etree.ElementTree.parse(os.path.join(out, "tags.xml")).getroot():
        if compound.get("kind") not in ("class", "struct", "namespace"):
            continue
        whole = compound.findtext("name")
        address = compound.findtext("filename")
        found.append([whole, address if address.endswith(".html") else address + ".html", compound.get("kind"), ""])
        for member in compound.findall("member"):
            file = member.findtext("anchorfile")
            found.append([f"{whole}::{member.findtext('name')}", f"{file}#{member.findtext('anchor')}", member.get("kind"), ""])
    with open(os.path.join(site, "search_data.js"), "w", encoding="utf-8") as file:
        file.write("// title, address, what it is part of, text\nwindow.flashstepsSearch = " + json.dumps(found, ensure_ascii=False, separators=(",", ":")) + ";\n")


class Page(html.parser.HTMLParser):
    """The links of a page, what it loads, and the anchors that it has."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(value for name in ("id", "name") if (value := attributes.get(name)))
        self.links += [value for name in ("href", "src") if (value := attributes.get(name)) is not None]


def broken_links(site):
    """Every link and anchor that leads nowhere, and everything that would be loaded from elsewhere."""
    pages = {name: Page(os.path.join(site, name)) for name in sorted(os.listdir(site)) if name.endswith(".html")}
    for name, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("https", "http", "mailto", "javascript", "data") or link in ("#top", "#nested-classes"):  # the latter is Doxygen's own, in its summaries
                continue
            target = urllib.parse.unquote(parts.path) or name
            if not os.path.exists(os.path.join(site, target)):
                yield f"{name}: the link to {link}: there is no {target}"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: the link to {link}: {target} has no anchor {parts.fragment}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="the folder in which the programs stand")
    parser.add_argument("--out", required=True, help="the folder that gets the site")
    parser.add_argument("--doxygen", default="doxygen", help="the program to call")
    options = parser.parse_args()
    build, out = os.path.abspath(options.build), os.path.abspath(options.out)
    site = os.path.join(out, "html")

    for path, package in ((AWESOME, "doxygen-awesome-css"), (LUNR, "libjs-lunr"), (mathjax_folder(), "libjs-mathjax")):
        if not os.path.isdir(path):
            stop(f"{path} was not found: install {package}")
    if not shutil.which(options.doxygen):
        stop("doxygen was not found: install doxygen")
    shutil.rmtree(site, ignore_errors=True)
    os.makedirs(out, exist_ok=True)
    command(sys.executable, os.path.join(HERE, "assemble.py"), "--build", build, "--out", out)
    header(options.doxygen, out)
    command(options.doxygen, "-", input=settings(out), text=True)
    with open(os.path.join(out, "warnings.txt"), encoding="utf-8") as file:
        faults = [line.rstrip("\n").replace(ROOT + "/", "") for line in file if line.strip()]
    wanted = [name[4:-3] + ".html" for name in sorted(os.listdir(os.path.join(out, "pages")))]
    faults += [f"{name}: Doxygen did not make it" for name in wanted if not os.path.isfile(os.path.join(site, name))]
    beside_the_pages(build, site)
    write_search_data(out, site)
    faults += broken_links(site)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        stop(f"{len(faults)} faults: the site is not complete")
    print(f"{os.path.join(site, 'index.html')}: {sum(name.endswith('.html') for name in os.listdir(site))} pages")


if __name__ == "__main__":
    main()
