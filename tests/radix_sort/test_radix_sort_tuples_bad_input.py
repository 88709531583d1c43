"""Bad input to sorts of elements of several numbers: every error; outputs are left alone."""

from __future__ import annotations

import re
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from support import Backend, random_array
from test_bad_input import refused

import gpualgo as ga

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "a b")
SORTS = ((ga.radix_sort, "radix_sort"), (ga.argsort, "argsort"))


def _x(backend: Backend, shape: Any = (4, 6), dtype: Any = "int32") -> Any:
    return backend.to_device(random_array(shape, np.dtype(dtype)))


def test_tuples_that_are_none(backend: Backend) -> None:
    x = _x(backend)
    for sort, name in SORTS:
        with refused(backend, TypeError, f"^{name}: keys is an empty tuple"):
            sort(())
        with refused(backend, TypeError, rf"^{name}: keys\[1\] is an empty tuple"):
            sort((x, ()))
        with refused(backend, TypeError, f"^{name}: keys is a tuple of numbers only"):
            sort((1, 2.0))
        with refused(backend, TypeError, f"^{name}: keys must be an array, got list"):
            sort([x, x])
        with refused(backend, TypeError, rf"^{name}: keys\[1\] must be an array, got list"):
            sort((x, [1, 2]))
        with refused(backend, TypeError, rf"^{name}: keys\[0\]\[1\] is a tuple that is nested"):
            sort(((x, (x,)), x))
        with refused(backend, TypeError, f"^{name}: keys has elements of 9 numbers, at most 8"):
            sort((x,) * 9)
    with refused(backend, TypeError, "^radix_sort: values is an empty tuple"):
        ga.radix_sort(x, ())
    with refused(backend, TypeError, r"^radix_sort: values\.y must be an array, got str"):
        ga.radix_sort((x, x), Point(x, "y"))


def test_shapes(backend: Backend) -> None:
    x, y = _x(backend), _x(backend, (5, 1))
    for sort, name in SORTS:
        with refused(backend, ValueError, rf"^{name}: keys: shapes \(4, 6\), \(5, 1\) do not"):
            sort((x, y))
    with refused(backend, ValueError, r"^radix_sort: values: shapes \(5, 1\), \(4, 6\) do not"):
        ga.radix_sort(x, (y, x))
    with refused(backend, ValueError, r"^radix_sort: values has shape \(5, 1\).* \(4, 6\) of keys"):
        ga.radix_sort((x, x), (y, y))
    with refused(backend, ValueError, r"^radix_sort: values has shape \(3, 4, 6\).* \(4, 6\)"):
        ga.radix_sort(x, (_x(backend, (3, 4, 6)),))
    with refused(backend, ValueError, r"^radix_sort: values has shape \(5, 1\) but keys has"):
        ga.radix_sort((x, x), y)
    with refused(backend, ValueError, r"^radix_sort: values has shape \(1, 6\) but keys has"):
        ga.radix_sort((x, x), _x(backend, (1, 6)))


def test_dtypes_without_an_order(backend: Backend) -> None:
    x = _x(backend)
    for dtype in ("complex64", "complex128"):
        for sort, name in SORTS:
            with refused(backend, TypeError, rf"^{name}: keys\[y\] .*{dtype}.*x\.real, x\.imag"):
                sort(Point(x, _x(backend, dtype=dtype)))


def test_structured_arrays_without_an_order() -> None:
    for sort, name in SORTS:
        with pytest.raises(TypeError, match=rf"^{name}: keys\[b\] has dtype \|?S3"):
            sort(np.zeros(3, [("a", "i4"), ("b", "S3")]))
        with pytest.raises(TypeError, match=f"^{name}: keys: field 'a' .*arrays"):
            sort(np.zeros(3, [("a", "i4", 2)]))
        with pytest.raises(TypeError, match=f"^{name}: keys .*no fields"):
            sort(np.zeros(3, []))
    any_name = np.array([(2, 1), (1, 2)], [("_a", "i4"), ("b c", "u1")])
    assert ga.radix_sort(any_name).tolist() == [(1, 2), (2, 1)]  # no operator has to know it


