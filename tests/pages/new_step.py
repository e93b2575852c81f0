"""The numbers of the page on adding a step: the closed forms of its example, a step that the project does not have."""
from computed import ceil_div, moved, run

PAGE = "docs/new-step.md"
HEADS, N, D, B = 12, 331, 32, 64
TILES = ceil_div(N, B)


def example():
    return {
        "reads": HEADS * (2 * N * D + TILES * N * D + (TILES + 1) * N * (D + 2)),
        "writes": HEADS * ((TILES + 2) * N * D + 2 * (TILES + 1) * N + N),
        "other": HEADS * N * (4 * N + TILES * (3 * D + 4) + D + 3),
        "on_chip": 4 * B * D + B * B + 3 * B,
    }


def together():
    return example()["reads"] + example()["writes"]


NUMBERS = {
    "1,962,168": lambda: example()["reads"],
    "1,076,412": lambda: example()["writes"],
    "1.09": lambda: together() / moved(run("04_fa1_tiled")),
    "0.526": lambda: together() / moved(run("01_safe_softmax_3pass")),
    "12,480": lambda: example()["on_chip"],
    "7,781,148": lambda: example()["other"],
    "1,835,064": lambda: run("04_fa1_tiled")["traffic"]["reads"],
    "949,308": lambda: run("04_fa1_tiled")["traffic"]["writes"],
    "12,672": lambda: run("04_fa1_tiled")["on_chip"]["peak"],
    "49,152": lambda: run("04_fa1_tiled")["on_chip"]["capacity"],
    "168,285,696": lambda: run("04_fa1_tiled")["flops"]["matmul"],
    "9,822,756": lambda: run("04_fa1_tiled")["flops"]["other"],
}
