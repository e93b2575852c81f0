"""The numbers of the Chinese main page: the traffic of each step over that of standard attention."""
import step01
import step02
import step03
import step04
import step05
import step06
import step07
from computed import form, moved, run

PAGE = "docs/zh/README.md"


def forward(program):
    return moved(run(program)) / moved(run("01_safe_softmax_3pass"))


def backward(program):
    return moved(form(program, "backward")) / moved(step06.form("standard"))


NUMBERS = {
    "29.2": step01.NUMBERS["29.2"],
    "21.9": step02.NUMBERS["21.9"],
    "14.6": step03.NUMBERS["14.6"],
    "0.482": step04.NUMBERS["0.482"],
    "0.309": step05.NUMBERS["0.309"],
    "0.391": step06.NUMBERS["0.391"],
    **{printed: step05.NUMBERS[printed] for printed in (
        "0.3678794", "1.3678794", "1.5032147", "2.3678794", "3.8710942", "2.5752104"
    )},
    "0.217": lambda: forward("07_causal_early_exit") if moved(step07.forward()) == moved(run("08_gqa")) else 0,
    "0.244": lambda: backward("07_causal_early_exit"),
    "0.211": lambda: backward("08_gqa"),
}
QUOTED = {"24.04": "a version of Ubuntu"}
