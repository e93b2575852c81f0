"""What the tests of the programs hold the programs to: attention in NumPy with its error budget, and the seeded numbers.

Nothing here comes from the project: the formulas are those of the papers, the seeded numbers those of the C++ standard and of libstdc++.
"""

import functools
import math
import os

from program_helpers import BACKWARD, FORWARD, check, np

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common", "data", "minilm")


# Arrays are [batch, heads, seq, dim]; attention is computed in the number type that they have.

def seen(queries, keys, causal):
    """Which keys a query sees, [seq_q, seq_k]."""
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    return (j <= i + keys - queries) if causal else np.ones((queries, keys), bool)


@np.errstate(all="ignore")
def attention(q, k, v, scale, causal=False, do=None):
    """o and lse, and with do the gradients too. Row by row where something is not finite: what is masked is absent."""
    batch, heads, queries, _ = q.shape
    group = heads // k.shape[1] if k.shape[1] else 1
    kind = q.dtype.type
    mask = seen(queries, k.shape[2], causal)
    out = {"o": np.zeros(q.shape[:3] + v.shape[3:], kind), "lse": np.full(q.shape[:3], -np.inf, kind)}
    if do is not None:
        out |= {"dq": np.zeros_like(q), "dk": np.zeros_like(k), "dv": np.zeros_like(v)}
    finite = all(np.isfinite(x).all() for x in (q, k, v, do) if x is not None and x.size)
    for b, h in np.ndindex(batch, heads):
        g = h // group
        rows = [slice(0, queries)] if finite else [slice(i, i + 1) for i in range(queries)]
        for i in rows:
            n = k.shape[2] if finite else int(mask[i].sum())   # the keys that this row sees are the first n
            if n == 0 or i.stop == 0:
                continue
            k_n, v_n = k[b, g, :n], v[b, g, :n]
            s = np.where(mask[i, :n], kind(scale) * (q[b, h, i] @ k_n.T), kind(-np.inf))
            top = s.max(axis=1, keepdims=True)
            empty = top == -np.inf
            p = np.exp(s - np.where(empty, kind(0), top))
            total = p.sum(axis=1, keepdims=True)
            p = np.where(empty, kind(0), p / np.where(empty, kind(1), total))
            out["o"][b, h, i] = np.where(empty, kind(0), p @ v_n)
            out["lse"][b, h, i] = np.where(empty, kind(-np.inf), top + np.log(np.where(empty, kind(1), total)))[:, 0]
            if do is None:
                continue
            dp = do[b, h, i] @ v_n.T
            ds = kind(scale) * (p * (dp - (do[b, h, i] * out["o"][b, h, i]).sum(axis=1, keepdims=True)))
            ds = np.where(empty | ~mask[i, :n], kind(0), ds)
            out["dq"][b, h, i] = np.where(empty, kind(0), ds @ k_n)
            if finite or not empty.all():
                out["dk"][b, g, :n] += ds.T @ q[b, h, i]
                out["dv"][b, g, :n] += p.T @ do[b, h, i]
    return out


def finite_part(x):
    return np.where(np.isfinite(x), np.abs(x), 0)


def largest(x):
    return float(np.max(x)) if np.size(x) else 0.0


@np.errstate(all="ignore")
def floors(q, k, v, scale, causal, do, p):
    """The sizes that rounding errors are measured by (docs/numerics.md)."""
    a = g = k_most = v_most = pq_most = pdo_most = 0.0
    group = q.shape[1] // k.shape[1] if k.shape[1] else 1
    mask = seen(q.shape[2], k.shape[2], causal)
    for b, kv in np.ndindex(q.shape[0], k.shape[1]):
        pq, pdo = np.zeros(k.shape[2:]), np.zeros(v.shape[2:])
        visible = mask.any(axis=0) if mask.size else np.zeros(k.shape[2], bool)
        k_most, v_most = max(k_most, largest(finite_part(k[b, kv, visible]))), max(v_most, largest(finite_part(v[b, kv, visible])))
        for h in range(kv * group, (kv + 1) * group):
            a = max(a, largest(finite_part(abs(scale) * (np.abs(q[b, h]) @ np.abs(k[b, kv]).T)) * mask))
            if do is None:
                continue
            g = max(g, largest(finite_part(np.abs(do[b, h]) @ np.abs(v[b, kv]).T) * mask))
            pq += finite_part(p[b, h]).T @ finite_part(q[b, h])
            pdo += finite_part(p[b, h]).T @ finite_part(do[b, h])
        pq_most, pdo_most = max(pq_most, largest(pq)), max(pdo_most, largest(pdo))
    return {"o": v_most * (1 + a), "lse": 1 + a, "dq": abs(scale) * (1 + a) * g * k_most, "dk": abs(scale) * (1 + a) * g * pq_most, "dv": (1 + a) * pdo_most}


