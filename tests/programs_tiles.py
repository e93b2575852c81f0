"""Tests of the programs: --trace-tiles, the file that the tile player shows. What happened adds up to what the program counts and writes."""

import json
import os

from program_helpers import NAMES, STEPS, check, no_repeats, np
from programs_bad import refuse

TRACED = (4, 5, 7, 8)
# (queries, keys, d, dv, Br, Bc): ragged, Br != Bc, more or fewer keys, axes of 0 and 1, larger than the problem
SHAPES = [(9, 9, 4, 4, 3, 3), (7, 10, 3, 2, 3, 4), (10, 7, 3, 5, 4, 3), (33, 17, 5, 3, 8, 4), (17, 33, 2, 6, 4, 8), (1, 9, 4, 4, 1, 3), (9, 1, 4, 4, 2, 1), (1, 1, 1, 1, 1, 1),
          (0, 4, 2, 2, 2, 2), (4, 0, 2, 2, 2, 2), (0, 0, 2, 2, 2, 2), (5, 6, 3, 0, 2, 2), (12, 12, 4, 4, 64, 64), (6, 6, 4, 4, 1, 1), (5, 2, 2, 2, 2, 1), (2, 5, 2, 2, 1, 2),
          (3, 3, 2, 2, 2, 1000)]
FIELDS = {"load": {"event", "tensor", "rows", "elements", "reads", "writes"}, "alive": {"event", "tile", "name", "elements", "on_chip", "peak"},
          "visit": {"event", "i", "j", "rows", "keys", "kind"}, "values": {"event", "i", "j", "rows", "m", "l", "o"}}
FIELDS |= {"store": FIELDS["load"], "fill": FIELDS["load"], "dies": FIELDS["alive"]}
TOP = ["flashsteps", "version", "step", "name", "form", "dtype", "input", "head", "kv_head", "shape", "tiles", "causal", "diagonal", "scale", "capacity", "o_is_normalised", "events", "o",
       "lse", "totals"]


def number(x):
    return {"-inf": -np.inf, "inf": np.inf, "nan": np.nan}[x] if isinstance(x, str) else x


def numbers(x, shape, dtype):
    """A list, or a list of lists, as an array of that shape; an array of nonsense if it has another."""
    flat = np.array([number(y) for row in x for y in (row if isinstance(row, list) else [row])], dtype)
    return flat.reshape(shape) if flat.size == np.prod(shape) else np.full(shape, 12345, dtype)


def traced(programs, step, *arguments):
    """The trace, the JSON and the output files of one run."""
    path = programs.new("trace.json")
    report, out = programs.solve(step, "--trace-tiles", path, *arguments)
    with open(path, encoding="ascii") as file:
        text = file.read()
    def word(name):
        raise ValueError(name)
    trace = json.loads(text, object_pairs_hook=no_repeats, parse_constant=word)
    check(list(trace) == TOP, f"{NAMES[step]} {arguments}: fields {list(trace)}")
    check(os.listdir(programs.elsewhere) == [], f"{NAMES[step]}: left in the working directory: {os.listdir(programs.elsewhere)}")
    return trace, report, out


