"""Bad input to histogram: the type of every error, its message, and that `out` is left alone."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support import Backend
from test_bad_input import refused

import gpualgo as ga


def _x(backend: Backend, dtype: Any = "float32", shape: Any = (6,)) -> Any:
    return backend.to_device((np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype))


def _counts(backend: Backend, shape: Any = (4,), dtype: Any = "int64") -> Any:
    return backend.to_device(np.full(shape, 77, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_samples(backend: Backend, dtype: str) -> None:
    out = _counts(backend)
    with refused(backend, TypeError, rf"^histogram: x .*{dtype}.*x\.real", out):
        ga.histogram(_x(backend, dtype), 4, (0, 1), out=out)
    with refused(backend, TypeError, rf"^histogram: x .*{dtype}.*x\.real"):
        ga.histogram(_x(backend, dtype), 4)


@pytest.mark.parametrize(
    "bins", [True, np.True_, "auto", "10", b"4", None, 4.0, 1j, np.float64(4), {1: 2}, {1, 2},
             iter([0, 1]), object()], ids=lambda bins: type(bins).__name__,
)  # fmt: skip
def test_bins_of_a_wrong_type(backend: Backend, bins: Any) -> None:
    out = _counts(backend)
    ga.histogram(_x(backend), 1, (0, 1))  # 1 == True: a warm call must not let it through
    with refused(backend, TypeError, "^histogram: bins must be an int or a sequence", out):
        ga.histogram(_x(backend), bins, out=out)


@pytest.mark.parametrize("bins", [0, -1, np.int8(-5), 2**31, 2**80])
def test_numbers_of_bins(backend: Backend, bins: Any) -> None:
    with refused(backend, ValueError, rf"^histogram: bins is {bins}.* from 1 to "):
        ga.histogram(_x(backend), bins, (0, 1))


@pytest.mark.parametrize(
    ("edges", "kind", "message"),
    [
        ([], ValueError, "0 edges.* from 2"),
        ([1.0], ValueError, "1 edges.* from 2"),
        ([[0, 1], [2, 3]], ValueError, r"shape \(2, 2\).*one dimension"),
        ([[0], [2, 3]], TypeError, "sequence of edges"),
        ([0, 2, 1], ValueError, "decreases from 2 to 1 at index 2"),
        ([1.0, 0.0], ValueError, "decreases from 1.0 to 0.0"),
        ([np.inf, -np.inf], ValueError, "decreases"),
        ([0.0, math.nan, 1.0], ValueError, "NaN"),
        ([math.nan, math.nan], ValueError, "NaN"),
        (np.array([0, np.nan, 1], np.float16), ValueError, "NaN"),
        ([0, 1j], TypeError, "complex128.*real"),
        (["0", "1"], TypeError, "<U1"),
        ([0, None], TypeError, "object"),
        ([Fraction(1, 2), 3], TypeError, "object"),
        ([0, 2**70], TypeError, "object"),
        (np.array([0, 1], ">f8"), TypeError, "big-endian"),
        (np.array([0, 1], np.longdouble), TypeError, "longdouble|float128|float96"),
        (np.array([200, 3], np.uint8), ValueError, "decreases from 200 to 3"),
        (np.ma.masked_array([0.0, 1.0], [True, False]), TypeError, "masked"),
    ],
    ids=str,
)
def test_edges(backend: Backend, edges: Any, kind: type[Exception], message: str) -> None:
    out = _counts(backend, (2,))
    for _ in range(2):  # refused when cold and when seen before
        with refused(backend, kind, f"^histogram: bins.*({message})", out):
            ga.histogram(_x(backend), edges, out=out)


def test_device_edges_are_checked(cuda: Backend) -> None:
    for bad, message in [
        ([0.0, 2.0, 1.0], "decreases"),
        ([0.0, math.nan], "NaN"),
        ([1], "1 edges"),
    ]:
        with refused(cuda, ValueError, f"^histogram: bins.*{message}"):
            ga.histogram(_x(cuda), cuda.to_device(np.array(bad)))
    with refused(cuda, TypeError, "^histogram: bins"):
        ga.histogram(_x(cuda), cuda.to_device(np.array(4)).astype("f4"))


def test_range_beside_edges(backend: Backend) -> None:
    with refused(backend, ValueError, "^histogram: range.* edges"):
        ga.histogram(_x(backend), [0, 1, 2], (0, 2))


@pytest.mark.parametrize(
    ("ends", "kind", "message"),
    [
        ((1, 0), ValueError, r"\(1, 0\) decreases"),
        ((0.5, np.float32(0.25)), ValueError, "decreases"),
        ((0, math.inf), ValueError, "inf.*finite"),
        ((-math.inf, 0), ValueError, "inf.*finite"),
        ((math.nan, 1), ValueError, "nan.*finite"),
        ((0, np.float32("nan")), ValueError, "nan.*finite"),
        ((0, 10**400), ValueError, "finite"),
        ((0,), ValueError, "two numbers.* got 1"),
        ((0, 1, 2), ValueError, "two numbers.* got 3"),
        ((), TypeError, "two numbers"),
        (1, TypeError, "two numbers.* got 1"),
        ("01", TypeError, "two numbers.* got '01'"),
        ({0: 1, 2: 3}, TypeError, "two numbers"),
        ((0, "1"), TypeError, "'1' of type str"),
        ((None, 1), TypeError, "None of type NoneType"),
        ((False, True), TypeError, "False of type bool"),
        ((np.False_, 1), TypeError, "type bool"),
        ((0, 1j), TypeError, "1j of type complex"),
        ((0, np.complex64(1)), TypeError, "complex64"),
        ((0, Fraction(1, 2)), TypeError, "Fraction"),
        ((0, np.longdouble(1)), TypeError, "longdouble"),
        (([0], 1), TypeError, r"\[0\] of type list"),
    ],
    ids=str,
)
def test_range(backend: Backend, ends: Any, kind: type[Exception], message: str) -> None:
    out = _counts(backend)
    with refused(backend, kind, f"^histogram: range.*({message})", out):
        ga.histogram(_x(backend), 4, ends, out=out)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_range_of_data_that_is_not_finite(backend: Backend, dtype: str, value: float) -> None:
    x = np.ones(1000, dtype)
    x[777] = value
    with refused(backend, ValueError, r"^histogram: the range .* not finite.*range="):
        ga.histogram(backend.to_device(x), 4)


@pytest.mark.parametrize(
    ("dtype", "bins", "ends"),
    [
        ("float32", 4096, (1000.0, 1000.001)),
        ("float16", 5000, (0.0, 1.0)),
        ("float64", 3, (0.0, 5e-324)),
        ("float32", 2, (2.0**40, 2.0**40)),  # half more or less is the same number
        ("float64", 3, (-1e308, 1e308)),  # hi - lo overflows
        ("int64", 4, (2**62, 2**62 + 3)),
        ("float16", 1, (0, 1e6)),
    ],
)
def test_edges_that_are_too_close(backend: Backend, dtype: str, bins: int, ends: Any) -> None:
    with refused(backend, ValueError, r"^histogram: .*bins in the range.*fewer bins"):
        ga.histogram(_x(backend, dtype), bins, ends)


@pytest.mark.parametrize("dtype", ["float64", "bool", "complex64"])
def test_counters_that_cannot_count(backend: Backend, dtype: Any) -> None:
    with refused(backend, TypeError, "^histogram: .*dtype"):
        ga.histogram(_x(backend), 4, (0, 1), dtype=dtype)


@pytest.mark.parametrize(("dtype", "most"), [("int8", 127), ("uint8", 255), ("int16", 32767)])
def test_counters_too_narrow(backend: Backend, dtype: str, most: int) -> None:
    """One sample more than a counter holds is refused, even if the samples would spread."""
    message = rf"^histogram: dtype {dtype} .* {most + 1} samples.*wider dtype"
    x, out = _x(backend, shape=(most + 1,)), _counts(backend, dtype=dtype)
    with refused(backend, ValueError, message, out):
        ga.histogram(x, 4, (0, 7), dtype=dtype, out=out)
    with refused(backend, ValueError, message, out):
        ga.histogram(x, 4, (0, 7), out=out)
    ga.histogram(x[:most], 4, (0, 7), out=out)
    rows = _x(backend, shape=(3, most))  # the samples of one histogram count
    ga.histogram(rows, 4, (0, 7), axis=1, dtype=dtype)
    with refused(backend, ValueError, "^histogram: dtype"):
        ga.histogram(rows, 4, (0, 7), dtype=dtype)
