"""reduce_by_index against a loop in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from by_key.reference import same_bits, values
from support import Backend, need_memory, scaled

import gpualgo as ga
from gpualgo import lazy
from gpualgo._algorithms import by_index
from gpualgo._algorithms.histogram.arguments import MAX_BINS


def looped(
    indices: np.ndarray[Any, Any], x: list[Any], size: int, fold: Callable[[Any, Any], Any],
    start: Any,
) -> list[Any]:  # fmt: skip
    """Return the folds of each index, those out of range left out."""
    found = [start] * size
    for k, element in zip(indices.ravel().tolist(), x, strict=True):
        if 0 <= k < size:
            found[k] = fold(found[k], element)
    return found


@pytest.mark.parametrize("size", [1, 7, 255, 256, 70_000])
def test_sums(backend: Backend, size: int) -> None:
    n = scaled(20_003, emulated=3003)
    indices, x = np.random.default_rng(size).integers(0, size, n, np.int32), values(n)
    want = np.bincount(indices, x, size).astype(np.float32)
    got = ga.reduce_by_index(backend.to_device(indices), backend.to_device(x), size)
    same_bits(backend, got, want)
    got = ga.reduce_by_index(backend.to_device(indices), backend.to_device(x), size, 2.5)
    same_bits(backend, got, want + np.float32(2.5))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64"])
def test_indices(backend: Backend, dtype: str) -> None:
    indices, x = np.array([[3, 0, 3], [100, 5, 0]], dtype), np.arange(6).reshape(2, 3)
    want = np.bincount(indices.ravel().astype(np.intp), x.ravel(), 101).astype(np.int64)
    given = backend.to_device(indices), backend.to_device(x)
    same_bits(backend, ga.reduce_by_index(*given, 101), want)
    same_bits(backend, ga.reduce_by_index(lazy.asarray(given[0]) + 1, given[1], 102)[1:], want)


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_indices_out_of_range(backend: Backend, dtype: str) -> None:
    """On the host they are refused, on a GPU left out."""
    wide = np.array([5, -1, 3, 2**31 - 1, 0, 4, 3, 2, 100])
    indices, x = wide.astype(dtype), np.arange(1, 10)
    given = backend.to_device(indices), backend.to_device(x)
    if backend.xp is np:
        with pytest.raises(ValueError, match=r"^reduce_by_index: indices hold .* from 0 to 4"):
            ga.reduce_by_index(*given, 5)
        return
    want = looped(wide, x.tolist(), 5, lambda a, b: a + b, 0)
    same_bits(backend, ga.reduce_by_index(*given, 5), np.array(want))


def test_shares() -> None:
    """On the CPU tasks have 2^16 elements each, the last one those that are left."""
    x = np.arange(200_003)
    with ga.default_device("cpu"):
        found = ga.reduce_by_index(x % 37, x, 37)
    assert found.tolist() == np.bincount(x % 37, x).tolist()


def test_no_results(cuda: Backend) -> None:
    """Of size 0 all indices are out of range."""
    indices, x = cuda.to_device(np.array([0, 1, 7])), cuda.to_device(np.ones(3, np.float32))
    same_bits(cuda, ga.reduce_by_index(indices, x, 0), np.zeros(0, np.float32))


@pytest.mark.parametrize("size", [9, 9000])
def test_what_no_kernel_takes(cuda: Backend, size: int) -> None:
    """It is told by the names of this call, whichever others do its work."""
    indices, x = cuda.to_device(np.array([0, 1, 1])), cuda.to_device(np.ones(3, np.float32))
    memory = cuda.to_device(np.zeros(4 * size + 4, np.uint8))
    apart = memory[1:-3].view(np.float32)
    f = ga.reduce_by_index
    with pytest.raises(ValueError, match=r"^reduce_by_index: indices starts at address"):
        f(memory[1:25].view(np.int64), x, size)
    with pytest.raises(ValueError, match=r"^reduce_by_index: x starts at address"):
        f(indices, apart[:3], size)
    with pytest.raises(ValueError, match=r"^reduce_by_index: init starts at address"):
        f(indices, x, size, apart)
    with pytest.raises(ValueError, match=r"^reduce_by_index: out starts at address"):
        f(indices, x, size, out=apart)
    with pytest.raises(TypeError, match=r"^reduce_by_index: out must be an array, got tuple"):
        f(indices, x, size, out=(cuda.to_device(np.zeros(size, np.float32)),))
    with pytest.raises(TypeError, match=r"^reduce_by_index: stream must be"):
        f(indices, x, size, stream="none")
    with pytest.raises(RuntimeError, match=r"^reduce_by_index: an array is pageable"), ga.graph():
        f(np.arange(3), np.arange(3), size)


def test_recorded(cuda: Backend) -> None:
    indices, x = cuda.to_device(np.zeros(99, np.int64)), cuda.to_device(np.zeros(99, np.int64))
    with ga.graph() as graph:
        found = ga.reduce_by_index(indices, x, 9)
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        k, v = rng.integers(-2, 11, 99), rng.integers(0, 9, 99)
        indices[...], x[...] = cuda.to_device(k), cuda.to_device(v)
        graph.launch()
        same_bits(cuda, found, np.array(looped(k, v.tolist(), 9, lambda a, b: a + b, 0)))


def test_what_is_sorted_has_bins() -> None:
    """One more than there are results: for what is out of range."""
    assert by_index._MOST_RESULTS + 1 == MAX_BINS


def test_device_indices_are_looked_at_if_asked(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    indices, x = cuda.to_device(np.array([[0, 4], [1, 2]])), cuda.to_device(np.ones((2, 2)))
    same_bits(cuda, ga.reduce_by_index(indices, x, 4), np.array([1.0, 1.0, 1.0, 0.0]))
    monkeypatch.setenv("GPUALGO_CHECK", "1")
    with pytest.raises(ValueError, match=r"^reduce_by_index: indices hold 4, .* from 0 to 3"):
        ga.reduce_by_index(indices[:, ::-1], x, 4)
    same_bits(cuda, ga.reduce_by_index(indices, x, 5), np.array([1.0, 1.0, 1.0, 0.0, 1.0]))


def test_beyond_32_bits(cuda: Backend) -> None:
    n, step = 2**31 + 12_345, 1 << 28
    need_memory(cuda, 3 * n)
    xp = cuda.xp
    indices, want = xp.empty(n, np.uint8), np.zeros(7, np.int64)
    for start in range(0, n, step):
        indices[start : start + step] = xp.arange(start, min(start + step, n)) % 7
        want += xp.asnumpy(xp.bincount(indices[start : start + step], minlength=7))
    ones = xp.broadcast_to(xp.asarray(1, np.int8), (n,))
    same_bits(cuda, ga.reduce_by_index(indices, ones, 7, dtype=np.int64), want)
    last = ga.reduce_by_index(indices[::-1], ones, 7, np.int64(5), lambda a, b: b)
    same_bits(cuda, last, np.ones(7, np.int64))
