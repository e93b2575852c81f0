"""Times one case: all contenders in turn in this process, on the same numbers."""

import contextlib
import ctypes
import functools
import gc
import math
import statistics
import time

import torch
import torch.nn.functional as functional

from binding import Session
from compare_cases import flops, met, target_of
from compare_reference import Reference, agree, attention, relative_rms

try:
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:  # before torch 2.3
    SDPBackend = sdpa_kernel = None

GRADIENTS = ("dq", "dk", "dv")


def flash():
    """A context in which the flash back end is the only one."""
    return sdpa_kernel(SDPBackend.FLASH_ATTENTION)


@functools.lru_cache(maxsize=None)
def back_end():
    """(is the flash back end there?, what the derivative of its result calls itself, or why not)."""
    x = torch.zeros(1, 1, 8, 16, requires_grad=True)
    if sdpa_kernel is None:
        return False, "this torch has no torch.nn.attention.sdpa_kernel"
    try:
        with flash():
            return True, functional.scaled_dot_product_attention(x, x, x).grad_fn.name()
    except RuntimeError as error:
        return False, str(error).splitlines()[0]


def forced():
    """The context that PyTorch is timed in: with the flash back end alone, where it is there."""
    return flash() if back_end()[0] else contextlib.nullcontext()


def sdpa(q, k, v, causal):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def inputs(case, factor=1):
    """Q, K, V and dO, normal, the same for all cases of one size."""
    generator = torch.Generator().manual_seed(1)
    q, k, v, d_o = (torch.randn(1, case["heads"], case["n"], case["d"], generator=generator) for _ in range(4))
    return factor * q, k, v, d_o


@functools.lru_cache(maxsize=2)
def reference(d, n, heads, causal, backward):
    q, k, v, d_o = inputs({"d": d, "n": n, "heads": heads})
    return Reference(q, k, v, 1 / math.sqrt(d), causal, d_o if backward else None)


def tensor_of(session, name):
    pointer, size, shape = session.result(name)
    return torch.frombuffer((ctypes.c_char * size).from_address(pointer), dtype=torch.float32).reshape(shape).clone()


class Ours:
    """A pass of a step."""

    def __init__(self, session, case, tiles, threads=None, causal=None):
        self.session, self.case, self.inside = session, case, []
        self.threads = threads or case["threads"]
        self.causal = case["causal"] if causal is None else causal
        self.one = functools.partial(session.compute, case["step"], case["backward"], self.causal, self.threads, tiles)
        if case["backward"]:  # from O and L of this one
            session.compute(case["step"], False, self.causal, self.threads)

    def prepare(self):
        """There is nothing to set."""

    def __call__(self):
        return self.one()

    def results(self, _):
        return {of: tensor_of(self.session, of) for of in (GRADIENTS if self.case["backward"] else ("o", "lse"))}


class Theirs:
    """PyTorch's scaled_dot_product_attention, or the gradients of it; no gradient is recorded in a forward pass."""

    def __init__(self, q, k, v, d_o, case, threads=None):
        self.q, self.k, self.v, self.d_o, self.case = q, k, v, d_o, case
        self.threads = threads or case["threads"]
        if case["backward"]:
            self.leaves = [x.clone().requires_grad_() for x in (q, k, v)]
            torch.set_num_threads(self.threads)
            self.out = sdpa(*self.leaves, case["causal"])

    def prepare(self):
        torch.set_num_threads(self.threads)

    def __call__(self):
        if self.case["backward"]:
            return torch.autograd.grad(self.out, self.leaves, self.d_o, retain_graph=True)
        with torch.no_grad():
            return sdpa(self.q, self.k, self.v, self.case["causal"])

    def results(self, returned):
        return dict(zip(GRADIENTS, returned)) if self.case["backward"] else {"o": returned}


class Product:
    """A product of two matrices of 2048 x 2048."""

    def __init__(self, threads, n=2048):
        self.a, self.b, self.threads = torch.randn(n, n), torch.randn(n, n), threads
        self.flops = 2 * n ** 3

    def prepare(self):
        torch.set_num_threads(self.threads)

    def __call__(self):
        return torch.mm(self.a, self.b)


def rounds_of(contenders, rounds):
    """Seconds of each contender, round by round: one timed call after one that is not, the first to go changing from round to round."""
    seconds = {name: [] for name in contenders}
    gc.collect()
    gc.disable()
    try:
        for r in range(rounds):
            names = list(contenders)
            for name in names[r % len(names):] + names[:r % len(names)]:
                contender = contenders[name]
                contender.prepare()
                contender()
                start = time.perf_counter()
                returned = contender()
                seconds[name].append(time.perf_counter() - start)
                if isinstance(contender, Ours):
                    contender.inside.append(returned.seconds)
                del returned  # memory is given back outside of what is timed
    finally:
        gc.enable()
    return seconds


