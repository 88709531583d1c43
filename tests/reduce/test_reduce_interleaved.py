"""Records whose numbers lie together in memory: the bits of arrays apart, loaded whole or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, sampled

import gpualgo as ga

Leaves = tuple[Any, ...]

OPS: list[Callable[[Any, Any], Any]] = [lambda a, b: a, lambda a, b: b]


def mixed(a: Any, b: Any) -> Any:
    return (a[0] + b[0], max(a[1], b[1]))


def thrice(a: Any, b: Any) -> Any:
    return (a[0] + b[0], max(a[1], b[1]), min(a[2], b[2]))


def folded(x: Leaves, axis: int | None, op: Any) -> list[Any]:
    if op in OPS:
        end = -OPS.index(op)
        return [v.reshape(-1)[end] if axis is None else v.take(end, axis) for v in x]
    ways: list[Any] = [lambda v: v.sum(axis, v.dtype), lambda v: v.max(axis), lambda v: v.min(axis)]
    return [way(v) for way, v in zip(ways, x, strict=False)]


def check(cuda: Backend, whole: Any, columns: Sequence[int], axis: int | None) -> None:
    """Reduce the last axis' columns as tuples: beside NumPy, and beside arrays apart."""
    x = cuda.to_device(whole) if isinstance(whole, np.ndarray) else whole
    whole = cuda.to_host(x)
    want = tuple(whole[..., c] for c in columns)
    apart = tuple(cuda.to_device(np.ascontiguousarray(leaf)) for leaf in want)
    for op in (*OPS, mixed if len(columns) == 2 else thrice):
        got = ga.reduce(tuple(x[..., c] for c in columns), None, op, axis=axis)
        same = ga.reduce(apart, None, op, axis=axis)
        for a, b, c in zip(got, folded(want, axis, op), same, strict=True):
            assert_same(cuda.to_host(a), b)
            assert_same(cuda.to_host(a), cuda.to_host(c))


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("n", sampled([1, 33, 2047, 5000, 20_001], [5000]))
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("count", [2, 3])
def test_every_size(cuda: Backend, kinds: list[str], dtype: str, count: int, n: int) -> None:
    check(cuda, numbers((n, count), dtype), range(count), 0)
    assert any("Interleaved" in one for one in kinds) == (n > 1)


@pytest.mark.parametrize("shape", [(40, 33, 3), (300, 8, 2), (7, 513, 3), (64, 64, 2)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", sampled(["u1", "i4"], ["i4"]))
def test_axes(
    cuda: Backend, kinds: list[str], shape: tuple[int, ...], axis: int | None, dtype: str
) -> None:
    whole = numbers(shape, dtype)
    check(cuda, whole, range(shape[-1]), axis)
    if whole[0].nbytes % 16 == 0:  # rows begin where vectors do
        assert any("Interleaved" in one for one in kinds)


@pytest.mark.parametrize(
    ("columns", "width", "is_whole"),
    [
        ([1, 0], 2, True), ([0, 3], 4, True), ([3, 1, 0], 4, True),
        ([0, 1], 3, False), ([1, 2], 4, False), ([0, 7], 8, False),
    ],
    ids=str,
)  # fmt: skip
def test_which_columns(
    cuda: Backend, kinds: list[str], columns: list[int], width: int, is_whole: bool
) -> None:
    """What lies behind the last number of the last record is not read."""
    check(cuda, numbers((3001, width), "i4"), columns, 0)
    assert any("Interleaved" in one for one in kinds) == is_whole


def test_the_same_array_twice(cuda: Backend) -> None:
    x = cuda.to_device(numbers((5000,), "i4"))
    got = ga.reduce((x, x), None, mixed)
    assert int(got[0]) == int(cuda.to_host(x).sum())
    assert int(got[1]) == int(cuda.to_host(x).max())


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("step", [1, -1])
def test_starts_and_steps(cuda: Backend, first: int, step: int) -> None:
    x = cuda.to_device(numbers((3004, 3), "f4"))[first:]
    check(cuda, x[::step], [0, 1, 2], 0)


def test_one_problem_for_leaves_that_lie_together_and_apart(cuda: Backend) -> None:
    """Equal layouts and alignments: what tells them apart is how far the arrays lie apart."""
    n = 3000
    memory = cuda.to_device(numbers((4 * n,), "i4"))
    whole, host = memory.reshape(-1, 2), cuda.to_host(memory).reshape(-1, 2)
    for a, b in ((0, 0), (0, n), (0, 0), (n, 0), (2, 2)):
        got = ga.reduce((whole[a : a + n // 2, 0], whole[b : b + n // 2, 1]), None, mixed)
        assert int(got[0]) == int(host[a : a + n // 2, 0].sum())
        assert int(got[1]) == int(host[b : b + n // 2, 1].max())
