"""Elements at small distances are read and written as contiguous ones are: to the bit."""

from __future__ import annotations

import ctypes
import mmap
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._cpu import layout
from gpualgo._cpu.memory import address

N = 4999  # more than a tile and two chunks
PACKED = np.dtype([("a", "f8"), ("b", "i4")])
Fields = namedtuple("Fields", "a b")
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _on_cpu() -> Iterator[None]:
    with ga.default_device("cpu"):
        yield


def filled(dtype: np.dtype[Any], n: int = N) -> Array:
    """Return elements at an odd address."""
    x, rng = np.empty(n * dtype.itemsize + 1, np.uint8)[1:].view(dtype), np.random.default_rng(1)
    for name in dtype.names or ():
        is_real = dtype[name].kind in "fc"
        x[name] = rng.standard_normal(n) * 50 if is_real else rng.integers(9, size=n)
    return x


def ways(x: Array) -> Iterator[tuple[Array, ...]]:
    """Yield interleaved fields: ascending, descending, with gaps in rows, of one element."""
    names = x.dtype.names or ()
    for way in (x, x[::-1], x[: N - N % 7].reshape(-1, 7)[:, 1:6], x[:1]):
        yield tuple(way[name] for name in names)


def moved(entry: int, x: Array, dense: Array, start: int, packing: bool) -> None:
    """Call a packer for all elements of a 1-d array from `start` on."""
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 8)(entry)
    lengths, steps = np.array(x.shape), np.array(x.strides)
    places = address(dense), address(x), start, x.size - start
    assert function(*places, 1, address(lengths), address(steps), packing) == 0


def before_nothing(x: Array) -> tuple[Array, mmap.mmap]:
    """Return a copy between two pages that cannot be read, at the end of the memory between."""
    page = mmap.PAGESIZE
    held = -(-x.nbytes // page) * page
    memory = mmap.mmap(-1, held + 2 * page)
    base = np.frombuffer(memory, np.uint8)
    for at in (0, held + page):
        mprotect = ctypes.CDLL(None, use_errno=True).mprotect
        mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        assert mprotect(address(base) + at, page, 0) == 0
    copy = base[held + page - x.nbytes : held + page].view(x.dtype)
    copy[...] = x
    return copy, memory


@pytest.mark.parametrize(("itemsize", "step"), [(1, 3), (2, 16), (4, 9), (8, 16), (16, 24)])
def test_elements_are_packed_and_unpacked_by_vectors(itemsize: int, step: int) -> None:
    entry, rng = layout.packer(itemsize, step, layout._WORTH_BYTES), np.random.default_rng(1)
    dtype = np.dtype({"names": ["a"], "formats": [f"V{itemsize}"], "itemsize": step})
    for n, start in ((200, 0), (200, 3), (3, 0)):
        held = rng.integers(0, 256, n * step, np.uint8)
        last = (n - 1) * step + itemsize  # nothing may be read or written from there on
        memory, _pages = before_nothing(held[:last])
        x = np.ndarray((n,), dtype["a"], memory, strides=(step,))
        dense = np.full(n * itemsize, 7, np.uint8)
        moved(entry, x, dense, start, packing=True)
        want = held.view(dtype)["a"][start:].tobytes()
        assert dense.tobytes() == want + bytes([7]) * (start * itemsize)
        new = rng.integers(0, 256, n * itemsize, np.uint8)
        moved(entry, x, new, start, packing=False)
        held.view(dtype)["a"][start:] = new[: (n - start) * itemsize].view(dtype["a"])
        assert memory.tobytes() == held[:last].tobytes()


def test_results_are_those_of_arrays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_WORTH_BYTES", 1)
    made, entry_of = [], layout.get_entry
    monkeypatch.setattr(layout, "get_entry", lambda *of: made.append(of[0][-1]) or entry_of(*of))
    x = filled(PACKED)
    outs = np.zeros_like(x), np.zeros_like(x)[::-1]

    def op(p: Any, q: Any) -> Any:
        return p[0] + q[0] * 0.5, p[1] + q[1]

    def turn(p: Any) -> Any:
        return Fields(p[0] / 3, p[1] + p[1])

    def results(fields: tuple[Array, ...]) -> Iterator[Any]:
        yield from (ga.reduce(fields, op=op), ga.transform(turn, fields))
        yield from (ga.inclusive_scan(fields, op=op, axis=0), ga.select(fields, lambda p: p[1] > 4))
        if fields[0].ndim == 2:
            yield ga.reduce(fields, op=op, axis=0)

    for fields in ways(x):
        apart = tuple(map(np.ascontiguousarray, fields))
        for found, want in zip(results(fields), results(apart), strict=True):
            pairs = zip(parts(found), parts(want), strict=True)
            assert all(a.tobytes() == b.tobytes() for a, b in pairs)
    assert x.itemsize in made
    for turned in (ga.transform(turn, x), *(ga.transform(turn, x, out=out) for out in outs)):
        assert turned.dtype == x.dtype
        np.testing.assert_array_equal(turned["a"], x["a"] / 3)
        np.testing.assert_array_equal(turned["b"], x["b"] * 2)


def test_results_of_fields_that_share_bytes_lie_apart() -> None:
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]})
    x = filled(dtype)
    found = ga.transform(lambda p: p, x)
    assert found.dtype == [("a", "i4"), ("b", "i4")]
    for name in ("a", "b"):
        np.testing.assert_array_equal(found[name], x[name])


def parts(found: Any) -> tuple[Any, ...]:
    names = getattr(getattr(found, "dtype", None), "names", None)
    if names:
        return tuple(np.ascontiguousarray(found[name]) for name in names)
    return found if isinstance(found, tuple) else (found,)
