"""The faults of seeded_faults.py."""
from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    kernel: str        # as kernel_driver calls it
    file: str          # where the text stands
    old: str           # exactly once; or several texts, all of whose places are replaced
    new: str
    detectors: tuple   # see seeded_faults.py
    unit: str = ""     # the .cu that is compiled, where the file is a header

    def texts(self):
        return zip(self.old, self.new) if isinstance(self.old, tuple) else [(self.old, self.new)]


F04 = "steps/04_fa1_tiled/forward.cu"
F05 = "steps/05_fa2_loop_swap/forward.cu"
T05 = "steps/05_fa2_loop_swap/forward_tensor_core.cu"
F06 = "steps/06_backward_recompute/backward.cu"
F07 = "steps/07_causal_early_exit/forward.cu"
F08 = "steps/08_gqa/forward.cu"
TILE = "common/cuda/kernel.hpp"
TILE16 = "common/cuda/tile16.hpp"
RACE = r"traced: a (write|read) and a (read|write) on shared byte|two writes on shared byte"

FAULTS = [
    # Barriers
    Fault("missing barrier after the load", "05", F05, "    __syncthreads();                                          // the tile is complete\n", "",
          ("wrong", RACE)),
    Fault("missing barrier before the load", "05", F05, "    __syncthreads();                                          // the tile before is no longer needed\n", "",
          ("wrong", RACE)),
    Fault("missing warp barrier", "05", F05, "    __syncwarp();                                             // the threads of a row see each other's P\n", "",
          ("wrong", RACE)),
    Fault("early return", "05", F05, "  float o_i[D / team] = {}; ", "  if (i0 + r >= x.seq_q) return;\n  float o_i[D / team] = {}; ",
          (r"error: (?s)barrier divergence in block .*returned from the kernel",)),
    Fault("divergent barrier", "05", F05, "    __syncthreads();                                          // the tile is complete\n",
          "    if (r < Br / 2) {\n      __syncthreads();\n    } else {\n      __syncthreads();\n    }\n",
          (r"error: barrier divergence in block",)),
    Fault("divergent shuffle", "05", F05, "gpu::warp_max<team>(top)", "(c != 3 ? gpu::warp_max<team>(top) : top)",
          (r"error: warp divergence in block",)),
    # Memory
    Fault("a row too many is read, and not used", "05", TILE, "first + r < rows && x < cols ? from(first + r, x) * factor",
          "first + r <= rows && x < cols ? from(first + r, x) * factor", (r"traced: outside every buffer.*past the end of '[qkv]'", r"asan: use-after-poison|heap-buffer-overflow"),
          F05),
    Fault("a loop runs into the next array", "05", TILE, "for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {\n    const int r = i / columns, x = i % columns;\n    tile",
          "for (int i = threadIdx.x; i < (Rows + 2) * columns; i += blockDim.x) {\n    const int r = i / columns, x = i % columns;\n    tile",
          (r"asan: out of bounds",), F05),
    Fault("a read past the end of shared memory", "05", F05, "pv[n] += sm.p[r][j] *", "pv[n] += sm.p[r + 1][j] *", ("wrong", r"asan: out of bounds")),
    Fault("padding is not written", "05", TILE, "    tile[r][x] = first + r < rows && x < cols ? from(first + r, x) * factor : 0.0f;",
          "    if (first + r < rows && x < cols) tile[r][x] = from(first + r, x) * factor;", ("wrong", r"traced: which nobody wrote"), F05),
    Fault("blocks write the same address", "05", F05, "lse(i0 + r, 0) = l", "lse(r, 0) = l", ("wrong", r"traced: race between blocks on byte \d+ of 'lse'")),
    Fault("too little shared memory", "05", F05, "Br * team, sizeof(Storage<Br, Bc, D>), x);", "Br * team, sizeof(Storage<Br, Bc, D>) - 4096, x);",
          (r"error: the kernel uses \d+ bytes of shared memory .*launched with",)),
    Fault("uncoalesced loads", "05", TILE,
          "for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {\n    const int r = i / columns, x = i % columns;\n    tile",
          "for (int i = threadIdx.x; i < Rows * columns; i += blockDim.x) {\n    const int r = i % Rows, x = i / Rows;\n    tile",
          ("unseen", r"counted: forward.cu:\d+ +global load .* 12\.5 % of them used"), F05),
    # Tensor cores and asynchronous copies
    Fault("missing wait for the next tile", "05 tensor cores", T05, "    gpu::copy_async_wait();                                   // this thread's part of the next tile is there\n", "",
          (r"error: returned with asynchronous copies in flight",)),
    Fault("missing barrier before an asynchronous tile", "05 tensor cores", T05,
          "    __syncthreads();                                          // this tile is complete, and the one before no longer needed\n    fetch(j0 + Bc);\n", "    fetch(j0 + Bc);\n",
          ("wrong", r"traced: asynchronous copy|on shared byte")),
    Fault("missing barrier after the wait for Q", "05 tensor cores", T05, "  __syncthreads();                                            // Q_I is complete, and the first tile\n", "",
          ("wrong", r"traced: on shared byte")),
    Fault("bank conflicts", "05 tensor cores", TILE16, ("T[Rows][D + 8];", "D = Stride - 8,"), ("T[Rows][D];", "D = Stride,"),
          ("unseen", r"counted: [5-8]\.\d\d passes for one"), T05),
    Fault("untransposed ldmatrix", "05 tensor cores", TILE16, "  ldmatrix_x4_transposed(f, &tile", "  ldmatrix_x4(f, &tile", ("wrong",), T05),
    Fault("rows past the end are copied", "05 tensor cores", TILE16, "from.row(first + r + n) + x, n < left, site)", "from.row(first + r + n) + x, x < cols, site)",
          (r"traced: outside every buffer", r"asan: use-after-poison|heap-buffer-overflow"), T05),
    Fault("halves of a row change places", "05 tensor cores", T05, "gpu::pack<T>(s0[0], s0[1]), gpu::pack<T>(s0[2], s0[3])", "gpu::pack<T>(s0[2], s0[3]), gpu::pack<T>(s0[0], s0[1])",
          ("wrong",)),
    # Split over keys
    Fault("missing barrier between maxima and weights", "04", F04, "      __syncthreads();                                             // every warp needs the maxima of all\n", "",
          ("wrong", RACE)),
    Fault("sums of other warps left out", "04", F04, "            sum += sm.sum[w][lane];  ", "            sum = sm.sum[w][lane];  ", ("wrong",)),
    Fault("a slice is overwritten", "04", F04, "        if (c0 + slice < x.value_dim) __syncthreads();             // this slice is no longer needed\n", "",
          ("wrong", RACE)),
    # Atomics, masks, heads
    Fault("an addition that is not atomic", "06 column order", F06, "atomicAdd(&dq(i0 + i, e), x.scale * dq_i[n]);", "dq(i0 + i, e) += x.scale * dq_i[n];",
          (r"traced: race between blocks on byte \d+ of 'dq'",)),
    Fault("the bound of the first row", "07", F07, "min(i0 + Br, x.seq_q) + x.diagonal", "i0 + 1 + x.diagonal", ("wrong",)),
    Fault("a key too many is seen", "07", F07, "first = i0 + x.diagonal + 1 - j0", "first = i0 + x.diagonal + 2 - j0", ("wrong",)),
    Fault("the wrong head of K and V", "08", F08, "h / (x.heads / x.kv_heads)", "h % x.kv_heads", ("wrong",)),
]
