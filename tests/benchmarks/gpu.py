"""Times the kernels on a GPU and, where this python3 has torch, torch's attention on the same shapes, one after the other.

    python3 tests/benchmarks/gpu.py BUILD_DIR

Writes BUILD_DIR/gpu.json and BUILD_DIR/gpu.md, and prints the latter. docs/gpu.md says what the columns are.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = ["batch", "heads", "kv_heads", "seq", "head_dim", "causal", "element"]


def output_of(*command):
    """What a command prints, or nothing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=HERE).stdout.strip()
    except OSError:
        return ""


def torch_times(kernels):
    """{"times": [...]}, or {"not_run": why}."""
    shapes = []
    for kernel in kernels:
        shape = {key: kernel[key] for key in SHAPE}
        if kernel["element"] != "float" and "ms" in kernel and shape not in shapes:
            shapes.append(shape)
    done = subprocess.run([sys.executable, os.path.join(HERE, "gpu_torch.py")], input=json.dumps(shapes), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        return {"not_run": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout)


def number(x, digits=3):
    if x is None or isinstance(x, str):
        return x or ""
    return f"{x:,.0f}" if x >= 10 ** digits else f"{x:.{digits}g}"


def table(report):
    card = report["card"]
    known = lambda value, unit: "not known" if value is None else f"{number(value, 4)} {unit}"
    lines = [
        f"{card['name']}, capability {card['capability'] / 10}: {card['multiprocessors']} multiprocessors at {known(card['clock_ghz'], 'GHz')} at most, memory {known(card['memory_gb_per_s'], 'GB/s')}, "
        f"L2 cache {card['l2_bytes'] / 2**20:.0f} MiB. Peak in float: {known(card['peak_tflops_float'], 'TFLOP/s')}; tensor cores with sums in float: {known(card['peak_tflops_tensor_cores'], 'TFLOP/s')}. "
        f"Driver {report['driver'] or 'not known'}, CUDA {card['runtime'] // 1000}.{card['runtime'] % 1000 // 10}; "
        + (f"torch: not run ({report['torch']['not_run']})." if "not_run" in report["torch"] else f"torch {report['torch']['version']}, cuDNN {report['torch']['cudnn']}."),
        "",
    ]
    beside = {}
    for time in report["torch"].get("times", []):
        beside[time["back_end"], *(time[key] for key in SHAPE)] = time
    head = ["step", "kernel", "element", "d", "length", "mask", "batch x heads / of K and V", "tile", "time", "TFLOP/s", "of the peak", "before ÷ this", "off by", "flash ÷ this", "cuDNN ÷ this"]
    lines += ["| " + " | ".join(head) + " |", "|---" * 7 + "|---" + "|--:" * 7 + "|"]
    for kernel in report["kernels"]:
        row = [kernel["step"], kernel["kernel"] + (", backward" if kernel["backward"] and "backward" not in kernel["kernel"] else ""), kernel["element"], kernel["head_dim"], kernel["seq"],
               "causal" if kernel["causal"] else "", f"{kernel['batch']} x {kernel['heads']} / {kernel['kv_heads']}", f"{kernel['br']} x {kernel['bc']}"]
        if "not_run" in kernel:
            row += [f"not run: {kernel['not_run']}"] + [""] * 6
        else:
            before = kernel.get("before", {})
            share = kernel.get("share_of_peak")
            row += [f"{number(kernel['ms'])} ms", number(kernel["tflops"]), "" if share is None else f"{100 * share:.1f} %",
                    number(before.get("times_faster")), number(before.get("largest_difference"), 2)]
            for back_end in ("flash", "cudnn"):
                time = beside.get((back_end, *(kernel[key] for key in SHAPE)), {})
                row.append(number(time["ms"] / kernel["ms"]) if "ms" in time else "not run" if time else "")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    if "error" in report:
        lines += ["", f"Ended with an error: {report['error']}"]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    build = sys.argv[1]
    done = subprocess.run([os.path.join(build, "tests", "gpu_times")], stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        sys.exit(1)
    report = json.loads(done.stdout)
    report["commit"] = output_of("git", "describe", "--always", "--dirty")
    report["driver"] = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0]
    report["clocks"] = output_of("nvidia-smi", "--query-gpu=name,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu,clocks_throttle_reasons.active", "--format=csv")
    report["torch"] = torch_times(report["kernels"])
    with open(os.path.join(build, "gpu.json"), "w") as f:
        json.dump(report, f, indent=1)
    text = table(report)
    with open(os.path.join(build, "gpu.md"), "w") as f:
        f.write(text)
    print(text)
    if done.returncode != 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
