"""The numbers of the page on IO complexity: closed forms of the steps, of the article and of Saha and Ye, written once more."""
from math import isqrt, sqrt

from computed import ceil_div, moved, run

PAGE = "docs/io-complexity.md"

N = 2048
FLOAT, HALF, BLOCK, ARTICLE = 49152, 192 * 1024 // 2, 163 * 1024 // 2, 192 * 1024


def theta_standard(d):
    return N * d + N * N


def theta_flash(d, m):
    return N * N * d * d / m


def crossover(m):
    d = m / (2 * N) * (1 + sqrt(1 + 4 * N * N / m))
    assert abs(theta_standard(d) / theta_flash(d, m) - 1) < 1e-12
    return d


def standard(n, d):
    return 4 * n * n + 4 * n * d


def fa1(n, d, bc):
    return 3 * n * d + 2 * n + ceil_div(n, bc) * (3 * n * d + 4 * n)


def fa1_peeled(n, d, bc):
    return n * d + ceil_div(n, bc) * (3 * n * d + 4 * n) - 2 * n


def paper_peeled(d):
    return fa1_peeled(N, d, ceil_div(HALF, 4 * d))


def tall(d, bc=8):
    """Equation (3)."""
    return (FLOAT - 2 * bc * d) // (2 * d + bc + 3)


def row_tiles(d):
    return ceil_div(N, tall(d))


def fa2(d):
    return 2 * N * d + N + 2 * row_tiles(d) * N * d


def measured(d):
    """What the program counts in these tiles; (3) is the largest height, for one row more is refused."""
    counted = moved(run(f"05_fa2_loop_swap --seq-q {N} --head-dim {d} --br {tall(d)} --bc 8"))
    assert counted == fa2(d)
    return counted


def with_lse(d):
    return standard(N, d) + N


