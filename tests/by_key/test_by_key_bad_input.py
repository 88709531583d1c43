"""What the algorithms by key refuse, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

ALL = [ga.reduce_by_key, ga.inclusive_scan_by_key, ga.exclusive_scan_by_key]
each = pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
both = pytest.mark.parametrize("consecutive", [True, False])
KEYS, X = np.array([1, 1, 2], np.int32), np.array([1.0, 2.0, 3.0], np.float32)


def refused(
    kind: type[Exception], message: str, function: Callable[..., Any], *args: Any, **more: Any
) -> None:
    with pytest.raises(kind, match=rf"^{function.__name__}: {message}"):
        function(*args, **more)


@each
@both
def test_shapes(backend: Backend, function: Callable[..., Any], consecutive: bool) -> None:
    keys, x = backend.to_device(KEYS), backend.to_device(X)
    for a, b in ((keys[:2], x), (keys, x[:1]), (keys.reshape(1, 3), x)):
        refused(ValueError, "keys have shape", function, a, b, consecutive=consecutive)
    lazy = ga.lazy.asarray(x)[:1]
    refused(ValueError, "keys have shape", function, keys, lazy, consecutive=consecutive)


@each
@both
def test_no_arrays(function: Callable[..., Any], consecutive: bool) -> None:
    refused(TypeError, "keys", function, [1, 2, 3], X, consecutive=consecutive)
    refused(TypeError, "x", function, KEYS, [1, 2, 3], consecutive=consecutive)
    refused(TypeError, "keys", function, np.array(["a", "b", "c"]), X, consecutive=consecutive)
    refused(TypeError, "x", function, KEYS, np.array([None] * 3), consecutive=consecutive)


@each
def test_equality(backend: Backend, function: Callable[..., Any]) -> None:
    keys, x = backend.to_device(KEYS), backend.to_device(X)
    same = lambda a, b: a == b  # noqa: E731
    refused(ValueError, "eq needs consecutive=True", function, keys, x, eq=same)
    refused(TypeError, "eq must be callable", function, keys, x, eq=3, consecutive=True)
    no_bool = lambda a, b: a - b  # noqa: E731
    unknown = {"eq": lambda a, b: np.no_such(a), "consecutive": True}
    refused(ga.CompileError, "eq could not be compiled", function, keys, x, **unknown)
    refused(TypeError, "eq returns int32", function, keys, x, eq=no_bool, consecutive=True)
    with pytest.raises(TypeError, match=f"^{function.__name__}: eq takes 1 argument"):
        function(keys, x, eq=lambda a: a, consecutive=True)


@both
def test_identity(consecutive: bool) -> None:
    op, f = lambda a, b: a + b, ga.exclusive_scan_by_key
    message = "op has no known identity"
    refused(ValueError, message, f, KEYS, X, None, op, consecutive=consecutive)
    refused(ValueError, message, f, KEYS[:0], X[:0], None, op, consecutive=consecutive)
    found = f(KEYS, X, None, ga.Operator(op, identity=0.0), consecutive=consecutive)
    assert found.tolist() == [0.0, 1.0, 0.0]


@both
def test_outputs_too_short(backend: Backend, consecutive: bool) -> None:
    keys, x = backend.to_device(KEYS), backend.to_device(X)
    out = keys[:1].copy(), x[:1].copy()
    refused(ValueError, "out has room for 1 elements, the result has 2", ga.reduce_by_key,
            keys, x, consecutive=consecutive, out=out)  # fmt: skip


@both
def test_overlaps(backend: Backend, consecutive: bool) -> None:
    keys, x = backend.to_device(KEYS), backend.to_device(X)
    f = ga.reduce_by_key
    refused(ValueError, "out", f, keys, x, consecutive=consecutive, out=(keys, x.copy()))
    refused(ValueError, "out", f, keys, x, consecutive=consecutive, out=(keys.copy(), x))
    f = ga.inclusive_scan_by_key
    other = backend.to_device(np.zeros(4, np.float32))
    other[:3] = x
    refused(ValueError, "out", f, keys, other[:3], consecutive=consecutive, out=other[1:])
    if not consecutive:
        refused(ValueError, "out", f, keys, x, out=x)


def test_too_many_numbers() -> None:
    keys, x = (KEYS,) * 5, (X,) * 4
    message = "a key and an element of x have 9 numbers together"
    op = lambda a, b: a  # noqa: E731
    refused(TypeError, message, ga.reduce_by_key, keys, x, None, op, consecutive=True)


@each
def test_keys_without_an_order(function: Callable[..., Any]) -> None:
    refused(TypeError, "keys", function, X.astype(np.complex64), X)
    refused(TypeError, "keys", function, X[:0].astype(np.complex64), X[:0])


@each
def test_plans_compute_nothing_lazy(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="keys: a lazy array must be materialized first"):
        ga.prepare(function, ga.lazy.asarray(KEYS) + 1, X)


def test_counts(backend: Backend) -> None:
    keys, x = backend.to_device(KEYS), backend.to_device(X)
    count = backend.to_device(np.zeros(1, np.int64))
    refused(TypeError, "out_count is given without out", ga.reduce_by_key, keys, x,
            consecutive=True, out_count=count)  # fmt: skip
    out = keys.copy(), x.copy()
    refused(TypeError, "out", ga.reduce_by_key, keys, x, consecutive=True, out=out,
            out_count=count.astype(np.int32))  # fmt: skip
