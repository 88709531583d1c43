"""The order of elements by a loop of Python's, and samples in which much is equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga

Host = np.ndarray[Any, Any]
NUMBERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
           "float16", "float32", "float64"]  # fmt: skip
MODES = ("largest", "smallest")
ODD = [np.nan, -np.nan, -np.inf, -1.5, -0.0, 0.0, 2.0, np.inf]


def order_of(row: Host, descending: bool) -> list[int]:
    """Return the stable order of a row's elements, NaN last."""

    def rank(i: int) -> Any:
        x = row[i].item()
        return (True, 0) if x != x else (False, -x if descending else x)

    return sorted(range(len(row)), key=rank)


def some(shape: Any, dtype: Any, seed: int = 0) -> Host:
    """Return numbers of which many are equal, for floats with NaN, infinities and zeros."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "u":
        return rng.integers(0, 100, shape).astype(dtype) << (8 * dtype.itemsize - 7)
    if dtype.kind == "i":
        return rng.integers(-50, 50, shape).astype(dtype) << (8 * dtype.itemsize - 7)
    found = rng.integers(-50, 50, shape).astype(dtype)
    is_odd = rng.random(shape) < 0.2
    found[is_odd] = rng.choice(np.array(ODD), is_odd.sum()).astype(dtype)
    return found


def check(backend: Backend, x: Host, k: int, mode: str, given: Any = None) -> None:
    """Compare the first elements of rows along the last axis with the loop's, bit for bit."""
    found = ga.top_k(backend.to_device(x) if given is None else given, k, mode=mode)
    assert type(found) is ga.TopK
    values, indices = (backend.to_host(a) for a in found)
    length = x.shape[-1]
    orders = [order_of(row, mode == "largest")[:k] for row in x.reshape(-1, length)]
    want = np.array(orders, np.int64).reshape(*x.shape[:-1], k)
    assert (indices.dtype, values.dtype) == (np.int64, x.dtype)
    np.testing.assert_array_equal(indices, want)
    assert np.ascontiguousarray(values).tobytes() == np.take_along_axis(x, want, -1).tobytes()


def check_ranks(backend: Backend, x: Host, ranks: Any, given: Any = None) -> None:
    """Compare the elements of some ranks of rows along the last axis with the loop's."""
    found = backend.to_host(ga.kth_value(backend.to_device(x) if given is None else given, ranks))
    rows = x.reshape(-1, x.shape[-1])
    orders = [order_of(row, False) for row in rows]
    each = [ranks] if isinstance(ranks, int) else ranks
    want = np.array(
        [[row[o[k]] for row, o in zip(rows, orders, strict=True)] for k in each], x.dtype
    )
    shape = x.shape[:-1] if isinstance(ranks, int) else (len(ranks), *x.shape[:-1])
    assert (found.shape, found.dtype) == (shape, x.dtype)
    assert np.ascontiguousarray(found).tobytes() == want.tobytes()