@np.errstate(all="ignore")
def weights(q, k, scale, causal, lse):
    group = q.shape[1] // k.shape[1] if k.shape[1] else 1
    s = float(scale) * (q @ np.repeat(k, group, axis=1).swapaxes(2, 3))
    p = np.exp(s - lse[..., None])
    return np.where(seen(q.shape[2], k.shape[2], causal) & (lse[..., None] != -np.inf), p, 0)


def distance(found, reference, of):
    """max |found - reference|; NaN where one is spoiled and the other is not. A lost value may be NaN for infinity, but not in lse."""
    good = np.isfinite(found) & np.isfinite(reference)
    if of == "lse":
        alike = (found == reference) | (np.isnan(found) & np.isnan(reference))
    else:
        alike = ~np.isfinite(found) & ~np.isfinite(reference)
    if not (good | alike).all():
        return math.nan
    return largest(np.abs(found[good].astype(reference.dtype) - reference[good]))


class Judge:
    """Attention of one input in a wider type, and how far from it a result in `dtype` may be."""

    def __init__(self, q, k, v, scale=None, causal=False, do=None, dtype="float"):
        narrow, wide = (np.float32, np.float64) if dtype == "float" else (np.float64, np.longdouble)
        with np.errstate(all="ignore"):
            q, k, v = (x.astype(narrow) for x in (q, k, v))
            do = None if do is None else do.astype(narrow)
        self.dtype, self.unit, self.narrow = dtype, float(np.finfo(narrow).eps) / 2, narrow
        self.scale = float(narrow(1 / math.sqrt(q.shape[3]) if scale is None else scale))
        to = lambda kind: [x.astype(kind) for x in (q, k, v)] + [kind(self.scale), causal, None if do is None else do.astype(kind)]
        self.right, naive = attention(*to(wide)), attention(*to(narrow))
        double = to(np.float64)
        p = None if do is None else weights(double[0], double[1], self.scale, causal, self.right["lse"].astype(np.float64))
        size = floors(*double[:3], self.scale, causal, double[5], p)
        self.budget = {}
        for of, reference in self.right.items():
            with np.errstate(all="ignore"):
                mistake = largest(finite_part(naive[of].astype(wide) - reference))
            self.budget[of] = (2 if of in ("o", "lse") else 3) * max(mistake, 2 * self.unit * size[of])
        self.floor = {of: (2 if of in ("o", "lse") else 3) * 2 * self.unit * size[of] for of in self.right}

    def hold(self, step, report, out, what, layout="bhsd"):
        """Shape, type and every number of the output files, and the errors and budgets that the program reports."""
        for of, reference in self.right.items():
            found = out.get(of)
            if found is None:
                check(False, f"{what}: {of} is missing")
                continue
            if layout == "bshd" and of != "lse":
                found = found.swapaxes(1, 2)
            if not check(found.shape == reference.shape and found.dtype == self.narrow, f"{what}: {of} is {found.dtype} {found.shape}, not {self.narrow.__name__} {reference.shape}"):
                continue
            error = distance(found, reference, of)
            check(error <= self.budget[of], f"{what}: {of} is {error} from NumPy's, {self.budget[of]} are allowed")
            form = FORWARD[step] if of in ("o", "lse") else BACKWARD[step]
            said = [c for c in report.get("checks", []) if (c["form"], c["against"], c["of"]) == (form, "definition", of)]
            if not check(len(said) == 1, f"{what}: {len(said)} checks of {of} of {form} against the definition"):
                continue
            near = 1e-3 * error + (1e-5 if self.dtype == "float" else 0.02) * self.budget[of]
            check(said[0]["max_error"] is not None and abs(said[0]["max_error"] - error) <= near, f"{what}: {of} is {error} off, but the program says {said[0]['max_error']}")
            check(said[0]["budget"] >= 0.999 * self.floor[of] and said[0]["budget"] <= 10 * self.budget[of] + 1e-300,
                  f"{what}: the budget of {of} is {said[0]['budget']}, by NumPy {self.budget[of]}")


