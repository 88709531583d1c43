"""Arrays whose numbers lie in turn are read and written as arrays apart are: to the bit."""

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
DTYPES = {
    "bytes": np.dtype([("a", "u1"), ("b", "u1"), ("c", "u1")]),
    "packed": np.dtype([("a", "f8"), ("b", "i4")]),
    "aligned": np.dtype([("a", "f8"), ("b", "i4")], align=True),
    "odd": np.dtype([("a", "i2"), ("b", "f8"), ("c", "c16")]),
    "turned": np.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [4, 1]}),
}
CASES = [("bytes", 1), ("packed", 1), ("aligned", 1), ("odd", -1), ("turned", -1)]
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
    """Yield fields that lie in turn: from the first, from the last, with gaps in rows, one."""
    names = x.dtype.names or ()
    for way in (x, x[::-1], x[: N - N % 7].reshape(-1, 7)[:, 1:6], x[:1]):
        yield tuple(way[name] for name in names)


def group_of(x: Array) -> layout.Group:
    """Return x's fields as a group; where they go apart there is a line between."""
    assert x.dtype.names is not None
    fields, place = [], 0
    first = address(x[x.dtype.names[0]])
    for name in x.dtype.names:
        size = x.dtype[name].itemsize
        fields.append(layout.Field(address(x[name]) - first, size, place))
        place += -(-x.size * size // 64) * 64 + 64
    return layout.Group(x.strides[0], tuple(range(len(fields))), tuple(fields))


def moved(entry: int, x: Array, dense: Array, start: int) -> None:
    """Call the function of a packer's arguments for all elements from `start` on."""
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 8)(entry)
    lengths, steps = np.array(x.shape), np.array(x.strides)
    at = address(x[x.dtype.names[0]])
    args = address(dense), at, start, x.size - start, 1, address(lengths), address(steps), 1
    assert function(*args) == 0


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


@pytest.mark.parametrize(("name", "step"), CASES)
def test_elements_are_taken_apart_and_put_together(name: str, step: int) -> None:
    for n, start in ((200, 0), (200, 3), (3, 0)):
        x, _memory = before_nothing(filled(DTYPES[name], n)[:n])
        x = x[::step]
        group, dense = group_of(x), np.full(200 * x.itemsize + 64 * 8, 7, np.uint8)
        moved(layout.splitter(group), x, dense, start)
        want = np.full_like(dense, 7)
        for field, key in zip(group.fields, x.dtype.names or (), strict=True):
            part = np.frombuffer(x[key][start:].tobytes(), np.uint8)
            want[field.place : field.place + part.size] = part
        np.testing.assert_array_equal(dense, want)
        assert group.is_all == (name not in ("aligned", "turned"))
        if group.is_all:
            whole = np.zeros(n, x.dtype)[::step]
            moved(layout.joiner(group), whole, dense, start)
            assert whole[start:].tobytes() == x[start:].tobytes()
            assert not any(whole[:start].tobytes())


def test_results_are_those_of_arrays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    x, made = filled(DTYPES["packed"]), []
    mover = layout._mover
    monkeypatch.setattr(layout, "_mover", lambda *of: made.append(of) or mover(*of))
    outs = np.zeros_like(x), np.zeros_like(x)[::-1]

    def op(p: Any, q: Any) -> Any:
        return p[0] + q[0] * 0.5, p[1] + q[1]

    def turn(p: Any) -> Any:
        return Fields(p[0] / 3, p[1] + p[1])

    def results() -> Iterator[Any]:
        for fields in ways(x):
            yield from (ga.reduce(fields, op=op), ga.transform(turn, fields))
            if fields[0].ndim == 2:
                yield ga.reduce(fields, op=op, axis=0)
        yield from (ga.reduce(x, op=op), ga.transform(turn, x))
        yield from (ga.transform(turn, x, out=out) for out in outs)

    def as_bytes(worth: int) -> list[bytes]:
        monkeypatch.setattr(layout, "_WORTH_BYTES", worth)
        return [np.asarray(part).tobytes() for found in results() for part in parts(found)]

    found = as_bytes(1)
    assert {is_joined for _, is_joined in made} == {False, True}
    want = as_bytes(1 << 40)
    assert found == want == as_bytes(1)  # the second time by what the first has prepared
    turned = ga.transform(turn, x)
    assert turned.dtype == x.dtype
    np.testing.assert_array_equal(turned["a"], x["a"] / 3)
    np.testing.assert_array_equal(turned["b"], x["b"] * 2)
    np.testing.assert_array_equal(outs[1], turned)


def test_fields_that_share_bytes_are_written_in_their_order() -> None:
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]})
    x = filled(dtype)
    want = np.empty_like(x)
    for name in ("a", "b"):
        want[name] = x[name]
    assert ga.transform(lambda p: p, x).tobytes() == want.tobytes()


def parts(found: Any) -> tuple[Any, ...]:
    names = getattr(getattr(found, "dtype", None), "names", None)
    if names:
        return tuple(np.ascontiguousarray(found[name]) for name in names)
    return found if isinstance(found, tuple) else (found,)
