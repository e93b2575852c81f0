#!/usr/bin/env python3
"""The site in a Chromium without a window, opened from its files, without permissions of any kind.

    browser.py SITE BUILD [pages | phone | schemes | search | keyboard | player]

Where no Chromium can be started, the test is skipped: exit status 77.
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITE, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    skip("python3 has no Selenium (python3-selenium)")

# TeX that was not made a formula; what a page says in code is not looked at
RAW_TEX = """
const text = document.querySelector('#doc-content').cloneNode(true);
text.querySelectorAll('code, pre, .fragment, script, math, svg').forEach((part) => part.remove());
return ['\\\\(', '\\\\[', '\\\\]', '\\\\f$', '\\\\f[', '\\\\frac', '\\\\tag', '\\\\mathrm', '$`', '`$', '```', '~~~', '@htmlonly', '@subpage']
  .filter((raw) => text.textContent.includes(raw));
"""
FIGURES_WITHOUT_SIZE = """
return [...document.querySelectorAll('#doc-content img, figure.fs-drawing svg')].filter((picture) => {
  const box = picture.getBoundingClientRect();
  return picture.tagName === 'IMG' ? !picture.naturalWidth : box.width < 40 || box.height < 40;
}).map((picture) => picture.outerHTML.slice(0, 80));
"""
# What reaches beyond the right edge and does not scroll in a box of its own
TOO_WIDE = """
const edge = document.documentElement.clientWidth + 1;
const scrolls = (element) => ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(element).overflowX);
const held = (element) => {
  for (let box = element.parentElement; box && box.id !== 'doc-content'; box = box.parentElement)
    if (scrolls(box) && box.getBoundingClientRect().right <= edge) return true;
  return false;
};
const content = document.querySelector('#doc-content');
const wide = [...content.querySelectorAll('*')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && box.right > edge && !element.closest('.MJX_Assistive_MathML') && !held(element);
});
const page = document.scrollingElement;
return [page.scrollWidth > page.clientWidth || content.scrollWidth > content.clientWidth,
        wide.slice(0, 3).map((element) => `${element.tagName} ${element.textContent.trim().slice(0, 60)}`)];
