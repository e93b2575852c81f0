"""The numbers of the page of step 03."""
import math

from computed import form, moved, run

PAGE = "steps/03_fa_1pass/README.md"
PROGRAM, BEFORE, STANDARD = "03_fa_1pass", "02_online_softmax_2pass", "01_safe_softmax_3pass"
EXAMPLE = PROGRAM + " --dtype double --trace 0 " + " ".join(f"--{x} common/data/examples/three_keys/{x}.npy" for x in "qkv")
LONG, ONE = "--seq-q 16 --seq-k 8192", "--seq-q 1 --seq-k 1000"
N, D, HEADS = 331, 32, 12  # the default input


def moment(key):
    """What the example's trace holds after a key."""
    return run(EXAMPLE)["trace"]["moments"][key]


def l(key):
    return moment(key)["l"]


def u(key):
    return moment(key)["o"][0]


def normalised():
    return form(PROGRAM, "one sweep, normalised")


def same(a, b):
    return a if a == b else math.nan


NUMBERS = {
    # The worked example
    "0.3678794": lambda: l(1) - 1,
    "1.3678794": lambda: l(1),
    "1.5032147": lambda: l(2),
    "2.3678794": lambda: u(1),
    "3.8710942": lambda: u(2),
    "1.7310586": lambda: moment(1)["normalised"][0],
    "2.5752104": lambda: moment(2)["normalised"][0],
    "0.7310586": lambda: 1 / l(1),
    "0.6652410": lambda: 1 / l(2),
    "2.4076060": lambda: moment(2)["m"] + math.log(l(2)),
    # Errata
    "2.5752": lambda: moment(2)["normalised"][0],
    "3.8980": lambda: l(2) / l(1) * moment(1)["normalised"][0] + 3 / l(2),
    "3.5709": lambda: l(1) / l(2) * moment(1)["normalised"][0] + 3 / l(2),
    # Costs
    "126,341,376": lambda: run(BEFORE)["traffic"]["reads"],
    "84,269,952": lambda: same(run(PROGRAM)["traffic"]["reads"], normalised()["traffic"]["reads"]),
    "131,076": lambda: same(run(PROGRAM)["traffic"]["writes"], run(BEFORE)["traffic"]["writes"]),
    "164": lambda: run(BEFORE)["on_chip"]["peak"],
    "165": lambda: same(run(PROGRAM)["on_chip"]["peak"], normalised()["on_chip"]["peak"]),
    "252,428,544": lambda: run(BEFORE)["flops"]["matmul"],
    "168,285,696": lambda: same(run(PROGRAM)["flops"]["matmul"], run(STANDARD)["flops"]["matmul"]),
    "146,201,376": lambda: run(BEFORE)["flops"]["other"],
    "225,216,372": lambda: run(PROGRAM)["flops"]["other"],
    "185,643,336": lambda: normalised()["flops"]["other"],
    "173,675,700": lambda: HEADS * N * (N * (4 * D + 4) + D + 1),
    "3,972": lambda: HEADS * N,
    "0.667": lambda: moved(run(PROGRAM)) / moved(run(BEFORE)),
    "14.6": lambda: moved(run(PROGRAM)) / moved(run(STANDARD)),
    # Try it
    "325": lambda: run(f"{PROGRAM} {LONG}")["on_chip"]["peak"],
    "10.7": lambda: moved(run(f"{PROGRAM} {LONG}")) / moved(run(f"{STANDARD} {LONG}")),
    "0.97": lambda: moved(run(f"{PROGRAM} {ONE}")) / moved(run(f"{STANDARD} {ONE}")),
}
