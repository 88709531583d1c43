"""Scans of records whose numbers lie together in memory: the bits of arrays apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contract.test_records import small_tiles  # noqa: F401
from support import Backend, assert_same, sampled

import gpualgo as ga
from gpualgo._algorithms.scan import tuning


def mixed(a: Any, b: Any) -> Any:
    return (a[0] + b[0], max(a[1], b[1]))


def latest(a: Any, b: Any) -> Any:
    return b


def earliest(a: Any, b: Any) -> Any:
    return a


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


def scanned(x: tuple[Any, ...], op: Callable[..., Any], axis: int, is_back: bool) -> list[Any]:
    turned = [np.flip(v, axis) if is_back else v for v in x]
    if op is latest:
        found = turned
    elif op is earliest:
        found = [np.broadcast_to(v.take([0], axis), v.shape) for v in turned]
    else:
        sums = np.cumsum(turned[0], axis, dtype=turned[0].dtype)
        found = [sums, np.maximum.accumulate(turned[1], axis)]
    return [np.flip(v, axis) if is_back else v for v in found]


def check(
    cuda: Backend, whole: np.ndarray[Any, Any], axis: int = 0, *, into: bool, reverse: bool = False
) -> None:
    """Scan pairs along an axis, into new arrays or into the columns of another one."""
    x = cuda.to_device(whole)
    want = whole[..., 0], whole[..., 1]
    for op in (mixed, latest, earliest):
        out, y = None, None
        if into:
            y = cuda.to_device(np.full_like(whole, 77))
            out = tuple(y[..., i] for i in range(2))
        pair = x[..., 0], x[..., 1]
        got = ga.inclusive_scan(pair, None, op, axis=axis, reverse=reverse, out=out)
        for a, b in zip(got, scanned(want, op, axis, reverse), strict=True):
            assert_same(cuda.to_host(a), b)
        if y is not None:  # what lies between the columns is not ours
            assert (cuda.to_host(y)[..., 2:] == 77).all()


@pytest.mark.parametrize("n", sampled([1, 33, 767, 768, 5000, 20_001], [5000]))
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("into", [False, True], ids=["new", "into"])
def test_every_size(cuda: Backend, kinds: list[str], dtype: str, n: int, into: bool) -> None:
    check(cuda, numbers((n, 2), dtype), into=into)
    assert any(f", true, {str(into).lower()}>" in one for one in kinds)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("n", sampled([191, 192, 6143, 6144, 20_001], [20_001]))
@pytest.mark.parametrize("dtype", sampled(["u1", "f4", "f8"], ["f4"]))
@pytest.mark.parametrize("into", [False, True], ids=["new", "into"])
def test_tiles(cuda: Backend, kinds: list[str], dtype: str, n: int, into: bool) -> None:
    check(cuda, numbers((n, 2), dtype), into=into)
    assert any("tiles" in one and f", true, {str(into).lower()}>" in one for one in kinds)


@pytest.mark.parametrize("case", ["reversed", "gaps", "misaligned", "axis 0", "axis 1"])
def test_layouts(cuda: Backend, case: str) -> None:
    if case == "reversed":
        check(cuda, numbers((5000, 2), "i4"), into=True, reverse=True)
    elif case == "gaps":
        check(cuda, numbers((5000, 3), "i4"), into=True)
    elif case == "misaligned":
        check(cuda, numbers((5001, 2), "i4")[1:], into=True)
    else:
        check(cuda, numbers((4, 3000, 2), "i4"), int(case[-1]), into=True)


def test_in_place(cuda: Backend) -> None:
    whole = numbers((5000, 2), "i4")
    x = cuda.to_device(whole)
    pair = x[:, 0], x[:, 1]
    ga.inclusive_scan(pair, None, mixed, out=pair)
    assert_same(cuda.to_host(x[:, 0]), np.cumsum(whole[:, 0], dtype="i4"))
    assert_same(cuda.to_host(x[:, 1]), np.maximum.accumulate(whole[:, 1]))


def test_one_problem_for_results_that_lie_together_and_apart(cuda: Backend) -> None:
    """Equal layouts and alignments: what tells them apart is how far the arrays lie apart."""
    n = 2000
    whole = numbers((n, 2), "i4")
    x = cuda.to_device(whole)
    y = cuda.to_device(np.zeros((2 * n, 2), "i4"))
    for a, b in ((0, 0), (0, n), (0, 0), (n, 0)):
        out = y[a : a + n, 0], y[b : b + n, 1]
        ga.inclusive_scan((x[:, 0], x[:, 1]), None, mixed, out=out)
        assert_same(cuda.to_host(out[0]), np.cumsum(whole[:, 0], dtype="i4"))
        assert_same(cuda.to_host(out[1]), np.maximum.accumulate(whole[:, 1]))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("names", sampled(["f4 f4", "u1 u1", "i2 f8", "f8 f8"], ["i2 f8"]))
@pytest.mark.parametrize("n", sampled([191, 6144, 20_001], [20_001]))
@pytest.mark.parametrize("exclusive", [False, True])
def test_arrays_without_gaps(
    cuda: Backend, kinds: list[str], names: str, n: int, exclusive: bool
) -> None:
    x = tuple(numbers((n,), name) for name in names.split())
    function = ga.exclusive_scan if exclusive else ga.inclusive_scan
    init = (1, 2) if exclusive else None
    for op in (mixed, latest):
        got = function(tuple(map(cuda.to_device, x)), init, op)
        want = scanned(x, op, 0, False)
        if exclusive:  # what precedes the first is (1, 2)
            start = [np.full(1, i, leaf.dtype) for i, leaf in zip((1, 2), x, strict=True)]
            rest = [np.concatenate(pair)[:-1] for pair in zip(start, x, strict=True)]
            want = scanned(tuple(rest), op, 0, False)
        for a, b in zip(got, want, strict=True):
            assert_same(cuda.to_host(a), b)
    assert all("FlatLines" in one for one in kinds)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("n", [6144, 6150])
def test_lines_without_gaps(cuda: Backend, kinds: list[str], n: int) -> None:
    """Of 6150 the second line begins where no vector does."""
    x = numbers((3, n), "i4"), numbers((3, n), "f4")
    got = ga.inclusive_scan(tuple(map(cuda.to_device, x)), None, mixed, axis=1)
    for a, b in zip(got, scanned(x, mixed, 1, False), strict=True):
        assert_same(cuda.to_host(a), b)
    assert ("FlatLines" in kinds[-1]) == (n == 6144)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("names", ["f4 f4", "u1 f8"])
@pytest.mark.parametrize("n", [3, 20, 304, 1200])
def test_rows_without_gaps(
    cuda: Backend, kinds: list[str], monkeypatch: pytest.MonkeyPatch, n: int, names: str,
    reverse: bool,
) -> None:  # fmt: skip
    """What is copied at once of each array is at least a number of the widest."""
    monkeypatch.setattr(tuning, "ROWS_PER_WARP", 1)
    monkeypatch.setattr(tuning, "ROWS_TILES", 2)
    x = tuple(numbers((37, n), name) for name in names.split())
    got = ga.inclusive_scan(tuple(map(cuda.to_device, x)), None, mixed, axis=1, reverse=reverse)
    for a, b in zip(got, scanned(x, mixed, 1, reverse), strict=True):
        assert_same(cuda.to_host(a), b)
    assert ("DenseRows" in kinds[-1]) == (names == "f4 f4" or n % 16 == 0)
