"""Tests of the programs: what they say, to a person and in JSON."""

import os
import pty
import re
import threading

from program_helpers import BACKWARD, FORWARD, NAMES, STEPS, Result, check, np, parsed
from programs_costs import hold_costs, hold_default_costs
from programs_numpy import Judge, pooled, seeded_gradient, shipped

ARGUMENTS = ["--q", "--k", "--v", "--layout", "--batch", "--heads", "--kv-heads", "--seq-q", "--seq-k", "--head-dim", "--value-dim", "--seed", "--scale", "--dtype",
             "--device", "--repeat", "--output", "--trace", "--trace-head", "--trace-kernel", "--json", "--no-color", "--help"]


def runs(programs):
    """Without arguments, and --help."""
    for step in STEPS:
        help_text = programs.right(step, "--help").out
        lines = help_text.splitlines()
        check(lines[0].startswith(f"Example: ./build/{NAMES[step]} "), f"{NAMES[step]} --help begins with {lines[0]!r}")
        title = re.search(rf"^Step {step:02}, (.+?): \S.*", help_text, re.M)
        check(title, f"{NAMES[step]} --help has no title")
        taken = ARGUMENTS + ["--trace-tiles"] * (step in (4, 5, 7, 8)) + ["--br", "--bc", "--sram"] * (step >= 4) + ["--do"] * (step >= 6) + ["--causal", "--no-causal"] * (step >= 7)
        named = re.findall(r"^  (--[a-z-]+)", help_text, re.M)
        check(sorted(named) == sorted(taken), f"{NAMES[step]} --help names {sorted(set(named) ^ set(taken))} too many or too few")
        example = programs.right(step, *lines[0].split()[2:])
        check("  equal  " in example.out, f"the example of {NAMES[step]} --help: {example.out!r}")
        check(programs.right(step, "--br", "x", "--help", "--nonsense").out == help_text, f"{NAMES[step]}: --help comes before anything else")

        result = programs.right(step)
        text = result.out
        check(title and text.startswith(f"{step:02} {title[1]}"), f"{NAMES[step]} prints {text[:60]!r} first")
        check(len(re.findall(r"^  equal  ", text, re.M)) >= 2 and "NOT EQUAL" not in text and "IS NOT" not in text, f"{NAMES[step]} does not say equal")
        check("\x1b" not in text, f"{NAMES[step]}: escape sequences without a terminal")
        check(len(re.findall(" = formula$", text, re.M)) == len(re.findall(r"^  traffic ", text, re.M)) > 0, f"{NAMES[step]}: traffic is not the formula's")
        check("definition" in text and (step in (1, 6) or NAMES[step - 1][:2] in text), f"{NAMES[step]} names nothing that it was compared with")
        following = re.search(r"^  next: (.+)$", text, re.M)
        check((following is None) == (step == 8), f"{NAMES[step]}: next {following}")
        if following:
            check(following[1] == programs.path(step + 1) and os.path.exists(following[1]), f"{NAMES[step]}: next is {following[1]}")
    # However it is called: by a name in PATH, through a link, from the root
    path = {"PATH": programs.build + ":" + os.environ.get("PATH", "")}
    by_name = programs.execute([NAMES[5], "--seq-q", 7], env=path)
    check(by_name.status == 0 and f"next: {NAMES[6]}\n" in by_name.out and by_name.err == "", f"called by its name: {by_name.err!r}")
    link = programs.new("link")
    os.symlink(programs.path(5), link)
    check(programs.execute([link], cwd="/").status == 0, "called through a link, from /")
    check(os.listdir(programs.elsewhere) == [], f"left in the working directory: {os.listdir(programs.elsewhere)}")


# The contract, key by key. A tuple is a choice; a type is any value of it; None is null.

INTEGER, NUMBER = int, (int, float)
TRAFFIC = {"reads": INTEGER, "writes": INTEGER, "atomics": INTEGER, "formula": {"reads": INTEGER, "writes": INTEGER, "atomics": INTEGER}}
TILES = {"br": INTEGER, "bc": INTEGER}


def conforms(value, to, where, also=()):
    """Says what does not conform; `also` are keys that may be there besides."""
    if isinstance(to, dict):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        wrong = [f"{where}.{key} is missing" for key in to if key not in value] + [f"{where}.{key} is not in the contract" for key in value if key not in to and key not in also]
        return wrong + [w for key in to if key in value for w in conforms(value[key], to[key], f"{where}.{key}")]
    if isinstance(to, tuple):
        return [] if any(not conforms(value, t, where) for t in to) else [f"{where} is {value!r}"]
    if isinstance(to, type):
        return [] if isinstance(value, to) and not (to is not bool and isinstance(value, bool)) else [f"{where} is {value!r}, not {to.__name__}"]
    return [] if value == to and type(value) is type(to) else [f"{where} is {value!r}, not {to!r}"]


