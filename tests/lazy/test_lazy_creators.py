"""What gpualgo.lazy makes of numbers and arrays, beside what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import (
    BFLOAT16,
    DTYPES,
    LAYOUTS,
    REAL,
    Backend,
    a_few,
    assert_same,
    random_array,
    sampled,
)

import gpualgo as ga

RANGES = [
    (5,), (0,), (-3,), (2, 9), (9, 2), (0, 10, 3), (10, 0, -3), (10, 0, 3), (-5, 5, 4), (1, 2, 5),
    (0.0, 1.0, 0.1), (1.5,), (3.0, -2.0, -0.7), (0, 1, 0.25), (-1.0, 1.0), (7, 7), (0, -1.0, -0.1),
]  # fmt: skip


@pytest.mark.parametrize("given", RANGES, ids=str)
def test_arange(given: tuple[Any, ...]) -> None:
    made = ga.lazy.arange(*given)
    want = np.arange(*given)
    assert made.shape == want.shape
    assert made.dtype == want.dtype
    assert_same(ga.copy(made), want)


@pytest.mark.parametrize(
    "dtype",
    sampled([d for d in REAL if d.kind in "iuf"], ["int8", "uint64", "bfloat16", "float32"]),
    ids=str,
)
@pytest.mark.parametrize("given", [(7,), (2, 30, 5), (100, 3, -9)], ids=str)
def test_arange_of_every_dtype(given: tuple[Any, ...], dtype: np.dtype[Any]) -> None:
    if dtype.kind == "u" and given == (100, 3, -9):
        given = (3, 100, 9)
    assert_same(ga.copy(ga.lazy.arange(*given, dtype=dtype)), np.arange(*given, dtype=dtype))


def test_arange_as_numpy_steps_in_the_dtype() -> None:
    """The step is the difference of the first two, as they are rounded."""
    for dtype in a_few((np.float32, np.float16, np.float64, BFLOAT16), 2):
        want = np.arange(0.1, 9.0, 0.3, dtype=dtype)
        assert_same(ga.copy(ga.lazy.arange(0.1, 9.0, 0.3, dtype=dtype)), want)
    assert_same(ga.copy(ga.lazy.arange(0.5, 5.5, dtype=np.int32)), np.arange(0.5, 5.5, dtype="i4"))
    assert_same(ga.copy(ga.lazy.arange(2, dtype=bool)), np.arange(2, dtype=bool))
    assert_same(ga.copy(ga.lazy.arange(1, dtype=bool)), np.arange(1, dtype=bool))
    low = np.int64(-(2**62))
    assert_same(ga.copy(ga.lazy.arange(low, low + 5)), np.arange(low, low + 5))
    assert_same(ga.copy(ga.lazy.arange(np.float32(4))), np.arange(np.float32(4)))
    assert_same(ga.copy(ga.lazy.arange(np.int8(4))), np.arange(np.int8(4)))
    for narrow in (np.int8, np.uint32, np.float16, np.float32):
        given = narrow(1), narrow(9), narrow(2)
        assert_same(ga.copy(ga.lazy.arange(*given)), np.arange(*given))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0, 4)], ids=str)
def test_full(shape: Any, dtype: np.dtype[Any]) -> None:
    made = ga.lazy.full(shape, 1, dtype=dtype)
    want = np.full(shape, 1, dtype)
    assert (made.shape, made.dtype) == (want.shape, want.dtype)
    assert_same(ga.copy(made), want)


@pytest.mark.parametrize(
    "value", [True, -3, 2.5, 1j, np.float32(-0.0), np.uint8(7), np.nan, np.inf]
)
def test_full_of_values(value: Any) -> None:
    assert_same(ga.copy(ga.lazy.full((2, 2), value)), np.full((2, 2), value))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_asarray(backend: Backend, layout: str) -> None:
    x = random_array((7, 12), np.dtype("float32"))
    made = ga.lazy.asarray(backend.arrange(layout, x))
    assert (made.shape, made.ndim, made.size, len(made)) == ((7, 12), 2, 84, 7)
    assert_same(backend.to_host(ga.copy(made)), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_asarray_of_every_dtype(dtype: np.dtype[Any]) -> None:
    x = random_array((3, 5), dtype)
    made = ga.lazy.asarray(x)
    assert made.dtype == dtype
    assert_same(ga.copy(made), x)
    assert_same(np.asarray(made), x)


def test_asarray_of_others() -> None:
    assert_same(ga.copy(ga.lazy.asarray(2.5)), np.array(2.5))
    made = ga.lazy.asarray(ga.lazy.arange(3))
    assert_same(ga.copy(ga.lazy.asarray(made)), np.arange(3))
    pair = np.array([(1, 2.5), (3, 4.5)], [("n", "i4"), ("x", "f8")])
    both = ga.lazy.asarray(pair)
    assert both.dtype.names == ("n", "x")
    assert_same(ga.copy(both["x"]), np.ascontiguousarray(pair["x"]))


# --- take -------------------------------------------------------------------------------------

INDICES = np.array([[0, -1, 3], [7, -9, 100]])


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_take(backend: Backend, axis: int | None, mode: str) -> None:
    x = random_array((4, 3, 5), np.dtype("int32"))
    made = ga.lazy.take(backend.to_device(x), backend.to_device(INDICES), axis=axis, mode=mode)
    assert_same(backend.to_host(ga.copy(made)), np.take(x, INDICES, axis, mode=mode))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_take_by_indices_of_every_dtype(dtype: str) -> None:
    x = random_array(9, np.dtype("float64"))
    indices = np.array([0, 8, 3, 3, 120]).astype(dtype)
    got = ga.copy(ga.lazy.take(x, indices))
    assert_same(got, np.take(x, indices.astype(np.int64), mode="wrap"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_take_of_every_layout(layout: str) -> None:
    host = random_array((6, 8), np.dtype("float32"))
    view = LAYOUTS[layout](lambda shape: np.zeros(shape, host.dtype), host.shape)
    view[...] = host
    for axis in a_few((None, 0, 1)):
        want = np.take(host, [5, 0, -2], axis, mode="wrap")
        assert_same(ga.copy(ga.lazy.take(view, [5, 0, -2], axis=axis)), want)


def test_take_of_what_is_lazy() -> None:
    x, y = random_array((5, 4), np.dtype("int64")), random_array(4, np.dtype("int64"), 1)
    made = ga.lazy.asarray(x) * y + ga.lazy.arange(20).reshape(5, 4)
    real = x * y + np.arange(20).reshape(5, 4)
    indices = ga.lazy.arange(7) * 3
    assert_same(ga.copy(ga.lazy.take(made, indices)), np.take(real, np.arange(7) * 3, mode="wrap"))
    taken = ga.lazy.take(made, indices, axis=1)
    assert_same(ga.copy(taken), np.take(real, np.arange(7) * 3, 1, mode="wrap"))
    twice = ga.lazy.take(taken, [-1, 0], axis=0)
    assert_same(ga.copy(twice), np.take(real, np.arange(7) * 3, 1, mode="wrap")[[-1, 0]])
    broadcast = ga.lazy.take(np.broadcast_to(y, (3, 4)), [1, 2], axis=0)
    assert_same(ga.copy(broadcast), np.broadcast_to(y, (2, 4)))
    assert_same(ga.copy(ga.lazy.take(ga.lazy.random(9, seed=3), [8, 0])),
                np.random.Generator(np.random.Philox(3)).random(9)[[8, 0]])  # fmt: skip


def test_take_of_tuples_and_of_nothing() -> None:
    x, y = np.arange(5), np.arange(5) / 2
    a, b = ga.copy(ga.lazy.take((x, y), [4, 1]))
    assert_same(a, x[[4, 1]])
    assert_same(b, y[[4, 1]])
    assert ga.copy(ga.lazy.take(x, np.empty(0, int))).shape == (0,)
    assert ga.copy(ga.lazy.take(np.empty((3, 0)), [0, 2], axis=0)).shape == (2, 0)
    assert_same(ga.copy(ga.lazy.take(x, 3)), np.array(x[3]))


def test_indices_and_what_is_taken_are_read_when_it_is_consumed() -> None:
    x, indices = np.arange(5), np.array([0, 1])
    made = ga.lazy.take(x, indices)
    x[:], indices[:] = x * 10, [3, 4]
    assert_same(ga.copy(made), np.array([30, 40]))


# --- what is refused --------------------------------------------------------------------------

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: ga.lazy.arange(0, 5, 0), ValueError, "arange: step must not be zero"),
    (lambda: ga.lazy.arange("a"), TypeError, "stop must be a number, got str"),
    (lambda: ga.lazy.arange(3j), TypeError, "complex numbers have no order"),
    (lambda: ga.lazy.arange(np.inf), ValueError, "no finite number of steps"),
    (lambda: ga.lazy.arange(5, dtype=bool), TypeError, "no more than two numbers"),
    (lambda: ga.lazy.arange(300, 310, dtype=np.int8), ValueError, "does not fit int8"),
    (lambda: ga.lazy.arange(5, dtype="S3"), TypeError, "no kernel"),
    (lambda: ga.lazy.full((2, -1), 0), ValueError, "negative extent"),
    (lambda: ga.lazy.full((2.5,), 0), TypeError, "shape must be ints"),
    (lambda: ga.lazy.full(2, [1]), TypeError, "fill_value must be a number, got list"),
    (lambda: ga.lazy.full(2, 300, dtype=np.uint8), ValueError, "does not fit uint8"),
    (lambda: ga.lazy.asarray([1, 2]), TypeError, "lazy.asarray: x"),
    (lambda: ga.lazy.asarray(()), TypeError, "empty tuple"),
    (lambda: ga.lazy.asarray(np.array(["a"])), TypeError, "no kernel"),
    (lambda: ga.lazy.take(np.arange(3), [0.5]), TypeError, "pass integers"),
    (lambda: ga.lazy.take(np.arange(3), [0], mode="raise"), ValueError, "'wrap' or 'clip'"),
    (lambda: ga.lazy.take(np.arange(3), [0], axis=1), np.exceptions.AxisError, "axis 1"),
    (lambda: ga.lazy.take(np.empty(0), [0]), ValueError, "no elements to take"),
    (lambda: ga.lazy.full(2, 1, device="gpu"), ValueError, "device"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_refused(make: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
