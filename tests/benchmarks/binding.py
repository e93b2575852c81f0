"""The library of steps 05 to 08 (binding.cpp) from Python: arrays of NumPy or tensors of torch, [batch, heads, rows, columns] without gaps."""

import ctypes
import json
import math

RESULTS = ("o", "lse", "dq", "dk", "dv")


class Problem(ctypes.Structure):
    """FlashstepsProblem."""

    _fields_ = [(name, ctypes.c_int64) for name in ("size", "bytes", "batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "value_dim")]
    _fields_ += [("scale", ctypes.c_double)] + [(name, ctypes.c_void_p) for name in ("q", "k", "v", "d_o")]


class Pass(ctypes.Structure):
    """FlashstepsPass."""

    _fields_ = [(name, ctypes.c_int64) for name in ("size", "step", "backward", "causal", "threads", "br", "bc", "taken_br", "taken_bc")]
    _fields_ += [("seconds", ctypes.c_double)]


class Wrong(ValueError):
    """What the library says of a call that it cannot compute."""


def address(x):
    """Where the elements of an array lie, and how many bytes one has."""
    if hasattr(x, "data_ptr"):
        if not x.is_contiguous() or str(x.dtype) not in ("torch.float32", "torch.float64"):
            raise Wrong("a tensor is not float or double without gaps")
        return x.data_ptr(), x.element_size()
    if not x.flags.c_contiguous or str(x.dtype) not in ("float32", "float64"):
        raise Wrong("an array is not float or double without gaps")
    return x.ctypes.data, x.itemsize


class Library:
    """The library in one file."""

    def __init__(self, path):
        self.path, self.peaks = path, {}
        self.c = ctypes.CDLL(path)
        self.c.flashsteps_description.restype = ctypes.c_char_p
        self.c.flashsteps_error.restype = ctypes.c_char_p
        self.c.flashsteps_open.restype = ctypes.c_void_p
        self.c.flashsteps_open.argtypes = [ctypes.POINTER(Problem)]
        self.c.flashsteps_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(Pass)]
        self.c.flashsteps_result.restype = ctypes.c_void_p
        self.c.flashsteps_result.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)]
        self.c.flashsteps_close.argtypes = [ctypes.c_void_p]
        self.c.flashsteps_peak.restype = ctypes.c_double
        self.c.flashsteps_peak.argtypes = [ctypes.c_int64]

    def description(self):
        """How it was built: assertions, simd_bytes, simd_registers, build_type, compiler and flags."""
        return json.loads(self.c.flashsteps_description())

    def error(self):
        return self.c.flashsteps_error().decode()

    def peak(self, threads=1):
        """GF/s of multiply-adds on registers in float, of all threads together; measured once. 0: that cannot be measured now."""
        if not self.peaks.get(threads):
            self.peaks[threads] = self.c.flashsteps_peak(threads)
        return self.peaks[threads]


class Session:
    """Q, K, V and perhaps dO, copied into the library, and what it computes of them."""

    def __init__(self, library, q, k, v, d_o=None, scale=None):
        self.library, self.handle = library, None
        shapes = [tuple(x.shape) for x in (q, k, v)]
        if any(len(shape) != 4 for shape in shapes):
            raise Wrong("q, k and v have four axes")
        (batch, heads, seq_q, dim), (batch_k, kv_heads, seq_k, dim_k), (batch_v, heads_v, seq_v, value_dim) = shapes
        if not (batch == batch_k == batch_v and kv_heads == heads_v and seq_k == seq_v and dim == dim_k):
            raise Wrong(f"q, k and v do not fit together: {shapes}")
        self.shapes = {"o": (batch, heads, seq_q, value_dim), "lse": (batch, heads, seq_q), "dq": shapes[0], "dk": shapes[1], "dv": shapes[2]}
        if d_o is not None and tuple(d_o.shape) != self.shapes["o"]:
            raise Wrong(f"d_o is {tuple(d_o.shape)}, not {self.shapes['o']}")
        where = [address(x) for x in (q, k, v)] + ([address(d_o)] if d_o is not None else [])
        self.bytes = where[0][1]
        if any(size != self.bytes for _, size in where):
            raise Wrong("q, k, v and d_o are not of one type")
        problem = Problem(ctypes.sizeof(Problem), self.bytes, batch, heads, kv_heads, seq_q, seq_k, dim, value_dim, 1 / math.sqrt(dim) if scale is None else scale)
        problem.q, problem.k, problem.v = (pointer for pointer, _ in where[:3])
        problem.d_o = where[3][0] if d_o is not None else None
        self.handle = library.c.flashsteps_open(ctypes.byref(problem))
        if not self.handle:
            raise Wrong(library.error())

    def compute(self, step, backward=False, causal=False, threads=1, tiles=(0, 0)):
        """A pass of a step, after its outputs have been filled with NaN.

        Returns what was done: seconds, and the tiles taken_br and taken_bc.
        """
        done = Pass(ctypes.sizeof(Pass), step, backward, causal, threads, *tiles)
        if self.library.c.flashsteps_run(self.handle, ctypes.byref(done)):
            raise Wrong(self.library.error())
        return done

    def result(self, name):
        """(pointer, bytes, shape) of o, lse, dq, dk or dv, until close()."""
        count = ctypes.c_int64()
        pointer = self.library.c.flashsteps_result(self.handle, name.encode(), ctypes.byref(count))
        if not pointer:
            raise Wrong(self.library.error())
        if count.value != math.prod(self.shapes[name]):
            raise Wrong(f"{name} has {count.value} elements, not {self.shapes[name]}")
        return pointer, count.value * self.bytes, self.shapes[name]

    def copy_of(self, name):
        """The bytes of a result."""
        pointer, size, _ = self.result(name)
        return bytearray(ctypes.string_at(pointer, size))

    def close(self):
        if self.handle:
            self.library.c.flashsteps_close(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
