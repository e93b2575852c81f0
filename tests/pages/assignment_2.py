"""The numbers of assignment 2: its example, the scores 0, 1, 2 and the values 1, 2, 3."""
from math import exp

PAGE = "docs/assignments/a2-flash-attention/README.md"


def after(count):
    """l and u when so many keys have been seen."""
    weights = [exp(j - (count - 1)) for j in range(count)]
    return sum(weights), sum(weight * (j + 1) for j, weight in enumerate(weights))


NUMBERS = {
    "1.3678794": lambda: after(2)[0],
    "2.3678794": lambda: after(2)[1],
    "1.5032147": lambda: after(3)[0],
    "3.8710942": lambda: after(3)[1],
    "2.5752104": lambda: after(3)[1] / after(3)[0],
    "1.7310586": lambda: after(2)[1] / after(2)[0],
}
