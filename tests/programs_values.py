"""Tests of the programs: what they compute, held to NumPy in a wider type and to numbers that another implementation printed."""

from program_helpers import NAMES, STEPS, check, np
from programs_numpy import Judge, pooled, seeded, seeded_gradient, shipped


def close(found, printed, what, tolerance=2e-6):
    """Float results beside printed ones; a sum may be off by the tolerance for every element."""
    found, printed = np.asarray(found, np.float64), np.asarray(printed, np.float64)
    with np.errstate(invalid="ignore"):
        same = (found == printed) | (np.abs(found - printed) <= tolerance)
    check(found.shape == printed.shape and same.all(), f"{what}: {found.tolist()}, printed are {printed.tolist()}")


# Sums of O, of O^2 and of LSE; O[0,3,100,0:4]; LSE[0,3,100] (data/minilm/README.md: PyTorch in float64)
PRINTED = {
    (0, "full"): (2055.599012851646, 7078.414628371938, 41628.03488490246, (0.131540430387, 0.298875714042, 0.0767948227909, -0.273554154815), 5.98201704778),
    (0, "causal"): (1681.7242230909483, 7264.099549345173, 37990.450037583796, (0.13088981694, 0.409424338682, 0.142793924193, -0.148974222811), 4.95514253899),
    (5, "full"): (148.3954602187489, 6644.281076812498, 21438.958851256368, (0.0194976654224, 0.128394301189, -0.245416016963, 0.092929983875), 5.46435851882),
    (5, "causal"): (904.2487575950436, 7820.009921687573, 18932.673751865455, (0.00316365784964, 0.187801721598, -0.0998195406488, 0.147293354262), 4.48638238871),
    (0, "pooled"): (2070.996178748399, 1707.7995005891826, 24319.04768618892, (0.0400925797953, 0.308901367436, 0.00494509343841, -0.0404624018198), None),
    (5, "pooled"): (292.6814222567002, 2244.4284040455996, 18338.694992295605, (0.124450586964, 0.0684950981059, -0.074448694709, 0.165100194256), None)}


