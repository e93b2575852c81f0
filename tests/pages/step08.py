"""The numbers of the page of step 08."""
import functools
import math
import tempfile

import computed
import numpy as np
from computed import form, moved, run

PAGE = "steps/08_gqa/README.md"

PROGRAM, BEFORE = "08_gqa", "07_causal_early_exit"
EXAMPLE = " ".join(f"--{name} common/data/examples/four_heads/{name}.npy" for name in ("q", "k", "v", "do")) + " --dtype double"

# The worked example, by definition
KEYS, VALUES = [[0, math.log(3)], [0, math.log(4)]], [[4, 8], [10, 20]]
QUERIES, D_O = [1, 2, 1, -1], [1, 2, 1, 2]


def attention(q, kv):
    weights = np.exp(q * np.array(KEYS[kv]))
    p = weights / weights.sum()
    return p, float(p @ VALUES[kv])


def gradients(h, kv):
    """dS, dK and dV of head h alone."""
    p, o = attention(QUERIES[h], kv)
    ds = p * (D_O[h] * np.array(VALUES[kv]) - D_O[h] * o)
    return ds, ds * QUERIES[h], p * D_O[h]


@functools.lru_cache(maxsize=None)
def program(tensor):
    """What the program writes on the worked example: [heads, 2]."""
    with tempfile.TemporaryDirectory() as folder:
        computed.text(f"{PROGRAM} {EXAMPLE} --output {folder}")
        return np.load(f"{folder}/{tensor}.npy").squeeze()


def summed(which, kv, key):
    """dK (1) or dV (2) of a shared head, by hand; 0 if the program has another one."""
    by_hand = sum(gradients(h, kv)[which] for h in range(4) if h // 2 == kv)
    of_program = program("dk" if which == 1 else "dv")[kv]
    return float(by_hand[key]) if np.allclose(by_hand, of_program, rtol=0, atol=1e-6) else 0


def forward(command=PROGRAM):
    return run(command)


def backward(command=PROGRAM):
    return form(command, "backward")


def ratio(arguments):
    """Backward, over step 07 on copies."""
    costs = backward(f"{PROGRAM} {arguments}")
    return moved(costs) / moved(backward(f"{BEFORE} {without_groups(arguments)}"))


def without_groups(arguments):
    words = arguments.split()
    at = words.index("--kv-heads")
    return " ".join(words[:at] + words[at + 2:])


NUMBERS = {
    # The worked example
    "19.41": lambda: attention(2, 1)[1],
    "7.6": lambda: attention(2, 0)[1] if abs(program("o")[1] - 7.6) < 1e-6 else 0,
    "-0.75": lambda: float(gradients(0, 0)[0][0]),
    "0.75": lambda: float(gradients(0, 0)[0][1]),
    "0.25": lambda: float(gradients(0, 0)[2][0]),
    "-0.72": lambda: float(gradients(1, 0)[0][0]),
    "0.72": lambda: float(gradients(1, 0)[0][1]),
    "-1.44": lambda: float(gradients(1, 0)[1][0]),
    "1.44": lambda: float(gradients(1, 0)[1][1]),
    "-2.19": lambda: summed(1, 0, 0),
    "2.19": lambda: summed(1, 0, 1),
    "0.45": lambda: summed(2, 0, 0),
    "2.55": lambda: summed(2, 0, 1),
    "1.6": lambda: summed(1, 1, 0),
    "1.8": lambda: summed(2, 1, 0),
    "1.2": lambda: summed(2, 1, 1),
    "32": lambda: backward(f"{PROGRAM} {EXAMPLE}")["traffic"]["reads"],
    # What the program prints, costs
    "0.864": lambda: moved(backward()) / moved(backward(BEFORE)),
    "1,118,592": lambda: forward()["traffic"]["reads"] if forward()["traffic"]["reads"] == forward(BEFORE)["traffic"]["reads"] else 0,
    "131,076": lambda: forward()["traffic"]["writes"],
    "1,321,008": lambda: backward(BEFORE)["traffic"]["reads"],
    "1,151,536": lambda: backward()["traffic"]["reads"],
    "385,284": lambda: backward(BEFORE)["traffic"]["writes"],
    "215,812": lambda: backward()["traffic"]["writes"],
    "393,984": lambda: backward()["traffic"]["atomics"],
    "12,480": lambda: forward()["on_chip"]["peak"],
    "24,704": lambda: backward()["on_chip"]["peak"],
    "99,964,416": lambda: forward()["flops"]["matmul"],
    "249,911,040": lambda: backward()["flops"]["matmul"],
    "4,227,228": lambda: forward()["flops"]["other"],
    "5,017,776": lambda: backward(BEFORE)["flops"]["other"],
    "4,848,304": lambda: backward()["flops"]["other"],
    "169,472": lambda: 4 * (3 - 1) * 331 * (32 + 32) if backward(BEFORE)["traffic"]["writes"] - backward()["traffic"]["writes"] ==
    backward(BEFORE)["traffic"]["reads"] - backward()["traffic"]["reads"] == 4 * (3 - 1) * 331 * (32 + 32) else 0,
    # Try it
    "0.849": lambda: ratio("--heads 8 --kv-heads 1 --seq-q 256"),
    "0.262": lambda: ratio("--heads 8 --kv-heads 2 --seq-q 1 --seq-k 1000 --causal"),
    # Exercises
    "32,768": lambda: 2**15,
}
QUOTED = {}
