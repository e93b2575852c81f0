"""Tests of the programs: what they refuse, and which tiles fit."""

import io
import os
import re

from program_helpers import NAMES, STEPS, check, np


def refuse(programs, step, *arguments, says=(), status=2, what=""):
    """Exit status, one line on stderr that begins with the program's name, nothing on stdout, nothing left behind."""
    folder = programs.new("out")
    result = programs.run(step, *arguments, "--output", os.path.join(folder, "a", "b"))
    name = f"{what or result.call}"
    check(result.status == status, f"{name}: status {result.status}, not {status}; {result.err!r}")
    check(result.out == "", f"{name}: stdout {result.out[:100]!r}")
    check(result.err.startswith(NAMES[step] + ": ") and result.err.count("\n") == 1 and result.err.endswith("\n"), f"{name}: stderr {result.err!r}")
    for word in [says] if isinstance(says, str) else says:
        check(word in result.err, f"{name}: {word!r} is not in {result.err!r}")
    check(not os.path.exists(folder), f"{name}: a folder is left behind")
    check(os.listdir(programs.elsewhere) == [], f"{name}: left in the working directory: {os.listdir(programs.elsewhere)}")
    return result.err


def bad_files(programs):
    """A .npy file that is not one, in the place of each tensor (tests/foreign_npy.py has all kinds)."""
    def saved(array):
        stream = io.BytesIO()
        np.save(stream, array)
        return stream.getvalue()
    good = np.ones((1, 2, 3, 4), "<f4")
    archive = io.BytesIO()
    np.savez(archive, q=good)
    kinds = {"empty": (b"", "is empty"), "text": (b"1 2 3\n", "not a .npy file"), "cut short": (saved(good)[:-1], "shorter"), "too long": (saved(good) + b"x", "longer"),
             "cut in its header": (saved(good)[:40], "header"), "big-endian": (saved(good.astype(">f4")), "big-endian"), "integers": (saved(good.astype("<i4")), "'<i4'"),
             "complex": (saved(good.astype("<c8")), "'<c8'"), "3 axes": (saved(good[0]), "3 axes"), "5 axes": (saved(good[None]), "5 axes"),
             "version 9": (saved(good)[:6] + b"\x09" + saved(good)[7:], "9.0"),
             "an archive": (archive.getvalue(), "zip archive"),
             "objects": (b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 2, 3, 4), }".ljust(69) + b"\n", "pickled")}
    for step in STEPS:
        tensors = ["q", "k", "v"] + ["do"] * (step >= 6)
        for name in tensors:
            right = {t: programs.save(good, t) for t in tensors}
            arguments = lambda path: sum((["--" + t, path if t == name else right[t]] for t in tensors), [])
            for kind, (content, says) in kinds.items() if name == "q" or step == 6 else list(kinds.items())[:3]:
                path = programs.new(kind.replace(" ", "-") + ".npy")
                with open(path, "wb") as file:
                    file.write(content)
                refuse(programs, step, *arguments(path), says=[path, says], what=f"{NAMES[step]} --{name}, {kind}")
            refuse(programs, step, *arguments(programs.new("missing.npy")), says="no such file", what=f"{NAMES[step]} --{name}, missing")
            refuse(programs, step, *arguments(programs.folder), says="is a folder", what=f"{NAMES[step]} --{name}, a folder")
            refuse(programs, step, *arguments("/dev/null"), says="/dev/null", what=f"{NAMES[step]} --{name}, a device")
            refuse(programs, step, *arguments("no\nsuch\r\x1b[31m.npy"), says="no such file", what=f"{NAMES[step]} --{name}, control characters in its name")
            if name != "do":
                refuse(programs, step, *sum((["--" + t, right[t]] for t in tensors if t != name), []), says=f"--{name} is missing", what=f"{NAMES[step]} without --{name}")
        refuse(programs, step, "--q", right["q"], "--k", right["k"], "--v", right["v"], "--seq-q", 3, says=["--seq-q", "do not go together"])
        if step < 6:
            refuse(programs, step, "--q", right["q"], "--k", right["k"], "--v", right["v"], "--do", right["q"], says=["--do", NAMES[6]])


