"""What nvcc makes of every kernel, without a GPU: no spill, no stack frame, no warning, and the tensor-core instructions that the loops say.

    python3 tests/ptxas.py BUILD_DIR [--nvcc PATH] [--jobs N] [FILE.cu ...]

Compiles the .cu files of the steps for the cards of CARDS and writes BUILD_DIR/ptxas.md, a table with a line for each kernel and card. What did
not change since the last time is not compiled again. Exit status 0: all right. 1: not. 77: there is no nvcc.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARDS = [75, 80, 90]
TENSOR_CORE_CARDS = [80, 90]
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-I", ROOT, "-Xcompiler=-Wall,-Wextra", "-Xptxas=-v"]


def split_over_queries(br, bc, d):
    """Of a warp with 16 queries, from step 05 on. mma of S and of P V; ldmatrix, of four 8 x 8 each, of Q, K and V."""
    return (d // 16) * (bc // 8) + (bc // 16) * (d // 8), d // 16 + (d // 16) * (bc // 16) + (bc // 16) * (d // 16)


def split_over_keys(br, bc, d, warps):
    """Of a warp with Bc / W keys and all queries, step 04. The loop over slices of 32 columns of V is there once."""
    keys, rows = bc // warps // 16, br // 16
    return (d // 16) * 2 * keys * rows + keys * (32 // 8) * rows, (d // 16) * (rows + keys) + keys * (32 // 16)


# From the integers among the template arguments of an entry: how many mma.sync and ldmatrix stand in its PTX. A kernel that is named
# neither here nor without tensor cores fails
INSTRUCTIONS = {
    ("04_fa1_tiled", "forward_tensor_core_kernel"): split_over_keys,
    ("05_fa2_loop_swap", "forward_tensor_core_kernel"): split_over_queries,
    ("07_causal_early_exit", "forward_tensor_core_kernel"): split_over_queries,
    ("08_gqa", "forward_tensor_core_kernel"): split_over_queries,
}


def included(path, seen):
    """The file, and what it includes of this repository."""
    if path not in seen and os.path.exists(path):
        seen.add(path)
        for name in re.findall(r'^\s*#include "(.+)"', open(path).read(), re.M):
            included(os.path.join(ROOT, name), seen)
    return seen


def compile_one(nvcc, version, path, work):
    """{"entries": [...], "warnings": [...]} of one file."""
    name = os.path.relpath(path, ROOT).replace("/", "_").removesuffix(".cu")
    cards = TENSOR_CORE_CARDS if "tensor_core" in name else CARDS
    key = hashlib.sha256("\n".join([version, *FLAGS, *map(str, cards)] + [open(f).read() for f in sorted(included(path, set()))]).encode()).hexdigest()
    kept = os.path.join(work, name + ".json")
    if os.path.exists(kept):
        result = json.load(open(kept))
        if result["key"] == key:
            return result

    folder = os.path.join(work, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = [nvcc, *FLAGS, "--keep", "--keep-dir", folder, "-c", path, "-o", os.path.join(folder, "object.o")]
    for card in cards:
        command += ["-gencode", f"arch=compute_{card},code=sm_{card}"]
    done = subprocess.run(command, capture_output=True, text=True)
    output = done.stdout + done.stderr
    result = {"key": key, "entries": [], "warnings": []}
    if done.returncode != 0:
        result["warnings"] = [f"nvcc failed: {' '.join(command)}\n{output}"]
        return result
    result["warnings"] = [line for line in output.splitlines() if re.search(r"warning|error|Performance Loss", line, re.I)]
    instructions = {card: count_instructions(glob.glob(f"{folder}/*compute_{card}*.ptx")) for card in cards}

    # Compiling entry function 'NAME' for 'sm_80' ... N bytes stack frame, N bytes spill stores, N bytes spill loads ... Used N registers, ... N bytes smem
    pattern = re.compile(r"Compiling entry function '(\S+)' for 'sm_(\d+)'(.*?Used .*?)$", re.S | re.M)
    for entry, card, text in pattern.findall(output):
        stack, stores, loads = map(int, re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", text).groups())
        shared = re.search(r"(\d+) bytes smem", text)
        mma, ldmatrix, threads = instructions[int(card)][entry]
        result["entries"].append({"entry": entry, "card": int(card), "registers": int(re.search(r"Used (\d+) registers", text)[1]),
                                  "stack": stack, "spills": stores + loads, "static_shared": int(shared[1]) if shared else 0,
                                  "mma": mma, "ldmatrix": ldmatrix, "threads": threads})
    json.dump(result, open(kept, "w"))
    shutil.rmtree(folder)
    return result


def count_instructions(files):
    """entry: mma.sync, ldmatrix, and the threads of a block, in PTX."""
    counts = {}
    for file in files:
        for name, head, body in re.findall(r"^(?:\.visible |\.weak )?\.entry (\S+?)\((.*?)^\{(.*?)^\}", open(file).read(), re.S | re.M):
            threads = re.search(r"\.maxntid (\d+)", head)
            counts[name] = (body.count("mma.sync"), body.count("ldmatrix.sync"), int(threads[1]) if threads else None)
    return counts


def demangled(names):
    """name: (kernel, types, integers)."""
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    found = {}
    for name, text in zip(names, done.stdout.splitlines()):
        kernel, arguments = re.search(r"(\w+)(?:<(.*?)>)?\(", text.replace("(anonymous namespace)", "").replace("(int)", "")).groups()
        parts = [part.strip() for part in (arguments or "").split(",") if part.strip()]
        found[name] = kernel, [p for p in parts if not p.isdigit()], [int(p) for p in parts if p.isdigit()]
    return found


def said_by_steps(build):
    """What the steps say of their kernels: tests/compiled_shapes.cpp."""
    program = os.path.join(build, "tests", "compiled_shapes")
    if not os.path.exists(program):
        return []
    rows = []
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        step, tensor_cores, backward, element, br, bc, dim, threads, shared, capability, name = line.split(maxsplit=10)
        # The file named after the kernel ("fp32, two kernels": backward_two_kernels.cu), or else the one that every step has
        files = [os.path.basename(f) for f in glob.glob(f"{ROOT}/steps/{step}/*.cu")]
        named = [f for f in files if name.split(", ")[-1].replace(" ", "_") in f]
        usual = ("backward" if backward == "1" else "forward") + ("_tensor_core" if tensor_cores == "1" else "") + ".cu"
        rows.append({"step": step, "file": (named + [usual])[0], "element": element, "shape": [int(br), int(bc), int(dim)], "shared": int(shared)})
    return rows


def fits(shape, numbers):
    """Is the kernel with these integers as template arguments of this compiled shape? They are Br, Bc, dim and others, or dim alone."""
    if len(numbers) < len(shape):
        return numbers == shape[2:]
    return numbers[:len(shape)] == shape


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--nvcc", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="*")
    options = parser.parse_intermixed_args()
    nvcc = options.nvcc or shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("skipped: there is no nvcc")
        sys.exit(77)
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    work = os.path.join(options.build, "ptxas")
    os.makedirs(work, exist_ok=True)
    files = [os.path.abspath(f) for f in options.files] or sorted(glob.glob(f"{ROOT}/steps/*/*.cu"))

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda f: compile_one(nvcc, version, f, work), files))

    said = said_by_steps(options.build)
    wrong, table = [], []
    for path, result in zip(files, results):
        step, file = os.path.relpath(path, ROOT).split("/")[-2:]
        where = f"{step}/{file}"
        wrong += [f"{where}: {warning}" for warning in result["warnings"]]
        if not result["entries"]:
            wrong.append(f"{where}: no kernel was compiled")
        names = demangled([e["entry"] for e in result["entries"]])
        tensor_cores = "tensor_core" in file
        for e in result["entries"]:
            kernel, types, numbers = names[e["entry"]]
            shape = ", ".join(types + list(map(str, numbers)))
            what = f"{where}: {kernel}<{shape}> for {e['card']}"
            if e["spills"] or e["stack"]:
                wrong.append(f"{what}: {e['spills']} bytes of spills, {e['stack']} bytes of stack")
            if e["mma"] or e["ldmatrix"] or tensor_cores:
                expected = INSTRUCTIONS.get((step, kernel))
                if not expected:
                    wrong.append(f"{what}: {e['mma']} mma and {e['ldmatrix']} ldmatrix; INSTRUCTIONS in tests/ptxas.py does not say how many there should be")
                elif expected(*numbers) != (e["mma"], e["ldmatrix"]):
                    wrong.append(f"{what}: {e['mma']} mma and {e['ldmatrix']} ldmatrix, not {expected(*numbers)[0]} and {expected(*numbers)[1]}")

            dynamic = {s["shared"] for s in said
                       if (s["step"], s["file"]) == (step, file) and (not types or s["element"] in types) and fits(s["shape"], numbers)}
            threads = e["threads"]
            if threads is None:
                wrong.append(f"{what}: has no __launch_bounds__, so it may take more registers than its block can get")
            elif -(-e["registers"] // 8) * 8 * -(-threads // 32) * 32 > 65536:
                wrong.append(f"{what}: {threads} threads with {e['registers']} registers are more than the 65536 of a multiprocessor")
            table.append([step, file, kernel, shape, e["card"], threads or "", e["registers"], e["static_shared"],
                          "/".join(map(str, sorted(dynamic))) if dynamic else "", e["mma"] or "", e["ldmatrix"] or ""])

    head = ["step", "file", "kernel", "template arguments", "card", "threads at most", "registers", "shared, static", "shared, dynamic", "mma", "ldmatrix"]
    out = os.path.join(options.build, "ptxas.md")
    with open(out, "w") as f:
        for row in [head, ["---"] * len(head)] + table:
            f.write("| " + " | ".join(map(str, row)) + " |\n")
    for line in wrong:
        print(line)
    print(f"{len(table)} kernels of {len(files)} files, {len(wrong)} faults; at most {max([row[6] for row in table], default=0)} registers; table in {out}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