def contract(report, step):
    tiled = step >= 4
    chip = lambda has: {"peak": INTEGER, "formula": INTEGER, "capacity": INTEGER if has else None}
    flops = {"matmul": INTEGER, "other": INTEGER}
    top = {"step": step, "name": NAMES[step], "device": "cpu", "dtype": ("float", "double"), "causal": bool,
           "shape": {key: INTEGER for key in ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "value_dim")}, "tiles": TILES if tiled else None, "equal": bool,
           "checks": list, "traffic": TRAFFIC, "on_chip": chip(tiled), "flops": flops, "extra_bytes": (INTEGER, None), "seconds": {"this": NUMBER, "before": NUMBER if step > 1 else None}, "forms": list}
    wrong = conforms(report, top, "object", also=("scale", "input", "rows_checked", "before", "notes", "unsafe_softmax_in_half", "trace"))
    for i, one in enumerate(report.get("checks", [])):
        shape = {"form": str, "against": str, "of": ("o", "lse", "dq", "dk", "dv"), "max_error": (*NUMBER, None), "budget": (*NUMBER, None), "share": (*NUMBER, None), "equal": bool}
        wrong += conforms(one, shape, f"checks[{i}]")
    for i, form in enumerate(report.get("forms", [])):
        has = form.get("tiles") is not None
        shape = {"form": str, "home": tuple(NAMES.values()), "tiles": TILES if has else None, "traffic": TRAFFIC, "on_chip": chip(has), "flops": flops, "extra_bytes": (INTEGER, None), "seconds": dict}
        wrong += conforms(form, shape, f"forms[{i}]") + conforms(form["seconds"], {"this": NUMBER}, f"forms[{i}].seconds", also=("before",))
    seconds = [report["seconds"]["this"], report["seconds"]["before"] or 0, *(f["seconds"]["this"] for f in report["forms"])]
    wrong += ["negative seconds"] if min(seconds) < 0 else []
    return wrong


def json_report(programs):
    """Every key of the contract, the costs and the results on the shipped input."""
    q, k, v = shipped(0)
    gradient = seeded_gradient(1, *q.shape[:3], v.shape[3])
    forms = {1: ["three sweeps"], 2: [], 3: ["one sweep, normalised"], 4: [], 5: [], 6: ["row tiles outside", "standard", "row order"], 7: ["backward"], 8: ["backward"]}
    plain = Judge(q, k, v)
    judges = {6: Judge(q, k, v, do=gradient), 7: Judge(q, k, v, causal=True, do=gradient), 8: Judge(q, pooled(k, 3), pooled(v, 3), causal=True, do=gradient)}
    for step in STEPS:
        report, out = programs.solve(step)
        if not report:
            continue
        for line in contract(report, step):
            check(False, f"{NAMES[step]} --json: {line}")
        shape = {"batch": 1, "heads": 12, "kv_heads": 4 if step == 8 else 12, "seq_q": 331, "seq_k": 331, "head_dim": 32, "value_dim": 32}
        check(report["shape"] == shape, f"{NAMES[step]}: shape {report['shape']}")
        check(report["causal"] == (step >= 7) and report["dtype"] == "float" and report["equal"] is True, f"{NAMES[step]}: causal, dtype, equal")
        check(report["tiles"] == ({"br": 64, "bc": 64} if step >= 4 else None), f"{NAMES[step]}: tiles {report['tiles']}")
        check(report["on_chip"]["capacity"] == (49152 if step >= 4 else None), f"{NAMES[step]}: capacity {report['on_chip']['capacity']}")
        check([f["form"] for f in report["forms"]] == forms[step], f"{NAMES[step]}: forms {[f['form'] for f in report['forms']]}")
        against = {(c["form"], c["of"]): set() for c in report["checks"]}
        for c in report["checks"]:
            against[c["form"], c["of"]].add(c["against"])
            check(c["equal"] and c["max_error"] <= c["budget"] and abs(c["share"] - c["max_error"] / c["budget"]) < 1e-9, f"{NAMES[step]}: {c}")
        for of in ["o", "lse"] + ["dq", "dk", "dv"] * (step >= 6):
            form = FORWARD[step] if of in ("o", "lse") else BACKWARD[step]
            check("definition" in against.get((form, of), ()), f"{NAMES[step]}: {of} of {form} is not held to the definition")
            before = {1: None, 6: None if of in ("o", "lse") else "standard"}.get(step, NAMES[step - 1] if step > 1 else None)
            before = {7: NAMES[5] if of in ("o", "lse") else NAMES[6]}.get(step, before)
            check(before is None or any(a.startswith(before) for a in against.get((form, of), ())), f"{NAMES[step]}: {of} of {form} is held to {against.get((form, of))}, not to {before}")
        check(report["rows_checked"] == {"checked": 12 * 331, "of": 12 * 331}, f"{NAMES[step]}: {report['rows_checked']}")
        hold_costs(report, NAMES[step])
        hold_default_costs(report)
        judges.get(step, plain).hold(step, report, out, f"{NAMES[step]}, shipped input")
        if step == 1:
            unsafe = report["unsafe_softmax_in_half"]
            check((unsafe["rows"], unsafe["nan"], unsafe["zero"]) == (3972, 419, 72) and abs(unsafe["float_headroom"] / 1.7e5 - 1) < 0.03, f"01: unsafe softmax {unsafe}")
    report = programs.json(7, "--no-causal", "--dtype", "double")
    check(report["causal"] is False and report["dtype"] == "double" and report["shape"]["seq_q"] == 331, "07 --no-causal --dtype double")
    for line in contract(report, 7):
        check(False, f"07 --no-causal --json: {line}")
    report = programs.json(8, "--no-causal")
    check(report["causal"] is False and report["shape"]["kv_heads"] == 4, "08 --no-causal")


