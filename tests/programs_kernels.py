"""Tests of the programs with --device cuda-on-cpu: values, types, tiles, tracing, and what is refused."""

import os

from program_helpers import BACKWARD, NAMES, STEPS, check, np
from programs_bad import refuse
from programs_numpy import Judge, distance, floors

ON_CPU = ["--device", "cuda-on-cpu"]
TENSOR_CORES = (4, 5, 7, 8)


def stepwise(rng, *shape):
    """Numbers that float, half and bfloat16 hold alike."""
    return (rng.integers(-12, 13, shape) / 8).astype(np.float32)


def problem(step, rng, batch=2, heads=2, seq_q=37, seq_k=45, dim=20, value_dim=13):
    kv = heads // 2 if step == 8 else heads
    q, k, v = stepwise(rng, batch, heads, seq_q, dim), stepwise(rng, batch, kv, seq_k, dim), stepwise(rng, batch, kv, seq_k, value_dim)
    return q, k, v, stepwise(rng, batch, heads, seq_q, value_dim)


def rounded(x, kind):
    """x as half or bfloat16 holds it, to nearest, ties to even."""
    if kind == "half":
        return x.astype(np.float16).astype(np.float32)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def narrow_budget(q, k, v, causal, kind):
    """Of o and lse: standard attention that sums in float and rounds S, P and O."""
    right = Judge(q, k, v, causal=causal).right
    scale = np.float32(1 / np.sqrt(q.shape[3]))
    group = q.shape[1] // k.shape[1]
    k_all, v_all = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = rounded((q @ k_all.swapaxes(2, 3)) * scale, kind)
    if causal:
        i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None, :]
        s = np.where(j <= i + k.shape[2] - q.shape[2], s, np.float32(-np.inf))
    top = s.max(axis=3, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(axis=3, keepdims=True)
    naive = {"o": rounded(rounded(p / total, kind) @ v_all, kind), "lse": (top + np.log(total))[..., 0]}
    unit = 2.0**-11 if kind == "half" else 2.0**-8
    size = floors(*(x.astype(np.float64) for x in (q, k, v)), float(scale), causal, None, None)
    return right, {of: 2 * max(float(np.abs(naive[of].astype(np.float64) - right[of]).max()), 2 * unit * size[of]) for of in ("o", "lse")}


def values(programs, step, rng):
    q, k, v, do = problem(step, rng)
    for causal in (False, True)[: 1 + (step >= 7)]:
        mask = ["--causal"] * causal
        judge = Judge(q, k, v, causal=causal, do=do if step >= 6 else None)
        for layout in ("bhsd", "bshd"):
            turn = (lambda x: x) if layout == "bhsd" else (lambda x: x.swapaxes(1, 2))
            files = programs.files(turn(q), turn(k), turn(v), turn(do) if step >= 6 else None)
            report, out = programs.solve(step, *files, "--layout", layout, *mask, *ON_CPU)
            what = f"{NAMES[step]} {ON_CPU[1]} {layout} {mask}"
            check(report.get("device") == "cuda-on-cpu" and report.get("equal") is True and len(report.get("kernels", [])) >= 1, f"{what}: {report.get('device')}, {report.get('equal')}")
            for of, reference in judge.right.items():
                found = out[of] if of == "lse" else turn(out[of])
                if check(found.shape == reference.shape and found.dtype == np.float32, f"{what}: {of} is {found.dtype} {found.shape}"):
                    error = distance(found, reference, of)
                    check(error <= judge.budget[of], f"{what}: {of} is {error} from NumPy's, {judge.budget[of]} are allowed")
            against = {c["against"] for c in report.get("checks", [])}
            check("definition" in against, f"{what}: held to {against}")
            if step not in (1, 6):
                check(any(a.startswith("0") for a in against), f"{what}: no kernel of a step before among {against}")
        for kind in ("half", "bfloat16") if step in TENSOR_CORES else ():
            right, budget = narrow_budget(q, k, v, causal, kind)
            folder = programs.new("out")
            report = programs.json(step, *programs.files(q, k, v), *mask, *ON_CPU, "--dtype", kind, "--output", folder)
            check(sorted(os.listdir(folder)) == ["lse.npy", "o.npy"], f"{NAMES[step]} {kind}: files {os.listdir(folder)}")
            o, lse = np.load(os.path.join(folder, "o.npy")), np.load(os.path.join(folder, "lse.npy"))
            check(o.dtype == (np.float16 if kind == "half" else np.float32) and lse.dtype == np.float32, f"{NAMES[step]} {kind}: types {o.dtype}, {lse.dtype}")
            check(report.get("dtype") == kind, f"{NAMES[step]} {kind}: dtype {report.get('dtype')}")
            check(np.array_equal(rounded(o.astype(np.float32), kind), o.astype(np.float32)), f"{NAMES[step]} {kind}: o is more exact than the type")
            for of, found in (("o", o.astype(np.float64)), ("lse", lse.astype(np.float64))):
                error = distance(found, right[of], of)
                check(error <= budget[of], f"{NAMES[step]} {kind}: {of} is {error} from NumPy's, {budget[of]} are allowed")


def kernels(programs):
    rng = np.random.default_rng(1)
    small = ["--seq-q", 20, "--seq-k", 33, "--head-dim", 8]
    for step in STEPS:
        values(programs, step, rng)
        for shape in (["--seq-q", 0, "--seq-k", 5], ["--seq-q", 5, "--seq-k", 0], ["--seq-q", 1, "--seq-k", 1, "--head-dim", 1], ["--batch", 0]):
            programs.json(step, *shape, *ON_CPU)

        # Traced: bytes are the closed form, and the program says so
        report = programs.json(step, *small, *ON_CPU, "--trace-kernel")
        for kernel in report.get("kernels", []):
            traced = kernel.get("traced", {})
            check(traced.get("equals_formula") is True and set(kernel["formula"]) <= set(traced["arrays"]), f"{NAMES[step]} --trace-kernel: {kernel['name']}, {traced}")
            for name, formula in kernel["formula"].items():
                seen = traced["arrays"].get(name, {})
                check(formula["bytes_read"] == seen.get("bytes_read") and formula["bytes_written"] == seen.get("bytes_written"), f"{NAMES[step]} {name}: {seen}, not {formula}")
        text = programs.right(step, *small, *ON_CPU, "--trace-kernel").out
        check("bytes moved = formula" in text and "passes over the banks" in text, f"{NAMES[step]} --trace-kernel: {text!r}")

        # What is refused
        refuse(programs, step, *small, *ON_CPU, "--dtype", "double", says=["--dtype double", "float"])
        refuse(programs, step, "--seq-q", 3, "--head-dim", 257, *ON_CPU, says=["head_dim 257", "256"])
        refuse(programs, step, "--seq-q", 3, "--head-dim", 8, "--value-dim", 300, *ON_CPU, says=["value_dim 300", "256"])
        refuse(programs, step, *small, "--trace-kernel", says="--device cuda-on-cpu")
        refuse(programs, step, *small, *ON_CPU, "--trace", 0, says="--trace")
        for kind in ("half", "bfloat16"):
            refuse(programs, step, *small, "--dtype", kind, says=[kind, "cuda-on-cpu"])
            if step not in TENSOR_CORES:
                refuse(programs, step, *small, *ON_CPU, "--dtype", kind, says=[kind, "04, 05, 07, 08"])
        if step in BACKWARD:
            refuse(programs, step, *programs.files(*problem(step, rng)), *ON_CPU, "--dtype", "half", says=["--do", "half"])
        if step >= 4:
            refuse(programs, step, *small, *ON_CPU, "--br", 7, says=["--br 7", "32 x 32"])
            refuse(programs, step, *small, *ON_CPU, "--sram", 4000, says="--sram")
            compiled = programs.json(step, *small, *ON_CPU, "--bc", 16)
            check(compiled.get("tiles", {}).get("bc") == 16, f"{NAMES[step]} --bc 16: {compiled.get('tiles')}")