def self_test():
    """The comparison must fail where it should, and attention in NumPy is its definition, a plain loop."""
    one = np.array([1.0, 0.0])
    for found, alike, of in (([1, 0], True, "o"), ([np.nan, 0], False, "o"), ([1, np.inf], False, "lse"), ([1, 0.5], True, "o")):
        check(np.isfinite(distance(np.array(found, float), one, of)) == alike, f"self-test: {found}")
    lost = np.array([np.nan, 1.0])
    check(distance(np.array([np.inf, 1]), lost, "o") == 0 and math.isnan(distance(np.array([np.inf, 1]), lost, "lse")) and math.isnan(distance(one, lost, "o")), "self-test: NaN")
    q, k, v, do = seeded(1, 2, 1, 3, 4, 2, 3, 1)
    out = attention(q, k, v, 0.7, True, do)
    for h, i in np.ndindex(2, 3):
        weight = [math.exp(0.7 * sum(q[0, h, i, x] * k[0, 0, j, x] for x in range(2))) for j in range(i + 2)]
        check(abs(out["lse"][0, h, i] - math.log(sum(weight))) < 1e-14, "self-test: lse")
        for e in range(3):
            check(abs(out["o"][0, h, i, e] - sum(w * v[0, 0, j, e] for j, w in enumerate(weight)) / sum(weight)) < 1e-14, "self-test: o")
    for name, x in (("dq", q), ("dk", k), ("dv", v)):                          # central differences of sum(o * do)
        for place in np.ndindex(x.shape):
            step = [x.copy(), x.copy()]
            step[0][place] += 1e-5
            step[1][place] -= 1e-5
            ends = [(attention(*(y if t is x else t for t in (q, k, v)), 0.7, True)["o"] * do).sum() for y in step]
            check(abs(out[name][place] - (ends[0] - ends[1]) / 2e-5) < 1e-8, f"self-test: {name}{list(place)}")


# The seeded numbers: Q, K, V, and dO, in this order from one generator.

class Twister:
    """std::mt19937_64 and libstdc++'s std::normal_distribution<double> (the polar method, which keeps every second number)."""

    def __init__(self, seed):
        self.words, mask = [seed & (1 << 64) - 1], (1 << 64) - 1
        for i in range(1, 312):
            self.words.append(6364136223846793005 * (self.words[-1] ^ self.words[-1] >> 62) + i & mask)
        self.at = 312

    def __call__(self):
        if self.at == 312:
            w = self.words
            for i in range(312):
                x = w[i] & 0xFFFFFFFF80000000 | w[(i + 1) % 312] & 0x7FFFFFFF
                w[i] = w[(i + 156) % 312] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
            self.at = 0
        x = self.words[self.at]
        self.at += 1
        x ^= x >> 29 & 0x5555555555555555
        x ^= x << 17 & 0x71D67FFFEDA60000
        x ^= x << 37 & 0xFFF7EEE000000000
        return x ^ x >> 43

    def unit(self):
        return min(float(self()) / 2.0**64, math.nextafter(1.0, 0.0))

    def tensor(self, *shape):
        """Each tensor begins with a distribution of its own."""
        numbers, count = [], math.prod(shape)
        while len(numbers) < count:
            x, y = 2 * self.unit() - 1, 2 * self.unit() - 1
            r2 = x * x + y * y
            if 0 < r2 <= 1:
                factor = math.sqrt(-2 * math.log(r2) / r2)
                numbers += [y * factor, x * factor]
        return np.array(numbers[:count], np.float64).reshape(shape)


@functools.lru_cache(maxsize=None)
def seeded_gradient(seed, *shape):
    """dO of a program that got Q, K and V from elsewhere."""
    return Twister(seed).tensor(*shape)


def seeded(batch, heads, kv_heads, seq_q, seq_k, head_dim, value_dim, seed):
    random = Twister(seed)
    return (random.tensor(batch, heads, seq_q, head_dim), random.tensor(batch, kv_heads, seq_k, head_dim), random.tensor(batch, kv_heads, seq_k, value_dim),
            random.tensor(batch, heads, seq_q, value_dim))


def shipped(layer):
    return tuple(np.load(os.path.join(DATA, f"layer{layer}_{x}.npy")) for x in "qkv")


def pooled(x, group):
    """One head of K or V for `group`, their mean, rounded once."""
    batch, heads, *rest = x.shape
    return x.astype(np.float64).reshape(batch, heads // group, group, *rest).mean(axis=2).astype(x.dtype)
