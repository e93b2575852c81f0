"""A manifest over all eight steps, for tests of what makes and builds starters: every form in every type, a task in every step."""

TILE = {"seq_q": 4, "seq_k": 4, "head_dim": 3, "value_dim": 5, "br": 4, "bc": 4}
RAGGED = {"seq_q": 17, "seq_k": 33, "head_dim": 5, "value_dim": 9, "br": 4, "bc": 8}
WIDE = {"seq_q": 33, "seq_k": 17, "head_dim": 8, "value_dim": 3, "br": 16, "bc": 5, "heads": 2}
SMALL = {"seq_q": 5, "seq_k": 7, "head_dim": 3, "value_dim": 2, "br": 2, "bc": 3}
LONG = {"seq_q": 3, "seq_k": 150, "head_dim": 16, "value_dim": 4, "br": 16, "bc": 16}
EMPTY = {"seq_q": 3, "seq_k": 0, "head_dim": 2}
NOBODY = {"seq_q": 0, "seq_k": 5, "head_dim": 2}

FORWARD = {1: ("standard", "three_sweeps"), 2: ("two_sweeps",), 3: ("one_sweep", "one_sweep_normalised"), 4: ("forward",), 5: ("forward",), 7: ("forward",), 8: ("forward",)}
BACKWARD = {6: ("backward", "backward_row_order", "backward_standard"), 7: ("backward",), 8: ("backward",)}

# By step: file, where the hole is, its stub, its probe
HOLES = {
    1: ("steps/01_safe_softmax_3pass/forward.hpp", {"function": "three_sweeps", "region": "Store the row"}, ['todo("1");'], []),
    2: ("steps/02_online_softmax_2pass/forward.hpp", {"function": "merge"}, ['static_cast<void>(a), static_cast<void>(b);', 'return todo<MaxSum<T>>("2");'], []),
    3: ("steps/03_fa_1pass/forward.hpp", {"function": "one_sweep", "region": "Rescale what was summed so far, and add the key"}, ['todo("3");'], ['probe("3", m, l, total(u));']),
    4: ("steps/04_fa1_tiled/forward.hpp", {"region": "Merge it with what was summed so far"}, ['Tile m_new = todo<Tile<T>>("4");', 'Tile l_new = todo<Tile<T>>("4");'], ['probe("4", m_new, l_new, o_i);']),
    5: ("steps/05_fa2_loop_swap/forward.hpp", {"function": "forward", "region": "Weigh the tile against the new maximum"},
        ['Tile m_new = todo<Tile<T>>("5");', 'Tile p = todo<Tile<T>>("5");', 'Tile alpha = todo<Tile<T>>("5");'], ['probe("5", m_new, p, alpha, k_j, bc);']),
    6: ("steps/06_backward_recompute/backward.hpp", {"region": "Recompute the weights: no maximum, no rescaling"}, ['Tile p = todo<Tile<T>>("6");'], ['probe("6", p);']),
    7: ("steps/07_causal_early_exit/backward.hpp", {"region": "Recompute the weights: no maximum, no rescaling"}, ['Tile p = todo<Tile<T>>("7");'], ['probe("7", p);']),
    8: ("steps/08_gqa/forward.hpp", {"function": "kv_head"}, ['static_cast<void>(h), static_cast<void>(heads), static_cast<void>(kv_heads);', 'return todo<Index>("8");'], []),
}


def case(step, form, kind, judge, sizes, inputs="normal", **more):
    return {"step": step, "form": form, "type": kind, "sizes": sizes, "inputs": inputs, "judge": judge, **more}


def cases():
    found = {}

    def add(name, *row, **more):
        found[name] = case(*row, **more)

    for kind in ("float", "double", "fifty"):
        for step in (1, 2):
            add(f"softmax {step} {kind}", step, "softmax", kind, ["a"], {"n": 17})
            add(f"softmax {step} {kind} huge", step, "softmax", kind, ["a", "counts"], {"n": 9}, "huge")
        add(f"merge {kind}", 2, "merge", kind, ["m", "l"], {"n": 7}, "minus_inf")
        add(f"merge {kind} nothing", 2, "merge", kind, ["m", "l"], {"n": 3}, "all_minus_inf")
        add(f"max_sum {kind}", 2, "max_sum", kind, ["m", "l", "counts"], {"n": 17, "bc": 4}, "peaked")
        add(f"kv_head {kind}", 8, "kv_head", kind, ["index"], {"heads": 6, "kv_heads": 2})
        add(f"kinds {kind}", 7, "kind_of_tile", kind, ["kind"], {"seq_q": 17, "seq_k": 13, "br": 4, "bc": 3})
        sizes = (SMALL, TILE) if kind == "fifty" else (TILE, RAGGED, WIDE, EMPTY, NOBODY)
        for step, forms in FORWARD.items():
            for form in forms:
                for number, size in enumerate(sizes):
                    add(f"{step} {form} {kind} {number}", step, form, kind, ["o", "lse"] + (["counts", "peak"] if number == 1 else []), size)
                add(f"{step} {form} {kind} peaked", step, form, kind, ["o", "lse"], SMALL if kind == "fifty" else LONG, "peaked")
                for inputs in ("equal", "first_largest", "last_largest", "huge", "minus_inf", "all_minus_inf"):
                    add(f"{step} {form} {kind} {inputs}", step, form, kind, ["o", "lse"], SMALL, inputs)
                if step in (7, 8):
                    for number, size in enumerate(sizes[:3]):
                        add(f"{step} {form} {kind} causal {number}", step, form, kind, ["o", "lse"], {**size, "causal": True})
        for step, forms in BACKWARD.items():
            for form in forms:
                for number, size in enumerate(sizes):
                    add(f"{step} {form} {kind} {number}", step, form, kind, ["dq", "dk", "dv"] + (["counts"] if number == 1 else []), size, dlse=number == 1)
                if step in (7, 8):
                    for number, size in enumerate(sizes[:3]):
                        add(f"{step} {form} {kind} causal {number}", step, form, kind, ["dq", "dk", "dv"], {**size, "causal": True})
        for form, judge in (("forward", ["o", "lse"]), ("backward", ["dq", "dk", "dv"])):
            add(f"8 {form} {kind} groups", 8, form, kind, judge, {**SMALL, "heads": 6, "kv_heads": 2, "causal": True})
    for step, form in ((3, "one_sweep"), (4, "forward"), (5, "forward"), (6, "backward"), (7, "backward")):
        add(f"probe {step}", step, form, "fifty", [f"probe {step}"], {**SMALL, "causal": step == 7})
    add("does not fit", 5, "forward", "float", [], RAGGED, capacity=20, expect="does not fit")
    return found


def manifest():
    every = cases()
    tasks = []
    for step, (file, place, stub, probe) in HOLES.items():
        names = [name for name, one in every.items() if one["step"] == step and one["judge"]]
        task = {"id": str(step), "title": f"Task {step}", "points": 12 if step < 8 else 16, "file": file, **place, "stub": stub, "equation": "(1)", "hints": ["?", "(1)", "one line"],
                "cases": names, "gate": names[0]}
        if probe:
            task["probe"] = probe
        tasks.append(task)
    return {"slug": "all-steps", "title": "All steps", "version": "1.0", "last_step": 8, "limits": {"seconds": 10, "mebibytes": 1024, "output_kib": 4096},
            "tasks": tasks, "given": ["does not fit"], "cases": every}