def foreign(programs):
    """Real data, against sums from PyTorch; small cases from other projects' bug reports."""
    def hold(step, layer, kind, *arguments, tolerance):
        _, out = programs.solve(step, *arguments)
        total, squares, logs, first, log = PRINTED[layer, kind]
        o, lse = out["o"].astype(np.float64), out["lse"].astype(np.float64)
        what = f"{NAMES[step]}, layer {layer}, {kind}, {arguments[-2:]}"
        for found, right, name, count in ((o.sum(), total, "sum of O", o.size), ((o * o).sum(), squares, "sum of O^2", o.size), (lse.sum(), logs, "sum of LSE", 10 * lse.size)):
            check(abs(found - right) <= tolerance * count, f"{what}: {name} is {found}, PyTorch's {right}")
        close(o[0, 3, 100, :4], first, what, max(100 * tolerance, 1e-12))
        if log:
            close(lse[0, 3, 100], log, what, max(100 * tolerance, 2e-11))
    for layer in (0, 5):
        q, k, v = shipped(layer)
        files = programs.files(q, k, v)
        few = programs.files(q, pooled(k.astype(np.float64), 3), pooled(v.astype(np.float64), 3))
        for step in STEPS if layer == 5 else (4,):                             # layer 0 is the shipped input, held to NumPy elsewhere
            hold(step, layer, "full", *files, tolerance=1e-7)
        for step in (7, 8):
            hold(step, layer, "causal", *files, "--causal", tolerance=1e-7)
        hold(8, layer, "pooled", *few, "--causal", tolerance=1e-7)
        hold(5, layer, "full", *files, "--dtype", "double", tolerance=1e-14)
    hold(8, 5, "causal", *files, "--causal", "--dtype", "double", tolerance=1e-14)
    hold(8, 5, "pooled", *few, "--causal", "--dtype", "double", tolerance=1e-14)
    hold(8, 0, "pooled", tolerance=1e-7)                                       # the shipped input of step 08
    hold(7, 0, "causal", "--dtype", "double", tolerance=1e-14)

    # Rule O of the collected cases: q(n) = ((n^3+2) mod 17 - 8)/8 and so on
    def rule(shape, plus, modulus, minus):
        n = np.arange(int(np.prod(shape)), dtype=np.int64)
        return ((((n % modulus) ** 3 + plus) % modulus - minus) / 8).reshape(shape)
    def case(nq, nk, d):
        return [rule((1, 1, nq, d), 2, 17, 8), rule((1, 1, nk, d), 7, 23, 11), rule((1, 1, nk, d), 5, 29, 14)], rule((1, 1, nq, d), 1, 11, 5)
    for step in (7, 8):
        tensors, _ = case(3, 3, 2)                                             # C28: a scale of 0 is a scale
        for scale in ([], ["--scale", 2**-0.5]):
            _, out = programs.solve(step, *programs.files(*tensors), "--causal", *scale)
            close(out["o"][0, 0], [[-1.125, -1], [-0.548271154487, -1.21627331707], [-0.455847258651, -1.00478236557]], f"C28, {NAMES[step]} {scale}")
        _, out = programs.solve(step, *programs.files(*tensors), "--causal", "--scale", 0)
        close(out["o"][0, 0], [[-1.125, -1], [-0.625, -1.1875], [-0.541666666667, -0.791666666667]], f"C28, {NAMES[step]} --scale 0")
        close(out["lse"][0, 0], [0, 0.69314718056, 1.09861228867], f"C28, {NAMES[step]} --scale 0")
        tensors, _ = case(5, 2, 2)                                             # C03: more queries than keys
        _, out = programs.solve(step, *programs.files(*tensors), "--causal")
        close(out["o"][0, 0], [[0, 0], [0, 0], [0, 0], [-1.125, -1], [-0.774927020207, -1.13127736742]], f"C03, {NAMES[step]}")
        close(out["lse"][0, 0], [-np.inf] * 3 + [-0.165728151841, 0.872836937243], f"C03, {NAMES[step]}")
        tensors, do = case(5, 2, 4)                                            # C04: its gradients
        _, out = programs.solve(step, *programs.files(*tensors, do), "--causal")
        close(out["dq"][0, 0], [[0] * 4] * 4 + [[-0.00957502371447, 0.017235042686, 0.00191500474289, -0.0114900284574]], f"C04, {NAMES[step]}")
        close(out["dv"][0, 0].ravel(), [-0.375, 0.71369474428, -0.0174631628535, 0.767463162854, 0, 0.16130525572, -0.107536837146, 0.107536837146], f"C04, {NAMES[step]}")
        close(out["dk"][0, 0].ravel(), [0.0134050332003, 0.0114900284574, 0.00957502371447, -0.00383000948579, -0.0134050332003, -0.0114900284574, -0.00957502371447,
                                        0.00383000948579], f"C04, {NAMES[step]}")
    one = np.ones((1, 1, 1, 1))                                                # the specification's first vector
    for step in STEPS:
        _, out = programs.solve(step, *programs.files(one, np.arange(3.0).reshape(1, 1, 3, 1), np.arange(1.0, 4).reshape(1, 1, 3, 1)), "--scale", 1, "--dtype", "double")
        close([out["o"].item(), out["lse"].item()], [2.57521038, 2.40760596], f"{NAMES[step]}, three keys", 5.1e-9)


def bits(x):
    return np.ascontiguousarray(x).tobytes()


