"""The numbers of the page of step 05."""
import math

from computed import ceil_div, moved, run

PAGE = "steps/05_fa2_loop_swap/README.md"

PROGRAM, BEFORE = "05_fa2_loop_swap", "04_fa1_tiled"


def step04(n, d, bc):
    """Elements moved by one square head in step 04, without the pass that joins L (4.3)."""
    return 3 * n * d + 2 * n + ceil_div(n, bc) * (3 * n * d + 4 * n)


def step05(n, d, br):
    """Elements moved by one square head in step 05 (5.2)."""
    return 2 * n * d + n + 2 * ceil_div(n, br) * n * d


def split_k(w, br, bc, d):
    """5.4: operands, and what the warps exchange."""
    return w * br * d + 2 * bc * d, w * br * (d + 2) + w * br * (d + w + 1)


def split_q(w, br, bc, d):
    """5.4: operands."""
    return br * d + w * 2 * bc * d


# The worked example: scores 0, 1 | 2, values 1, 2 | 3
p = math.exp(-1)
l1, u1 = p + 1, p * 1 + 1 * 2
l2, u2 = p * l1 + 1, p * u1 + 3
L = 2 + math.log(l2)

NUMBERS = {
    # 5.2
    "4,456,448": lambda: 4 * 1024 * 1024 + 4 * 1024 * 64,
    "1,001,472": lambda: step04(1024, 64, 256),
    "1,180,672": lambda: step05(1024, 64, 128),
    "656,384": lambda: step05(1024, 64, 256),
    # 5.4
    "118,272": lambda: sum(split_k(4, 128, 128, 64)),
    "69,120": lambda: split_k(4, 128, 128, 64)[1],
    "73,728": lambda: split_q(4, 128, 128, 64),
    "24,576": lambda: split_k(4, 64, 64, 64)[0],
    "34,560": lambda: split_k(4, 64, 64, 64)[1],
    "59,136": lambda: sum(split_k(4, 64, 64, 64)),
    "36,864": lambda: split_q(4, 64, 64, 64),
    "147,456": lambda: split_k(8, 128, 64, 128)[0] if split_k(8, 128, 64, 128)[0] == split_q(8, 128, 64, 128) else 0,
    "273,408": lambda: split_k(8, 128, 64, 128)[1],
    "420,864": lambda: sum(split_k(8, 128, 64, 128)),
    "49,152": lambda: split_k(4, 64, 256, 64)[0] if split_k(4, 64, 256, 64)[0] == split_k(4, 128, 128, 64)[0] else 0,
    "83,712": lambda: sum(split_k(4, 64, 256, 64)),
    "135,168": lambda: split_q(4, 64, 256, 64),
    # 5.5
    "1,024": lambda: 16 * ceil_div(8192, 128),
    "512": lambda: 8 * 8 * ceil_div(1024, 128),
    "59": lambda: 100 * 64 / 108,
    "15": lambda: 100 * 16 / 108,
    "95": lambda: 100 * 512 / (5 * 108),
    # The worked example
    "0.3678794": lambda: p,
    "1.3678794": lambda: l1,
    "1.5032147": lambda: l2,
    "2.3678794": lambda: u1,
    "3.8710942": lambda: u2,
    "2.5752104": lambda: u2 / l2,
    "2.4076060": lambda: L,
    "0.0900306": lambda: math.exp(0 - L),
    "0.2447285": lambda: math.exp(1 - L),
    "0.6652410": lambda: math.exp(2 - L),
    "1.7310586": lambda: u1 / l1,
    "2.5752": lambda: u2 / l2,
    # What the program prints, costs
    "0.641": lambda: moved(run(PROGRAM)) / moved(run(BEFORE)),
    "0.309": lambda: moved(run(PROGRAM)) / moved(run("01_safe_softmax_3pass")),
    "0.727": lambda: run(PROGRAM)["flops"]["other"] / run(BEFORE)["flops"]["other"],
    "1,835,064": lambda: run(BEFORE)["traffic"]["reads"],
    "949,308": lambda: run(BEFORE)["traffic"]["writes"],
    "2,784,372": lambda: moved(run(BEFORE)),
    "12,672": lambda: run(BEFORE)["on_chip"]["peak"],
    "1,652,352": lambda: run(PROGRAM)["traffic"]["reads"],
    "131,076": lambda: run(PROGRAM)["traffic"]["writes"],
    "1,783,428": lambda: moved(run(PROGRAM)),
    "12,480": lambda: run(PROGRAM)["on_chip"]["peak"],
    "168,285,696": lambda: run(PROGRAM)["flops"]["matmul"],
    "9,822,756": lambda: run(BEFORE)["flops"]["other"],
    "7,145,628": lambda: run(PROGRAM)["flops"]["other"],
    "1,000,944": lambda: 12 * (6 + 1) * 331 * (32 + 4) if moved(run(BEFORE)) - moved(run(PROGRAM)) == 12 * (6 + 1) * 331 * (32 + 4) else 0,
    # Try it
    "3.14": lambda: moved(run(BEFORE + " --bc 16")) / moved(run(BEFORE)),
    "381,312": lambda: run(PROGRAM + " --br 331 --bc 8")["traffic"]["reads"],
    "0.0888": lambda: moved(run(PROGRAM + " --br 331 --bc 8")) / moved(run("01_safe_softmax_3pass")),
    "25,337": lambda: run(PROGRAM + " --br 331 --bc 8")["on_chip"]["peak"],
    "1.92": lambda: moved(run(PROGRAM + " --br 32 --bc 128")) / moved(run(BEFORE + " --br 32 --bc 128")),
}
QUOTED = {
    "2.8376": "FlashAttention-2 as printed, F2-5; tests/errata.cpp",
    "6.2776": "FlashAttention-2 as printed, F2-6 and F2-8; tests/errata.cpp",
}
