"""Tests of the programs: what they cost. Traffic is counted here by walking through the loops of the published algorithms, one LOAD and STORE at a time."""

from program_helpers import NAMES, STEPS, check


def tiles(n, size):
    return [(begin, min(begin + size, n)) for begin in range(0, n, size)]


class Loops:
    """Reads, writes and atomic adds of one head, or of one group of `group` query heads. Row i sees the keys j <= i + delta."""

    def __init__(self, nq, nk, d, dv, br=1, bc=1, causal=False, group=1):
        self.nq, self.nk, self.d, self.dv, self.br, self.bc, self.group = nq, nk, d, dv, br, bc, group
        self.delta = nk - nq if causal else nk

    def sees(self, rows, keys):
        return keys[0] <= rows[1] - 1 + self.delta

    def standard(self):
        """S = Q K^T; P = softmax(S); O = P V (FlashAttention, Algorithm 0), and L."""
        nq, nk, d, dv = self.nq, self.nk, self.d, self.dv
        return (nq * d + nk * d) + nq * nk + (nq * nk + nk * dv), nq * nk + (nq * nk + nq) + nq * dv, 0

    def sweeps(self, count):
        """One row at a time; the keys are swept `count` times, the values in the last sweep."""
        reads = writes = 0
        for _ in range(self.nq):
            reads += self.d + count * self.nk * self.d + self.nk * self.dv
            writes += self.dv + 1
        return reads, writes, 0

    def columns_outside(self):
        """FlashAttention-1: O, l and m go to slow memory and come back; at the end l and m become L."""
        reads, writes = 0, self.nq * (self.dv + 2)
        for c0, c1 in tiles(self.nk, self.bc):
            reads += (c1 - c0) * (self.d + self.dv)
            for r0, r1 in tiles(self.nq, self.br):
                reads += (r1 - r0) * (self.d + self.dv + 2)
                writes += (r1 - r0) * (self.dv + 2)
        return reads + 2 * self.nq, writes + self.nq, 0

    def rows_outside(self):
        """FlashAttention-2; tiles beyond the diagonal are skipped."""
        reads = writes = 0
        for rows in tiles(self.nq, self.br):
            reads += (rows[1] - rows[0]) * self.d
            writes += (rows[1] - rows[0]) * (self.dv + 1)
            for keys in tiles(self.nk, self.bc):
                if self.sees(rows, keys):
                    reads += (keys[1] - keys[0]) * (self.d + self.dv)
        return reads, writes, 0

    def backward_columns(self):
        """FlashAttention-2, backward: D first, then column tiles that add to dQ; a group shares its K and V."""
        rows_of_all = self.group * self.nq
        reads, writes, atomics = 2 * rows_of_all * self.dv, rows_of_all * (1 + self.d), 0
        for keys in tiles(self.nk, self.bc):
            reads += (keys[1] - keys[0]) * (self.d + self.dv)
            writes += (keys[1] - keys[0]) * (self.d + self.dv)
            for rows in self.group * tiles(self.nq, self.br):
                if self.sees(rows, keys):
                    reads += (rows[1] - rows[0]) * (self.d + self.dv + 2)
                    atomics += (rows[1] - rows[0]) * self.d
        return reads, writes, atomics

    def backward_standard(self):
        """FlashAttention, Algorithm 3."""
        nq, nk, d, dv = self.nq, self.nk, self.d, self.dv
        reads = (nq * nk + nq * dv) + (nq * dv + nk * dv) + 2 * nq * nk + (nq * nk + nk * d) + (nq * nk + nq * d)
        return reads, nk * dv + nq * nk + nq * nk + nq * d + nk * d, 0

    def backward_rows(self):
        """Row tiles outside: dK and dV are added to."""
        reads, writes, atomics = 0, self.nk * (self.d + self.dv), 0
        for rows in tiles(self.nq, self.br):
            reads += (rows[1] - rows[0]) * (self.d + 2 * self.dv + 1)
            writes += (rows[1] - rows[0]) * self.d
            for keys in tiles(self.nk, self.bc):
                reads += (keys[1] - keys[0]) * (self.d + self.dv)
                atomics += (keys[1] - keys[0]) * (self.d + self.dv)
        return reads, writes, atomics

    def pairs(self):
        """Pairs of a query and a key in the tiles that are visited."""
        return sum((rows[1] - rows[0]) * (keys[1] - keys[0]) for rows in tiles(self.nq, self.br) for keys in tiles(self.nk, self.bc) if self.sees(rows, keys))

    # Footprints by the formulas of the specification (4.2, 5.2, 6.5), for tiles no larger than the matrices
    def footprint(self, form):
        d, dv, br, bc = self.d, self.dv, min(self.br, self.nq), min(self.bc, self.nk)
        if form == "columns outside":
            return bc * (d + dv) + br * (d + dv) + br * bc + 6 * br
        if form == "rows outside":
            return bc * (d + dv) + br * (d + dv) + br * bc + 3 * br
        return max(2 * br * dv + br, bc * (3 * d + 2 * dv) + br * (2 * d + dv + 2) + 2 * br * bc)