def test_values_that_are_no_plain_bytes() -> None:
    with pytest.raises(TypeError, match=r"^radix_sort: values\[1\] has dtype object.*plain bytes"):
        ga.radix_sort(np.arange(3), (np.arange(3), np.array([1, None, "x"], object)))


BAD_WAYS = [1, None, "yes", [True, False], (True,), (True, 1), (True, False, True), ()]


@pytest.mark.parametrize("ways", [*BAD_WAYS, (True, (False,)), Other(True, False)], ids=repr)
def test_descending_is_built_as_keys_are(backend: Backend, ways: Any) -> None:
    keys = Point(_x(backend), _x(backend))
    for sort, name in SORTS:
        sort(keys, descending=(True, np.bool_(False)))
        message = rf"^{name}: descending .* keys\[x\], keys\[y\]; got {re.escape(repr(ways))}"
        with refused(backend, TypeError, message):
            sort(keys, descending=ways)
    with refused(backend, TypeError, r"^radix_sort: descending must be True or False, got \(True,"):
        ga.radix_sort(keys.x, keys, descending=(True, False))


def test_bits_mean_nothing(backend: Backend) -> None:
    keys = _x(backend), _x(backend)
    for bits in ({"begin_bit": 1}, {"end_bit": 32}, {"begin_bit": -1}, {"end_bit": 64}):
        with refused(backend, TypeError, "^radix_sort: begin_bit and end_bit .*several numbers"):
            ga.radix_sort(keys, **bits)
    with refused(backend, TypeError, "^radix_sort: begin_bit must be an int, got 'a'"):
        ga.radix_sort(keys, begin_bit="a")  # type: ignore[call-overload]
    with refused(backend, ValueError, "^radix_sort: begin_bit=9 and end_bit=3 .*int32"):
        ga.radix_sort(keys[0], keys, begin_bit=9, end_bit=3)


def test_outputs_that_are_built_otherwise(backend: Backend) -> None:
    x, y = _x(backend), _x(backend)
    keys = Point(_x(backend), _x(backend))
    for out in (x, (x,), [x, y], (x, y, x), (), 3, ((x,), y, x), Other(x, y)):
        message = r"^radix_sort: out must be a tuple .* with out\[0\], out\[1\]$"
        with refused(backend, TypeError, message, x):
            ga.radix_sort(keys, out=out)
    for out in (x, (x, y), ((x, y),), (x, y, x), ((x, y), x, x), ((x,), y)):
        message = r"^radix_sort: out must be .* with out\[0\]\[0\], out\[0\]\[1\], out\[1\]$"
        with refused(backend, TypeError, message, x):
            ga.radix_sort(keys, _x(backend), out=out)
    for out in (x, (x, y), ((x, y), (x, y)), (x, x, x)):
        with refused(
            backend, TypeError, r"^radix_sort: out must be .* with out\[0\], out\[1\]\[0\]", x
        ):
            ga.radix_sort(keys.x, (keys.y, keys.y, keys.y), out=out)
    with refused(backend, TypeError, "^argsort: out must be an array, got tuple", x):
        ga.argsort(keys, out=(x, y))
    for bad in ([1], (y,), 3):
        with refused(backend, TypeError, r"^radix_sort: out\[1\] must be an array", x):
            ga.radix_sort(keys, out=(x, bad))


def test_overlaps(backend: Backend) -> None:
    x, apart = _x(backend, 60), _x(backend, 60)
    with refused(backend, ValueError, r"^radix_sort: out\[0\] overlaps keys\[1\]", x):
        ga.radix_sort((x, x), out=(x, apart))  # in the place of one, it is the other, too
    rows = backend.xp.broadcast_to(_x(backend, 6), (4, 6))
    with refused(backend, ValueError, r"^radix_sort: out\[0\] .*(read-only|share memory)"):
        ga.radix_sort((rows, _x(backend)), out=(rows, _x(backend)))


def test_numbers_beside_arrays_on_a_gpu(cuda: Backend) -> None:
    message = r"^radix_sort: keys\[1\] is the number 2 next to arrays on a GPU"
    with refused(cuda, TypeError, message):
        ga.radix_sort((_x(cuda, 6, "int64"), 2))
