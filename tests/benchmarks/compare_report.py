"""The table of compare.py. Nothing here needs torch."""

MEANING = {
    "pytorch": "time of PyTorch ÷ time of the step",
    "sgemm": "GF/s of the step ÷ GF/s of PyTorch's product of two matrices of 2048 x 2048",
    "threads": "time on one thread ÷ time on so many",
    "causal": "time without a mask ÷ time with one, of the same step",
    "error": "relative rms error of O ÷ that of standard attention in float, Q times 4 (less is better)",
}
HEAD = ["pass", "d", "N", "heads", "mask", "threads", "step", "tiles", "ratio [least, most]", "target", "met", "GF/s", "of the FMA peak", "PyTorch's GF/s", "PyTorch's own ratio"]


def number(x, digits=2):
    return "" if x is None else f"{x:.{digits}f}"


def row(x):
    """The cells of one result."""
    cells = ["backward" if x["backward"] else "forward", x["d"], x["n"], x["heads"], "causal" if x["causal"] else "full", x["threads"], f"{x['step']:02}"]
    cells.append("{} x {}".format(*x["tiles"]) if "tiles" in x else "")
    if "wrong" in x:
        cells.append("not timed: " + "; ".join(x["wrong"]))
    elif "min" in x:
        cells.append(f"{x['value']:.2f} [{x['min']:.2f}, {x['max']:.2f}]")
    else:
        cells.append(number(x["value"]))
    limit = "≤" if x["kind"] == "error" else "≥"
    cells.append("" if x["target"] is None else f"{limit} {x['target']:.2f} ({x['target_row']})" if x["kind"] in ("pytorch", "threads") else f"{limit} {x['target']:.2f}")
    cells.append("yes" if x["met"] else "no")
    cells += [number(x.get("gflops"), 1), f"{100 * x['share_of_peak']:.0f} %" if "share_of_peak" in x else "", number(x.get("theirs_gflops"), 1), number(x.get("theirs"))]
    return [str(cell) for cell in cells]


def machine_text(report):
    machine, torch = report["machine"], report["torch"]
    libraries = "; ".join(f"{name}: {x['compiler']}, {x['build_type']}, assertions {'on' if x['assertions'] else 'off'}, SIMD registers of {x['simd_bytes']} bytes, {x['flags']}"
                          for name, x in report["libraries"].items())
    backs = "flash back end forced" if torch["flash"] else f"flash back end not to be had ({torch['back_end']}), the default one taken"
    return [
        f"{machine['processor']}, {machine['cores']} cores to run on{' (hyperthreads)' if machine['hyperthreads'] else ''}, instructions up to {machine['instructions']}; {machine['system']}. "
        f"PyTorch {torch['version']} ({torch['capability']}; BLAS: {torch['blas']}; {torch['onednn']}), {backs}. OpenMP runtimes in the process: {', '.join(torch['openmp']) or 'not known'}. "
        f"Library {libraries}. Commit {report['commit'] or 'not known'}.",
        "",
        f"Each ratio is the median of {report['rounds']} rounds in one process: in a round every contender runs once untimed and once timed, in turn, on the same numbers in float, "
        "[1, heads, N, d], with the same number of threads; least and most are of the single rounds. Before it is timed, each result is held to the definition in double and to the other "
        "result. Time includes the memory for the results, which PyTorch allocates and the step fills with NaN.",
    ]


def markdown(report):
    """The whole report."""
    lines = machine_text(report)
    results = report["results"]
    for isa in dict.fromkeys(x["isa"] for x in results):
        for kind, meaning in MEANING.items():
            chosen = [x for x in results if x["kind"] == kind and x["isa"] == isa]
            if not chosen:
                continue
            held = ", step and PyTorch held to AVX2" if isa == "avx2" else ""
            rows = [row(x) for x in chosen]
            kept = [c for c in range(len(HEAD)) if any(cells[c] for cells in rows)]
            lines += ["", f"**{meaning[0].upper() + meaning[1:]}{held}.**", ""]
            lines += ["| " + " | ".join(HEAD[c] for c in kept) + " |", "|" + "---|" * len(kept)]
            lines += ["| " + " | ".join(cells[c] for c in kept) + " |" for cells in rows]
    missed = [f"{x['name']} ({x['isa']})" for x in results if not x["met"]]
    lines += ["", f"Targets met: {len(results) - len(missed)} of {len(results)}." + (" Missed: " + "; ".join(missed) + "." if missed else "")]
    return "\n".join(lines) + "\n"
