"""Numbers that lie together in memory, as the fields of records do: loaded and stored whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, sampled

import gpualgo as ga


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 40, shape).astype(dtype)


def columns(x: Any) -> tuple[Any, ...]:
    return tuple(x[..., i] for i in range(x.shape[-1]))


@pytest.mark.parametrize("n", sampled([1, 255, 256, 5000, 20_001], [5000]))
@pytest.mark.parametrize(
    "dtype", sampled(["?", "u1", "i2", "f2", "f4", "f8", "c8", "c16"], ["u1", "i2", "f4", "f8"])
)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_size(cuda: Backend, kinds: list[str], dtype: str, count: int, n: int) -> None:
    whole = numbers((n, count), dtype)
    x, y = cuda.to_device(whole), cuda.to_device(np.ones_like(whole))
    ops = {
        2: lambda p: (p[1], p[0] + p[1]), 3: lambda p: (p[1], p[2], p[0] + p[1]),
        4: lambda p: (p[1], p[3], p[2], p[0] + p[1]),
    }  # fmt: skip
    want = np.stack(ops[count](columns(whole)), axis=-1).astype(dtype)
    op = ops[count]
    ga.transform(op, columns(x), out=columns(y))
    assert_same(cuda.to_host(y), want)
    assert kinds[-1].count("Interleaved") == (2 if n > 1 else 0)
    for got, column in zip(ga.transform(op, columns(x)), columns(want), strict=True):
        assert_same(cuda.to_host(got), column)
    assert kinds[-1].count("Interleaved") == (1 if n > 1 else 0)
    apart = tuple(map(cuda.to_device, columns(whole.copy())))
    ga.transform(op, apart, out=columns(x))
    assert_same(cuda.to_host(x), want)


@pytest.mark.parametrize("case", ["two numbers", "with others", "in part", "twice", "many"])
def test_which_are_together(cuda: Backend, kinds: list[str], case: str) -> None:
    n = 3000
    whole, other = numbers((n, 6), "i4"), numbers((n,), "i8")
    pairs, x, w = cuda.to_device(whole[:, :2].copy()), cuda.to_device(whole), cuda.to_device(other)
    a, b = columns(whole[:, :2])
    count = 1
    if case == "two numbers":
        got, want = ga.transform(lambda p, q: p - q, pairs[:, 0], pairs[:, 1]), a - b
    elif case == "with others":
        got = ga.transform(lambda k, p, m: p[0] * k - p[1] + m, w, columns(pairs), w)
        want = a * other - b + other
    elif case == "in part":  # more than half of what would be read is another's
        got, want = ga.transform(lambda p, q: p - q, x[:, 0], x[:, 5]), whole[:, 0] - whole[:, 5]
        count = 0
    elif case == "twice":
        got, want = ga.transform(lambda p, q: p * q, w, w), other * other
        count = 0  # two arrays without gaps
    else:
        got = ga.transform(lambda *p: p[0] + 2 * p[1] + 3 * p[2] - p[3] + p[4] * p[5], *columns(x))
        want = whole @ np.array([1, 2, 3, -1, 0, 0], "i4") + whole[:, 4] * whole[:, 5]
        count = 0  # six numbers are more than a record that is loaded whole has
    assert_same(cuda.to_host(got).astype("i8"), want.astype("i8"))
    assert kinds[-1].count("Interleaved") == count


@pytest.mark.parametrize("case", ["misaligned", "reversed", "gaps", "rows", "stacked"])
def test_layouts(cuda: Backend, case: str) -> None:
    whole = numbers((40, 75, 3), "i4")
    x = cuda.to_device(whole)
    views = {
        "misaligned": (x.reshape(-1, 3)[1:], whole.reshape(-1, 3)[1:]),
        "reversed": (x.reshape(-1, 3)[::-1], whole.reshape(-1, 3)[::-1]),
        "gaps": (x.reshape(-1, 3)[::2], whole.reshape(-1, 3)[::2]),
        "rows": (x[:, 5:50], whole[:, 5:50]),
        "stacked": (x, whole),
    }
    y, h = views[case]
    out = cuda.to_device(np.zeros_like(h))
    ga.transform(lambda p: (p[2], p[0] + p[1], p[0]), columns(y), out=columns(out))
    assert_same(cuda.to_host(out), np.stack((h[..., 2], h[..., 0] + h[..., 1], h[..., 0]), -1))


def test_what_lies_between_outputs_is_kept(cuda: Backend) -> None:
    whole = numbers((3000, 3), "f4")
    x = cuda.to_device(whole)
    ga.transform(lambda p: (p[1], p[0]), (x[:, 0], x[:, 2]), out=(x[:, 0], x[:, 2]))
    assert_same(cuda.to_host(x), whole[:, ::-1])


def test_in_place_and_swapped(cuda: Backend) -> None:
    whole = numbers((3000, 2), "f4")
    x = cuda.to_device(whole)
    ga.transform(lambda p: (p[0], p[1] + 1), columns(x), out=columns(x)[::-1])
    assert_same(cuda.to_host(x), np.stack((whole[:, 1] + 1, whole[:, 0]), -1))


def test_one_problem_for_leaves_that_lie_together_and_apart(cuda: Backend) -> None:
    n = 2000
    memory, host = cuda.to_device(numbers((4 * n,), "i4")), numbers((4 * n,), "i4")
    x, h = memory.reshape(-1, 2), host.reshape(-1, 2)
    for a, b in ((0, 0), (0, n), (0, 0), (n, 0), (2, 2)):
        got = ga.transform(lambda p, q: p - q, x[a : a + n // 2, 0], x[b : b + n // 2, 1])
        assert_same(cuda.to_host(got), h[a : a + n // 2, 0] - h[b : b + n // 2, 1])