def bad_shapes(programs):
    """Shapes that do not fit one another, each pair; both layouts."""
    q, k, v, do = (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), (2, 2, 3, 6)
    pairs = [("batch of q and k", (1, *q[1:]), k, v, "batch"), ("batch of v", q, k, (3, *v[1:]), "batch"), ("heads of k and v", q, k, (2, 1, 5, 6), "heads"),
             ("keys and values", q, k, (2, 2, 4, 6), "sequence length"), ("head_dim of q and k", (2, 2, 3, 5), k, v, "head_dim")]
    gradients = [("batch", (1, *do[1:])), ("heads", (2, 1, 3, 6)), ("sequence length", (2, 2, 4, 6)), ("value_dim", (2, 2, 3, 4))]
    heads = [(2, 1), (1, 2), (3, 2), (33, 2), (2, 0), (0, 2), (2, 4)]
    def given(layout, *shapes):
        order = [0, 1, 2, 3] if layout == "bhsd" else [0, 2, 1, 3]
        return programs.files(*(np.ones([s[i] for i in order], "<f4") for s in shapes)) + ["--layout", layout]
    for step in STEPS:
        for layout in ("bhsd", "bshd"):
            for what, a, b, c, says in pairs:
                refuse(programs, step, *given(layout, a, b, c), says=says, what=f"{NAMES[step]}, {layout}: {what}")
            for says, shape in gradients if step >= 6 else ():
                refuse(programs, step, *given(layout, q, k, v, shape), says=["do", says], what=f"{NAMES[step]}, {layout}: {says} of dO")
            for h, kv in heads:                                                # C23: no even map exists
                fits = step == 8 and h >= kv > 0 and h % kv == 0
                if fits:
                    programs.right(step, *given(layout, (1, h, 2, 4), (1, kv, 2, 4), (1, kv, 2, 4)))
                    continue
                refuse(programs, step, *given(layout, (1, h, 2, 4), (1, kv, 2, 4), (1, kv, 2, 4)), says=[str(h), str(kv)] + ["08_gqa"] * (step < 8),
                       what=f"{NAMES[step]}, {layout}: files with {h} heads on {kv}")
        for h, kv in heads:
            if not (step == 8 and h >= kv > 0 and h % kv == 0):
                refuse(programs, step, "--heads", h, "--kv-heads", kv, "--seq-q", 2, "--head-dim", 4, says=[f"--heads {h}", f"--kv-heads {kv}"])
        refuse(programs, step, "--head-dim", 0, says=["head_dim is 0", "--scale"])
        refuse(programs, step, *given("bhsd", (1, 1, 2, 0), (1, 1, 2, 0), (1, 1, 2, 3)), says=["head_dim is 0", "--scale"])


def bad(programs):
    bad_files(programs)
    bad_shapes(programs)
    for step in STEPS:
        small = ["--seq-q", 5, "--heads", 2, "--head-dim", 4]
        for arguments, says in [
                (["--nonsense"], "--nonsense"), (["--seqq", 3], ["--seqq", "--seq-q"]), (["-x"], "-x"), (["file.npy"], "file.npy"), (["--seq-q"], "--seq-q"),
                (["--seq-q", "-1"], "--seq-q -1"), (["--seq-q", "1.5"], "1.5"), (["--seq-q", "1e3"], "1e3"), (["--seq-q", ""], "--seq-q"), (["--seq-q", "99999999999999999999"], "--seq-q"),
                (["--heads", "2147483648"], "--heads"), (["--seed", "-1"], "--seed"), (["--scale", "inf"], "--scale inf"), (["--scale", "nan"], "--scale nan"),
                (["--scale", "x"], "--scale x"), (["--scale", "1e39"], "--scale 1e39"), (["--scale", "1e999", "--dtype", "double"], "--scale 1e999"), (["--dtype", "half"], "half"),
                (["--dtype", "bfloat16"], "bfloat16"), (["--dtype", "int"], "int"), (["--device", "gpu"], "gpu"),
                (["--layout", "sbhd"], "sbhd"), (["--repeat", "0"], "--repeat 0"), (["--seq-q", "3", "--seq-q", "3"], "--seq-q"), (["--json=yes"], "--json"),
                ([*small, "--trace", "5"], ["--trace 5", "5"]), ([*small, "--trace", "-1"], "--trace -1"), ([*small, "--trace", "0", "--trace-head", "2"], "--trace-head 2"),
                ([*small, "--trace-head", "1"], "--trace"), (["--seq-q", "0", "--trace", "0"], "--trace 0"), (["--batch", "0", *small, "--trace", "0"], "--trace"),
                (["--heads", "0", "--seq-q", "5", "--trace", "0"], "--trace"), (["--seq-q", str(2**30), "--head-dim", str(2**30)], "elements"), (["--no\nsense"], "--no?sense")]:
            refuse(programs, step, *arguments, says=says)
        if step < 4:
            for name in ("--br", "--bc", "--sram"):
                refuse(programs, step, name, 8, says=[name, NAMES[4]])
        if step < 6:
            refuse(programs, step, "--do", "x.npy", says=["--do", NAMES[6]])
        for name in ("--causal", "--no-causal") if step < 7 else ():
            refuse(programs, step, name, says=[name, NAMES[7]])
        if step >= 7:
            refuse(programs, step, "--causal", "--no-causal", says=["--causal", "--no-causal"])
        for name in ("--br", "--bc", "--sram") if step >= 4 else ():
            for value in ("0", "-3", "2.5", "x"):
                refuse(programs, step, name, value, says=f"{name} {value}")
        refuse(programs, step, "--device", "cuda", says="no GPU", status=77)
        refuse(programs, step, *small, "--device", "cuda", "--json", says="no GPU", status=77)


