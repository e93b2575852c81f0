"""The tile player by keyboard alone: every control works, and at the end of a trace its counters are what the program prints."""
import json
import os
import subprocess
import tempfile

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

PAGE = "player.html"
BUTTONS = ("player-start", "player-back", "player-play", "player-forward", "player-end")
CONTROLS = ("player-trace", "player-file", *BUTTONS, "player-unit", "player-speed", "player-slider", "player-row", "player-history-box")


class Player:
    def __init__(self, browser):
        self.browser = browser
        browser.open(PAGE)
        browser.wait(lambda: self.total() > 0, "the first trace")

    def text(self, name):
        return self.browser.js("return document.getElementById(arguments[0]).textContent", f"player-{name}").strip()

    def number(self, name):
        return int("".join(sign for sign in self.text(name) if sign.isdigit()))

    def position(self):
        return int(self.text("position").split()[0])

    def total(self):
        return int(self.text("position").split()[-1])

    def focus(self, name):
        element = self.browser.chrome.find_element(By.ID, f"player-{name}")
        self.browser.js("arguments[0].focus()", element)
        return element

    def press(self, name, *keys):
        self.focus(name)
        self.browser.press(*keys)

    def traces(self):
        return self.browser.js("return [...document.querySelectorAll('#player-trace option')].map((option) => option.value)")

    def choose(self, trace):
        """Picks a trace and waits for its script."""
        shown = self.text("title")
        select = Select(self.browser.chrome.find_element(By.ID, "player-trace"))
        if select.first_selected_option.get_attribute("value") == trace:
            return
        select.select_by_value(trace)
        self.browser.wait(lambda: self.text("title") != shown and self.position() == 0, f"the trace {trace}")

    def counters(self):
        return {name: self.number(name) for name in ("reads", "writes", "peak")}


def printed(build, trace):
    """What the program of this trace prints for the same head."""
    shape, tiles = trace["shape"], trace["tiles"]
    command = [os.path.join(build, trace["name"]), "--json", "--heads", "1", "--br", str(tiles["br"]), "--bc", str(tiles["bc"])]
    for name in ("seq_q", "seq_k", "head_dim", "value_dim"):
        command += ["--" + name.replace("_", "-"), str(shape[name])]
    command += ["--causal"] if trace["causal"] else []
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"reads": found["traffic"]["reads"], "writes": found["traffic"]["writes"], "peak": found["on_chip"]["peak"]}


def play(browser, wrong, site, build):
    """At least 40 traces; all end with the program's counts; all controls work from the keyboard; own files, and what is no trace."""
    player = Player(browser)
    names = player.traces()
    if len(names) < 40:
        wrong.append(f"only {len(names)} traces")

    # Tab comes by every control, in the order in which they stand
    reached = []
    player.focus("trace")
    for _ in range(40):
        reached.append(browser.js("return document.activeElement.id"))
        browser.press(Keys.TAB)
    missing = [control for control in CONTROLS if control not in reached]
    if missing:
        wrong.append(f"Tab does not reach {missing}")

    # Step, back, to the end, to the start; arrows on a button; the slider; play and pause
    for key in (Keys.ENTER, Keys.SPACE):
        player.press("start", key)
        player.press("forward", key)
        player.press("forward", key)
        player.press("back", key)
        if player.position() != 1:
            wrong.append(f"start, forward, forward, back by {key!r} is event {player.position()}")
        player.press("end", key)
        if player.position() != player.total():
            wrong.append(f"the end by {key!r} is event {player.position()} of {player.total()}")
    player.press("start", Keys.ENTER)
    player.press("start", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    if player.position() != 1:
        wrong.append(f"arrows on a button: event {player.position()}, not 1")
    player.press("start", Keys.END)
    if player.position() != player.total():
        wrong.append("End on a button does not go to the end")
    player.press("start", Keys.HOME)
    player.press("slider", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    if player.position() != 3:
        wrong.append(f"three arrows on the slider: event {player.position()}")
    said = player.text("event")
    player.press("forward", Keys.ENTER)
    if not said or player.text("event") == said:
        wrong.append("the line that says what happens does not change")
    Select(player.focus("speed")).select_by_value("30")
    player.press("start", Keys.ENTER)
    player.press("play", Keys.ENTER)
    browser.wait(lambda: player.position() > 3, "the trace to play")
    player.press("play", Keys.SPACE)
    stopped = player.position()
    browser.chrome.execute_async_script("setTimeout(arguments[0], 300)")
    if player.position() != stopped:
        wrong.append("the trace goes on after a pause")
    Select(player.focus("unit")).select_by_value("tile")
    player.press("start", Keys.ENTER)
    player.press("forward", Keys.ENTER)
    if not player.position() > 1:
        wrong.append("a step by tile is only one event")
    player.press("end", Keys.ENTER)
    player.press("row", Keys.ARROW_DOWN)
    values = [player.text("m"), player.text("l"), player.text("o")]
    if not all(values) or not player.text("history"):
        wrong.append(f"nothing is known of the row at the end: {values}")

    # At the end of each trace stand its totals, and for a few those that the program prints now
    for number, name in enumerate(names):
        player.choose(name)
        trace = browser.js("return window.flashstepsTraces[arguments[0]]", name)
        player.press("end", Keys.ENTER)
        counters = player.counters()
        if counters["reads"] != sum(event.get("elements", 0) for event in trace["events"] if event["event"] == "load"):
            wrong.append(f"{name}: reads {counters['reads']} at the end are not the sum of the loads")
        if number % 4 == 0 and counters != printed(build, trace):
            wrong.append(f"{name}: the player ends with {counters}, the program prints {printed(build, trace)}")
        player.press("start", Keys.ENTER)
        if player.counters() != {"reads": 0, "writes": 0, "peak": 0}:
            wrong.append(f"{name}: the counters do not begin at 0: {player.counters()}")

    # A file of one's own, and files that are no trace
    with tempfile.TemporaryDirectory() as folder:
        own = os.path.join(folder, "own.json")
        subprocess.run([os.path.join(build, "05_fa2_loop_swap"), "--seq-q", "20", "--seq-k", "12", "--head-dim", "4", "--br", "8", "--bc", "4", "--heads", "1", "--trace-tiles", own], check=True, stdout=subprocess.DEVNULL)
        browser.chrome.find_element(By.ID, "player-file").send_keys(own)
        browser.wait(lambda: "20" in player.text("title") and "12" in player.text("title"), "the reader's own trace")
        player.press("end", Keys.ENTER)
        with open(own, encoding="utf-8") as file:
            trace = json.load(file)
        if player.counters() != printed(build, trace):
            wrong.append(f"an own trace ends with {player.counters()}, the program prints {printed(build, trace)}")
        for name, text in (("broken.json", "{"), ("other.json", '{"step": 5}'), ("list.json", "[1, 2]"), ("empty.json", "")):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            browser.js("document.getElementById('player-message').textContent = ''")
            browser.chrome.find_element(By.ID, "player-file").send_keys(path)
            try:
                browser.wait(lambda: player.text("message"), f"a message on {name}")
            except AssertionError as error:
                wrong.append(str(error))
            if player.total() == 0:
                wrong.append(f"{name} leaves an empty player")
    wrong += [f"player: {complaint}" for complaint in browser.complaints()]

    # On a phone
    browser.cdp("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    for name in names[::8]:
        player.choose(name)
        player.press("end", Keys.ENTER)
        if browser.js("const at = document.querySelector('#doc-content'); return at.scrollWidth > at.clientWidth"):
            wrong.append(f"{name}: the page scrolls sideways at 360 pixels")
    return f"{len(names)} traces"
