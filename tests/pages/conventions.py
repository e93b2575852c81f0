"""The numbers of the page on conventions: means and logarithms of the small cases."""
from math import log

PAGE = "docs/conventions.md"
NUMBERS = {
    "1.0986": lambda: log(3),
    "1.3863": lambda: log(4),
    "0.6931": lambda: log(2),
    "1.5": lambda: (0 + 1 + 2 + 3) / 4,
    "2.0794": lambda: log(8),
    "709.78": lambda: log(1.7976931348623157e308),
}
