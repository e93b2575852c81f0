"""The numbers of the page on numerics: the budget of the default input, computed from the shipped arrays; and small examples."""
import functools
import os
from math import exp, log2

import numpy as np
from computed import ROOT, run

PAGE = "docs/numerics.md"
U = 2.0**-24


@functools.lru_cache(maxsize=None)
def sizes():
    """A, max|v| and the largest score of layer 0."""
    q, k, v = (np.load(os.path.join(ROOT, "common/data/minilm", f"layer0_{name}.npy"))[0].astype("f8") for name in "qkv")
    tau = float(np.float32(1) / np.sqrt(np.float32(32)))
    sums = max((np.abs(q[h]) @ np.abs(k[h]).T).max() for h in range(len(q)))
    scores = max((q[h] @ k[h].T).max() for h in range(len(q)))
    return tau * sums, np.abs(v).max(), tau * scores


def floor_of(result):
    a, v, _ = sizes()
    return 2 * U * (1 + a) * (v if result == "o" else 1)


def checked(result):
    return next(c for c in run("05_fa2_loop_swap")["checks"] if c["against"] == "definition" and c["of"] == result)


def unsafe(key):
    return run("01_safe_softmax_3pass")["unsafe_softmax_in_half"][key]


N, F = round(-log2(exp(1))), -log2(exp(1)) - round(-log2(exp(1)))

NUMBERS = {
    "80.88": lambda: sizes()[0],
    "76.66": lambda: sizes()[2],
    "3.421": lambda: sizes()[1],
    "3.34": lambda: floor_of("o") * 1e5,
    "9.76": lambda: floor_of("lse") * 1e6,
    "6.68": lambda: checked("o")["budget"] * 1e5,
    "1.95": lambda: checked("lse")["budget"] * 1e5,
    "3,972": lambda: unsafe("rows"),
    "419": lambda: unsafe("nan"),
    "72": lambda: unsafe("zero"),
    "1.7": lambda: unsafe("float_headroom") / 1e5,
    "11.09": lambda: np.log(65520),
    "7.6": lambda: float(np.spacing(np.float32(76.7))) * 1e6,
    "1.6": lambda: exp(-87) * 1e38,
    "-1.4427": lambda: -log2(exp(1)),
    "-0.4427": lambda: F,
    "0.7358": lambda: 2**F,
    "0.3679": lambda: 2**F * 2.0**N,
}
assert abs(2**F * 2.0**N - exp(-1)) < 1e-12
QUOTED = {}
