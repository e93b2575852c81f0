"""The numbers of the page on the memory model."""
from computed import run

PAGE = "docs/memory-model.md"
EXAMPLE = " --seq-q 5 --seq-k 7 --head-dim 3 --value-dim 2"


def example(step):
    return run(step + EXAMPLE + (" --br 2 --bc 3" if int(step[:2]) > 3 else ""))


def traffic(step, kind):
    return lambda: example(step)["traffic"][kind]


SMALL = "04_fa1_tiled --sram 4096 --seq-q 100 --head-dim 32"


def paper_needs(m=4096, d=32):
    bc = -(-m // (4 * d))
    br = min(bc, d)
    assert run(SMALL)["tiles"] == {"br": (m - bc * 2 * d) // (2 * d + bc + 6), "bc": bc}
    return 2 * bc * d + 2 * br * d + br * bc + 6 * br


def also(value, *checks):
    """The value, once it is sure that these are true."""
    assert all(checks)
    return value


NUMBERS = {
    "150": traffic("04_fa1_tiled", "reads"),
    "85": lambda: also(example("04_fa1_tiled")["traffic"]["writes"], example("01_safe_softmax_3pass")["traffic"]["writes"] == 85),
    "120": lambda: also(example("05_fa2_loop_swap")["traffic"]["reads"], example("01_safe_softmax_3pass")["traffic"]["reads"] == 120),
    "15": traffic("05_fa2_loop_swap", "writes"),
    "43": lambda: example("04_fa1_tiled")["on_chip"]["peak"],
    "37": lambda: example("05_fa2_loop_swap")["on_chip"]["peak"],
    "333": lambda: run("01_safe_softmax_3pass")["on_chip"]["peak"],
    "49,152": lambda: run("05_fa2_loop_swap")["on_chip"]["capacity"],
    "350": lambda: also(example("05_fa2_loop_swap")["flops"]["matmul"], example("04_fa1_tiled")["flops"]["matmul"] == 350),
    "440": lambda: example("04_fa1_tiled")["flops"]["other"],
    "300": lambda: example("05_fa2_loop_swap")["flops"]["other"],
    "5,312": paper_needs,
    "1.30": lambda: paper_needs() / 4096,
    "1.25": lambda: (paper_needs() - 6 * 32) / 4096,
    "20": lambda: run(SMALL)["tiles"]["br"],
    "153915": lambda: 331 * 64 * 2 + 331 * 331 + 6 * 331,
}
