"""What compare.py compares, and the targets. Nothing here needs torch.

A case is a dictionary: kind, name and sizes. The kinds:

  pytorch  time of PyTorch / time of the step
  sgemm    GF/s of the step / GF/s of a product of two matrices of 2048 x 2048
  threads  time on one thread / time on several
  causal   time without a mask / time with one, of the same step
  error    relative rms error of the step / that of standard attention in float, both against double; here less is better

`make bench` compares with plain Eigen.
"""

DIMS, LENGTHS = (64, 128), (1024, 2048, 4096, 8192)
# On AVX-512: {pass: {d: (full, causal)}}. In a library without it, the one row of AVX2
AVX512 = {d: (1.2, 1.3) if d == 64 else (1.1, 1.2) if d == 128 else (1.05, 1.2) for d in (32, 64, 96, 128, 256)}
AVX2 = (1.05, 1.2)
OTHERS = {"sgemm": (0.9, 0.85), "threads": (1.8, 1.8), "causal": (None, 1.85), "error": (1.5, 1.5)}


def heads_of(length, threads):
    """How many heads: 8 of the short lengths, fewer of the long ones, as long as every thread has as many.

    PyTorch shares out heads x blocks of rows in equal parts and the heads of a backward pass as they are, so a number of heads that the
    number of threads divides leaves no thread of its waiting. A comparison of numbers of threads takes the same heads for all.
    """
    most = max(1, min(8, 2 * 8192 // length))
    return max(1, -(-most // threads)) * threads


def step_of(backward, causal, chosen=None):
    """The step that is timed: without a mask the first that has the pass, with one 07; or the one that is asked for, if it can."""
    first = 7 if causal else 6 if backward else 5
    return first if chosen is None else max(chosen, first)


def named(case):
    words = [case["kind"], "backward" if case["backward"] else "forward", f"d{case['d']}", f"N{case['n']}", "causal" if case["causal"] else "full",
             f"{case['threads']}-thread" + ("s" if case["threads"] > 1 else "")]
    return case | {"name": " ".join(words)}


def cases(isa, threads=(1, 2), lengths=None, step=None):
    """All cases in a library built for `isa`: "native" has all rows of the table, "avx2" on a processor with AVX-512 the one for AVX2."""
    chosen = []

    def add(kind, d, n, count, backward=False, heads=None):
        for causal in (False, True) if kind != "causal" else (True,):
            chosen.append(named({"kind": kind, "d": d, "n": n, "heads": heads or heads_of(n, max(threads)), "threads": count, "backward": backward,
                                 "causal": causal, "step": step_of(backward, causal, step)}))

    if isa == "avx2":
        for d in DIMS:
            for n in lengths or (1024, 4096):
                for count in threads:
                    add("pytorch", d, n, count)
        return chosen
    for backward in (False, True):
        for d in DIMS:
            for n in lengths or LENGTHS:
                for count in threads:
                    add("pytorch", d, n, count, backward)
    for backward in (False, True):
        for d in (32, 96, 256):
            for n in lengths or (2048,):
                add("pytorch", d, n, min(threads), backward)
    for n in lengths or (4096,):
        add("sgemm", 128, n, min(threads))
    for d in DIMS:
        if max(threads) > 1:
            for n in lengths or (1024, 4096):
                add("threads", d, n, max(threads))
        for n in lengths or (8192,):
            add("causal", d, n, min(threads))
            add("error", d, n, min(threads), heads=1)
    return chosen


def filtered(all_cases, words):
    """Those in whose name all of these words stand."""
    return [case for case in all_cases if {word.lower() for word in words} <= set(case["name"].lower().split())]


def target_of(case, simd_bytes):
    """The target of a case in a library with registers of so many bytes: (number, which row of the table)."""
    causal = bool(case["causal"])
    if case["kind"] != "pytorch":
        return OTHERS[case["kind"]][causal], case["kind"]
    if simd_bytes < 64:
        return AVX2[causal], "AVX2"
    return AVX512[case["d"]][causal], "AVX-512"


def met(case, value, target):
    """Is the target met? NaN meets none."""
    return bool(value <= target) if case["kind"] == "error" else bool(value >= target)


def flops(case):
    """Operations of the products of a pass: 4 N^2 d a head forward, 10 backward, with a mask only what is seen."""
    n = case["n"]
    pairs = n * (n + 1) // 2 if case["causal"] else n * n
    return (10 if case["backward"] else 4) * pairs * case["d"] * case["heads"]