def moments(step, s, v, bc):
    """m, l and o of a row over the keys so far, from its scores (masked ones -inf), as the step holds them."""
    keys = len(s)
    ends = list(range(1, keys + 1)) if step <= 3 else [min(e, keys) for e in range(bc, keys + bc, bc)]
    def upto(n):
        m = s[:n].max()
        p = np.exp(s[:n] - m) if m > -np.inf else np.zeros(n)
        return m, p.sum(), p @ v[:n]
    if step == 1:
        m_all, l_all, _ = upto(keys)
        p = np.exp(s - m_all)
        return ([(1, n, upto(n)[0], 0.0, 0 * v[0]) for n in ends] + [(2, n, m_all, p[:n].sum(), 0 * v[0]) for n in ends]
                + [(3, n, m_all, l_all, p[:n] @ v[:n] / l_all) for n in ends])
    if step == 2:
        m_all, l_all, _ = upto(keys)
        p = np.exp(s - m_all)
        return [(1, n, *upto(n)[:2], 0 * v[0]) for n in ends] + [(2, n, m_all, l_all, p[:n] @ v[:n] / l_all) for n in ends]
    return [(1, n, m, l, u / l if step == 4 and l else u) for n in ends for m, l, u in [upto(n)]]


def number(x):
    """A number of a trace, where what JSON cannot say is a word."""
    return {"-inf": -np.inf, "inf": np.inf, "nan": np.nan}[x] if isinstance(x, str) else x


