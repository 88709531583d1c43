"""Bad tuples and weights of histogram: the type of every error, its message, `out` left alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import Backend
from test_bad_input import refused

import gpualgo as ga

ENDS = ((0, 1), (0, 1))


def _x(backend: Backend, dtype: Any = "float32", shape: Any = (6,)) -> Any:
    return backend.to_device((np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype))


def _counts(backend: Backend, shape: Any = (4, 4), dtype: Any = "int64") -> Any:
    return backend.to_device(np.full(shape, 77, dtype))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ((), "empty tuple"),
        ((1, 2), "numbers only"),
        (([1, 2], [3, 4]), r"x\[0\] must be an array, got list"),
        ((np.zeros(3), "ab"), r"x\[1\] must be an array, got str"),
        ((np.zeros(3), (np.zeros(3), np.zeros(3))), "tuple of tuples.*tuple of arrays"),
        ((np.zeros(3), np.zeros(3, [("a", "i4")])), "tuple of tuples.*tuple of arrays"),
        (np.zeros(3, [("a", "f4", 2), ("b", "i4")]), "'a'"),
        ((np.zeros(3),) * 9, "9 numbers, at most 8"),
        ((np.zeros(3), np.zeros(3, "c8")), r"x\[1\] has dtype complex64.*order"),
        ((np.zeros(3), np.zeros(3, object)), r"x\[1\].*object"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_samples(backend: Backend, x: Any, message: str) -> None:
    with refused(backend, TypeError, f"^histogram: x.*({message})|^histogram: {message}"):
        ga.histogram(x, 4)


def test_shapes_that_do_not_meet(backend: Backend) -> None:
    out = _counts(backend)
    x, y = _x(backend), _x(backend, shape=(5,))
    with refused(backend, ValueError, r"^histogram: x: shapes \(6,\), \(5,\) do not", out):
        ga.histogram((x, y), 4, ENDS, out=out)


@pytest.mark.parametrize(
    ("bins", "kind", "message"),
    [
        ((4,), ValueError, "bins is a tuple of 1 for samples of 2 dimensions"),
        ((4, 4, 4), ValueError, "bins is a tuple of 3 for samples of 2 dimensions"),
        ([4, 4], TypeError, "tuple of 2, numbers or edges.*got list"),
        (np.array([0.0, 1.0]), TypeError, "tuple of 2.*got ndarray"),
        (4.0, TypeError, "tuple of 2.*got 4.0"),
        (True, TypeError, "tuple of 2.*got True"),
        (None, TypeError, "tuple of 2.*got NoneType"),
        ("auto", TypeError, "tuple of 2.*got 'auto'"),
        (0, ValueError, r"bins\[0\] is 0, but their number"),
        ((4, 0), ValueError, r"bins\[1\] is 0, but their number"),
        ((4, True), TypeError, r"bins\[1\] must be an int or a sequence"),
        ((4, [3, 1]), ValueError, r"bins\[1\] decreases|range\[1\]"),
        ((4, [3]), ValueError, r"bins\[1\] has 1 edges"),
        ((4, [math.nan, 1]), ValueError, r"bins\[1\] holds NaN|range\[1\]"),
        ((4, [[1], [2]]), ValueError, r"bins\[1\] has shape"),
        ((1 << 16, 1 << 16), ValueError, f"bins make {1 << 32} bins in all, at most"),
        (1 << 20, ValueError, f"bins make {1 << 40} bins in all, at most"),
    ],
    ids=str,
)
def test_bins(backend: Backend, bins: Any, kind: type[Exception], message: str) -> None:
    out = _counts(backend)
    with refused(backend, kind, f"^histogram: ({message}|bins must be an int or a {message})", out):
        ga.histogram((_x(backend), _x(backend)), bins, ENDS, out=out)


@pytest.mark.parametrize("edges", [[3, 1], [math.nan, 1]], ids=str)
def test_edges(backend: Backend, edges: Any) -> None:
    with refused(backend, ValueError, r"^histogram: bins\[1\] (decreases|holds NaN)"):
        ga.histogram((_x(backend), _x(backend)), (4, edges), ((0, 1), None))
    with refused(backend, ValueError, r"^histogram: bins (decreases|holds NaN)"):
        ga.histogram(_x(backend), edges, weights=2)


@pytest.mark.parametrize(
    ("ends", "kind", "message"),
    [
        ((0, 1), TypeError, r"range\[0\] must be two numbers.*got 0"),
        (5, TypeError, "range must be a tuple of 2 pairs.*got 5"),
        ("01", TypeError, "range must be a tuple of 2 pairs.*got '01'"),
        (((0, 1),), ValueError, "range has 1 items for samples of 2"),
        (((0, 1),) * 3, ValueError, "range has 3 items for samples of 2"),
        (((0, 1), (1, 0)), ValueError, r"range\[1\] .*1.*0"),
        (((0, math.inf), None), ValueError, r"range\[0\] holds inf"),
        ((None, ("a", 1)), TypeError, r"range\[1\] holds 'a'"),
    ],
    ids=str,
)
def test_range(backend: Backend, ends: Any, kind: type[Exception], message: str) -> None:
    out = _counts(backend)
    with refused(backend, kind, f"^histogram: {message}", out):
        ga.histogram((_x(backend), _x(backend)), 4, ends, out=out)


def test_range_beside_edges_and_of_data(backend: Backend) -> None:
    x = _x(backend)
    with refused(backend, ValueError, r"^histogram: range\[1\] is for a number of bins.*None"):
        ga.histogram((x, x), (4, [0, 1]), ENDS)
    bad = backend.to_device(np.array([0, 1, 2, 3, 4, np.nan]))
    with refused(backend, ValueError, r"^histogram: the range .* of x\[1\] is not finite"):
        ga.histogram((x, bad), 4)
    with refused(backend, ValueError, r"^histogram: the range .* of x is not finite"):
        ga.histogram(bad, 4, weights=x)


@pytest.mark.parametrize(
    ("weights", "kind", "message"),
    [
        ([1.0] * 6, TypeError, "weights must be an array, got list"),
        ("ab", TypeError, "weights must be an array, got str"),
        ((np.ones(6), np.ones(6)), TypeError, "weights is a tuple; pass one array"),
        (np.ones(6, [("a", "f4")]), TypeError, "weights is a tuple; pass one array"),
        (np.ones(5), ValueError, r"weights has shape \(5,\) and x \(6,\)"),
        (np.ones((2, 6)), ValueError, r"weights has shape \(2, 6\) and x \(6,\)"),
        (np.ones(6, object), TypeError, "weights.*object"),
        (np.ones(6, ">f8"), TypeError, "weights.*big-endian"),
        (np.longdouble(3), TypeError, "weights.*(longdouble|float128|float96)"),
        (1 << 70, TypeError, "weights.*object"),
    ],
    ids=repr,
)
def test_weights(backend: Backend, weights: Any, kind: type[Exception], message: str) -> None:
    x = np.arange(6.0)
    out = np.full(4, 77.0)
    with refused(Backend(backend.name, np), kind, f"^histogram: {message}", out):
        ga.histogram(x, 4, (0, 1), weights=weights, out=out)


@pytest.mark.parametrize(
    ("weights", "dtype", "message"),
    [
        ("complex64", "float64", "complex64 cannot be added up in dtype float64"),
        ("float32", "int64", "float32 cannot be added up in dtype int64"),
        ("int32", "uint64", "int32 cannot be added up in dtype uint64"),
        ("bool", "bool", "bool cannot be added up in dtype bool"),
        ("float32", "M8[s]", "datetime64"),
    ],
)
def test_dtypes_of_sums(backend: Backend, weights: str, dtype: str, message: str) -> None:
    x, w = _x(backend), _x(backend, weights)
    with refused(backend, TypeError, f"^histogram: (dtype|weights).*{message}"):
        ga.histogram(x, 4, (0, 1), weights=w, dtype=dtype)


def test_numbers_that_do_not_fit(backend: Backend) -> None:
    x = _x(backend)
    with refused(backend, TypeError, "^histogram: weights of dtype float64 cannot"):
        ga.histogram(x, 4, (0, 1), weights=0.5, dtype="int64")
    with refused(backend, ValueError, "^histogram: weights 300 is out of range for dtype int8"):
        ga.histogram(x, 4, (0, 1), weights=300, dtype="int8")
    with refused(backend, ValueError, "^histogram: weights 1e[+]?300 is out of range"):
        ga.histogram(x, 4, (0, 1), weights=1e300, dtype="float32")


def test_outputs(backend: Backend) -> None:
    x = _x(backend)
    for out, kind, message in (
        (_counts(backend, (16,)), ValueError, r"out has shape \(16,\), the result has \(4, 4\)"),
        (_counts(backend, dtype="float32"), TypeError, "float32 cannot count"),
    ):
        with refused(backend, kind, f"^histogram: .*{message}", out):
            ga.histogram((x, x), 4, ENDS, out=out)
    with refused(backend, ValueError, r"^histogram: dtype uint8 cannot hold the count of 300"):
        ga.histogram((_x(backend, shape=(300,)),) * 2, 4, ENDS, dtype="uint8")