def files(programs):
    """float16, float32, float64; C and Fortran order; both layouts; scales; dO. The same numbers give the same bits."""
    random = np.random.default_rng(11)
    batch, heads, nq, nk, d, dv = 2, 3, 13, 19, 7, 5
    shapes = [(batch, heads, nq, d), (batch, heads, nk, d), (batch, heads, nk, dv), (batch, heads, nq, dv)]
    for step in STEPS:
        tile = ["--br", 4, "--bc", 8] if step >= 4 else []
        halves = [random.normal(size=shape).astype("<f2") for shape in shapes]
        given = halves if step >= 6 else halves[:3]
        judge = Judge(*halves[:3], do=halves[3] if step >= 6 else None)
        report, first = programs.solve(step, *programs.files(*given), *tile)
        judge.hold(step, report, first, f"{NAMES[step]}, float16 files")
        def same(out, what, transposed=False):
            for of, x in out.items():
                y = first[of].swapaxes(1, 2) if transposed and of != "lse" else first[of]
                check(x.shape == y.shape and bits(x) == bits(y), f"{NAMES[step]}, {what}: {of} has other bits than from float16 files in C order, bhsd")
        for kind in ("<f4", "<f8"):
            same(programs.solve(step, *programs.files(*(x.astype(kind) for x in given)), *tile)[1], kind)
        fortran = sum((["--" + name, programs.save(x, name, "F")] for name, x in zip(("q", "k", "v", "do"), given)), [])
        same(programs.solve(step, *fortran, *tile)[1], "Fortran order")
        report, out = programs.solve(step, *programs.files(*(x.swapaxes(1, 2) for x in given)), "--layout", "bshd", *tile)
        same(out, "bshd", transposed=True)
        judge.hold(step, report, out, f"{NAMES[step]}, bshd", layout="bshd")
        same(programs.solve(step, *programs.files(*given), "--layout", "bhsd", "--repeat", 3, *tile)[1], "--repeat 3")
        # Numbers that no narrower type holds, computed in double; and rounded to float once where float is asked for
        exact = [random.normal(size=shape) for shape in shapes]
        given = exact if step >= 6 else exact[:3]
        for dtype in ("double", "float"):
            report, out = programs.solve(step, *programs.files(*given), *tile, "--dtype", dtype)
            Judge(*exact[:3], do=exact[3] if step >= 6 else None, dtype=dtype).hold(step, report, out, f"{NAMES[step]}, float64 files, --dtype {dtype}")
        single = [x.astype("<f4") for x in exact]
        for scale in ("0", "-0.75", "1e-3", "-2.5E-1", "+0.5", "40"):
            report, out = programs.solve(step, *programs.files(*(single if step >= 6 else single[:3])), *tile, f"--scale={scale}" if scale[0] == "-" else "--scale",
                                         *([] if scale[0] == "-" else [scale]))
            Judge(*single[:3], scale=float(scale), do=single[3] if step >= 6 else None).hold(step, report, out, f"{NAMES[step]} --scale {scale}")
            check(abs(report["scale"] - np.float32(float(scale))) == 0, f"{NAMES[step]} --scale {scale}: the program says {report['scale']}")
        if step >= 6:                                                          # dO from a seed
            for seed in ([], ["--seed", 12345678901234567890]):
                report, out = programs.solve(step, *programs.files(*single[:3]), *tile, *seed)
                do = seeded_gradient(seed[1] if seed else 1, *shapes[3])
                Judge(*single[:3], do=do).hold(step, report, out, f"{NAMES[step]}, dO from {seed or 'the default seed'}")
    # The shipped input in the other layout, with its tensors of results in that layout too
    q, k, v = shipped(0)
    for step in (5, 6, 8):
        _, a = programs.solve(step)
        _, b = programs.solve(step, "--layout", "bshd")
        for of, x in a.items():
            y = b[of] if of == "lse" else b[of].swapaxes(1, 2)
            check(x.shape == y.shape and bits(x) == bits(y), f"{NAMES[step]} --layout bshd on the shipped input: {of} is {b[of].shape}")


def shape_arguments(batch, heads, kv_heads, nq, nk, d, dv):
    return ["--batch", batch, "--heads", heads, "--kv-heads", kv_heads, "--seq-q", nq, "--seq-k", nk, "--head-dim", d, "--value-dim", dv]


def hold_seeded(programs, step, shape, *arguments, seed=1, dtype="float", causal=False, layout="bhsd"):
    """In float from the seed. In double from files: whether the compiler fuses multiply and add shows in the last bit of a seeded number."""
    q, k, v, do = seeded(*shape, seed)
    do = do if step >= 6 else None
    judge = Judge(q, k, v, causal=causal, do=do, dtype=dtype)
    arguments = ["--dtype", dtype, "--layout", layout, *arguments, *(["--causal"] if causal else [])]
    if dtype == "float":
        arguments = [*shape_arguments(*shape), *arguments, *(["--seed", seed] if seed != 1 else [])]
        report, out = programs.solve(step, *arguments)
    else:
        order = (lambda x: x if x is None or layout == "bhsd" else x.swapaxes(1, 2))
        report, out = programs.solve(step, *programs.files(*map(order, (q, k, v, do))), *arguments)
    judge.hold(step, report, out, f"{NAMES[step]} {' '.join(map(str, arguments))}", layout=layout)
    check(list(report["shape"].values()) == list(shape) and report["causal"] == causal, f"{NAMES[step]} {arguments}: shape {report['shape']}, causal {report['causal']}")


