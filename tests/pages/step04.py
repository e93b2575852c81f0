"""The numbers of the page of step 04."""
import math

from computed import ceil_div, moved, run

PAGE = "steps/04_fa1_tiled/README.md"
PROGRAM, BEFORE, STANDARD = "04_fa1_tiled", "03_fa_1pass", "01_safe_softmax_3pass"
EXAMPLE = PROGRAM + " --dtype double --bc 2 --trace 0 " + " ".join(f"--{x} common/data/examples/three_keys/{x}.npy" for x in "qkv")
PAPER, ONE = "--seq-q 1000 --head-dim 128", "--seq-q 1 --seq-k 331 --head-dim 32"
M = 49152
N, D, HEADS = 331, 32, 12  # the default input

# The worked example, by hand
p = math.exp(-1)
l1, u1 = p + 1, p * 1 + 1 * 2
o1 = u1 / l1
l2 = p * l1 + 1
o2 = (p * l1 * o1 + 3) / l2


def moment(tile):
    """What the example's trace holds after a column tile."""
    return run(EXAMPLE)["trace"]["moments"][tile]


def same(*values):
    """One number that stands in the page for several: they must agree in three digits."""
    return values[0] if len({f"{value:.3g}" for value in values}) == 1 else math.nan


def both(by_hand, traced):
    """A number of the worked example, if the program has it too."""
    return by_hand if abs(by_hand - traced) < 1e-12 else math.nan


def matrices(m, d):
    """4.2: the four matrix tiles of the paper's block sizes, and S."""
    bc = ceil_div(m, 4 * d)
    br = min(bc, d)
    return 2 * bc * d + 2 * br * d + br * bc


def figure_2(bc):
    """4.3 without the pass that joins L, for one head with N = 1024, d = 64."""
    n, d = 1024, 64
    return 3 * n * d + 2 * n + ceil_div(n, bc) * (3 * n * d + 4 * n)


NUMBERS = {
    # 4.2
    "49,152": lambda: run(PROGRAM)["on_chip"]["capacity"],
    "98,304": lambda: 192 * 1024 // 2,
    "45,056": lambda: matrices(M, 64),
    "58,368": lambda: matrices(M, 128),
    "81,920": lambda: matrices(2 * M, 64),
    "106,496": lambda: matrices(2 * M, 128),
    "0.92": lambda: matrices(M, 64) / M,
    "1.19": lambda: matrices(M, 128) / M,
    "0.83": lambda: matrices(2 * M, 64) / (2 * M),
    "1.08": lambda: matrices(2 * M, 128) / (2 * M),
    "1.25": lambda: matrices(65536, 128) / 65536,  # d is half the root of M
    # 4.3
    "3,409,920": lambda: figure_2(64),
    "1,804,288": lambda: figure_2(128),
    "1,001,472": lambda: figure_2(256),
    "600,064": lambda: figure_2(512),
    # The worked example
    "0.3678794": lambda: p,
    "1.3678794": lambda: both(l1, moment(0)["l"]),
    "2.3678794": lambda: u1,
    "1.7310586": lambda: both(o1, moment(0)["o"][0]),
    "0.5032147": lambda: p * l1,
    "1.5032147": lambda: both(l2, moment(1)["l"]),
    "2.5752104": lambda: both(o2, moment(1)["o"][0]),
    "2.4076060": lambda: moment(1)["m"] + math.log(l2),
    "16": lambda: run(EXAMPLE)["traffic"]["reads"],
    "10": lambda: run(EXAMPLE)["traffic"]["writes"],
    "14": lambda: run(EXAMPLE)["on_chip"]["peak"],
    # What the program prints, costs
    "84,269,952": lambda: run(BEFORE)["traffic"]["reads"],
    "1,835,064": lambda: run(PROGRAM)["traffic"]["reads"],
    "131,076": lambda: run(BEFORE)["traffic"]["writes"],
    "949,308": lambda: run(PROGRAM)["traffic"]["writes"],
    "165": lambda: run(BEFORE)["on_chip"]["peak"],
    "12,672": lambda: run(PROGRAM)["on_chip"]["peak"],
    "4,096": lambda: run(PROGRAM)["tiles"]["br"] * run(PROGRAM)["tiles"]["bc"],
    "168,285,696": lambda: same(run(PROGRAM)["flops"]["matmul"], run(BEFORE)["flops"]["matmul"]),
    "225,216,372": lambda: run(BEFORE)["flops"]["other"],
    "9,822,756": lambda: run(PROGRAM)["flops"]["other"],
    "3,972": lambda: HEADS * N,
    "0.033": lambda: moved(run(PROGRAM)) / moved(run(BEFORE)),
    "0.482": lambda: moved(run(PROGRAM)) / moved(run(STANDARD)),
    # Errata
    "2.5752": lambda: o2,
    "3.8980": lambda: l2 / l1 * o1 + 3 / l2,
    # Try it, and the exercises
    "6,240": lambda: run(f"{PROGRAM} --br 16")["on_chip"]["peak"],
    "1,048,608": lambda: run(f"{PROGRAM} --bc 128")["traffic"]["reads"],
    "544,164": lambda: run(f"{PROGRAM} --bc 128")["traffic"]["writes"],
    "20,864": lambda: run(f"{PROGRAM} --bc 128")["on_chip"]["peak"],
    "58,944": lambda: matrices(M, 128) + 6 * 96,
    "1.03": lambda: same(moved(run(f"{PROGRAM} {ONE}")) / moved(run(f"{BEFORE} {ONE}")),
                         moved(run(f"{PROGRAM} --sram 49152 {PAPER}")) / moved(run(f"{STANDARD} {PAPER}"))),
    "270,096": lambda: 2 * HEADS * N * (D + 2),
    "2,784,372": lambda: moved(run(PROGRAM)),
}
