"""The numbers of the page of errata: the example, what is printed and what is right, evaluated here once more."""
from math import exp, log

from computed import run

PAGE = "docs/errata.md"

m1, l1, u1 = 1, exp(-1) + 1, exp(-1) * 1 + 2
m, l, u = 2, exp(-2) + exp(-1) + 1, exp(-2) * 1 + exp(-1) * 2 + 3
o1, o = u1 / l1, u / l
shrink, second = exp(m1 - m), 1 * 3  # e^(m1 - m2), e^(S2 - m2) V2


def products(count, n=1024, d=64, heads=1024):
    return count * 2 * n * n * d * heads / 1e9


def backward_flops():
    return run("06_backward_recompute --seq-q 1024 --head-dim 64")["flops"]["matmul"]


# F2-1: P, dS and dK of two queries and two keys
q, v, do = [[1, 0], [1, 1]], [1, 2], [1, 1]


def softmax(row):
    e = [exp(x) for x in row]
    return [x / sum(e) for x in e]


def loss(k):
    total = 0
    for i in range(2):
        p = softmax([sum(q[i][x] * k[j][x] for x in range(2)) for j in range(2)])
        total += do[i] * sum(p[j] * v[j] for j in range(2))
    return total


p = [softmax(row) for row in q]  # K is the identity
out = [sum(p[i][j] * v[j] for j in range(2)) for i in range(2)]
ds = [[p[i][j] * (do[i] * v[j] - do[i] * out[i]) for j in range(2)] for i in range(2)]
dk = [[sum(ds[i][j] * q[i][x] for i in range(2)) for x in range(2)] for j in range(2)]
printed_dk = [[sum(q[i][t] * ds[j][t] for t in range(2)) for j in range(2)] for i in range(2)]
for j in range(2):
    for x in range(2):
        moved = []
        for h in (-1e-5, 1e-5):
            k = [[1.0, 0.0], [0.0, 1.0]]
            k[j][x] += h
            moved.append(loss(k))
        assert abs((moved[1] - moved[0]) / 2e-5 - dk[j][x]) < 1e-8
assert abs(printed_dk[1][0]) < 1e-15 and abs(printed_dk[1][1]) < 1e-15

NUMBERS = {
    "1.3678794": lambda: l1,
    "1.5032147": lambda: l,
    "2.3678794": lambda: u1,
    "3.8710942": lambda: u,
    "1.7310586": lambda: o1,
    "2.5752104": lambda: o,
    "2.5752": lambda: o,
    "2.4076060": lambda: m + log(l),
    "3.2389736": lambda: l1 * u1,
    "671,088,640": backward_flops,
    "1,048,576": lambda: 1024 * 1024,
    "1,024": lambda: 64 * 16,
    "824.6": lambda: products(6),
    "962.1": lambda: products(7),
    "12.4": lambda: products(6) / 66.6,
    "12.8": lambda: products(7) / 75.2,
    "3.5795": lambda: u1 * shrink / l + second,
    "3.8980": lambda: 1 / (l1 / l) * o1 + second / l,
    "3.5709": lambda: l1 / l * o1 + second / l,
    "2.8376": lambda: (o1 / l1 + second) / l,
    "6.2776": lambda: (u1 / shrink + second) / l,
    "1.29": lambda: 225 / 175,
    "0.7311": lambda: p[0][0],
    "0.2689": lambda: p[0][1],
    "1.2689": lambda: out[0],
    "-0.1966": lambda: ds[0][0],
    "0.1966": lambda: ds[0][1],
    "-0.25": lambda: dk[0][1],
    "0.25": lambda: dk[1][1],
    "-0.4466": lambda: dk[0][0],
    "0.4466": lambda: dk[1][0],
    "90,112": lambda: 2 * 192 * 128 + 64 * 256 + 2 * 64 * 192,
    "1.83": lambda: 90112 / 49152,
    "1.25": lambda: 4 * 0.25 + 0.5 * 0.5,  # four tiles of M / 4, and S of d x M / 4d, at d = sqrt(M) / 2: M / 4
    "1.74": lambda: 4.7 / 2.7,
    "1.67": lambda: 11.5 / 6.9,
    "59874": lambda: exp(11),
    "11.0901": lambda: log(65520),
    "65,504": lambda: (2 - 2**-10) * 2**15,
    "2.15": lambda: 80 * 2**30 / 4 / 1e10,
}
QUOTED = {}