def tiles(programs):
    """Typed tiles that do not fit are refused with the largest that would; defaults that nobody typed shrink and say so."""
    shape = ["--seq-q", 150, "--seq-k", 140, "--head-dim", 16, "--value-dim", 24]
    width = 16 + 24
    for step in (4, 5, 6, 7, 8):
        masks = ([], ["--causal"])[:1 + (step >= 7)]
        for mask in masks:
            for sram in (4000, 6001, 12000):
                for br, bc in ((128, 128), (100, 16), (16, 100), (150, 140), (4000, 4000)):
                    typed = [*shape, *mask, "--br", br, "--bc", bc, "--sram", sram]
                    if programs.run(step, *typed).status == 0:
                        continue
                    said = refuse(programs, step, *typed, says=[f"--sram is {sram}", f"{br} x {bc}"])
                    rows, keys = re.search(rf"the largest --br for --bc {bc} is (\d+)", said), re.search(rf"the largest --bc for --br {br} is (\d+)", said)
                    both = re.search(r"the largest that fit are (\d+) x (\d+)", said)
                    if not check(rows or keys or both, f"no suggestion: {said}"):
                        continue
                    taken = (int(rows[1]), bc) if rows else (br, int(keys[1])) if keys else (int(both[1]), int(both[2]))
                    report = programs.json(step, *shape, *mask, "--br", taken[0], "--bc", taken[1], "--sram", sram)
                    check(report.get("tiles") == {"br": taken[0], "bc": taken[1]}, f"{NAMES[step]}, the suggestion {taken}: {report.get('tiles')}")
                    if rows and taken[0] < 150:
                        refuse(programs, step, *shape, *mask, "--br", taken[0] + 1, "--bc", bc, "--sram", sram, says=f"is {taken[0]}")
                    if rows and step in (4, 5):                                # 4.2 and 5.2
                        most = (sram - min(bc, 140) * width) // (width + min(bc, 140) + (6 if step == 4 else 3))
                        check(taken[0] == most, f"{NAMES[step]} --bc {bc} --sram {sram}: --br {taken[0]} is suggested, the specification says {most}")
                    if keys and taken[1] < 140:
                        refuse(programs, step, *shape, *mask, "--br", br, "--bc", taken[1] + 1, "--sram", sram)
                    if both:
                        refuse(programs, step, *shape, *mask, "--br", taken[0] + 1, "--bc", taken[1] + 1, "--sram", sram)
            # Nobody typed them
            report = programs.json(step, *shape, *mask, "--br", 8, "--bc", 8)
            check(report["tiles"] == {"br": 8, "bc": 8} and "notes" not in report, f"{NAMES[step]}: notes {report.get('notes')}")
            for typed, key in ((["--br", 40], "br"), (["--bc", 40], "bc")):
                report = programs.json(step, *shape, *mask, "--sram", 7000, *typed)
                check(report["tiles"][key] == typed[1], f"{NAMES[step]} {typed} --sram 7000: {report['tiles']}")
                check(report["on_chip"]["peak"] <= report["on_chip"]["capacity"] == 7000, f"{NAMES[step]} {typed}: {report['on_chip']}")
            for typed, other in (("--br", "--bc"), ("--bc", "--br")):          # more than fits with the least of the other
                said = refuse(programs, step, *shape, *mask, "--sram", 5000, typed, 139, says=f"the largest {typed} is ")
                most = int(re.search(rf"the largest {typed} is (\d+), with {other} 1$", said.strip())[1])
                check(programs.json(step, *shape, *mask, "--sram", 5000, typed, most, other, 1).get("tiles"), f"{NAMES[step]} {typed} {most} {other} 1")
                refuse(programs, step, *shape, *mask, "--sram", 5000, typed, most + 1, other, 1)
            if step > 4:
                report = programs.json(step, *shape, *mask, "--sram", 5000)
                check(report["tiles"]["br"] == report["tiles"]["bc"] < 64 and report["on_chip"]["peak"] <= 5000, f"{NAMES[step]} --sram 5000: {report['tiles']} {report['on_chip']}")
                check(any("64 x 64" in note and str(report["tiles"]["br"]) in note for note in report.get("notes", [])), f"{NAMES[step]} --sram 5000: notes {report.get('notes')}")
                check("64 x 64" in programs.right(step, *shape, *mask, "--sram", 5000).out, f"{NAMES[step]} --sram 5000: the text says nothing of smaller tiles")
            # The least that is enough for 1 x 1 is enough, and one less is not
            said = refuse(programs, step, *shape, *mask, "--sram", 10, says="1 x 1")
            need = re.search(r"needs? (\d+)(?: elements on chip, --sram is 10)?$", said.strip())
            if check(need, f"{NAMES[step]} --sram 10: {said!r} does not say what is needed"):
                least = int(need[1])
                report = programs.json(step, *shape, *mask, "--sram", least)
                check(report.get("tiles") == {"br": 1, "bc": 1}, f"{NAMES[step]} --sram {least}: {report.get('tiles')}")
                refuse(programs, step, *shape, *mask, "--sram", least - 1, says="1 x 1")
                refuse(programs, step, *shape, *mask, "--sram", least - 1, "--br", 1, "--bc", 1, says="1 x 1")
        # The default capacity: 192 KiB of float
        report = programs.json(step, "--seq-q", 100, "--head-dim", 300)
        check(report["on_chip"]["capacity"] == 49152 and report["on_chip"]["peak"] <= 49152 and report.get("notes"), f"{NAMES[step]} --head-dim 300: {report['tiles']} {report.get('notes')}")
        refuse(programs, step, "--seq-q", 100, "--head-dim", 300, "--br", 100, "--bc", 100, says="49152")
    # Given only --sram, 04 takes the paper's tiles: Bc = ceil(M / 4d), Br = min(Bc, d); the specification's table (4.2)
    for sram, d, dv, right, noted in ((49152, 64, 64, (64, 192), False), (49152, 128, 128, ((49152 - 96 * 256) // (256 + 96 + 6), 96), True), (98304, 64, 64, (64, 384), False),
                                      (98304, 128, 128, ((98304 - 192 * 256) // (256 + 192 + 6), 192), True), (49152, 32, 96, (64, 192), False), (1000, 3, 5, (4, 63), False),
                                      (200, 8, 8, (3, 7), True), (400, 1, 1, (1, 100), False)):
        report = programs.json(4, "--seq-q", 400, "--head-dim", d, "--value-dim", dv, "--sram", sram)
        check(report["tiles"] == {"br": right[0], "bc": right[1]} and bool(report.get("notes")) == noted,
              f"04 --sram {sram}, d {d}, dv {dv}: {report['tiles']} {report.get('notes')}, not {right}")
    check(programs.json(4, "--seq-q", 400, "--sram", 49152, "--bc", 64)["tiles"] == {"br": 64, "bc": 64}, "04: with --bc typed the paper's rule is not taken")
    check(programs.json(5, "--seq-q", 400, "--sram", 49152)["tiles"] == {"br": 64, "bc": 64}, "05: the paper's rule belongs to 04")