def square_tiling(d):
    b = isqrt(HALF // 4)
    assert b == 156
    tn, td = ceil_div(N, b), ceil_div(d, b)
    return 2 * tn * N * d + N + td * N * N + tn * N * d + N * N + N + N * d


def first(moves):
    """The first head dimension from which on an algorithm moves as much as standard attention."""
    below = [moves(d) < with_lse(d) for d in range(8, 600)]
    assert below == sorted(below, reverse=True)
    return 8 + below.index(False)


def paper(d):
    return fa1(N, d, ceil_div(HALF, 4 * d)) + 3 * N


def square_tiles(d):
    b = isqrt(HALF)
    while 4 * b * d + b * b + 3 * b > HALF:
        b -= 1
    return 2 * N * d + N + 2 * ceil_div(N, b) * N * d


def tall_tiles(d):
    return 2 * N * d + N + 2 * ceil_div(N, (HALF - 32 * d) // (2 * d + 19)) * N * d


def gigabytes(count, bc):
    """1024 heads: matrices of 2 bytes, m and l of 4."""
    statistics = count(1024, 0, bc)
    return 1024 * (2 * (count(1024, 64, bc) - statistics) + 4 * statistics) / 1e9


NUMBERS = {
    # The article
    "196,608": lambda: ARTICLE,
    "4,718,592": lambda: theta_standard(256),
    "5,242,880": lambda: theta_standard(512),
    "1,398,101.33": lambda: theta_flash(256, ARTICLE),
    "5,592,405.33": lambda: theta_flash(512, ARTICLE),
    "98,304": lambda: HALF,
    "83,456": lambda: BLOCK,
    "49,152": lambda: FLOAT,
    "1,398,101": lambda: theta_flash(256, ARTICLE),
    "2,796,203": lambda: theta_flash(256, HALF),
    "3,293,687": lambda: theta_flash(256, BLOCK),
    "5,592,405": lambda: theta_flash(256, FLOAT),
    "443.4": lambda: sqrt(ARTICLE),
    "313.5": lambda: sqrt(HALF),
    "288.9": lambda: sqrt(BLOCK),
    "221.7": lambda: sqrt(FLOAT),
    "494.0": lambda: crossover(ARTICLE),
    "338.5": lambda: crossover(HALF),
    "310.0": lambda: crossover(BLOCK),
    "234.0": lambda: crossover(FLOAT),
    # Constants
    "128.0": lambda: sqrt(FLOAT / 3),
    "181.0": lambda: sqrt(HALF / 3),
    "256.0": lambda: sqrt(ARTICLE / 3),
    "156.8": lambda: sqrt(FLOAT / 2),
    "181": lambda: first(paper),
    "213": lambda: first(square_tiles),
    "293": lambda: first(tall_tiles),
    "0.040": lambda: paper_peeled(32) / standard(N, 32),
    "0.147": lambda: paper_peeled(64) / standard(N, 64),
    "0.505": lambda: paper_peeled(128) / standard(N, 128),
    "1.002": lambda: paper_peeled(181) / standard(N, 181),
    "1.87": lambda: paper_peeled(256) / standard(N, 256),
    "6.5": lambda: paper_peeled(512) / standard(N, 512),
    # Step 05 in the tallest tiles
    "346": lambda: tall(64),
    "176": lambda: tall(128),
    "116": lambda: tall(192),
    "39": lambda: tall(512),
    "86": lambda: tall(256),
    "94": lambda: tall(256, bc=1),
    "22": lambda: ceil_div(N, tall(256, bc=1)),
    "24": lambda: row_tiles(256),
    "53": lambda: row_tiles(512),
    "1,837,056": lambda: measured(64),
    "6,817,792": lambda: fa2(128),
    "14,944,256": lambda: fa2(192),
    "26,216,448": lambda: fa2(256),
    "113,248,256": lambda: fa2(512),
    "17,303,552": lambda: with_lse(64),
    "17,827,840": lambda: with_lse(128),
    "18,352,128": lambda: with_lse(192),
    "18,876,416": lambda: with_lse(256),
    "20,973,568": lambda: with_lse(512),
    "0.106": lambda: fa2(64) / with_lse(64),
    "0.382": lambda: fa2(128) / with_lse(128),
    "0.814": lambda: fa2(192) / with_lse(192),
    "1.389": lambda: fa2(256) / with_lse(256),
    "5.400": lambda: fa2(512) / with_lse(512),
    "69,824": lambda: run("05_fa2_loop_swap --seq-q 64 --head-dim 256 --sram 69824")["on_chip"]["peak"],
    "1.42": lambda: 69824 / FLOAT,
    # SquareTiling
    "156": lambda: isqrt(HALF // 4),
    "35,131,392": lambda: square_tiling(256),
    "66,064,384": lambda: square_tiling(512),
    "35,303,424": lambda: paper_peeled(256),
    "136,663,040": lambda: paper_peeled(512),
    "18,874,368": lambda: standard(N, 256),
    "20,971,520": lambda: standard(N, 512),
    "2.07": lambda: paper_peeled(512) / square_tiling(512),
    # FlashAttention, figure 2, middle
    "3,409,920": lambda: fa1(1024, 64, 64),
    "1,804,288": lambda: fa1(1024, 64, 128),
    "1,001,472": lambda: fa1(1024, 64, 256),
    "600,064": lambda: fa1(1024, 64, 512),
    "7.12": lambda: gigabytes(fa1, 64),
    "3.77": lambda: gigabytes(fa1, 128),
    "2.09": lambda: gigabytes(fa1, 256),
    "1.25": lambda: gigabytes(fa1, 512),
    "6.84": lambda: gigabytes(fa1_peeled, 64),
    "3.48": lambda: gigabytes(fa1_peeled, 128),
    "1.80": lambda: gigabytes(fa1_peeled, 256),
    "0.96": lambda: gigabytes(fa1_peeled, 512),
    "200.6": lambda: 312 / 1.555,
}
QUOTED = {"1.555": "bandwidth of an A100 with 40 GB in TB/s, from its data sheet"}
