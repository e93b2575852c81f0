"""Attention by its definition, head by head and some rows at a time, and how far from it in double a result in float may be.

The error budget of docs/numerics.md: 2 times (gradients: 3) the error of standard attention in float, or the floor that stands there.
"""

import math

import torch

ROWS = 512


def attention(q, k, v, scale, causal, d_o=None):
    """o, lse, and with d_o dq, dk and dv, of one head [rows, columns], in the type of q."""
    n, m = q.shape[0], k.shape[0]
    out = {"o": torch.empty(n, v.shape[1], dtype=q.dtype), "lse": torch.empty(n, dtype=q.dtype)}
    if d_o is not None:
        out |= {"dq": torch.empty_like(q), "dk": torch.zeros_like(k), "dv": torch.zeros_like(v)}
    for i in range(0, n, ROWS):
        rows = slice(i, min(i + ROWS, n))
        s = scale * (q[rows] @ k.T)
        if causal:
            s.masked_fill_(torch.arange(m)[None, :] > torch.arange(rows.start, rows.stop)[:, None] + m - n, -math.inf)
        out["lse"][rows] = torch.logsumexp(s, dim=1)
        p = torch.softmax(s, dim=1)
        out["o"][rows] = p @ v
        if d_o is None:
            continue
        ds = p * (d_o[rows] @ v.T - (d_o[rows] * out["o"][rows]).sum(dim=1, keepdim=True))
        out["dq"][rows] = scale * (ds @ k)
        out["dk"] += scale * (ds.T @ q[rows])
        out["dv"] += p.T @ d_o[rows]
    return out


def floors(q, k, v, scale, causal, lse, d_o=None):
    """The sizes that rounding errors are measured by, for one head, in the type of q."""
    n, m = q.shape[0], k.shape[0]
    a = g = 0.0
    pq, pdo = torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, n, ROWS):
        rows = slice(i, min(i + ROWS, n))
        hidden = torch.arange(m)[None, :] > torch.arange(rows.start, rows.stop)[:, None] + m - n if causal else torch.zeros(1, 1, dtype=torch.bool)
        a = max(a, (abs(scale) * (q[rows].abs() @ k.abs().T)).masked_fill(hidden, 0).max().item())
        if d_o is None:
            continue
        g = max(g, (d_o[rows].abs() @ v.abs().T).masked_fill(hidden, 0).max().item())
        p = torch.exp(scale * (q[rows] @ k.T) - lse[rows, None]).masked_fill(hidden, 0)
        pq += p.T @ q[rows].abs()
        pdo += p.T @ d_o[rows].abs()
    k_most, v_most = k.abs().max().item(), v.abs().max().item()
    return {"o": v_most * (1 + a), "lse": 1 + a, "dq": abs(scale) * (1 + a) * g * k_most, "dk": abs(scale) * (1 + a) * g * pq.max().item(), "dv": (1 + a) * pdo.max().item()}


class Reference:
    """The results of all heads in double, and the budget of each."""

    def __init__(self, q, k, v, scale, causal, d_o=None):
        """Tensors in float, [1, heads, rows, columns], as many heads of K and V as of Q."""
        self.right, self.budget = {}, {}
        naive, size = {}, {}
        for h in range(q.shape[1]):
            head = [x[0, h] for x in (q, k, v)] + [scale, causal, None if d_o is None else d_o[0, h]]
            double = attention(*(x.double() if torch.is_tensor(x) else x for x in head))
            single = attention(*head)
            size_of_head = floors(*head[:5], double["lse"].float(), head[5])
            for of, x in double.items():
                self.right.setdefault(of, []).append(x)
                naive[of] = max(naive.get(of, 0.0), (single[of] - x).abs().max().item())
                size[of] = max(size.get(of, 0.0), size_of_head[of])
        for of, parts in self.right.items():
            self.right[of] = torch.stack(parts)[None]
            self.budget[of] = (2 if of in ("o", "lse") else 3) * max(naive[of], 2 * 2.0 ** -24 * size[of])

    def hold(self, who, results):
        """{of: error / budget}, and what is outside, a line each."""
        shares, outside = {}, []
        for of, x in results.items():
            right = self.right[of]
            error = (x.double() - right).abs().max().item() if x.shape == right.shape else math.nan
            shares[of] = error / self.budget[of]
            if not error <= self.budget[of]:
                outside.append(f"{of} of {who} is {error:.2g} from the definition, {self.budget[of]:.2g} are allowed")
        return shares, outside


def agree(one, other, budget):
    """What of two results is further apart than two budgets, a line each."""
    lines = []
    for of in one.keys() & other.keys():
        distance = (one[of].double() - other[of].double()).abs().max().item()
        if not distance <= 2 * budget[of]:
            lines.append(f"{of} differs by {distance:.2g}, {2 * budget[of]:.2g} are allowed")
    return lines


def relative_rms(x, right):
    """Root of the mean square of the error, by that of what is right."""
    return ((x.double() - right).square().mean().sqrt() / right.square().mean().sqrt()).item()
