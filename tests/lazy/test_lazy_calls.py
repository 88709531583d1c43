"""Calls on lazy arrays beside those on arrays: `calls.txt` lists them."""

from __future__ import annotations

import copy
import operator
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tables
from support import BFLOAT16, Backend, a_few, assert_same, random_array

import gpualgo as ga

TABLE = Path(__file__).with_name("calls.txt")
RTOL = {"float16": 2e-3, "float32": 2e-6, "complex64": 2e-6}
SMALL = np.random.default_rng(1).integers(-2, 3, (7, 30)) / 2 + 1.125
SMALL[:2, 0] = np.nan, np.inf
ARRAYS: dict[str, Any] = {
    "np": np, "ga": ga, "operator": operator, "copy": copy, "pickle": pickle, "BFLOAT16": BFLOAT16,
    "M": random_array((4, 6, 5), np.dtype("int64")), "ROW": random_array(5, np.dtype("int64"), 1),
    "COMPLEX": random_array(9, np.dtype("complex64")), "FAR": np.array([[0, -1, 3], [7, -9, 100]]),
    "PACKED": np.ones(3, [("a", np.uint8), ("b", np.float64)]), "N": np.arange(5),
    "P": np.array([[0.5, -0.25, 1.0], [0.75, 0.125, -0.5]]), "S": np.arange(1.0, 9.0),
    "Q": np.array([[0.5, 2.0, -1.0], [3.0, 0.25, 0.5]]), "N32": np.arange(12, dtype=np.int32),
    "F2": SMALL.astype("f2"), "F4": SMALL.astype("f4"), "I1": np.array([100, 120, -128], np.int8),
    "I4": np.nan_to_num(SMALL, posinf=3.0).astype("i4"), "HIGH": 1e9 + np.arange(1000) % 3,
    "I2": np.array([[3, 1, 4], [1, 0, 9], [2, 6, 5]], np.int16),
    "SPECIAL": np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0]),
    "CUBE": np.random.default_rng(2).integers(0, 9, (4, 5, 6)).astype("f4") / 4,
    "THIRDS": random_array((9, 8), np.dtype("int8")) % 3,
}  # fmt: skip
ARRAYS["POSITIVE"] = np.abs(ARRAYS["P"])


def take(x: Any, indices: Any, axis: Any = None, mode: str = "wrap") -> Any:
    size, indices = x.size if axis is None else x.shape[axis], np.asarray(indices)
    if indices.dtype.kind == "u":
        indices = np.minimum(indices, size - 1) if mode == "clip" else indices % size
    return np.take(x, indices.astype(np.int64), axis, mode=mode)


def uniform(size: int, seed: int) -> Any:
    return np.random.Generator(np.random.Philox(seed)).random(size)


NUMPYS = SimpleNamespace(arange=np.arange, full=np.full, take=take, random=uniform)


def made_of(make: Any, device: Any, lazy: Any) -> dict[str, Any]:
    """Return what calls may read."""
    made = make(ARRAYS["M"]) * 3 + device(ARRAYS["ROW"]) + lazy.arange(120).reshape(4, 6, 5)
    turned = made.transpose(2, 0, 1)[:, ::-1]
    return {**ARRAYS, "L": make, "D": device, "lazy": lazy, "MADE": made, "TURNED": turned}


def compare(backend: Backend, words: list[str], got: Any, want: Any) -> None:
    """Raise if a result is not NumPy's."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            compare(backend, words, one, other)
        return None
    if {"lazy", "real"} & {*words}:
        assert isinstance(got, ga.lazy.LazyArray) == ("lazy" in words), type(got)
    if not hasattr(want, "dtype"):
        assert (type(got), got) == (type(want), want)
        return None
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    array = backend.to_host(ga.copy(got) if isinstance(got, ga.lazy.LazyArray) else got)
    if "close" not in words:
        return assert_same(array, want)
    rtol = RTOL.get(str(want.dtype), 1e-9 if "sums" in words else 1e-12)
    least = 6e-8 if want.dtype == np.float16 else 1e-30  # between two of its smallest numbers
    return np.testing.assert_allclose(array, want, rtol, least)


def fault(backend: Backend, words: list[str], text: str) -> str:
    """Return how a call of a lazy array differs."""
    call, _, error = text.partition(" => ")
    kind, _, told = error.partition(":")
    if "host" in words and backend.xp is not np:
        return ""
    named = made_of(
        lambda x: ga.lazy.asarray(backend.to_device(x) if isinstance(x, np.ndarray) else x),
        backend.to_device, ga.lazy,
    )  # fmt: skip
    try:
        got = eval(call, named)
        if error:
            return f"{text}\n    returned {got!r}"
        compare(backend, words, got, eval(call, made_of(np.asarray, np.asarray, NUMPYS)))
    except Exception as failure:
        kinds = [each.__name__ for each in type(failure).__mro__]
        if not error or kind not in kinds or not re.search(told.strip(), str(failure)):
            return f"{text}\n    {failure!r}"
        return f"{text}\n    several lines" if "\n" in str(failure) else ""
    return ""


@pytest.mark.filterwarnings("ignore")
def test_every_call(backend: Backend) -> None:
    rows = list(tables.lines(TABLE, "."))
    found = [fault(backend, *row) for row in a_few(rows, len(rows) // 16)]
    assert not any(found), "\n".join(filter(None, found))