def expected(step, form, nq, nk, d, dv, br, bc, causal, heads, kv_heads):
    """Traffic, footprint (None where the specification has no formula) and matrix FLOPs of all heads of one batch entry."""
    backward = form in ("column order", "backward", "row order") or (form == "standard" and step == 6)
    grouped = step == 8 and backward
    x = Loops(nq, nk, d, dv, br or nq, bc or nk, causal and step >= 7, heads // kv_heads if grouped else 1)
    count = kv_heads if grouped else heads
    flops = 2 * x.pairs() * (d + dv)
    if form == "standard":
        traffic, peak, flops = (x.backward_standard(), None, 2 * flops) if backward else (x.standard(), None, flops)
    elif form.endswith("sweeps") or form.startswith("one sweep"):
        sweeps = {"three sweeps": 3, "two sweeps": 2}.get(form, 1)
        traffic, peak, flops = x.sweeps(sweeps), None, 2 * x.pairs() * (sweeps * d + dv)
    elif form == "column tiles outside":
        traffic, peak = x.columns_outside(), x.footprint("columns outside")
    elif form == "row order":
        traffic, peak, flops = x.backward_rows(), None, 2 * x.pairs() * (3 * d + 2 * dv)
    elif backward:
        traffic, peak, flops = x.backward_columns(), x.footprint("backward"), 2 * x.pairs() * (3 * d + 2 * dv) * x.group
    else:
        traffic, peak = x.rows_outside(), x.footprint("rows outside")
    return tuple(count * t for t in traffic), peak, count * flops


def counts(traffic):
    return traffic["reads"], traffic["writes"], traffic["atomics"]


def forms_of(report):
    """Every form with its costs; the top-level objects are those of the main form."""
    main = {1: "standard", 2: "two sweeps", 3: "one sweep", 4: "column tiles outside", 5: "row tiles outside", 6: "column order", 7: "forward", 8: "forward"}
    return [{"form": main[report["step"]], **{k: report[k] for k in ("tiles", "traffic", "on_chip", "flops")}}, *report["forms"]]


def hold_costs(report, what):
    """Every form's traffic, footprint and matrix FLOPs."""
    s = report["shape"]
    for form in forms_of(report):
        tile = form["tiles"] or {"br": 1, "bc": 1}
        traffic, peak, flops = expected(report["step"], form["form"], s["seq_q"], s["seq_k"], s["head_dim"], s["value_dim"], tile["br"], tile["bc"], report["causal"],
                                        s["heads"], s["kv_heads"])
        traffic = tuple(s["batch"] * t for t in traffic)
        name = f"{what}, {form['form']}"
        check(counts(form["traffic"]) == traffic, f"{name}: traffic {counts(form['traffic'])}, counted here {traffic}")
        check(counts(form["traffic"]["formula"]) == traffic, f"{name}: formula {counts(form['traffic']['formula'])}, counted here {traffic}")
        check(form["on_chip"]["peak"] == form["on_chip"]["formula"], f"{name}: footprint {form['on_chip']}")
        check(form["flops"]["matmul"] == s["batch"] * flops, f"{name}: {form['flops']['matmul']} FLOPs in products, counted here {s['batch'] * flops}")
        if peak is not None and s["seq_q"] and s["seq_k"] and (not report["causal"] or s["seq_q"] == s["seq_k"]):
            check(form["on_chip"]["peak"] == peak, f"{name}: {form['on_chip']['peak']} elements on chip, by the specification {peak}")


def hold_default_costs(report):
    """The costs on the shipped input, by the closed forms of the specification with N = 331, d = 32, tiles of 64 x 64."""
    step, n, d, t, heads, groups = report["step"], 331, 32, 6, 12, 4
    visited = sum(min(n, i * 64) for i in range(1, t + 1))                     # keys, causal (7.3)
    below = sum(n - j * 64 for j in range(t))                                  # queries at or below the column tile
    forward = {1: (2 * n * d + 2 * n * n + n * d, 2 * n * n + n * d + n), 2: (n * d + n * n * 3 * d, n * d + n), 3: (n * d + n * n * 2 * d, n * d + n),
               4: (2 * n * d + t * n * (2 * d + 2) + 2 * n, n * (d + 2) + t * n * (d + 2) + n), 5: (n * d + t * n * 2 * d, n * d + n),
               7: (n * d + 2 * d * visited, n * d + n), 8: (n * d + 2 * d * visited, n * d + n)}
    main = {6: (2 * n * d + 2 * n * d + t * n * (2 * d + 2), n + n * d + 2 * n * d)}.get(step) or forward[step]
    check(counts(report["traffic"])[:2] == tuple(heads * x for x in main), f"{NAMES[step]}: traffic {report['traffic']} on the shipped input, {main} times 12 by closed form")
    others = {form["form"]: counts(form["traffic"]) for form in report["forms"]}
    closed = {1: {"three sweeps": (n * d + n * n * 4 * d, n * d + n, 0)}, 3: {"one sweep, normalised": (*forward[3], 0)},
              6: {"row tiles outside": (*forward[5], 0), "standard": (5 * n * n + 5 * n * d, 2 * n * n + 3 * n * d, 0),
                  "row order": (3 * n * d + n + t * n * 2 * d, 3 * n * d, t * n * 2 * d)},
              7: {"backward": (2 * n * d + 2 * n * d + below * (2 * d + 2), n + 3 * n * d, below * d)}}.get(step, {})
    closed = {form: tuple(heads * x for x in c) for form, c in closed.items()}
    if step == 8:                                                              # a group of 3 reads K and V and writes dK and dV once
        closed = {"backward": (heads * (2 * n * d + below * (2 * d + 2)) + groups * 2 * n * d, heads * (n + n * d) + groups * 2 * n * d, heads * below * d)}
    check(others == closed, f"{NAMES[step]}: other forms {others}, by closed form {closed}")
    if step == 6:
        check(report["traffic"]["atomics"] == heads * t * n * d, "06: atomic adds of the column order")
    standard = heads * sum(forward[1])
    ratio = {1: ("three sweeps", 29.2), 2: (None, 21.9), 3: (None, 14.6), 4: (None, 0.482), 5: (None, 0.309)}.get(step)
    if ratio:
        moved = sum(others[ratio[0]][:2] if ratio[0] else counts(report["traffic"])[:2]) / standard
        check(abs(moved - ratio[1]) < 0.0051 * ratio[1], f"{NAMES[step]}: {moved} times the traffic of standard attention, not {ratio[1]}")


def costs(programs):
    """Ragged tiles of every kind, queries more or fewer than keys, and the numbers that the specification prints (appendix, vector 2)."""
    small = ["--seq-q", 5, "--seq-k", 7, "--head-dim", 3, "--value-dim", 2]
    printed = {1: {"standard": (120, 80 + 5, 0)}, 4: {"column tiles outside": (140 + 10, 80 + 5, 0)}, 5: {"row tiles outside": (120, 15, 0)},
               6: {"standard": (245, 120, 0), "column order": (160, 55, 45), "row order": (145, 50, 105)}, 7: {"forward": (120, 15, 0), "backward": (160, 55, 45)},
               8: {"forward": (120, 15, 0), "backward": (160, 55, 45)}}
    for step in STEPS:
        tile = ["--br", 2, "--bc", 3] if step >= 4 else []
        report = programs.json(step, *small, *tile)
        hold_costs(report, f"{NAMES[step]}, the specification's example")
        found = {form["form"]: counts(form["traffic"]) for form in forms_of(report)}
        for form, numbers in printed.get(step, {}).items():
            check(found.get(form) == numbers, f"{NAMES[step]}, {form}: {found.get(form)} on the specification's example, which prints {numbers}")
        if step == 4:
            check(report["before"]["name"] == NAMES[3] and counts(report["before"]["traffic"])[:2] == (5 * 3 + 5 * 7 * 5, 15), f"04 beside 03: {report['before']}")
        shapes = [(2, 3, 13, 29, 5, 3), (1, 2, 31, 7, 3, 11), (3, 1, 1, 1, 1, 1)]
        for batch, heads, nq, nk, d, dv in shapes:
            shape = ["--batch", batch, "--heads", heads, "--seq-q", nq, "--seq-k", nk, "--head-dim", d, "--value-dim", dv]
            for br, bc in ((1, 1), (3, 5), (7, 2), (64, 64)) if step >= 4 else ((None, None),):
                tile = ["--br", br, "--bc", bc] if br else []
                for more in ([], ["--causal"])[:1 + (step >= 7)]:
                    report = programs.json(step, *shape, *tile, *more)
                    hold_costs(report, f"{NAMES[step]} {shape} {tile} {more}")
                    check(report["tiles"] == ({"br": br, "bc": bc} if br else None), f"{NAMES[step]}: tiles {report['tiles']}, typed {br} x {bc}")
        if step == 8:
            for heads, kv_heads in ((6, 2), (6, 1), (5, 5), (4, 2)):
                report = programs.json(8, "--batch", 2, "--heads", heads, "--kv-heads", kv_heads, "--seq-q", 11, "--seq-k", 17, "--head-dim", 3, "--value-dim", 5,
                                       "--br", 4, "--bc", 3, "--causal")
                hold_costs(report, f"08, {heads} heads on {kv_heads}")
    # The memory that a run takes: S and P, 8 MiB here, where they are stored; nothing of length N^2 from step 05 on
    stored, streamed = (programs.json(step, "--heads", 1, "--seq-q", 1024, "--seq-k", 1024, "--head-dim", 32)["extra_bytes"] for step in (1, 5))
    if stored is not None:
        check(stored >= 2 * 1024 * 1024 * 4, f"01 stores S and P, and took {stored} bytes")
        check(streamed < 1024 * 1024 * 4, f"05 stores neither, and took {streamed} bytes")
