"""Asks NumPy whether our .npy files are NumPy's.

    python3 tests/foreign_npy.py path/to/npy_echo

Every kind of good file that NumPy writes is read by npy_echo (tests/npy_echo.cpp), written again and read by NumPy: shape, type and bits must be right.
Every kind of bad file must be refused with exit status 2, one line on stderr that names the file, and nothing left in the output folder.
Exit status 0: all right. 1: not (what failed is printed). 77: no NumPy.
"""

import io
import itertools
import os
import resource
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIP: no NumPy")
    sys.exit(77)

failures = []
checks = 0


def check(right, what):
    global checks
    checks += 1
    if not right:
        failures.append(what)


def same(found, expected):
    """Shape, type and every value; NaN only where it belongs, and the sign of zero too."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    nan = np.isnan(expected)
    bits = "<u4" if expected.dtype == np.float32 else "<u8"
    return bool(np.array_equal(np.isnan(found), nan) and np.array_equal(found[~nan].view(bits), expected[~nan].view(bits)))


def self_test():
    """The comparison itself must fail where it should."""
    one = np.array([1.0, 0.0], "<f4")
    check(same(one, one.copy()), "self-test: equal")
    check(same(np.array([np.nan, 0], "<f4"), np.array([np.nan, 0], "<f4")), "self-test: NaN where it belongs")
    for wrong in ([np.nan, 0.0], [1.0, np.nan], [1.0, -0.0], [1.0, 1e-45], [np.inf, 0.0]):
        check(not same(np.array(wrong, "<f4"), one), f"self-test: {wrong}")
    check(not same(one, np.array([np.nan, 0], "<f4")), "self-test: NaN missing")
    check(not same(one.reshape(2, 1), one) and not same(one[:1], one) and not same(one.astype("<f8"), one), "self-test: shape and type")


def saved(array, version=None, **options):
    stream = io.BytesIO()
    if version is None:
        np.save(stream, array, **options)
    else:
        np.lib.format.write_array(stream, array, version=version, **options)
    return stream.getvalue()


def with_header(header, numbers=b"", version=(1, 0)):
    text = header if isinstance(header, bytes) else header.encode("latin1")
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text + numbers


class Echo:
    def __init__(self, program, folder):
        self.program, self.folder, self.count = program, folder, 0

    def run(self, content, kind, axes, limit=None):
        """Runs npy_echo on the bytes; returns its exit status, stderr, the file read and the folder written."""
        self.count += 1
        path = os.path.join(self.folder, f"in{self.count}.npy")
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        out = os.path.join(self.folder, f"out{self.count}", "below")
        restrict = None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        # Python ignores SIGXFSZ, and restore_signals=False hands that on: a write beyond the limit then fails as on a full disk
        ran = subprocess.run([self.program, kind, str(axes), path, out, "o.npy"], capture_output=True, text=True, timeout=60,
                             preexec_fn=restrict, restore_signals=limit is None)
        return ran.returncode, ran.stderr, path, out

    def good(self, content, expected, what):
        for kind in ("float", "double"):
            status, stderr, path, out = self.run(content, kind, expected.ndim)
            if status != 0 or stderr:
                check(False, f"{what} as {kind}: exit {status}, {stderr.strip()}")
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                wanted = np.ascontiguousarray(expected.astype("<f4" if kind == "float" else "<f8")).reshape(expected.shape)
            written = os.path.join(out, "o.npy")
            found = np.load(written, allow_pickle=False)
            check(same(found, wanted), f"{what} as {kind}: other numbers")
            check(found.flags["C_CONTIGUOUS"], f"{what} as {kind}: not in C order")
            with open(written, "rb") as file:
                check(np.lib.format.read_magic(file) == (1, 0), f"{what}: not format 1.0")
                np.lib.format.read_array_header_1_0(file)
                check(file.tell() % 64 == 0, f"{what}: header not padded to 64")
            check(os.listdir(out) == ["o.npy"], f"{what}: more than o.npy in the folder")

    def bad(self, content, what, part, axes=4, limit=None):
        status, stderr, path, out = self.run(content, "float", axes, limit)
        check(status == 2, f"{what}: exit {status}")
        check(stderr.count("\n") == 1 and stderr.endswith("\n") and len(stderr) < 700, f"{what}: not one line: {stderr[:300]!r}")
        check(part in stderr, f"{what}: '{part}' not in {stderr!r}")
        check((path if limit is None else out) in stderr, f"{what}: the file is not named in {stderr!r}")
        check(not os.path.exists(os.path.dirname(out)), f"{what}: something is left behind")


def good_files(echo):
    random = np.random.default_rng(1)
    shapes = [(1, 1, 1, 1), (2, 3, 5, 7), (1, 2, 0, 4), (0, 0, 0, 0), (3, 1, 130, 33), (1, 1, 1, 70000), (4, 5, 6), (5,), ()]
    for kind, order, shape in itertools.product(("<f2", "<f4", "<f8", "=f4"), "CF", shapes):
        array = np.asarray(random.standard_normal(shape).astype(kind), order=order)
        echo.good(saved(array), array, f"{kind} {order} {shape}")
    plain = random.standard_normal((2, 3, 4, 5))
    for version in ((1, 0), (2, 0), (3, 0)):
        echo.good(saved(plain, version), plain, f"version {version}")
    echo.good(saved(plain.transpose(2, 0, 3, 1)), plain.transpose(2, 0, 3, 1), "a transposed view")
    echo.good(saved(plain[:, ::2, ::-1]), plain[:, ::2, ::-1], "a strided view")
    every_half = np.arange(65536, dtype="<u2").view("<f2").reshape(1, 4, 128, 128)
    echo.good(saved(every_half), every_half, "every float16")
    bits = random.integers(0, 2**32, 60000, dtype=np.uint64).astype("<u4").view("<f4").reshape(2, 3, 100, 100)
    echo.good(saved(bits), bits, "random bits of float32")
    bits = random.integers(0, 2**64, 60000, dtype=np.uint64).view("<f8").reshape(2, 3, 100, 100)
    echo.good(saved(bits), bits, "random bits of float64")
    near = (random.standard_normal(60000).astype("<f4").astype("<f8") * (1 + 2.0**-24 * random.integers(-2, 3, 60000))).reshape(2, 3, 100, 100)
    echo.good(saved(near), near, "float64 near ties between floats")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 1e-310, 3.4028235677973366e38, 1e300, -1e300, 65504]).reshape(1, 2, 3, 2)
    echo.good(saved(special), special, "special values")
    numbers = np.arange(6, dtype="<f4").reshape(1, 1, 2, 3)
    for header in ("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2, 3)}", "{\"shape\":(1,1,2,3,),'fortran_order':False,\"descr\":\"<f4\"}",
                   "{ 'fortran_order' :False,'shape' : ( 1 , 1 , 2 , 3 ) , 'descr':'=f4' , }   \n\n"):
        echo.good(with_header(header, numbers.tobytes()), numbers, f"header {header!r}")


def bad_files(echo):
    floats = np.ones((1, 2, 3, 4), "<f4")
    good = saved(floats)
    for kind in (">f2", ">f4", ">f8"):
        echo.bad(saved(floats.astype(kind)), kind, f"big-endian; save it with .astype('<{kind[1:]}')")
    for kind in ("<i8", "<i4", ">i4", "|u1", "|b1", "<c8", "<c16", "<U3", "|S2", "<M8[s]", "|V2"):
        echo.bad(saved(floats.astype("<i8").astype(kind)), kind, "accepted are '<f2', '<f4' and '<f8'")
    if np.dtype(np.longdouble).itemsize == 16:
        echo.bad(saved(floats.astype(np.longdouble)), "long double", "accepted are '<f2', '<f4' and '<f8'")
    echo.bad(saved(floats.astype(object), allow_pickle=True), "objects", "pickled Python objects")
    echo.bad(saved(np.zeros((1, 2, 3, 4), [("a", "<f4"), ("b", "<i4")])), "records", "records")
    for shape in ((), (3,), (2, 3), (2, 3, 4), (1, 2, 3, 4, 5)):
        echo.bad(saved(np.zeros(shape)), f"shape {shape}", f"has {len(shape)} axes, {shape}; 4 are expected")
    archive = io.BytesIO()
    np.savez(archive, q=floats)
    echo.bad(archive.getvalue(), "npz", "zip archive")
    echo.bad(None, "a missing file", "no such file")
    echo.bad(b"1.0 2.0\n", "text", "not a .npy file")
    for length in range(len(good)):
        echo.bad(good[:length], f"cut to {length} bytes", "")
    echo.bad(good + b"\0", "one byte more", "longer than its header says")
    echo.bad(good[:6] + b"\x09\x00" + good[8:], "version 9.0", "known are 1.0, 2.0 and 3.0")
    for axis in (-1, 2**31, 2**62, 2**63, 2**64, 10**40):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, {axis}, 3), }}"
        echo.bad(with_header(header, floats.tobytes()), f"axis {axis}", "axis")
    for shape in ("(2**20, 1, 1, 1)", "(1 << 2, 1, 1, 1)", "((1, 2), 3, 4, 5)", "(1, 2, 3, None)", "(1, 2, 3, 4", "(1 2 3 4)", "[1, 2, 3, 4]",
                  "(1_0, 2, 3, 4)"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        echo.bad(with_header(header, floats.tobytes()), f"shape {shape}", "malformed")
    echo.bad(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (65536, 65536, 65536, 65536), }"), "2^64 elements", "elements")
    echo.bad(with_header("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1, 1024, 1073741824), }"), "8 TiB", "shorter than its header says")
    for header in ("", "{", "{}", "None", "{'descr': '<f4'}", "__import__('os')", "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}",
                   b"\xff\xfe\x00", b"{'\xc3\xa9': 1}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 2, 3, 4)}"):
        echo.bad(with_header(header, floats.tobytes()), f"header {header!r}", "its header")
    echo.bad(with_header("{" * 60000), "many braces", "malformed")
    echo.bad(with_header("{'descr': " + "[" * 100000, version=(2, 0)), "many brackets", "records")
    echo.bad(saved(np.zeros((1, 1, 300, 300), "<f4")), "a full disk", "cannot write this file", limit=65536)


def main():
    if len(sys.argv) != 2:
        print("use: python3 tests/foreign_npy.py path/to/npy_echo", file=sys.stderr)
        return 2
    self_test()
    with tempfile.TemporaryDirectory() as folder:
        echo = Echo(os.path.abspath(sys.argv[1]), folder)
        good_files(echo)
        bad_files(echo)
    for failure in failures:
        print("FAILED:", failure)
    print(f"{checks - len(failures)} of {checks} checks are right (NumPy {np.__version__})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