def trace(programs):
    random = np.random.default_rng(7)
    nq, nk, d, dv, bc = 11, 23, 5, 3, 4
    q, k, v = random.normal(size=(2, 3, nq, d)), random.normal(size=(2, 3, nk, d)), random.normal(size=(2, 3, nk, dv))
    files = programs.files(q, k, v)
    short = programs.files(q, k[:, :, :7], v[:, :, :7])                        # fewer keys than queries: causal rows without any
    for step in STEPS:
        tile = ["--br", 3, "--bc", bc] if step >= 4 else []
        cases = [(files, nk, row, head, []) for row, head in ((0, 0), (10, 2), (4, 1))]
        cases += [(short, 7, row, 1, ["--causal"]) for row in (0, 3, 4, 10)] + [(files, nk, 2, 0, ["--causal"])] if step >= 7 else []
        for arguments, keys, row, head, mask in cases:
            what = f"{NAMES[step]} --trace {row} --trace-head {head} {mask}"
            report = programs.json(step, *arguments, *tile, *mask, "--dtype", "double", "--trace", row, *(["--trace-head", head] if head else []))
            followed = report.get("trace", {})
            check(report.get("equal") is True and followed.get("row") == row and followed.get("head") == head, f"{what}: {str(report)[:100]}")
            s = q[0, head, row] @ k[0, head, :keys].T / np.sqrt(d)
            if mask:
                s[max(0, row + keys - nq + 1):] = -np.inf
            right = moments(step, s, v[0, head, :keys], bc)
            if mask:                                                           # tiles beyond the diagonal of the row's tile are not visited
                last = min(nq, row // 3 * 3 + 3) - 1 + keys - nq
                right = [m for m in right if (m[1] - 1) // bc * bc <= last]
            found = followed.get("moments", [])
            if not check([(m["sweep"], m["keys"]) for m in found] == [m[:2] for m in right], f"{what}: entries after {[(m['sweep'], m['keys']) for m in found]}"):
                continue
            for m, (sweep, n, top, total, o) in zip(found, right):
                here = f"{what}, sweep {sweep}, {n} keys"
                check(m["m"] == "-inf" if top == -np.inf else abs(number(m["m"]) - top) < 1e-13, f"{here}: m is {m['m']}, not {top}")
                check(abs(m["l"] - total) < 1e-13 * max(1, total), f"{here}: l is {m['l']}, not {total}")
                check(len(m["o"]) == dv and np.abs(np.array(m["o"]) - o).max() < 1e-13 * max(1, total), f"{here}: o is {m['o']}, not {o}")
                held = step in (1, 2, 4)
                normalised = o if held else o / total if total else 0 * o
                check(np.abs(np.array(m["normalised"]) - normalised).max() < 1e-13, f"{here}: normalised {m['normalised']}, not {normalised}")
        # The same in text: a line an entry
        text = programs.right(step, *files, *tile, "--dtype", "double", "--trace", 4, "--trace-head", 1).out
        rows = re.findall(r"^ +(\d+) +(\d+) +(\S+) +(\S+) ((?: +\S+)+)$", text[text.find("row 4 of head 1"):], re.M)
        right = moments(step, q[0, 1, 4] @ k[0, 1].T / np.sqrt(d), v[0, 1], bc)
        check([(int(a), int(b)) for a, b, *_ in rows] == [m[:2] for m in right], f"{NAMES[step]} --trace 4 in text: {text[-300:]}")
        for (_, _, m, l, o), (_, _, top, total, right_o) in zip(rows, right):
            check(abs(float(m) - top) < 1e-6 and abs(float(l) - total) < 1e-6 * max(1, total), f"{NAMES[step]} --trace in text: m {m}, l {l}, not {top}, {total}")
            check(np.abs(np.array([float(x) for x in o.split()]) - right_o).max() < 1e-4, f"{NAMES[step]} --trace in text: o {o}, not {right_o}")
        check("trace" not in programs.json(step, *files, *tile), f"{NAMES[step]}: a trace that nobody asked for")
    text = programs.right(7, *short, "--br", 3, "--bc", bc, "--causal", "--trace", 4).out
    check(re.search(r"^ +1 +4 +\S+ ", text, re.M) is not None, f"07: the text of a trace under a mask: {text[-300:]}")
    # A NaN in the row is said in words
    spoiled = q.copy()
    spoiled[0, 0, 5, 0] = np.nan
    report = programs.json(5, *programs.files(spoiled, k, v), "--trace", 5)
    check(report["trace"]["moments"][-1]["l"] == "nan", f"05: NaN in a trace: {report['trace']['moments'][-1]}")
    check(programs.json(5, "--seq-q", 3, "--seq-k", 0, "--trace", 1)["trace"]["moments"] == [], "05: a trace without keys is empty")


def terminal(programs):
    """Colour only on a terminal, and nobody is told of progress who does not wait at one."""
    def on_terminal(*arguments, env=None, step=5):
        main, side = pty.openpty()
        parts = []
        def read():
            try:
                while part := os.read(main, 65536):
                    parts.append(part)
            except OSError:                                                    # nobody holds the other side any more
                pass
        reader = threading.Thread(target=read)
        reader.start()
        try:
            result = programs.run(step, "--seq-q", 7, *arguments, env={"TERM": "xterm", **(env or {})}, stdout=side)
        finally:
            os.close(side)
            reader.join()
            os.close(main)
        check(result.status == 0 and result.err == "", f"on a terminal {arguments} {env}: {result.status} {result.err!r}")
        return b"".join(parts).decode().replace("\r\n", "\n")
    for step in STEPS:
        check("\x1b[1m" in on_terminal(step=step) and "\x1b[32m" in on_terminal(step=step), f"{NAMES[step]}: no colour on a terminal")
        plain = on_terminal("--no-color", step=step)
        check("\x1b" not in plain and "  equal  " in plain, f"{NAMES[step]} --no-color: {plain!r}")
    colored, plain = on_terminal(), on_terminal("--no-color")
    times = lambda text: re.sub(r"^  (time|memory) .*", "", text, flags=re.M)
    check(times(re.sub(r"\x1b\[[0-9;]*m", "", colored)) == times(plain), "colour changes more than the colour")
    check("\x1b" not in on_terminal(env={"NO_COLOR": "1"}), "NO_COLOR=1")
    check("\x1b" in on_terminal(env={"NO_COLOR": ""}), "an empty NO_COLOR is none")
    check("\x1b" not in on_terminal(env={"TERM": "dumb"}), "TERM=dumb")
    check(parsed(Result(0, on_terminal("--json"), "", "--json on a terminal")).get("step") == 5, "--json on a terminal")
    for step in STEPS:
        check("\x1b" not in programs.right(step, "--seq-q", 7, env={"TERM": "xterm", "CLICOLOR_FORCE": "1"}).out, f"{NAMES[step]}: colour without a terminal")