def seeded_shapes(programs):
    """Every size odd: head_dim and value_dim differ, and so do the numbers of queries and keys, both ways."""
    for step in STEPS:
        for n, shape in enumerate([(2, 3, 3, 7, 11, 5, 3), (2, 3, 3, 13, 5, 3, 7), (1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 67, 131, 17, 19), (3, 1, 1, 1, 29, 1, 33), (1, 2, 2, 37, 1, 9, 1)]):
            for tile in ([], ["--br", 3, "--bc", 5], ["--br", 16, "--bc", 1], ["--br", 1, "--bc", 8])[:1 + 3 * (step >= 4)]:
                hold_seeded(programs, step, shape, *tile, seed=1 + n, dtype="double" if len(tile) and n % 2 else "float")
        hold_seeded(programs, step, (2, 3, 3, 7, 11, 5, 3), layout="bshd", seed=99)
        report = programs.json(step, "--seed", 3)                              # the defaults
        check(list(report["shape"].values()) == [1, 1, 1, 128, 128, 64, 64], f"{NAMES[step]} --seed 3: {report['shape']}")
        check(list(programs.json(step, "--seq-q", 9, "--head-dim", 4, "--heads", 2)["shape"].values()) == [1, 2, 2, 9, 9, 4, 4], f"{NAMES[step]}: lengths that follow others")


def causal(programs):
    """The last query sees every key, whatever the numbers of both."""
    for step in (7, 8):
        for n, (nq, nk) in enumerate([(1, 1), (7, 7), (1, 9), (9, 1), (5, 17), (17, 5), (65, 64), (64, 67), (131, 131), (3, 130), (130, 3)]):
            shape = (2, 2, 2, nq, nk, 5, 3)
            for tile in ([], ["--br", 4, "--bc", 3], ["--br", 2, "--bc", 7], ["--br", 1, "--bc", 1]) if nq * nk < 1000 else ([], ["--br", 31, "--bc", 13]):
                hold_seeded(programs, step, shape, *tile, causal=True, seed=7, dtype="double" if n % 3 == 1 else "float", layout="bshd" if n % 2 else "bhsd")
        hold_seeded(programs, step, (1, 1, 1, 11, 13, 3, 5), "--no-causal")
        # With no mask: step 06's bits, and 05's
        shape = shape_arguments(2, 3, 3, 37, 41, 5, 3)
        _, plain = programs.solve(6, *shape, "--br", 8, "--bc", 4)
        _, other = programs.solve(step, *shape, "--br", 8, "--bc", 4)
        for of in plain:
            check(bits(plain[of]) == bits(other[of]), f"{NAMES[step]} without a mask: {of} has other bits than 06")


def gqa(programs):
    """Query head h reads head h div g of K and V; their gradients are sums over the group."""
    for n, (heads, kv_heads) in enumerate([(1, 1), (4, 2), (6, 2), (6, 3), (7, 1), (8, 4), (9, 3), (32, 2)]):
        for mask in (False, True):
            hold_seeded(programs, 8, (2, heads, kv_heads, 13, 17, 5, 3), "--br", 4, "--bc", 8, causal=mask, seed=n, layout="bshd" if n % 2 else "bhsd", dtype="double" if n % 3 else "float")
        hold_seeded(programs, 8, (1, heads, kv_heads, 9, 4, 3, 5), causal=True)
    # Files with fewer heads of K and V are step 07's bits on repeated ones
    random = np.random.default_rng(3)
    q, k, v, do = (random.normal(size=(2, h, n, d)).astype("<f4") for h, n, d in ((6, 23, 5), (2, 29, 5), (2, 29, 3), (6, 23, 3)))
    for mask in ([], ["--causal"]):
        report, few = programs.solve(8, *programs.files(q, k, v, do), *mask)
        Judge(q, k, v, causal=bool(mask), do=do).hold(8, report, few, f"08, files with 2 heads of K and V for 6 {mask}")
        _, many = programs.solve(7, *programs.files(q, k.repeat(3, axis=1), v.repeat(3, axis=1), do), *mask)
        for of in ("o", "lse", "dq"):
            check(bits(few[of]) == bits(many[of]), f"08 {mask}: {of} has other bits than 07 on repeated heads")
        for of in ("dk", "dv"):
            check(np.allclose(few[of], many[of].reshape(2, 2, 3, *few[of].shape[2:]).sum(axis=2), rtol=0, atol=2e-5), f"08 {mask}: {of} is not the sum over the group")


