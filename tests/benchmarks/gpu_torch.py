"""Times torch's scaled_dot_product_attention with its flash and its cuDNN back end.

    python3 tests/benchmarks/gpu_torch.py < shapes.json > times.json

shapes.json: a list of objects with batch, heads, kv_heads, seq, head_dim, causal and element. The same way of timing as gpu_events.cu. Exit
status 77: there is no torch, or it sees no GPU.
"""

import json
import statistics
import sys

try:
    import torch
    import torch.nn.functional as functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"no torch: {error}", file=sys.stderr)
    sys.exit(77)
if not torch.cuda.is_available():
    print("torch sees no GPU", file=sys.stderr)
    sys.exit(77)

BACK_ENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def milliseconds(run, budget=500):
    flush = torch.empty(max(4 * getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0), 256 << 20), dtype=torch.int8, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    while len(times) < 4 or (sum(times[1:]) < budget and len(times) < 31):
        flush.zero_()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times[1:]  # the first warms up


def attention(x):
    element = {"half": torch.float16, "bfloat16": torch.bfloat16}[x["element"]]
    torch.manual_seed(1)
    q, k, v = (torch.randn(x["batch"], heads, x["seq"], x["head_dim"], device="cuda").to(element) for heads in (x["heads"], x["kv_heads"], x["kv_heads"]))
    more = {"enable_gqa": True} if x["heads"] != x["kv_heads"] else {}
    return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=x["causal"], **more)


times = []
for x in json.load(sys.stdin):
    for name, back_end in BACK_ENDS.items():
        result = {**x, "back_end": name}
        try:
            with torch.no_grad(), sdpa_kernel(back_end):
                result["all_ms"] = milliseconds(attention(x))
            result["ms"] = statistics.median(result["all_ms"])
        except (RuntimeError, TypeError) as error:
            result["not_run"] = str(error).splitlines()[0]
        print(f"torch, {name}, {x['element']}, d {x['head_dim']}, {x['seq']} tokens{', causal' if x['causal'] else ''}", file=sys.stderr)
        times.append(result)
json.dump({"version": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "times": times}, sys.stdout)