def spread(values):
    return {"value": statistics.median(values), "min": min(values), "max": max(values), "all": values}


def ratios(over, under):
    return [a / b for a, b in zip(over, under)]


def judged(case, ours, theirs):
    """Runs both once: shares of their budgets, and what is wrong, a line each."""
    right = reference(case["d"], case["n"], case["heads"], case["causal"], case["backward"])
    wrong, shares, results = [], {}, {}
    for who, contender in (("step", ours), ("PyTorch", theirs)):
        contender.prepare()
        results[who] = contender.results(contender())
        shares[who], outside = right.hold(who, results[who])
        wrong += outside
    return shares, wrong + agree(results["step"], results["PyTorch"], right.budget)


def error_case(library, case, tiles):
    """Relative rms errors with Q times 4."""
    q, k, v, _ = inputs(case, factor=4)
    torch.set_num_threads(case["threads"])
    scale = 1 / math.sqrt(case["d"])
    with Session(library, q, k, v) as session:
        ours = Ours(session, case, tiles)
        found = ours.results(ours())["o"]
    heads = range(case["heads"])
    right, naive = (torch.stack([attention(*(x[0, h].to(kind) for x in (q, k, v)), scale, case["causal"])["o"] for h in heads])[None] for kind in (torch.float64, torch.float32))
    with torch.no_grad():
        other = sdpa(q, k, v, case["causal"])
    errors = {who: relative_rms(x, right) for who, x in (("step", found), ("naive", naive), ("pytorch", other))}
    return {"value": errors["step"] / errors["naive"], "errors": errors, "theirs": errors["pytorch"] / errors["naive"]}


def measure(*arguments):
    """The case with its result. `wrong` lists what did not agree: then nothing was timed.

    Arguments: the library, the case, how many rounds, the tiles or (0, 0), and whether the cores are hyperthreads.
    """
    with forced():
        return measured(*arguments)


def measured(library, case, rounds, tiles, hyperthreads):
    simd_bytes = library.description()["simd_bytes"]
    target, row = target_of(case, simd_bytes)
    result = dict(case)
    if case["kind"] == "error":
        result |= error_case(library, case, tiles)
        return result | {"target": target, "target_row": row, "met": met(case, result["value"], target)}
    q, k, v, d_o = inputs(case)
    with Session(library, q, k, v, d_o) as session:
        ours, theirs = Ours(session, case, tiles), Theirs(q, k, v, d_o, case)
        torch.set_num_threads(case["threads"])
        result["budget_shares"], wrong = judged(case, ours, theirs)
        if wrong:
            return result | {"wrong": wrong, "target": target, "target_row": row, "met": False}
        contenders = {"ours": ours}
        if case["kind"] == "pytorch":
            contenders["theirs"] = theirs
        elif case["kind"] == "sgemm":
            contenders["theirs"] = Product(case["threads"])
        elif case["kind"] == "threads":
            contenders |= {"ours_one": Ours(session, case, tiles, threads=1), "theirs": theirs, "theirs_one": Theirs(q, k, v, d_o, case, threads=1)}
        elif case["kind"] == "causal":
            full = case | {"causal": False}
            contenders |= {"ours_full": Ours(session, case, tiles, causal=False), "theirs": theirs, "theirs_full": Theirs(q, k, v, d_o, full)}
        done = ours()
        result["tiles"] = [done.taken_br, done.taken_bc]
        times = rounds_of(contenders, rounds)
    if case["kind"] == "pytorch":
        result |= spread(ratios(times["theirs"], times["ours"]))
    elif case["kind"] == "sgemm":
        share = flops(case) / contenders["theirs"].flops
        result |= spread([share * x for x in ratios(times["theirs"], times["ours"])])
    else:
        other = {"threads": "one", "causal": "full"}[case["kind"]]
        result |= spread(ratios(times[f"ours_{other}"], times["ours"]))
        result["theirs"] = statistics.median(ratios(times[f"theirs_{other}"], times["theirs"]))
        if case["kind"] == "threads" and hyperthreads:
            target, row = result["theirs"], "PyTorch's own, for the cores are hyperthreads"
    seconds = statistics.median(times["ours"])
    peak = library.peak(case["threads"])
    result |= {"seconds": times, "inside_seconds": ours.inside, "gflops": flops(case) / seconds / 1e9, "peak_gflops": peak}
    if peak > 0:
        result["share_of_peak"] = result["gflops"] / peak
    if case["kind"] in ("pytorch", "sgemm"):
        work = flops(case) if case["kind"] == "pytorch" else contenders["theirs"].flops
        result["theirs_gflops"] = work / statistics.median(times["theirs"]) / 1e9
    return result | {"target": target, "target_row": row, "met": met(case, result["value"], target)}
