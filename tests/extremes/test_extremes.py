"""argmin, argmax and minmax against NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import (
    BFLOAT16,
    REAL,
    Backend,
    a_few,
    random_array,
    scaled,
    special_values,
)

import gpualgo as ga
from gpualgo._base import threads

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "argmin": (ga.argmin, np.argmin),
    "argmax": (ga.argmax, np.argmax),
}
LARGE = scaled(1_000_003, emulated=40_003)
SHAPES = [
    ((), None), ((1,), 0), ((31,), None), ((33,), -1), ((LARGE,), None), ((3, 5, 7), None),
    ((3, 5, 7), 0), ((3, 5, 7), 1), ((3, 5, 7), -1), ((2, LARGE // 2), 1), ((LARGE // 8, 8), 0),
    ((500, 64), 1), ((4100, 3), 1), ((257, 129), 0), ((0, 4), 1),
    ((1025, 8, 8), 1),  # blocks of a GPU have columns of several batches
]  # fmt: skip


def check(backend: Backend, x: np.ndarray[Any, Any], given: Any, axis: Any, **more: Any) -> None:
    for name, (function, reference) in FUNCTIONS.items():
        found, want = function(given, axis, **more), reference(x, axis=axis, **more)
        got = backend.to_host(found)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, want, err_msg=name)
    with np.errstate(invalid="ignore"):
        want = [np.asarray(f(x, axis=axis, **more)) for f in (np.min, np.max)]
    result = ga.minmax(given, axis, **more)
    assert type(result) is ga.MinMax
    for mine, other in zip(map(backend.to_host, result), want, strict=True):
        assert mine.dtype == x.dtype
        if x.dtype == BFLOAT16:  # of which NumPy does not know that NaN are alike
            mine, other = mine.astype(np.float32), other.astype(np.float32)
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("few", [True, False])
def test_shapes(backend: Backend, shape: tuple[int, ...], axis: Any, few: bool) -> None:
    """With few values, of which many are alike, and with many."""
    x = random_array(shape, np.dtype("float32"))
    x = np.floor(x) if few else x
    given = backend.to_device(x)
    check(backend, x, given, axis)
    check(backend, x, given, axis, keepdims=True)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_dtypes(backend: Backend, dtype: np.dtype[Any], axis: Any) -> None:
    x = random_array((37, 301), dtype)
    check(backend, x, backend.to_device(x), axis)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_special_values(backend: Backend, dtype: np.dtype[Any]) -> None:
    """NaN, infinities and zeros of both signs, at every place among others."""
    values = special_values(dtype)
    x = np.random.default_rng(0).choice(values, (64, 70)).astype(dtype)
    check(backend, x, backend.to_device(x), 1)
    check(backend, x, backend.to_device(x), 0)
    for i in range(0, 64, 21):
        check(backend, x[i], backend.to_device(x[i]), None)


def test_the_first_of_equal_ones(backend: Backend) -> None:
    x = np.zeros(LARGE, np.int32)
    given = backend.to_device(x)
    assert int(ga.argmax(given)) == int(ga.argmin(given)) == 0
    for place in (1, LARGE // 2, LARGE - 2):
        x = np.zeros(LARGE, np.float32)
        x[place:] = 1
        given = backend.to_device(x)
        assert int(ga.argmax(given)) == place
        x[place:] = np.nan
        given = backend.to_device(x)
        assert int(ga.argmax(given)) == int(ga.argmin(given)) == place


def test_several_axes(backend: Backend) -> None:
    x = random_array((5, 6, 7), np.dtype("int32"))
    low, high = ga.minmax(backend.to_device(x), (0, -1))
    np.testing.assert_array_equal(backend.to_host(low), x.min((0, 2)))
    np.testing.assert_array_equal(backend.to_host(high), x.max((0, 2)))


@pytest.mark.parametrize("n", [1001, 70_003])
def test_cut_for_threads(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._algorithms.extremes import cpu

    monkeypatch.setattr(cpu, "_LARGE_BYTES", 1)
    monkeypatch.setattr(cpu, "_CHUNK", 300)
    host = Backend("cpu", np)
    with ga.default_device("cpu"):
        for dtype in a_few(("float32", "int16", "bool")):
            x = random_array(n, np.dtype(dtype))
            check(host, x, x, None)
            check(host, x[::-1], x[::-1], None)
            if dtype == "float32":
                x[[n // 2, n - 1]] = np.nan
                check(host, x, x, None)
            check(host, x[: n // 7 * 7].reshape(7, -1), x[: n // 7 * 7].reshape(7, -1), 1)
            check(host, x[: n // 7 * 7].reshape(-1, 7), x[: n // 7 * 7].reshape(-1, 7), 0)


@pytest.mark.parametrize("shape", [(1 << 18,), (2, 1 << 17)])
def test_no_thread_speaks_of_nan(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's warnings are off for one thread at a time; of bfloat16 its NaN raises one."""
    from gpualgo._algorithms.extremes import cpu

    def elsewhere(body: Callable[[int, int], None], num_tasks: int, work: int) -> int:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(body, 0, num_tasks).result()
        return 1

    monkeypatch.setattr(threads, "run", elsewhere)
    monkeypatch.setattr(cpu, "_LARGE_BYTES", 0)
    x = np.zeros(shape, BFLOAT16)
    x[..., 5] = np.nan
    with ga.default_device("cpu"), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ga.minmax(x, x.ndim - 1)
    assert np.all(np.isnan(np.asarray(found).astype(np.float32)))