"""
# The lowest contrast of a text in a figure with what lies behind it
CONTRAST = """
const rgba = (text) => { const part = (text.match(/[\\d.]+/g) || []).map(Number); return part.length < 3 ? null : [part[0], part[1], part[2], part[3] ?? 1]; };
const over = (top, below) => [0, 1, 2].map((c) => top[c] * top[3] + below[c] * (1 - top[3])).concat(1);
const light = (c) => { const v = c.slice(0, 3).map((x) => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
let worst = [99, 'no text'], count = 0;
for (const text of document.querySelectorAll('figure.fs-drawing svg text')) {
  if (!text.textContent.trim()) continue;
  text.scrollIntoView({ block: 'center' });
  const box = text.getBoundingClientRect();
  const below = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  let back = [255, 255, 255, 1];
  for (const element of below.reverse()) {
    if (element.closest('text')) continue;
    const style = getComputedStyle(element);
    let paint = rgba(element instanceof SVGElement && !(element instanceof SVGSVGElement) ? style.fill : style.backgroundColor);
    if (!paint || style.fill === 'none' && element instanceof SVGElement && !(element instanceof SVGSVGElement)) continue;
    paint = [paint[0], paint[1], paint[2], paint[3] * Number(style.opacity) * (element instanceof SVGElement && !(element instanceof SVGSVGElement) ? Number(style.fillOpacity) : 1)];
    back = over(paint, back);
  }
  const style = getComputedStyle(text);
  const ink = rgba(style.fill);
  const seen = over([ink[0], ink[1], ink[2], ink[3] * Number(style.opacity)], back);
  const [a, b] = [light(seen), light(back)].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  ++count;
  if (contrast < worst[0]) worst = [contrast, `${text.textContent} (${style.fill} on ${back.slice(0, 3).map(Math.round)})`];
}
return [count, ...worst];
"""


class Browser:
    """A Chromium, and what it complained of."""

    def __init__(self):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        driver = shutil.which("chromedriver")
        if not chromium or not driver:
            skip("no chromium, or no chromedriver, here (chromium, chromium-driver)")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        try:
            self.chrome = webdriver.Chrome(service=Service(driver), options=options)
        except WebDriverException as error:
            skip(f"Chromium does not start: {str(error).splitlines()[0]}")
        self.chrome.set_script_timeout(60)

    def cdp(self, command, **arguments):
        return self.chrome.execute_cdp_cmd(command, arguments)

    def js(self, script, *arguments):
        return self.chrome.execute_script(script, *arguments)

    def open(self, name):
        """Loads a page and waits until its formulas are there."""
        self.chrome.get("file://" + os.path.join(SITE, name))
        # MathJax comes after the page: every page has it
        self.chrome.execute_async_script("""const done = arguments[0];
            const wait = () => (window.MathJax && MathJax.isReady ? MathJax.Hub.Queue(() => done()) : setTimeout(wait, 20));
            wait();""")

    def complaints(self):
        """What stands in the console, and every request that leaves the machine, since the last call."""
        found = [entry["message"] for entry in self.chrome.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        for entry in self.chrome.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:")):
                    found.append(f"asks for {url}")
        return found

    def wait(self, condition, what):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"waited in vain for {what}")

    def press(self, *keys):
        webdriver.ActionChains(self.chrome).send_keys(*keys).perform()


def all_pages():
    return sorted(name for name in os.listdir(SITE) if name.endswith(".html"))


def written_pages():
    """The pages that are ours: not those of the names in the code, not those that show a file."""
    made = ("class", "struct", "namespace", "dir_", "file_", "annotated", "functions", "hierarchy", "globals", "union", "concept")
    return [name for name in all_pages() if not name.startswith(made)]


def pages(browser, wrong):
    """Every page loads: nothing in the console, no request to the outside, all formulas made, all figures there."""
    formulas = 0
    for name in all_pages():
        browser.open(name)
        for complaint in browser.complaints():
            wrong.append(f"{name}: {complaint}")
        raw = browser.js(RAW_TEX)
        if raw:
            wrong.append(f"{name}: raw text {raw}")
        errors = browser.js("return [...document.querySelectorAll('.MathJax_Error, .merror, [data-mjx-error], mtext[mathcolor=red]')].map((one) => one.textContent)")
        if errors:
            wrong.append(f"{name}: formulas with errors: {errors[:3]}")
        made, wanted = browser.js("return [document.querySelectorAll('.MathJax_SVG').length, document.querySelectorAll('script[type^=\"math/tex\"]').length]")
        if made != wanted:
            wrong.append(f"{name}: {made} of {wanted} formulas are made")
        formulas += made
        for picture in browser.js(FIGURES_WITHOUT_SIZE):
            wrong.append(f"{name}: a figure without a size: {picture}")
        if not browser.js("return document.title && document.querySelector('#doc-content').innerText.trim().length > 20"):
            wrong.append(f"{name}: empty")
    if formulas < 100:
        wrong.append(f"only {formulas} formulas on the whole site")
    return f"{len(all_pages())} pages, {formulas} formulas"


def phone(browser, wrong):
    """At 360 pixels nothing scrolls sideways."""
    browser.cdp("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    for name in written_pages():
        browser.open(name)
        time.sleep(0.1)
        scrolls, wide = browser.js(TOO_WIDE)
        if scrolls or wide:
            wrong.append(f"{name}: wider than 360 pixels: {wide}")
    return f"{len(written_pages())} pages"


def schemes(browser, wrong):
    """In light and dark, text in figures stands out from what is behind it (4.5 : 1), and so does the text of the page."""
    count = 0
    for scheme in ("light", "dark"):
        browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for name in written_pages():
            browser.open(name)
            texts, contrast, text = browser.js(CONTRAST)
            if texts and not contrast >= 4.5:
                wrong.append(f"{name}, {scheme}: the contrast of “{text}” is {contrast:.2f}")
            count += texts
            ink, paper = browser.js("const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]")
            if (scheme == "dark") != (brightness(ink) > brightness(paper)):
                wrong.append(f"{name}: not {scheme}: {ink} on {paper}")
    if not count:
        wrong.append("no figure has a text")
    return f"{count} texts in figures"


def brightness(colour):
    return sum(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


SEARCHES = [
    ("online softmax", "step02.html"), ("grouped", "step08.html"), ("rescale_add_product", "namespaceflashsteps.html"), ("F2-8", None),
    ("SquareTiling", "io_complexity.html"), ("loops change places", "step05.html"), ("误", None),
]


def search(browser, wrong):
    """The search finds text, names and Chinese, by keyboard alone, and opens what it found."""
    for text, page in SEARCHES:
        browser.open("numerics.html")
        browser.press("/")
        field = browser.wait(lambda: browser.js("return document.activeElement.id") == "fs-search" and browser.chrome.switch_to.active_element, "the search field")
        field.send_keys(text)
        try:
            results = browser.wait(lambda: browser.js("return [...document.querySelectorAll('#fs-results a')].map((link) => link.getAttribute('href'))"), f"results for {text}")
        except AssertionError as error:
            wrong.append(str(error))
            continue
        if page and not any(result.startswith(page) for result in results):
            wrong.append(f"“{text}” does not find {page}: {results}")
        if page and results[0].startswith(page):
            field.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
            browser.wait(lambda: page in browser.chrome.current_url, f"{page} to open")
        browser.open("numerics.html")
        browser.press("/")
        browser.chrome.switch_to.active_element.send_keys("qqqzzz")
        browser.wait(lambda: "Nothing" in browser.js("return document.getElementById('fs-results').textContent"), "the message that nothing was found")
    wrong += browser.complaints()
    return f"{len(SEARCHES)} searches"


def keyboard(browser, wrong):
    """Tab reaches the search, the switch between light and dark, the contents and what scrolls; each shows that it has the focus."""
    browser.open("step05.html")
    seen = collections.OrderedDict()
    for _ in range(400):
        browser.press(Keys.TAB)
        name, visible = browser.js("""const at = document.activeElement, style = getComputedStyle(at);
            return [at.id || at.tagName.toLowerCase() + '.' + at.className, style.outlineStyle !== 'none' || style.boxShadow !== 'none'];""")
        if name == "body.":
            break
        seen[name] = visible
    for wanted in ("fs-search", "doxygen-awesome-dark-mode-toggle.", "summary.", "div.fragment", "pre.fs-output", "pre.fs-diff", "table.markdownTable"):
        if not any(name == wanted or name.startswith(wanted) for name in seen):
            wrong.append(f"Tab never reaches {wanted}, only {', '.join(list(seen)[:60])}")
    for name, visible in seen.items():
        if not visible:
            wrong.append(f"{name} has the focus and does not show it")
    before = browser.js("return document.documentElement.className")
    toggle = browser.chrome.find_element(By.TAG_NAME, "doxygen-awesome-dark-mode-toggle")
    browser.js("arguments[0].focus()", toggle)
    browser.press(Keys.ENTER)
    if browser.js("return document.documentElement.className") == before:
        wrong.append("Enter does not switch between light and dark")
    return f"{len(seen)} kinds of element"


def main():
    if not os.path.isfile(os.path.join(SITE, "index.html")):
        print(f"{SITE} has no index.html: make docs", file=sys.stderr)
        return 1
    groups = {function.__name__: function for function in (pages, phone, schemes, search, keyboard)}
    try:
        import player
        groups["player"] = lambda browser, wrong: player.play(browser, wrong, SITE, BUILD)
    except ImportError:
        pass
    wrong = []
    for name in sys.argv[3:] or groups:
        browser = Browser()
        try:
            print(f"{name}: {groups[name](browser, wrong)}")
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
        finally:
            browser.chrome.quit()
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