def edge(programs):
    """Axes of length 0, and NaN and infinity in every place: a row is spoiled by what it sees, and by nothing else."""
    for step in STEPS:
        for shape in [(0, 2, 2, 3, 5, 4, 2), (2, 0, 0, 3, 5, 4, 2), (2, 2, 2, 0, 5, 4, 2), (2, 2, 2, 3, 0, 4, 2), (2, 2, 2, 3, 5, 4, 0), (2, 2, 2, 0, 0, 4, 2), (0, 0, 0, 0, 0, 1, 0),
                      (1, 2, 2, 3, 0, 4, 0)]:
            for dtype in ("float", "double"):
                hold_seeded(programs, step, shape, dtype=dtype)
            if step >= 7:
                hold_seeded(programs, step, shape, causal=True, layout="bshd")
            q, k, v, do = seeded(*shape, 5)
            report, out = programs.solve(step, *programs.files(q, k, v, *([do] if step >= 6 else [])))
            Judge(q, k, v, do=do if step >= 6 else None).hold(step, report, out, f"{NAMES[step]}, files with axes {shape}")
        for scale in ("0.5", "0"):                                             # no features: every score is 0
            q, k, v, do = seeded(2, 2, 2, 3, 5, 0, 2, 1)
            report, out = programs.solve(step, *shape_arguments(2, 2, 2, 3, 5, 0, 2), "--scale", scale)
            Judge(q, k, v, scale=float(scale), do=do if step >= 6 else None).hold(step, report, out, f"{NAMES[step]} --head-dim 0 --scale {scale}")
    random = np.random.default_rng(17)
    nq, nk, d, dv = 9, 11, 3, 5
    spoilers = [("q", (0, 1, 4, 1)), ("k", (0, 0, 7, 2)), ("k", (1, 1, 0, 0)), ("v", (1, 0, 10, 3)), ("v", (0, 1, 2, 0)), ("do", (0, 0, 3, 1))]
    for step in STEPS:
        for name, place in spoilers[:5 + (step >= 6)]:
            for value in (np.nan, np.inf, -np.inf):
                x = {"q": random.normal(size=(2, 2, nq, d)), "k": random.normal(size=(2, 2, nk, d)), "v": random.normal(size=(2, 2, nk, dv)), "do": random.normal(size=(2, 2, nq, dv))}
                x[name][place] = value
                do = x["do"] if step >= 6 else None
                for mask in (False, True)[:1 + (step >= 7)]:
                    what = f"{NAMES[step]}, {value} in {name}{list(place)}{', causal' if mask else ''}"
                    report, out = programs.solve(step, *programs.files(x["q"], x["k"], x["v"], do), *(["--br", 4, "--bc", 3] if step >= 4 else []), *(["--causal"] if mask else []))
                    with np.errstate(all="ignore"):
                        judge = Judge(x["q"], x["k"], x["v"], causal=mask, do=do)
                    judge.hold(step, report, out, what)
                    # By hand, too: which rows can be spoiled at all
                    b, h, at, _ = place
                    rows = np.zeros((2, 2, nq), bool)
                    if name == "q":
                        rows[b, h, at] = True
                    elif name in ("k", "v"):
                        rows[b, h, max(0, at - (nk - nq)) if mask else 0:] = True
                    lost = ~np.isfinite(out["o"]).all(axis=3)
                    check(not (lost & ~rows).any(), f"{what}: rows {np.argwhere(lost & ~rows).tolist()} are lost, which never saw it")
                    if np.isnan(value) and name != "do":
                        check((lost == rows).all(), f"{what}: NaN does not arrive in {np.argwhere(rows & ~lost).tolist()}")
                    if name in ("v", "do"):
                        check(np.isfinite(out["lse"]).all(), f"{what}: lse is spoiled")
    # Large scores, and nothing but -inf: a row whose scores are all -inf is one that saw no key
    q, k = np.full((1, 1, 2, 1), 1.0), np.full((1, 1, 3, 1), -np.inf)
    for step in STEPS:
        report, out = programs.solve(step, *programs.files(q, k, np.ones((1, 1, 3, 2))))
        check((out["o"] == 0).all() and (out["lse"] == -np.inf).all(), f"{NAMES[step]}: scores of -inf alone give {out['o'].tolist()}, {out['lse'].tolist()}")
        x = random.normal(size=(3, 1, 1, 9, 4)) * 300                          # exp(s) overflows without the maximum
        report, out = programs.solve(step, *programs.files(*x))
        Judge(*x, do=seeded_gradient(1, 1, 1, 9, 4) if step >= 6 else None).hold(step, report, out, f"{NAMES[step]}, scores of 10^5")
