"""Arrays of every dtype and memory layout, and references, for all tests."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import math
import os
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = tuple(np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64))
FLOATS = (np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64"))
COMPLEX = (np.dtype("complex64"), np.dtype("complex128"))
REAL = (np.dtype("bool"), *INTEGERS, *FLOATS)
DTYPES = (*REAL, *COMPLEX)

T = TypeVar("T")
Array = Any  # an array of NumPy, or of the library that the backend takes its arrays from


is_emulated = False  # set before any test is loaded, where the GPU is the emulator
is_exhaustive = False  # set before any test is loaded, by --exhaustive
takes_sample = False  # set before any test is loaded, if the run takes a sample of the cases


# One dtype of each size, and bfloat16 for its arithmetic; the others with --exhaustive.
SAMPLE = ("int8", "bfloat16", "float32", "complex128")


def sampled(values: Iterable[Any], sample: Iterable[Any] = SAMPLE) -> list[Any]:
    """Return what a test is parametrized by, all but a sample marked as exhaustive."""
    often = set(map(str, sample))
    return [
        value if str(value) in often else pytest.param(value, marks=pytest.mark.exhaustive)
        for value in values
    ]


def a_few(values: Iterable[T], count: int = 1) -> list[T]:
    """Return what a test loops over: all values, or so many where the run takes a sample.

    Other cases take other ones of the same values.
    """
    every = list(values)
    if not takes_sample or len(every) <= count:
        return every
    case = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" (")[0]
    first = zlib.crc32(case.encode())
    return [every[(first + k * len(every) // count) % len(every)] for k in range(count)]


def examples(usual: int, *, emulated: int | None = None) -> int:
    """Return how many examples hypothesis takes: an eighth where the run takes a sample."""
    few = max(3, usual // 8) if takes_sample else usual
    return few if emulated is None else scaled(few, emulated=min(few, emulated))


def scaled(usual: T, *, emulated: T) -> T:
    """Return how many elements a test takes; on the emulated GPU each takes ten thousand times."""
    return emulated if is_emulated else usual


def forget_problems() -> None:
    """Let the next call of each kind decide anew: bounds that a test sets are asked once."""
    from gpualgo._pipeline.problem import Problem

    kinds: list[type[Problem]] = [Problem]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "problems" in kind.__dict__:
            kind.problems.clear()


def arrays_kept(call: Callable[[int], Any], first: int, last: int) -> float:
    """Return how many bytes of arrays each call leaves, of NumPy's count.

    Blocks of scratch memory are not counted. A pool keeps them, and a call makes another one while
    a thread of an earlier test holds one.
    """
    from gpualgo._cpu import memory  # the package is imported after the settings of a run

    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    block_bytes = memory.Memory(memory.MEMORY_BYTES).array.nbytes

    def held() -> int:
        gc.collect()
        traces = tracemalloc.take_snapshot().filter_traces([domain]).traces
        return sum(trace.size for trace in traces if trace.size != block_bytes)

    tracemalloc.start()
    try:
        for k in range(first):
            call(k)
        before = held()
        for k in range(first, last):
            call(k)
        return (held() - before) / (last - first)
    finally:
        tracemalloc.stop()


def since_numpy(version: str) -> Any:
    """Return the mark of a test of what NumPy does from a version on: an older one does another."""
    is_older = np.lib.NumpyVersion(np.__version__) < f"{version}.0"
    return pytest.mark.skipif(is_older, reason=f"as NumPy {version} does it")


@dataclass(frozen=True)
class Backend:
    """One of gpualgo's backends, and the library whose arrays the tests give to it."""

    name: str
    xp: Any

    def to_device(self, array: Array) -> Array:
        return np.asarray(array) if self.xp is np else self.xp.asarray(array)

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(array) if self.xp is np else np.asarray(self.xp.asnumpy(array))

    def arrange(self, layout: str, array: np.ndarray[Any, Any]) -> Array:
        """Return a device array of the same values in another memory layout."""
        view = LAYOUTS[layout](lambda shape: self.xp.zeros(shape, array.dtype), array.shape)
        view[...] = self.to_device(array)
        return view


Allocate = Callable[[tuple[int, ...]], Array]


def _offset(new: Allocate, shape: tuple[int, ...]) -> Array:
    return new((math.prod(shape) + 1,))[1:].reshape(shape)


def _swapped(new: Allocate, shape: tuple[int, ...]) -> Array:
    return (
        new((shape[-1], *shape[1:-1], shape[0])).swapaxes(0, -1) if len(shape) > 1 else new(shape)
    )


# Each makes a view of the wanted shape (one dimension or more) out of a C-contiguous allocation.
LAYOUTS: dict[str, Callable[[Allocate, tuple[int, ...]], Array]] = {
    "contiguous": lambda new, shape: new(shape),
    "offset": _offset,
    "step": lambda new, shape: new((*shape[:-1], 2 * shape[-1]))[..., ::2],
    "reversed": lambda new, shape: new(shape)[..., ::-1],
    "reversed_rows": lambda new, shape: new(shape)[::-1],
    "padded": lambda new, shape: new((*shape[:-1], shape[-1] + 3))[..., : shape[-1]],
    "fortran": lambda new, shape: new(shape[::-1]).T,
    "swapped": _swapped,
}


