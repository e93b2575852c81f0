"""The numbers of the page of step 01."""
import math

from computed import form, moved, run

PAGE = "steps/01_safe_softmax_3pass/README.md"
EXAMPLE = "01_safe_softmax_3pass --dtype double --trace 0 " + " ".join(
    f"--{x} common/data/examples/three_keys/{x}.npy" for x in "qkv")
N, D, HEADS = 331, 32, 12  # the default input


def standard():
    return run("01_safe_softmax_3pass")


def sweeps(command="01_safe_softmax_3pass"):
    return form(command, "three sweeps")


def moment(sweep, key):
    """What the example's trace holds after a key of a sweep."""
    return run(EXAMPLE)["trace"]["moments"][3 * (sweep - 1) + key]


def weight(key):
    """A weight is what o grows by, over the value."""
    before = moment(3, key - 1)["o"][0] if key > 0 else 0
    return (moment(3, key)["o"][0] - before) / (key + 1)


NUMBERS = {
    # Where the exponential overflows: in half, what rounds to infinity
    "11.09": lambda: math.log(65520),
    "88.72": lambda: math.log(2.0 ** 128 * (1 - 2.0 ** -24)),
    "709.78": lambda: math.log(2.0 ** 1023 * (2 - 2.0 ** -52)),
    # The worked example
    "0.1353353": lambda: moment(2, 0)["l"],
    "0.3678794": lambda: moment(2, 1)["l"] - moment(2, 0)["l"],
    "0.5032147": lambda: moment(2, 1)["l"],
    "1.5032147": lambda: moment(2, 2)["l"],
    "0.0900306": lambda: moment(3, 0)["o"][0],
    "0.2447285": lambda: weight(1),
    "0.5794875": lambda: moment(3, 1)["o"][0],
    "0.6652410": lambda: weight(2),
    "2.5752104": lambda: moment(3, 2)["o"][0],
    "2.4076060": lambda: moment(3, 2)["m"] + math.log(moment(3, 2)["l"]),
    "11.1073379": lambda: 1 + math.e + math.e ** 2,
    # Costs
    "3,010,776": lambda: standard()["traffic"]["reads"],
    "2,760,540": lambda: standard()["traffic"]["writes"],
    "168,412,800": lambda: sweeps()["traffic"]["reads"],
    "131,076": lambda: sweeps()["traffic"]["writes"],
    "29.2": lambda: moved(sweeps()) / moved(standard()),
    "333": lambda: standard()["on_chip"]["peak"],
    "164": lambda: sweeps()["on_chip"]["peak"],
    "168,285,696": lambda: standard()["flops"]["matmul"],
    "6,577,632": lambda: standard()["flops"]["other"],
    "336,571,392": lambda: sweeps()["flops"]["matmul"],
    "140,942,448": lambda: sweeps()["flops"]["other"],
    "130,289,544": lambda: HEADS * N * (N * (3 * D + 3) + D + 1),
    "3,972": lambda: standard()["unsafe_softmax_in_half"]["rows"],
    "419": lambda: standard()["unsafe_softmax_in_half"]["nan"],
    "72": lambda: standard()["unsafe_softmax_in_half"]["zero"],
    # Try it, and the exercises
    "8,194": lambda: run("01_safe_softmax_3pass --seq-q 1 --seq-k 8192")["on_chip"]["peak"],
    "324": lambda: sweeps("01_safe_softmax_3pass --seq-q 1 --seq-k 8192")["on_chip"]["peak"],
    "480,943": lambda: moved(standard()) // HEADS,
    "42,368": lambda: N * (3 * D + D),
    "21,515": lambda: N * D + N * D + N,
}
