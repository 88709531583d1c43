"""Sorting beside CUB, CuPy, PyTorch and NumPy.

The bytes of a rate are those of 8-bit
digits sorted one after the other, so a counting sort's rate may pass the memory's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench import data
from gpualgo._bench.peers import arrays, cub, frames
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.SORT_KEYS, cub.SORT_PAIRS)  # what these rows compile of it
COLUMNS = 1 << 10
# Of bits that are 1 where as many random ones are: thirty-two make all keys equal.
WORDS = {1.0: 1, 0.811: 2, 0.544: 3, 0.337: 4, 0.201: 5, 0.0: 32}
_IN_TORCH = ("uint8", "int64", "float32")  # PyTorch sorts no wider unsigned integers


def moved(key_bytes: int, value_bytes: int = 0) -> int:
    """Return the bytes moved for each key: one reading, then a pass for each of its digits."""
    return key_bytes + 2 * key_bytes * (key_bytes + value_bytes)


def _poisoned(x: Any, dtype: Any = None) -> Any:
    """Return an output in which a value that was not written is seen."""
    return gpu().full(x.shape, 77, dtype or x.dtype)


def _keys(make: Callable[[int], Any], n: int) -> Work:
    cupy, x = gpu(), make(n)
    out = [_poisoned(x) for _ in range(2)]
    contenders = {OURS: lambda: ga.radix_sort(x, out=out[0])}
    contenders |= cub.sort_keys(x, out[1])
    contenders["CuPy"] = lambda: cupy.sort(x)
    contenders |= arrays.function(lambda jnp: jnp.sort, x)
    if torch() and str(x.dtype) in _IN_TORCH:
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().sort(tensor)[0]  # it finds the indices as well
    return Work(contenders, cupy.sort(x))


def _pairs(dtype: str, n: int) -> Work:
    x, values = data.bits(n, dtype), data.bits(n, dtype, seed=1)
    out = [(_poisoned(x), _poisoned(values)) for _ in range(2)]
    contenders = {OURS: lambda: ga.radix_sort(x, values, out=out[0])}
    contenders |= cub.sort_pairs(x, values, out[1])
    order = gpu().argsort(x)
    return Work(contenders, (x[order], values[order]))


def _argsort(n: int) -> Work:
    cupy, x = gpu(), data.floats(n)
    out = _poisoned(x, "int64")
    contenders = {OURS: lambda: ga.argsort(x, out=out), "CuPy": lambda: cupy.argsort(x)}
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().argsort(tensor, stable=True)
    return Work(contenders, cupy.argsort(x))


def _rows(n: int) -> Work:
    cupy, x = gpu(), data.floats(n).reshape(-1, COLUMNS)
    out = [_poisoned(x) for _ in range(2)]
    contenders = {OURS: lambda: ga.radix_sort(x, axis=1, out=out[0])}
    contenders |= cub.sort_rows(x, out[1])
    contenders["CuPy"] = lambda: cupy.sort(x, axis=1)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().sort(tensor, dim=1)[0]
    return Work(contenders, cupy.sort(x, axis=1))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    out = np.full(n, 77, np.float32)
    contenders = {OURS: lambda: ga.radix_sort(x, out=out), "NumPy": lambda: np.sort(x)}
    contenders |= frames.series(x, lambda s: s.sort())
    return Work(contenders, np.sort(x))


def _numpy_entropic(entropy: float, n: int) -> Work:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, n, np.uint32)
    for _ in range(WORDS[entropy] - 1):
        x &= rng.integers(0, 1 << 32, n, np.uint32)
    out = np.full(n, 77, np.uint32)
    contenders = {OURS: lambda: ga.radix_sort(x, out=out), "NumPy": lambda: np.sort(x)}
    contenders |= frames.series(x, lambda s: s.sort())
    return Work(contenders, np.sort(x))


def _numpy_argsort(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    out = np.full(n, -1, np.int64)
    contenders = {
        OURS: lambda: ga.argsort(x, out=out),
        "NumPy": lambda: np.argsort(x, kind="stable"),
    }
    return Work(contenders, np.argsort(x, kind="stable"))


@dataclass(frozen=True)
class Kind:
    """One sort at several sizes."""

    name: str
    build: Callable[[int], Work]
    bytes_moved: int
    quick: tuple[int, ...] = ()  # of these: logarithms of n
    sizes: tuple[int, ...] = (16, 20, 24, 28, 30)
    entropy: float | None = None


def _of_keys(name: str, make: Callable[[int], Any], key_bytes: int, **others: Any) -> Kind:
    name = f"radix sort keys {name}"
    return Kind(name, partial(_keys, make), moved(key_bytes), **others)


def _entropic(entropy: float) -> Kind:
    """Return a sort of keys whose bits are the AND of so many random words, or all equal."""
    if entropy == 1.0:
        return _of_keys(
            "u32", partial(data.bits, dtype="uint32"), 4, quick=(16, 20, 28), entropy=1.0
        )
    make = partial(data.common_bits, dtype="uint32", words=WORDS[entropy])
    name = f"u32, entropy {entropy}" if entropy else "u32, all equal"
    return _of_keys(name, make, 4, sizes=(28,), entropy=entropy)


def _kinds() -> list[Kind]:
    bits = data.bits
    return [
        *map(_entropic, WORDS),
        _of_keys("f32", data.floats, 4, quick=(28,)),
        _of_keys("u64", partial(bits, dtype="uint64"), 8, quick=(28,)),
        _of_keys("u16", partial(bits, dtype="uint16"), 2, quick=(28,)),
        _of_keys("u8", partial(bits, dtype="uint8"), 1, quick=(28,)),
        _of_keys("i64, below 2^32", lambda n: bits(n, "uint32").astype("int64"), 8, sizes=(28,)),
        Kind("radix sort pairs u32/u32", partial(_pairs, "uint32"), moved(4, 4), (16, 20, 28)),
        # At 2^30 inputs, outputs and both libraries' temporary storage pass 100 GB.
        Kind(
            "radix sort pairs u64/u64", partial(_pairs, "uint64"), moved(8, 8), (28,),
            (16, 20, 24, 28),
        ),
        Kind("argsort f32", _argsort, moved(4, 8), (28,)),
    ]  # fmt: skip


def _on_cpu() -> list[Row]:
    n = 1 << 24
    found = [
        Row("radix sort f32", n, "cpu", _numpy, moved(4) * n),
        Row("argsort f32, NumPy's stable", n, "cpu", _numpy_argsort, moved(4, 8) * n),
    ]
    n = 1 << 22
    for entropy in WORDS:
        build, name = partial(_numpy_entropic, entropy), f"radix sort u32, entropy {entropy}"
        found.append(Row(name, n, "cpu", build, moved(4) * n, quick=False, entropy=entropy))
    return found


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    found = []
    for kind in _kinds():
        for power in kind.sizes:
            n, quick = 1 << power, power in kind.quick
            size = kind.bytes_moved * n
            found.append(
                Row(kind.name, n, "device", kind.build, size, quick=quick, entropy=kind.entropy)
            )
    n = 1 << 28
    name = "sort over axis 1, f32, beside CuPy"
    found.append(Row(name, n, "device", _rows, moved(4) * n, beside="CuPy"))
    return found + _on_cpu()