def random_array(
    shape: int | Sequence[int], dtype: np.dtype[Any], seed: int = 0
) -> np.ndarray[Any, Any]:
    """Return random values: integers over their whole range, floats around zero."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    values: Any = rng.standard_normal(shape) * 8
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values).astype(dtype)


def summable(
    shape: int | Sequence[int], dtype: np.dtype[Any], seed: int = 0
) -> np.ndarray[Any, Any]:
    """Return values whose sums are exact, so that every order of association gives them."""
    if dtype.kind in "biu":
        return random_array(shape, dtype, seed)  # modular arithmetic is associative
    limit = 2 if dtype.itemsize == 2 else 9  # bfloat16 holds the integers to 256, float16 to 2048
    return np.random.default_rng(seed).integers(1 - limit, limit, shape).astype(dtype)


def special_values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the values at which arithmetic is apt to go wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([0, 1, low, high, high - 1], dtype)
    info: Any = (ml_dtypes if dtype == BFLOAT16 else np).finfo(dtype)
    edges = [float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    values = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, *edges])
    if dtype.kind == "c":
        return np.array([complex(a, b) for a in values[:7] for b in values[:7]], dtype)
    return values.astype(dtype)


def fold(
    op: Callable[[Any, Any], Any],
    x: np.ndarray[Any, Any],
    axis: int | tuple[int, ...] | None = None,
    init: Any = None,
) -> np.ndarray[Any, Any]:
    """Fold along axis in C order, by halving: exact for an associative, vectorised op."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    folded = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in folded]
    rows = x.transpose(kept + folded).reshape(*(x.shape[a] for a in kept), -1)
    while rows.shape[-1] > 1:
        pairs = rows.shape[-1] // 2 * 2
        halved = op(rows[..., 0:pairs:2], rows[..., 1:pairs:2]).astype(x.dtype)
        rows = np.concatenate([halved, rows[..., pairs:]], axis=-1)
    result = rows[..., 0]
    return np.asarray(result if init is None else op(x.dtype.type(init), result)).astype(x.dtype)


MASK = 0xFFFFFFFF


def compose(a: Any, b: Any) -> Any:
    """Apply x -> (a >> 32) x + (a & MASK), then b's, modulo 2**32.

    Functions packed in uint64: exact, associative, not commutative, with an identity (1 << 32).
    """
    slope = ((a >> 32) * (b >> 32)) & MASK
    shift = ((b >> 32) * (a & MASK) + (b & MASK)) & MASK
    return (slope << 32) | shift


def affine(shape: int | Sequence[int], seed: int = 0) -> np.ndarray[Any, Any]:
    """Return packed functions for `compose`, with odd slopes so that no element is forgotten."""
    return random_array(shape, np.dtype("uint64"), seed) | np.uint64(1 << 32)


def assert_same(got: Any, want: Any, *, zero_signs: bool = True) -> None:
    """Assert equal dtype, shape and values: NaN equals NaN, and -0.0 is not 0.0."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"dtype {got.dtype}, wanted {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape}, wanted {want.shape}"
    if got.dtype.kind == "c":
        assert_same(got.real, want.real, zero_signs=zero_signs)
        assert_same(got.imag, want.imag, zero_signs=zero_signs)
        return
    if got.dtype == BFLOAT16:
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f" and zero_signs:
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def run_python(code: str, *, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that can import this checkout's gpualgo."""
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def assert_same_on_one_core(code: str) -> None:
    """Assert that code prints the same on the CPU's cores and on one of them."""
    on_one = """import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
"""
    one = run_python(on_one + code, GPUALGO_NUM_THREADS="1", GPUALGO_DEVICE="cpu")
    all_cores = run_python(code, GPUALGO_DEVICE="cpu")
    assert one.returncode == all_cores.returncode == 0, one.stderr + all_cores.stderr
    assert one.stdout == all_cores.stdout


def need_memory(backend: Backend, nbytes: int) -> None:
    """Skip, saying so, where the backend has not nbytes free."""
    if backend.xp is np:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    else:
        free = backend.xp.cuda.runtime.memGetInfo()[0]
    if free < nbytes:
        pytest.skip(f"needs {nbytes / 2**30:.1f} GiB of memory, {free / 2**30:.1f} are free")


def count_gpus() -> int:
    """Ask the driver itself, not the library under test, how many GPUs there are."""
    import ctypes

    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def other_spelling(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of another C type of the same kind and size, as np.longlong beside np.int64.

    The same one, where the platform has no other.
    """
    others = [np.dtype(code) for code in np.typecodes["All"] if code not in "SUVOMm"]
    return next((x for x in others if x == dtype and x.type is not dtype.type), dtype)


@contextmanager
def jax_of_32_bits() -> Iterator[None]:
    """Have JAX compute with 32 bits, which is its default; the benchmark's tests change it."""
    if importlib.util.find_spec("jax") is None:
        yield
        return
    jax = importlib.import_module("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
