"""Cases: their inputs, drawn from a seed by arithmetic that every machine does alike, and the files that programs read and write.

A matrix is a text file: `rows cols`, then one number a line: C's hexadecimal float, `inf`, `-inf`, `nan`, or a decimal with 60 digits.
"""
import math
import os
import random
import struct
import sys
import zlib

sys.dont_write_bytecode = True
import manifest  # noqa: E402

SIZES = {"br": 4, "bc": 4, "causal": False, "heads": 1}


def as_float(x):
    """A number as float holds it, so that every type holds the same."""
    return struct.unpack("<f", struct.pack("<f", x))[0] if math.isfinite(x) else x


def full_sizes(case):
    """The sizes of a case with those that it leaves out."""
    sizes = dict(case["sizes"])
    if "head_dim" in sizes:
        sizes = {**SIZES, "value_dim": sizes["head_dim"], **sizes}
    sizes.setdefault("kv_heads", sizes.get("heads", 1))
    return sizes


def seed_of(case, seed):
    """The seed of one case: its own, or from its name and the seed of all."""
    return case.get("seed", zlib.crc32(f"{seed} {case['name'].removesuffix(' (hidden)')} {int(case.get('hidden', False))}".encode()))


def scale_of(case):
    return as_float(case["scale"] if "scale" in case else 1 / math.sqrt(full_sizes(case).get("head_dim", 1)))


def draw(generator, rows, cols):
    """Numbers with mean 0 and variance 1, in float: the sum of twelve uniform numbers less 6, which needs no function."""
    return [[as_float(sum(generator.random() for _ in range(12)) - 6) for _ in range(cols)] for _ in range(rows)]


def inputs_of(case, seed):
    """The inputs of a case by name: lists of rows."""
    generator, sizes, kind = random.Random(seed_of(case, seed)), full_sizes(case), case.get("inputs", "normal")
    if case["form"] == "kv_head":
        return {}
    if case["form"] == "kind_of_tile":
        cut = lambda n, size: [(begin, min(begin + size, n)) for begin in range(0, n, size)]  # noqa: E731
        tiles = [(*i, *j) for i in cut(sizes["seq_q"], sizes["br"]) for j in cut(sizes["seq_k"], sizes["bc"])]
        return {"x": [[float(x) for x in (*tile, sizes["seq_k"] - sizes["seq_q"])] for tile in tiles]}
    if "n" in sizes:
        x = draw(generator, sizes["n"], 1)
        bend_numbers(x, kind)
        if case["form"] == "merge":
            x = [[row[0], as_float(0.5 + abs(other[0]))] for row, other in zip(x, draw(generator, sizes["n"], 1))]
            if kind.endswith("minus_inf"):
                x = [[m, 0.0 if m == -math.inf else l] for m, l in x]
        return {"x": x}
    heads, kv_heads, d, dv = sizes["heads"], sizes["kv_heads"], sizes["head_dim"], sizes["value_dim"]
    tensors = {
        "q": draw(generator, heads * sizes["seq_q"], d),
        "k": draw(generator, kv_heads * sizes["seq_k"], d),
        "v": draw(generator, kv_heads * sizes["seq_k"], dv),
        "do": draw(generator, heads * sizes["seq_q"], dv),
        "dlse": draw(generator, heads * sizes["seq_q"], 1),
    }
    bend_heads(tensors, sizes, kind)
    if not case["form"].startswith("backward"):
        del tensors["do"], tensors["dlse"]
    elif not case.get("dlse"):
        del tensors["dlse"]
    return tensors


def bend_numbers(x, kind):
    """Scores of the kind that a case wants."""
    for number, row in enumerate(x):
        if kind == "peaked":
            row[0] = as_float(8 * row[0])
        elif kind == "huge":
            row[0] = as_float(1000 + 30 * row[0])
        elif kind == "equal":
            row[0] = 0.75
        elif kind == "zero":
            row[0] = 0.0
        elif kind == "minus_inf":
            row[0] = -math.inf if number % 3 == 0 else row[0]
        elif kind == "all_minus_inf":
            row[0] = -math.inf
        elif kind in ("first_largest", "last_largest"):
            largest = number == (0 if kind == "first_largest" else len(x) - 1)
            row[0] = as_float(9.5 if largest else row[0])


def bend_heads(tensors, sizes, kind):
    """Q and K of the kind that a case wants."""
    q, k, seq_k = tensors["q"], tensors["k"], sizes["seq_k"]
    if kind in ("peaked", "huge"):
        factor = 8 if kind == "peaked" else 200
        tensors["q"] = [[as_float(factor * x) for x in row] for row in q]
    elif kind == "zero":
        tensors["q"] = [[0.0] * len(row) for row in q]
    elif kind == "equal":  # every key of a head is the same
        tensors["k"] = [list(k[number - number % seq_k]) for number in range(len(k))] if seq_k else k
    elif kind in ("first_largest", "last_largest"):  # all queries point along one axis, and one key goes far along it
        for row in q:
            row[0] = as_float(1 + abs(row[0]))
        for number, row in enumerate(k):
            if number % seq_k == (0 if kind == "first_largest" else seq_k - 1):
                row[0] = as_float(12.0)
    elif kind in ("minus_inf", "all_minus_inf"):  # every third key, or every key, has no weight
        for row in q:
            row[0] = as_float(1 + abs(row[0]))
        for number, row in enumerate(k):
            if kind == "all_minus_inf" or number % seq_k % 3 == 0:
                row[0] = -math.inf


def arguments_of(case):
    """What a program is started with for this case, but for --in and --out."""
    sizes = full_sizes(case)
    arguments = ["--form", case["form"], "--type", case["type"], "--scale", scale_of(case).hex()]
    for key, option in (("br", "--br"), ("bc", "--bc"), ("heads", "--heads"), ("kv_heads", "--kv-heads")):
        if key in sizes:
            arguments += [option, str(sizes[key])]
    if sizes.get("causal"):
        arguments.append("--causal")
    if "capacity" in case:
        arguments += ["--capacity", str(case["capacity"])]
    return arguments + case.get("arguments", [])


def hexadecimal(x):
    return x.hex() if math.isfinite(x) else "nan" if x != x else "inf" if x > 0 else "-inf"


def write_matrix(path, rows, cols=None):
    """Writes a matrix. cols  of one without rows"""
    width = len(rows[0]) if rows else cols or 0
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{len(rows)} {width}\n" + "".join(f"{hexadecimal(x)}\n" for row in rows for x in row))


def write_inputs(case, seed, folder):
    """Writes the inputs of a case as files into a folder."""
    sizes = full_sizes(case)
    widths = {"q": sizes.get("head_dim"), "k": sizes.get("head_dim"), "v": sizes.get("value_dim"), "do": sizes.get("value_dim"), "dlse": 1, "x": {"merge": 2, "kind_of_tile": 5}.get(case["form"], 1)}
    os.makedirs(folder, exist_ok=True)
    for name, rows in inputs_of(case, seed).items():
        write_matrix(os.path.join(folder, f"{name}.txt"), rows, widths[name])
