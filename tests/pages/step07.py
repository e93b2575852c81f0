"""The numbers of the page of step 07."""
import math

from computed import ceil_div, form, moved, run

PAGE = "steps/07_causal_early_exit/README.md"

PROGRAM = "07_causal_early_exit"


def forward():
    return run(PROGRAM)


def backward():
    return form(PROGRAM, "backward")


def plain(direction):
    """The same without a mask: step 05, step 06."""
    return run("05_fa2_loop_swap") if direction == "forward" else run("06_backward_recompute")


def speedup(tiles):
    return 2 * tiles / (tiles + 1)


def kinds(n, b):
    """Of an n x n mask in tiles of b x b, by asking every pair: how many are skipped, full, partial."""
    count = [0, 0, 0]
    for i in range(0, n, b):
        for j in range(0, n, b):
            admitted = [y <= x for x in range(i, min(i + b, n)) for y in range(j, min(j + b, n))]
            count[0 if not any(admitted) else 1 if all(admitted) else 2] += 1
    return count


def visited_keys(n=331, b=64):
    return sum(min(n, ceil_div(min((i + 1) * b, n), b) * b) for i in range(ceil_div(n, b)))


def visited_queries(n=331, b=64):
    return sum(n - b * j for j in range(ceil_div(n, b)))


def sums(columns):
    """m, l and u of the keys 0, 1, ... with the scores 0, 1, ... and the values 1, 2, ..."""
    m = columns - 1
    return m, sum(math.exp(j - m) for j in range(columns)), sum(math.exp(j - m) * (j + 1) for j in range(columns))


def output(columns):
    _, l, u = sums(columns)
    return u / l


def lse(columns):
    m, l, _ = sums(columns)
    return m + math.log(l)


NUMBERS = {
    # 7.3
    "1.60": lambda: speedup(4),
    "1.88": lambda: speedup(16),
    "1.94": lambda: speedup(32),
    "15": lambda: kinds(331, 64)[0] if kinds(331, 64) == [15, 15, 6] else 0,
    # The worked examples
    "0.3678794": lambda: math.exp(-1),
    "0.1353353": lambda: math.exp(-2),
    "1.3678794": lambda: sums(2)[1],
    "2.3678794": lambda: sums(2)[2],
    "1.7310586": lambda: output(2),
    "1.3132617": lambda: lse(2),
    "1.5530018": lambda: sums(4)[1],
    "5.1036383": lambda: math.exp(-1) * 3 + 4,
    "5.4240960": lambda: sums(4)[2],
    "1.5713174": lambda: sums(5)[1],
    "6.9954134": lambda: sums(5)[2],
    "3.4926527": lambda: output(4),
    "3.4401897": lambda: lse(4),
    "4.4519416": lambda: output(5),
    "4.4519144": lambda: lse(5),
    # What the program prints
    "0.677": lambda: forward()["traffic"]["reads"] / plain("forward")["traffic"]["reads"],
    "0.594": lambda: forward()["flops"]["matmul"] / plain("forward")["flops"]["matmul"],
    "0.517": lambda: backward()["traffic"]["atomics"] / plain("backward")["traffic"]["atomics"],
    # Costs
    "1,291": visited_keys,
    "1,026": visited_queries,
    "1,986": lambda: 6 * 331,
    "1,652,352": lambda: plain("forward")["traffic"]["reads"],
    "1,118,592": lambda: forward()["traffic"]["reads"],
    "2,081,328": lambda: plain("backward")["traffic"]["reads"],
    "1,321,008": lambda: backward()["traffic"]["reads"],
    "131,076": lambda: forward()["traffic"]["writes"],
    "385,284": lambda: backward()["traffic"]["writes"],
    "762,624": lambda: plain("backward")["traffic"]["atomics"],
    "393,984": lambda: backward()["traffic"]["atomics"],
    "12,480": lambda: forward()["on_chip"]["peak"],
    "24,704": lambda: backward()["on_chip"]["peak"],
    "168,285,696": lambda: plain("forward")["flops"]["matmul"],
    "99,964,416": lambda: forward()["flops"]["matmul"],
    "420,714,240": lambda: plain("backward")["flops"]["matmul"],
    "249,911,040": lambda: backward()["flops"]["matmul"],
    "7,145,628": lambda: plain("forward")["flops"]["other"],
    "4,227,228": lambda: forward()["flops"]["other"],
    "8,055,216": lambda: plain("backward")["flops"]["other"],
    "5,017,776": lambda: backward()["flops"]["other"],
    # Try it
    "0.701": lambda: moved(forward()) / moved(plain("forward")),
    "0.524": lambda: run(PROGRAM + " --br 16 --bc 16")["flops"]["matmul"] / plain("forward")["flops"]["matmul"],
}
QUOTED = {}
