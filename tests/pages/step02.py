"""The numbers of the page of step 02."""
import math

from computed import form, moved, run

PAGE = "steps/02_online_softmax_2pass/README.md"
PROGRAM, BEFORE = "02_online_softmax_2pass", "01_safe_softmax_3pass"
EXAMPLE = PROGRAM + " --dtype double --trace 0 " + " ".join(f"--{x} common/data/examples/three_keys/{x}.npy" for x in "qkv")
N, D, HEADS = 331, 32, 12  # the default input


def sweeps_of_step01(arguments=""):
    return form(f"{BEFORE} {arguments}".strip(), "three sweeps")


def moment(sweep, key):
    """What the example's trace holds after a key of a sweep."""
    return run(EXAMPLE)["trace"]["moments"][3 * (sweep - 1) + key]


def weight(key):
    """A weight is what o grows by, over the value."""
    before = moment(2, key - 1)["o"][0] if key > 0 else 0
    return (moment(2, key)["o"][0] - before) / (key + 1)


ONE = "02_online_softmax_2pass --seq-q 1 --seq-k 1000 --value-dim 1"
NUMBERS = {
    # The worked example
    "0.3678794": lambda: moment(1, 1)["l"] - 1,
    "1.3678794": lambda: moment(1, 1)["l"],
    "1.5032147": lambda: moment(1, 2)["l"],
    "0.1353353": lambda: (moment(1, 1)["l"] - 1) ** 2,
    "0.0900306": lambda: moment(2, 0)["o"][0],
    "0.2447285": lambda: weight(1),
    "0.5794875": lambda: moment(2, 1)["o"][0],
    "0.6652410": lambda: weight(2),
    "2.5752104": lambda: moment(2, 2)["o"][0],
    "2.5752": lambda: moment(2, 2)["o"][0],
    "3.5795": lambda: (math.exp(-2) * 1 + math.exp(-1) * 2) / moment(1, 2)["l"] + 3,
    # Costs
    "168,412,800": lambda: sweeps_of_step01()["traffic"]["reads"],
    "126,341,376": lambda: run(PROGRAM)["traffic"]["reads"],
    "131,076": lambda: run(PROGRAM)["traffic"]["writes"] if run(PROGRAM)["traffic"]["writes"] == sweeps_of_step01()["traffic"]["writes"] else 0,
    "164": lambda: run(PROGRAM)["on_chip"]["peak"] if run(PROGRAM)["on_chip"]["peak"] == sweeps_of_step01()["on_chip"]["peak"] else 0,
    "336,571,392": lambda: sweeps_of_step01()["flops"]["matmul"],
    "252,428,544": lambda: run(PROGRAM)["flops"]["matmul"],
    "140,942,448": lambda: sweeps_of_step01()["flops"]["other"],
    "146,201,376": lambda: run(PROGRAM)["flops"]["other"],
    "131,604,276": lambda: HEADS * N * (N * (3 * D + 4) + D + 1),
    "3,972": lambda: HEADS * N,
    "0.75": lambda: moved(run(PROGRAM)) / moved(sweeps_of_step01()),
    "21.9": lambda: moved(run(PROGRAM)) / moved(run(BEFORE)),
    # Try it, and the exercises
    "0.669": lambda: moved(run(ONE)) / moved(sweeps_of_step01("--seq-q 1 --seq-k 1000 --value-dim 1")),
    "9.6": lambda: sum(1 / j for j in range(1, 8193)),
}
