"""The numbers of the main page, without its table, which `ladder --check` holds to the programs."""
from computed import form, moved, run

PAGE = "README.md"


def ratio(costs):
    """The traffic of a form over that of standard attention."""
    return moved(costs) / moved(run("01_safe_softmax_3pass"))


NUMBERS = {
    "29": lambda: ratio(form("01_safe_softmax_3pass", "three sweeps")),
    "22": lambda: ratio(run("02_online_softmax_2pass")),
    "15": lambda: ratio(run("03_fa_1pass")),
    "0.48": lambda: ratio(run("04_fa1_tiled")),
    "0.31": lambda: ratio(run("05_fa2_loop_swap")),
    "0.22": lambda: ratio(run("07_causal_early_exit")),
}
QUOTED = {"24.04": "the version of Ubuntu"}
