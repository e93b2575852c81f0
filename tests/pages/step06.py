"""The numbers of the page of step 06."""
import functools
import tempfile

import computed
import numpy as np
from computed import moved, run

PAGE = "steps/06_backward_recompute/README.md"

PROGRAM = "06_backward_recompute"
EXAMPLE = " ".join(f"--{name} common/data/examples/two_by_two/{name}.npy" for name in ("q", "k", "v", "do")) + " --scale 0.5 --br 1 --bc 1"


def form(name, arguments=""):
    """A form of the program; "column order" is the one it prints first."""
    costs = run(PROGRAM + " " + arguments)
    return costs if name == "column order" else next(one for one in costs["forms"] if one["form"] == name)


def adds(name, arguments=""):
    return form(name, arguments)["traffic"]["atomics"]


@functools.lru_cache(maxsize=None)
def example(tensor):
    """What the program writes on the worked example."""
    with tempfile.TemporaryDirectory() as folder:
        computed.text(f"{PROGRAM} {EXAMPLE} --output {folder}")
        return np.load(f"{folder}/{tensor}.npy").squeeze()


def by_hand():
    """True if the program's gradients are those that the page derives by hand."""
    third = 0.75 * np.log(3)
    hand = {"o": [[3, 1], [2, 2]], "dq": [[-3 / 8, 3 / 4], [1, -2]], "dk": [[4 - third, 2], [third - 4, -2]], "dv": [[9 / 4, 2], [7 / 4, 1]]}
    return all(np.allclose(example(tensor), value, rtol=0, atol=1e-6) for tensor, value in hand.items())


def forward_tiles_in_backward(m=49152, d=64):
    """Elements that the tiles of FlashAttention's forward pass need in its backward pass: 2 Bc (d + dv) + Br (2d + 2dv) + 2 Br Bc."""
    bc = computed.ceil_div(m, 4 * d)
    br = min(bc, d)
    return 2 * bc * 2 * d + br * 4 * d + 2 * br * bc


NUMBERS = {
    # 6.6
    "762,624": lambda: adds("column order") if adds("column order") == adds("row order", "--br 128 --bc 64") == adds("row order", "--br 128 --bc 32") else 0,
    "1,525,248": lambda: adds("row order"),
    "2,081,328": lambda: form("column order")["traffic"]["reads"],
    "1,910,532": lambda: form("row order")["traffic"]["reads"],
    "385,284": lambda: form("column order")["traffic"]["writes"],
    "381,312": lambda: form("row order")["traffic"]["writes"] if form("row order")["traffic"]["writes"] == adds("column order", "--br 64 --bc 128") ==
    adds("column order", "--br 32 --bc 128") else 0,
    "3,991,860": lambda: moved(form("column order")),
    "5,342,340": lambda: moved(form("row order")),
    "0.391": lambda: moved(form("column order")) / moved(form("standard")),
    "0.523": lambda: moved(form("row order")) / moved(form("standard")),
    "24,704": lambda: form("column order")["on_chip"]["peak"] if form("row order")["on_chip"]["peak"] == form("column order")["on_chip"]["peak"] else 0,
    "9": lambda: 100 * (form("column order")["traffic"]["reads"] / form("row order")["traffic"]["reads"] - 1),
    "43,264": lambda: form("row order", "--br 128 --bc 64")["on_chip"]["peak"],
    "43,136": lambda: form("column order", "--br 64 --bc 128")["on_chip"]["peak"],
    # The worked example
    "3.176041": lambda: float(example("dk")[0, 0]) if by_hand() else 0,
    "1.386294": lambda: float(example("lse")[0]),
    "2.693147": lambda: float(example("lse")[1]),
    # Costs
    "1.25": lambda: form("column order")["flops"]["matmul"] / form("standard")["flops"]["matmul"],
    "1,652,352": lambda: form("row tiles outside")["traffic"]["reads"],
    "131,076": lambda: form("row tiles outside")["traffic"]["writes"],
    "12,480": lambda: form("row tiles outside")["on_chip"]["peak"],
    "994": lambda: form("standard")["on_chip"]["peak"],
    "7,209,180": lambda: form("standard")["traffic"]["reads"],
    "3,010,776": lambda: form("standard")["traffic"]["writes"],
    "168,285,696": lambda: form("row tiles outside")["flops"]["matmul"],
    "420,714,240": lambda: form("column order")["flops"]["matmul"],
    "336,571,392": lambda: form("standard")["flops"]["matmul"],
    "7,145,628": lambda: form("row tiles outside")["flops"]["other"],
    "8,055,216": lambda: form("column order")["flops"]["other"],
    "5,254,956": lambda: form("standard")["flops"]["other"],
    # What the papers print
    "825": lambda: 6 * 2 * 1024**2 * 64 * 1024 / 1e9,
    "962": lambda: 7 * 2 * 1024**2 * 64 * 1024 / 1e9,
    "90,112": forward_tiles_in_backward,
    "1.83": lambda: forward_tiles_in_backward() / 49152,
    # Try it
    "31,808": lambda: form("column order", "--br 32 --bc 128")["on_chip"]["peak"],
    "32,000": lambda: form("row order", "--br 128 --bc 32")["on_chip"]["peak"],
    "34": lambda: run(PROGRAM + " --seq-q 1024 --sram 20000")["tiles"]["br"],
    "62": lambda: form("row tiles outside", "--seq-q 1024 --sram 20000")["tiles"]["br"],
}
QUOTED = {}
