"""Bad input to radix_sort and argsort: the type of every error, and that outputs are left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, FLOATS, Backend, random_array
from test_bad_input import NOT_ARRAYS, refused

import gpualgo as ga

AxisError = np.exceptions.AxisError


def _x(backend: Backend, shape: Any = (4, 6), dtype: Any = "int32") -> Any:
    return backend.to_device(random_array(shape, np.dtype(dtype)))


@pytest.mark.parametrize("value", [*NOT_ARRAYS, np.float32(3)], ids=repr)
def test_not_an_array(backend: Backend, value: Any) -> None:
    if value is not None:
        with refused(backend, TypeError, f"^radix_sort: values .*{type(value).__name__}"):
            ga.radix_sort(_x(backend), value)


def test_masked_arrays(backend: Backend) -> None:
    masked = np.ma.masked_array([3, 1, 2], [0, 1, 0])
    with refused(backend, TypeError, r"^radix_sort: values .*masked.*filled"):
        ga.radix_sort(np.arange(3), masked)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_keys_are_told_the_way(backend: Backend, dtype: str) -> None:
    for sort, name in ((ga.radix_sort, "radix_sort"), (ga.argsort, "argsort")):
        with refused(backend, TypeError, f"^{name}: keys .*{dtype}.*x.real, x.imag"):
            sort(_x(backend, dtype=dtype))


def test_values_that_are_no_plain_bytes(backend: Backend) -> None:
    keys = np.arange(3)
    for values in (np.array([1, None, "x"], object), np.zeros(3, [("a", object)])):
        with refused(backend, TypeError, r"^radix_sort: values .*plain bytes.*numpy\.arange"):
            ga.radix_sort(keys, values)
    with refused(backend, TypeError, "^radix_sort: values .*plain bytes"):
        ga.radix_sort(keys, np.zeros(3, []))


@pytest.mark.parametrize("shape", [(4,), (6,), (6, 4), (4, 6, 1), (1, 6), (24,), ()], ids=str)
def test_values_of_another_shape(backend: Backend, shape: tuple[int, ...]) -> None:
    with refused(backend, ValueError, r"^radix_sort: values .*shape.*\(4, 6\).*each key"):
        ga.radix_sort(_x(backend), _x(backend, shape))


RANGES = [(0, 0), (5, 5), (7, 3), (-1, 4), (0, 33), (32, 32), (32, None), (33, 40), (0, -1)]


@pytest.mark.parametrize(("begin", "end"), RANGES)
def test_ranges_of_bits(backend: Backend, begin: int, end: int | None) -> None:
    with refused(backend, ValueError, rf"^radix_sort: begin_bit={begin} and end_bit=.*int32.*32"):
        ga.radix_sort(_x(backend), begin_bit=begin, end_bit=end)
    with refused(backend, ValueError, "^radix_sort: begin_bit=0 and end_bit=9 .*uint8"):
        ga.radix_sort(_x(backend, dtype="uint8"), end_bit=9)


@pytest.mark.parametrize("dtype", [np.dtype(bool), *FLOATS], ids=str)
def test_bits_of_floats_mean_nothing(backend: Backend, dtype: np.dtype[Any]) -> None:
    keys, width = _x(backend, dtype=dtype), 8 * dtype.itemsize
    for bits in ({"begin_bit": 1}, {"end_bit": width - 1}, {"begin_bit": -1}, {"end_bit": 99}):
        with refused(backend, TypeError, f"^radix_sort: begin_bit and end_bit .*{dtype}.*view"):
            ga.radix_sort(keys, **bits)
    ga.radix_sort(keys, begin_bit=0, end_bit=width)
    ga.radix_sort(keys, end_bit=None)


def test_no_axis_at_all(backend: Backend) -> None:
    for sort in (ga.radix_sort, ga.argsort):
        with refused(backend, AxisError, "axis -1 is out of bounds"):
            sort(_x(backend, ()))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "complex64", BFLOAT16])
def test_index_dtypes(backend: Backend, dtype: Any) -> None:
    with refused(backend, TypeError, "^argsort: dtype .*index dtype.*int64, int32"):
        ga.argsort(_x(backend), dtype=dtype)
    out = _x(backend, dtype=dtype)
    with refused(backend, TypeError, "^argsort: dtype .*index dtype.*int64, int32", out):
        ga.argsort(_x(backend), out=out)


@pytest.mark.parametrize(("dtype", "extent"), [("int32", 2**31 + 1), ("uint32", 2**32 + 1)])
def test_index_dtype_too_narrow(backend: Backend, dtype: str, extent: int) -> None:
    one = backend.to_device(np.zeros(1, np.uint8))
    keys = backend.xp.broadcast_to(one, (extent,))
    with refused(
        backend, ValueError, f"^argsort: index dtype too narrow.*{dtype}.*{extent}.*int64"
    ):
        ga.argsort(keys, dtype=dtype)
    rows = backend.xp.broadcast_to(one, (extent, 2))
    with refused(backend, ValueError, "^argsort: index dtype too narrow"):
        ga.argsort(rows, dtype=dtype, axis=0)
    with refused(backend, ValueError, "^argsort: index dtype too narrow"):
        ga.argsort(rows, dtype=dtype, axis=None)


def test_out_of_what_is_flattened(backend: Backend) -> None:
    flat = _x(backend, (4, 6))
    with refused(backend, ValueError, r"^radix_sort: out .*shape.*\(24,\)", flat):
        ga.radix_sort(_x(backend), axis=None, out=flat)
