"""Scans of whole arrays: values, order, types, init, out. Axes are in test_scan_axis.py."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import (
    BFLOAT16,
    DTYPES,
    LAYOUTS,
    REAL,
    SAMPLE,
    Backend,
    a_few,
    affine,
    assert_same,
    compose,
    random_array,
    sampled,
    special_values,
    summable,
)

import gpualgo as ga

# Warps and powers of two with their neighbours; where the backends begin to cut, and whole tiles.
SIZES = (
    *(0, 1, 2, 3, 31, 32, 33, *(n + d for n in (1 << p for p in range(8, 18)) for d in (-1, 0, 1))),
    *(n + d for n in (1536, 3072, 9216, 32_832, 102_400, 1 << 18, 397_056) for d in (-1, 0, 1)),
    *(1_000_003, 1 << 21, (1 << 21) + 1, 2_112_001),
)
SHORT, LONG = 1001, 40_009  # one tile of the CPU's, and more
INIT = int(affine(1, seed=9)[0])
Host = np.ndarray[Any, Any]


def scanned(
    op: Any, x: Host, axis: int | None = None, init: Any = None, *, exclusive: bool = False,
    reverse: bool = False,
) -> Host:  # fmt: skip
    """Scan along axis by doubling: exact for an associative, vectorised op."""
    return started(op, doubled(op, x, axis, reverse), axis, init, exclusive, reverse)


def doubled(op: Any, x: Host, axis: int | None, reverse: bool) -> Host:
    """Return the lines of an inclusive scan along the first axis, in the order of the scan."""
    lines = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    lines = lines[::-1].copy() if reverse else lines.copy()
    step = 1
    while step < len(lines):
        lines[step:] = op(lines[:-step], lines[step:])
        step *= 2
    return lines


def started(
    op: Any, lines: Host, axis: int | None, init: Any, exclusive: bool, reverse: bool
) -> Host:
    """Return the scan that starts from init, of the lines of one that starts from nothing."""
    if init is not None:
        first = np.full_like(lines[:1], init)
        after = op(first, lines).astype(lines.dtype)
        lines = np.concatenate([first, after[:-1]]) if exclusive and len(lines) else after
    lines = lines[::-1] if reverse else lines
    return lines if axis is None else np.moveaxis(lines, 0, axis)


def check_order(backend: Backend, x: Host, device: Any, axis: int | None = None) -> None:
    """Compare all kinds of scan, of elements that neither commute nor are forgotten."""
    for reverse in a_few((False, True)):
        lines = doubled(compose, x, axis, reverse)
        for init, exclusive in ((None, False), (INIT, False), (INIT, True)):
            scan = ga.exclusive_scan if exclusive else ga.inclusive_scan
            got = scan(device, init, compose, axis=axis, reverse=reverse)
            want = started(compose, lines, axis, init, exclusive, reverse)
            assert_same(backend.to_host(got), want)


def test_the_reference() -> None:
    x = affine(100)
    value, want = np.uint64(INIT), []
    for item in x:
        want.append(value)
        value = compose(value, item)
    assert_same(scanned(compose, x, None, INIT, exclusive=True), np.array(want))
    assert_same(scanned(compose, x, None, INIT), np.array([*want[1:], value]))


@pytest.mark.parametrize("n", SIZES)
def test_order_at_every_size(backend: Backend, n: int) -> None:
    x = affine(n)
    check_order(backend, x, backend.to_device(x))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5,), (70_001,), (257, 3), (3, 14_097), (7, 5, 33)], ids=str)
def test_order_in_every_layout(backend: Backend, layout: str, shape: tuple[int, ...]) -> None:
    x = affine(shape)
    check_order(backend, x, backend.arrange(layout, x))


@pytest.mark.parametrize("n", [SHORT, LONG])
@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_first_and_last_of_every_dtype(backend: Backend, dtype: np.dtype[Any], n: int) -> None:
    x = np.concatenate([special_values(dtype), random_array(n, dtype)])
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.inclusive_scan(device, None, lambda a, b: b)), x)
    for first in x[:5]:
        x[0] = first
        got = ga.inclusive_scan(backend.to_device(x), None, lambda a, b: a)
        assert_same(backend.to_host(got), np.full_like(x, first))
    got = ga.exclusive_scan(device, x[7], lambda a, b: b, reverse=True)
    assert_same(backend.to_host(got), np.append(backend.to_host(device)[1:], x[7]))


SUMS = [(dtype, n) for dtype in DTYPES for n in (SHORT, LONG)]
SUMMED = [(dtype, n) for dtype, n in SUMS if n == SHORT or str(dtype) in SAMPLE]


@pytest.mark.parametrize("kind", sampled(SUMS, SUMMED), ids=str)
def test_sum_of_every_dtype(backend: Backend, kind: tuple[np.dtype[Any], int]) -> None:
    dtype, n = kind
    # Exact in any order: narrow floats get a sum that turns round long before they round.
    steps = np.where(np.arange(n) // 100 % 2, -1, 1).astype(dtype)
    x = steps if dtype.itemsize == 2 and dtype.kind not in "iu" else summable(n, dtype)
    want = np.add.accumulate(x, dtype=dtype)
    device = backend.to_device(x)
    for op in (operator.add, np.add, lambda a, b: a + b):
        assert_same(backend.to_host(ga.inclusive_scan(device, None, op)), want, zero_signs=False)
    got = backend.to_host(ga.exclusive_scan(device))
    assert_same(got, np.concatenate([np.zeros(1, dtype), want[:-1]]), zero_signs=False)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_min_max(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = np.concatenate([random_array(LONG, dtype), special_values(dtype), random_array(9, dtype)])
    device = backend.to_device(x)
    for op, ufunc in ((min, np.minimum), (np.maximum, np.maximum)):
        with np.errstate(invalid="ignore"):
            want = ufunc.accumulate(x)
        # Of 0.0 and -0.0, which are equal, either may be the one that is kept.
        assert_same(backend.to_host(ga.inclusive_scan(device, None, op)), want, zero_signs=False)


def test_bitwise_and_logical(backend: Backend) -> None:
    for dtype in a_few((np.dtype("bool"), np.dtype("uint8"), np.dtype("int64"))):
        x = random_array(300, dtype)
        for op in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor):
            want = scanned(lambda a, b, op=op: op(a, b).astype(dtype), x)  # noqa: B023
            assert_same(backend.to_host(ga.inclusive_scan(backend.to_device(x), None, op)), want)


CASTS = [
    ("int8", "int64"), ("bool", "int32"), ("uint8", "float32"), ("float64", "float32"),
    ("float32", "float64"), ("float16", "float32"), (BFLOAT16, "float32"), ("float32", "complex64"),
    ("float64", "complex64"), ("int64", "int16"),
]  # fmt: skip


@pytest.mark.parametrize("cast", sampled(CASTS, [CASTS[i] for i in (0, 3, 6, 7)]), ids=str)
def test_dtype_is_the_accumulator(backend: Backend, cast: tuple[Any, str]) -> None:
    dtype, acc = cast
    for shape, axis in (((SHORT,), None), ((LONG,), None), ((40, 70), 0)):
        x = summable(shape, np.dtype(dtype))
        got = ga.inclusive_scan(backend.to_device(x), dtype=acc, axis=axis)
        want = np.add.accumulate(x.astype(acc), axis=axis or 0, dtype=acc)
        assert_same(backend.to_host(got), want, zero_signs=False)


def test_what_comes_back(backend: Backend) -> None:
    x = np.ones((3, 4), np.float32)
    for scan in (ga.inclusive_scan, ga.exclusive_scan):
        for array, axis, shape in ((x, None, (12,)), (x, 0, (3, 4)), (x[0, 0, ...], None, (1,))):
            assert isinstance(got := scan(array, axis=axis), np.ndarray)
            assert got.shape == shape
            assert isinstance(got := scan(backend.to_device(array), axis=axis), backend.xp.ndarray)
            assert got.shape == shape


def test_init_on_the_device(cuda: Backend) -> None:
    x = affine(LONG)
    device = cuda.to_device(x)
    for shape in ((), (1,), (1, 1)):
        init = cuda.xp.full(shape, INIT, np.uint64)
        got = ga.inclusive_scan(device, init, compose)
        assert_same(cuda.to_host(got), scanned(compose, x, None, INIT))
        for out in (None, cuda.xp.empty(LONG, np.uint64)):
            got = ga.exclusive_scan(device, init + 0, compose, out=out)
            assert_same(cuda.to_host(got), scanned(compose, x, None, INIT, exclusive=True))
    bits = cuda.to_device(np.ones(50, bool))
    got = ga.inclusive_scan(bits, cuda.xp.asarray(3, np.int32))  # it names the accumulator
    assert_same(cuda.to_host(got), np.arange(4, 54, dtype=np.int32))