def closed_forms(step, nq, nk, d, dv, br, bc, diagonal):
    """Reads, writes and peak of one head (4.2, 4.3, 5.2, 7.3), written down again."""
    rows = [(b, min(b + br, nq)) for b in range(0, nq, br)]
    tc = -(-nk // bc)
    if step == 4:
        r, c = min(br, nq), min(bc, nk)
        reads = nk * (d + dv) + tc * nq * (d + dv + 2) + 2 * nq
        return reads, (1 + tc) * nq * (dv + 2) + nq, 2 * r if nk == 0 else c * (d + dv) + r * (d + dv) + r * c + 6 * r
    reads, peak = nq * d, 0
    for begin, end in rows:
        visited = min(nk, -(-min(max(end + diagonal, 0), nk) // bc) * bc)
        r, c = end - begin, min(bc, visited)
        reads += visited * (d + dv)
        peak = max(peak, r * (d + dv + 2) if c == 0 else r * (d + dv) + c * (d + dv) + r * c + 3 * r)
    return reads, nq * (dv + 1), peak


def hold_events(trace, step, what):
    """Every event by itself, and that they follow from one another."""
    nq, nk = trace["shape"]["seq_q"], trace["shape"]["seq_k"]
    d, dv = trace["shape"]["head_dim"], trace["shape"]["value_dim"]
    br, bc = trace["tiles"]["br"], trace["tiles"]["bc"]
    lengths = {"q": (nq, d), "k": (nk, d), "v": (nk, dv), "o": (nq, dv), "m": (nq, 1), "l": (nq, 1), "lse": (nq, 1)}
    reads = writes = on_chip = peak = 0
    moved = {}
    live = {}
    born = 0
    loaded = None
    visited = None
    for n, e in enumerate(trace["events"]):
        here = f"{what}, event {n} {json.dumps(e)[:120]}"
        if not check(set(e) == FIELDS.get(e["event"]), f"{here}: fields"):
            return {}
        if loaded:
            check(e["event"] == "alive" and e["name"] == loaded["tensor"] and e["elements"] == loaded["elements"], f"{here}: what was loaded is not born")
        loaded = None
        if e["event"] in ("load", "store", "fill"):
            length, width = lengths[e["tensor"]]
            begin, end = e["rows"]
            check(0 <= begin <= end <= length and e["elements"] == (end - begin) * width, f"{here}: rows")
            edge = bc if e["tensor"] in ("k", "v") else br
            if e["event"] != "fill":
                check(begin % edge == 0 and end == min(begin + edge, length), f"{here}: not a tile")
            else:
                check(step == 4 and (begin, end) == (0, length) and n < 3, f"{here}: fill")
            reads += e["elements"] if e["event"] == "load" else 0
            writes += e["elements"] if e["event"] != "load" else 0
            check((e["reads"], e["writes"]) == (reads, writes), f"{here}: running totals {reads}, {writes}")
            key = (e["event"], e["tensor"])
            moved[key] = moved.get(key, 0) + 1
            loaded = e if e["event"] == "load" else None
            if e["event"] == "store" and e["tensor"] != "lse":
                check(any(name == e["tensor"] for name, _ in live.values()), f"{here}: it is not on chip")
        elif e["event"] == "alive":
            born += 1
            on_chip += e["elements"]
            peak = max(peak, on_chip)
            check(e["tile"] == born and (e["on_chip"], e["peak"]) == (on_chip, peak), f"{here}: {born}, {on_chip}, {peak}")
            live[e["tile"]] = (e["name"], e["elements"])
            check(e["name"] is not None or step == 4, f"{here}: has no name")
        elif e["event"] == "dies":
            on_chip -= e["elements"]
            check(live.pop(e["tile"], None) == (e["name"], e["elements"]) and (e["on_chip"], e["peak"]) == (on_chip, peak), f"{here}: {on_chip}, {peak}")
        else:
            i, j = e["i"], e["j"]
            check(e["rows"] == [i * br, min((i + 1) * br, nq)], f"{here}: rows")
            if e["event"] == "visit":
                check(e["keys"] == [j * bc, min((j + 1) * bc, nk)], f"{here}: keys")
                if e["kind"] != "skip":                                        # its operands are on chip
                    check({"q", "k", "v", "o", "m", "l"} <= {name for name, _ in live.values()}, f"{here}: on chip are {live}")
                    following = trace["events"][n + 1]
                    check(following["event"] == "alive" and following["name"] == "s" and following["elements"] == (e["rows"][1] - e["rows"][0]) * (e["keys"][1] - e["keys"][0]),
                          f"{here}: S is not born")
                visited = (i, j) if e["kind"] != "skip" else None
            else:
                check((i, j) == visited, f"{here}: values of a tile that was not visited")
                visited = None
    check(on_chip == 0 and not live, f"{what}: {live} stay on chip")
    check(trace["totals"] == {"reads": reads, "writes": writes, "peak": peak}, f"{what}: totals {trace['totals']}, events {reads}, {writes}, {peak}")
    return moved


def hold_order(trace, step, what):
    """Which tiles are visited, in which order, and of which kind."""
    nq, nk, br, bc = trace["shape"]["seq_q"], trace["shape"]["seq_k"], trace["tiles"]["br"], trace["tiles"]["bc"]
    rows, columns = range(-(-nq // br)), range(-(-nk // bc))
    def kind(i, j):
        last = lambda n, edge, length: min((n + 1) * edge, length) - 1
        sees = lambda q, key: not trace["causal"] or key <= q + nk - nq
        if not sees(last(i, br, nq), j * bc):
            return "skip"
        return "full" if sees(i * br, last(j, bc, nk)) else "partial"
    order = [(i, j) for j in columns for i in rows] if step == 4 else [(i, j) for i in rows for j in columns]
    found = [(e["i"], e["j"], e["kind"]) for e in trace["events"] if e["event"] == "visit"]
    check(found == [(i, j, kind(i, j)) for i, j in order], f"{what}: tiles {found}")
    values = [(e["i"], e["j"]) for e in trace["events"] if e["event"] == "values"]
    check(values == [(i, j) for i, j in order if kind(i, j) != "skip"], f"{what}: values after {values}")
    return found


def hold_values(trace, step, out, head, what):
    """m, l and o after the last tile against what the program wrote; O and L are those bits."""
    nq, dv = trace["shape"]["seq_q"], trace["shape"]["value_dim"]
    dtype = np.float32 if trace["dtype"] == "float" else np.float64
    o, lse = out["o"][0, head], out["lse"][0, head]
    final_o, final_lse = numbers(trace["o"], (nq, dv), dtype), numbers(trace["lse"], (nq,), dtype)
    check(final_o.tobytes() == o.tobytes() and final_lse.tobytes() == lse.tobytes(), f"{what}: O and L are not those of the output files")
    m, l, held = np.full(nq, -np.inf), np.zeros(nq), np.zeros((nq, dv))
    for e in trace["events"]:
        if e["event"] != "values":
            continue
        begin, end = e["rows"]
        here = slice(begin, end)
        size = end - begin
        new_m = numbers(e["m"], (size,), dtype)
        check((new_m >= m[here]).all(), f"{what}: m falls after tile {e['i']}, {e['j']}")
        m[here], l[here], held[here] = new_m, numbers(e["l"], (size,), dtype), numbers(e["o"], (size, dv), dtype)
    close = 1e-5 if dtype == np.float32 else 1e-13
    with np.errstate(all="ignore"):
        check(np.array_equal(np.isneginf(lse), l == 0) and np.allclose(np.where(l == 0, 0, m + np.log(l)), np.where(l == 0, 0, lse), rtol=close, atol=close), f"{what}: L is not m + log(l)")
        normalised = held if step == 4 else np.where(l[:, None] == 0, 0, held / l[:, None])
    if step == 4 and trace["shape"]["seq_k"] > 0:
        check(held.astype(dtype).tobytes() == o.tobytes(), f"{what}: O after the last tile is not what was written")
    check(np.allclose(normalised, o, rtol=close, atol=close), f"{what}: o of the last tile, normalised, is not O")


def hold(programs, step, shape, *arguments, head=0, alone=None, causal=False):
    """`alone`: the program's JSON for this head alone, if the run has more heads."""
    nq, nk, d, dv, br, bc = shape
    what = f"{NAMES[step]} {shape} {' '.join(map(str, arguments))}"
    arguments = ["--br", br, "--bc", bc, *arguments, *(["--causal"] if causal else [])]
    if "--q" not in arguments:
        arguments = ["--seq-q", nq, "--seq-k", nk, "--head-dim", d, "--value-dim", dv, *arguments]
    trace, report, out = traced(programs, step, *arguments)
    check((trace["flashsteps"], trace["version"], trace["step"], trace["name"], trace["head"]) == ("tiles", 1, step, NAMES[step], head), f"{what}: {trace['name']}")
    check(trace["shape"] == {"seq_q": nq, "seq_k": nk, "head_dim": d, "value_dim": dv} and trace["tiles"] == {"br": br, "bc": bc}, f"{what}: {trace['shape']} {trace['tiles']}")
    check(trace["causal"] is causal and trace["diagonal"] == (nk - nq if causal else None) and trace["o_is_normalised"] is (step == 4), f"{what}: mask {trace['diagonal']}")
    check(np.float32(trace["scale"]) == np.float32(report["scale"]) and trace["capacity"] == report["on_chip"]["capacity"], f"{what}: scale {trace['scale']}, capacity {trace['capacity']}")
    moved = hold_events(trace, step, what)
    hold_order(trace, step, what)
    hold_values(trace, step, out, head, what)
    one = alone or report
    totals = (trace["totals"]["reads"], trace["totals"]["writes"], trace["totals"]["peak"])
    check(totals == (one["traffic"]["reads"], one["traffic"]["writes"], one["on_chip"]["peak"]), f"{what}: totals {totals}, --json {one['traffic']} {one['on_chip']}")
    check(totals == closed_forms(step, nq, nk, d, dv, br, bc, nk - nq if causal else nk), f"{what}: totals {totals} are not the closed forms")
    tr, tc = -(-nq // br), -(-nk // bc)
    if not causal:                                                             # who is loaded how often
        times = lambda name: moved.get(("load", name), 0)
        check((times("q"), times("k"), times("v")) == ((tr * tc, tc, tc) if step == 4 else (tr, tr * tc, tr * tc)), f"{what}: loads {moved}")
    return trace


def trace_tiles(programs):
    for step in TRACED:
        for n, shape in enumerate(SHAPES):
            hold(programs, step, shape, *(["--dtype", "double"] if n % 3 == 1 else []), *(["--seed", n] if n else []))
            if step >= 7:
                hold(programs, step, shape, *(["--dtype", "double"] if n % 3 == 2 else []), "--seed", 3, causal=True)
        # One head of many, in both layouts, and read from files: the same trace as that head alone
        random = np.random.default_rng(step)
        kv_heads = 2 if step == 8 else 4
        q, k, v = random.normal(size=(2, 4, 7, 3)).astype("<f4"), random.normal(size=(2, kv_heads, 9, 3)).astype("<f4"), random.normal(size=(2, kv_heads, 9, 2)).astype("<f4")
        for head in (0, 3):
            kv = head * kv_heads // 4
            single = [x.copy() for x in (q[:1, head:head + 1], k[:1, kv:kv + 1], v[:1, kv:kv + 1])]
            files = programs.files(*single)
            alone = hold(programs, step, (7, 9, 3, 2, 2, 4), *files)
            report = programs.json(step, "--br", 2, "--bc", 4, *files)
            for layout in ("bhsd", "bshd"):
                order = (lambda x: x) if layout == "bhsd" else (lambda x: x.swapaxes(1, 2))
                path = programs.new("trace.json")
                programs.right(step, *programs.files(*map(order, (q, k, v))), "--layout", layout, "--br", 2, "--bc", 4, "--trace-tiles", path, *(["--trace-head", head] if head else []))
                with open(path, encoding="ascii") as file:
                    one = json.load(file)
                check((one["head"], one["kv_head"]) == (head, kv), f"{NAMES[step]}: head {one['head']} reads {one['kv_head']}")
                check(all(one[key] == alone[key] for key in TOP if key not in ("input", "head", "kv_head")), f"{NAMES[step]}, head {head} in {layout}: not the trace of that head alone")
            check(alone["totals"]["reads"] == report["traffic"]["reads"], f"{NAMES[step]}: {alone['totals']}")
        # What JSON cannot say is a word, and a name with odd characters stays JSON
        spoiled = q[:1, :1].copy()
        spoiled[0, 0, 2, 0] = np.nan
        folder = programs.new('a"\\b')
        os.mkdir(folder)
        path = os.path.join(folder, "q.npy")
        np.save(path, spoiled)
        trace, _, _ = traced(programs, step, "--q", path, "--k", programs.save(k[:1, :1]), "--v", programs.save(v[:1, :1]))
        check(trace["lse"][2] == "nan" and path in trace["input"], f"{NAMES[step]}: NaN is {trace['lse'][2]!r}, input {trace['input']!r}")
        # The rest of the report is what it was, and the file of before is replaced
        path = programs.new("trace.json")
        for _ in range(2):
            with_trace = programs.json(step, "--seq-q", 5, "--trace-tiles", path)
            without = programs.json(step, "--seq-q", 5)
            for report in (with_trace, without):
                for form in (report, report, *report["forms"]):
                    form.pop("seconds", None)
                    form.pop("extra_bytes", None)
            check(with_trace == without, f"{NAMES[step]}: --trace-tiles changes the report")
        first = programs.new("first.json")
        programs.right(step, "--seq-q", 5, "--trace-tiles", first)
        with open(first, "rb") as a, open(path, "rb") as b:
            check(a.read() == b.read(), f"{NAMES[step]}: two traces of the same differ")
        check(not [name for name in os.listdir(programs.folder) if "partial" in name], f"{NAMES[step]}: temporary files stay")
        local = programs.execute([programs.path(step), "--seq-q", 3, "--trace-tiles", "here.json"], cwd=folder)
        check(local.status == 0 and os.path.exists(os.path.join(folder, "here.json")), f"{NAMES[step]}: a name without a folder: {local.err!r}")
        # --trace and --trace-tiles follow the same head
        both = programs.json(step, *programs.files(q, k, v), "--trace", 2, "--trace-head", 3, "--trace-tiles", path, "--bc", 4, "--br", 2)
        with open(path, encoding="ascii") as file:
            mine = [e for e in json.load(file)["events"] if e["event"] == "values" and e["rows"][0] == 2]
        same = [(np.float32(number(x["m"])), np.float32(number(x["l"]))) for x in both["trace"]["moments"]] == [(np.float32(number(e["m"][0])), np.float32(number(e["l"][0]))) for e in mine]
        check(len(mine) == 3 and same, f"{NAMES[step]}: --trace and --trace-tiles differ")
    bad(programs)


def bad(programs):
    for step in STEPS:
        path = programs.new("trace.json")
        small = ["--seq-q", 5, "--head-dim", 4]
        if step not in TRACED:
            refuse(programs, step, *small, "--trace-tiles", path, says=["--trace-tiles", "04, 05, 07 and 08", NAMES[step]])
            refuse(programs, step, *small, "--trace-head", 0, says="--trace-head needs --trace")
            check(not os.path.exists(path), f"{NAMES[step]}: a trace that was refused is there")
            continue
        missing = os.path.join(programs.new("missing"), "trace.json")
        refuse(programs, step, *small, "--trace-tiles", missing, says=[missing, "no folder"])
        check(not os.path.exists(os.path.dirname(missing)), f"{NAMES[step]}: made the folder of a trace")
        refuse(programs, step, *small, "--trace-tiles", programs.folder, says="is a folder")
        refuse(programs, step, *small, "--trace-tiles", programs.folder + "/", says="is a folder")
        refuse(programs, step, *small, "--trace-tiles", "/dev/null", says="not a plain file")
        refuse(programs, step, *small, "--trace-tiles", "", says="--trace-tiles")
        refuse(programs, step, *small, "--trace-tiles", says="--trace-tiles")
        refuse(programs, step, *small, "--trace-tiles", os.path.join(programs.folder, "x" * 300), says="x" * 300)
        refuse(programs, step, *small, "--trace-tiles", "a\nb/c", says="a?b/c")
        occupied = programs.new("file")
        with open(occupied, "w", encoding="ascii") as file:
            file.write("here")
        refuse(programs, step, *small, "--trace-tiles", os.path.join(occupied, "trace.json"), says=occupied)
        for arguments, says in [(["--seq-q", 65, "--seq-k", 65, "--br", 1, "--bc", 1], ["65 x 65 tiles", "4096"]),
                                (["--seq-q", 20000, "--seq-k", 8, "--head-dim", 2, "--value-dim", 60], ["numbers", "1000000"]), ([*small, "--trace-head", 1], "--trace-head 1"), (["--heads", 0, "--seq-q", 5], "--trace-head 0"),
                                (["--batch", 0, "--seq-q", 5], "batch is 0"), ([*small, "--device", "cuda-on-cpu"], "--trace-tiles is for --device cpu"),
                                ([*small, "--trace", 5], "--trace 5"), ([*small, "--trace-tiles", "again"], "--trace-tiles"), ([*small, "--br", 900, "--bc", 900, "--sram", 20], "--sram")]:
            refuse(programs, step, "--trace-tiles", path, *arguments, says=says)
            check(not os.path.exists(path), f"{NAMES[step]} {arguments}: a trace that was refused is there")
        # Just below the limits
        programs.right(step, "--seq-q", 64, "--seq-k", 64, "--head-dim", 2, "--br", 1, "--bc", 1, "--trace-tiles", path)
        with open(path, encoding="ascii") as file:
            check(len([e for e in json.load(file)["events"] if e["event"] == "visit"]) == 4096, f"{NAMES[step]}: 64 x 64 tiles")
