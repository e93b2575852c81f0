"""Writes the traces of the tile player: what the programs do on small problems, tile by tile.

    python3 docs/player/traces.py BUILD OUT

BUILD has the programs of steps 04, 05 and 07. Into the folder OUT go NAME.js, a trace each, and index.js with their titles: scripts that
a page can load from file://. The same programs write the same bytes. Exit status 0, or 1 with what went wrong.
"""

import json
import os
import subprocess
import sys
import tempfile

PROGRAMS = {4: "04_fa1_tiled", 5: "05_fa2_loop_swap", 7: "07_causal_early_exit"}
GROUPS = {4: "04 FlashAttention-1: column tiles outside", 5: "05 FlashAttention-2: row tiles outside", 7: "07 Causal: row tiles outside, tiles skipped"}

# (queries, keys, d, dv, Br, Bc) and a word where the shape has one
SHAPES = [
    (9, 9, 4, 4, 3, 3, ""),
    (8, 8, 4, 4, 4, 2, "Br > Bc"),
    (8, 8, 4, 4, 2, 4, "Br < Bc"),
    (7, 10, 3, 2, 3, 4, "ragged"),
    (10, 7, 3, 2, 4, 3, "ragged"),
    (5, 2, 2, 2, 2, 1, "fewer keys"),
    (2, 5, 2, 2, 1, 2, "more keys"),
    (12, 12, 4, 4, 12, 12, "one tile"),
    (6, 6, 4, 4, 1, 1, "tiles of one"),
    (16, 16, 4, 4, 4, 8, ""),
    (33, 33, 4, 3, 8, 8, "ragged"),
    (33, 17, 4, 4, 8, 4, "fewer keys"),
    (17, 33, 4, 4, 4, 8, "more keys"),
    (1, 9, 4, 4, 1, 3, "one query"),
    (1, 1, 2, 2, 1, 1, "one query, one key"),
    (0, 4, 2, 2, 2, 2, "no query"),
    (4, 0, 2, 2, 2, 2, "no key"),
]
CAUSAL = [
    (9, 9, 4, 4, 3, 3, ""),
    (2, 5, 2, 2, 1, 2, "more keys"),
    (5, 2, 2, 2, 2, 1, "rows that see no key"),
    (8, 8, 4, 4, 4, 2, "Br > Bc"),
    (8, 8, 4, 4, 2, 4, "Br < Bc"),
    (7, 10, 3, 2, 3, 4, "ragged, more keys"),
    (10, 7, 3, 2, 4, 3, "rows that see no key"),
    (12, 3, 4, 4, 4, 3, "row tiles that see no key"),
    (6, 6, 4, 4, 1, 1, "tiles of one"),
    (16, 16, 4, 4, 4, 8, ""),
    (33, 33, 4, 3, 8, 8, "ragged"),
    (33, 17, 4, 4, 8, 4, "rows that see no key"),
    (17, 33, 4, 4, 4, 8, "more keys"),
    (1, 9, 4, 4, 1, 3, "one query"),
    (4, 0, 2, 2, 2, 2, "no key"),
]
WITHOUT_MASK = [(9, 9, 4, 4, 3, 3, ""), (7, 10, 3, 2, 3, 4, "ragged")]


def all_traces():
    """Step, shape, causal, word: in the order of the list that the reader picks from."""
    for step in (4, 5):
        for *shape, word in SHAPES:
            yield step, shape, False, word
    for shapes, causal in ((CAUSAL, True), (WITHOUT_MASK, False)):
        for *shape, word in shapes:
            yield 7, shape, causal, word


def make(build, out):
    os.makedirs(out, exist_ok=True)
    index = []
    with tempfile.TemporaryDirectory(prefix="flashsteps-traces-") as folder:
        path = os.path.join(folder, "trace.json")
        for step, (queries, keys, d, dv, br, bc), causal, word in all_traces():
            name = f"{step:02}-{queries}x{keys}-tiles-{br}x{bc}" + ("-causal" if causal else "")
            call = [os.path.join(build, PROGRAMS[step]), "--seq-q", queries, "--seq-k", keys, "--head-dim", d, "--value-dim", dv, "--br", br, "--bc", bc,
                    "--trace-tiles", path, *(["--causal"] if causal else [])]
            done = subprocess.run([str(x) for x in call], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
            if done.returncode != 0:
                print(f"traces.py: {' '.join(map(str, call))}: status {done.returncode} {done.stderr.strip()}", file=sys.stderr)
                return 1
            with open(path, encoding="ascii") as file:
                trace = file.read().rstrip("\n")
            json.loads(trace)
            with open(os.path.join(out, name + ".js"), "w", encoding="ascii") as file:
                file.write(f"window.flashstepsTraces = window.flashstepsTraces || {{}};\nwindow.flashstepsTraces[{json.dumps(name)}] = {trace};\n")
            plural = lambda n, one, many: f"{n} {one if n == 1 else many}"
            title = f"{step:02}: {plural(queries, 'query', 'queries')} by {plural(keys, 'key', 'keys')}, tiles of {br} \u00d7 {bc}"
            title += (", causal" if causal else ", no mask" if step == 7 else "") + (f" ({word})" if word else "")
            index.append({"name": name, "title": title, "group": GROUPS[step]})
    if len({entry["name"] for entry in index}) != len(index):
        print("traces.py: a name twice", file=sys.stderr)
        return 1
    with open(os.path.join(out, "index.js"), "w", encoding="ascii") as file:
        file.write("window.flashstepsTraceIndex = " + json.dumps(index, indent=1) + ";\n")
    print(f"{len(index)} traces")
    return 0


def main():
    if len(sys.argv) != 3:
        print("use: python3 docs/player/traces.py BUILD OUT", file=sys.stderr)
        return 2
    return make(*sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
