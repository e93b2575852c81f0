"""The numbers of the page on CUDA kernels on the CPU."""
import os

from computed import ROOT, text

PAGE = "docs/cuda-on-cpu.md"


def lines():
    """Lines of the layer, to thousands."""
    folder = os.path.join(ROOT, "common/cuda_on_cpu")
    count = 0
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            count += sum(1 for _ in file)
    return round(count / 1000) * 1000


def passes(stride, lanes=32, banks=32):
    """Passes over the banks where lanes read every stride-th float: the most words that one bank has to give."""
    wanted = [lane * stride % banks for lane in range(lanes)]
    return max(wanted.count(bank) for bank in wanted)


def said(line):
    """1 if the traced run says so."""
    assert line in text("05_fa2_loop_swap --device cuda-on-cpu --trace-kernel --dtype half --seq-q 128"), line
    return 1


NUMBERS = {
    "2,000": lines,
    "8.00": lambda: passes(8) * said("1.00 for one") * said("32,768 bytes read, 100 % of the sectors"),
    "12.5": lambda: 100 * 4 / 32,
}
QUOTED = {
    "0.51": "the bound that tests/cuda_layer_numbers.cpp holds exp, exp2 and log to",
    "6.67": "counted by tests/seeded_faults.py for its fault 'bank conflicts', which demands 5 to 8",
}
