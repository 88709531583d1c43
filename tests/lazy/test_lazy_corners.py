"""Lazy arrays at the edges: dtypes that numbers decide, outputs that inputs read, sizes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numba
import numpy as np
import pytest
from support import assert_same

import gpualgo as ga

X = np.arange(1.0, 9.0)


def test_the_dtype_of_the_same_code_with_other_numbers() -> None:
    for k in (2, 2.5, 3, 2.0, 200, 0.5):  # some exponents have code of their own
        made = ga.lazy.asarray(X) ** k
        assert made.dtype == (X**k).dtype
        np.testing.assert_allclose(np.sum(made), np.sum(X**k))
    for decimals in (1, 2, 3):
        assert np.round(ga.lazy.asarray(X), decimals).dtype == X.dtype
    for k in (0, 1, 2):
        made = ga.lazy.transform(lambda a: a if k == 1 else 7, X)  # noqa: B023
        assert made.dtype == (np.float64 if k == 1 else np.int64)


def test_a_sort_does_not_write_where_it_has_still_to_read() -> None:
    start = np.arange(500, dtype=np.int64) * 7 % 101
    order = np.argsort(start, kind="stable")
    for is_captured in (False, True):
        d, v = start.copy(), np.arange(500)
        x = ga.lazy.take(d, np.arange(500)) if is_captured else ga.lazy.asarray(d)
        keys, values = ga.radix_sort(x * 2, x * 3, out=(d, v))
        assert_same(keys, start[order] * 2)
        assert_same(values, start[order] * 3)
    d, v = start.copy(), np.arange(500)
    keys, values = ga.radix_sort(ga.lazy.asarray(d) * 2, ga.lazy.asarray(v) * 3, out=(v, d))
    assert_same(keys, start[order] * 2)
    assert_same(values, order * 3)
    d, v = start.copy(), np.arange(500)
    with pytest.raises(ValueError, match="overlaps values"):
        ga.radix_sort(ga.lazy.asarray(d) * 2, v, out=(v, d))
    assert_same(v, np.arange(500))


def test_tuples_become_the_array_of_their_dtype() -> None:
    made = ga.lazy.transform(lambda a: (a, (a > 2, a + 1)), X)
    found = np.asarray(made)
    assert found.dtype == made.dtype
    assert found.shape == made.shape
    for name, want in zip(made.dtype.names or (), (X, X > 2, X + 1), strict=True):
        assert_same(found[name], want)


def test_expressions_that_are_alike_share_their_function() -> None:
    x, y = np.arange(5.0), np.arange(5.0) + 1
    first, second = (ga.lazy.asarray(a) * b for a, b in ((x, y), (y, x)))
    assert first.function is second.function
    for number in (2.5, 3.5, -0.0):
        for a in (x, y):
            assert_same(ga.copy(ga.lazy.asarray(a) * number), a * number)
    scale = 2.0
    made = [ga.lazy.transform(lambda a: a * scale, x)]
    scale = 3.0
    made.append(ga.lazy.transform(lambda a: a * scale, x))
    assert [ga.copy(one).tolist() for one in made] == [(x * 2).tolist(), (x * 3).tolist()]


def test_functions_that_are_kept_hold_no_array() -> None:
    def made() -> tuple[Any, Any]:
        x, table = np.arange(3), np.array([5, 6, 7])
        assert ga.copy(ga.lazy.transform(lambda a: table[a], x)).tolist() == [5, 6, 7]
        assert np.sum(ga.lazy.asarray(x) * x) == 5
        compiled = numba.njit(lambda a: table[a])
        assert ga.copy(ga.lazy.transform(compiled, x)).tolist() == [5, 6, 7]
        return weakref.ref(x), weakref.ref(table)

    refs = made()
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ga.unique(x.T),
        lambda x: ga.unique(x.T, return_inverse=True)[1],
        lambda x: ga.unique(x.T, consecutive=True),
        lambda x: ga.radix_sort(x.T, axis=None),
        lambda x: ga.argsort(x.T, axis=None),
        lambda x: ga.copy(x.T.reshape(-1)),
        lambda x: ga.reduce((x.T * 2).ravel()),
        lambda x: ga.copy(ga.lazy.take(x, np.array([[3, -1]]))),
        lambda x: ga.copy(ga.lazy.take(x, np.array([1, 0]), axis=1)),
        lambda x: ga.copy(np.take(x, np.array([3, -1]), mode="wrap")),
    ],
)
def test_misaligned_arrays_are_gathered_from(call: Any) -> None:
    """As they are when the call reads them; fields of a packed record are such arrays."""
    table = np.zeros((4, 3), [("a", "i1"), ("b", "f8")])
    made = ga.lazy.asarray(table["b"])
    for seed in (0, 1):
        table["b"] = np.random.default_rng(seed).integers(0, 5, (4, 3))
        assert_same(np.asarray(call(made)), np.asarray(call(ga.lazy.asarray(table["b"].copy()))))


def test_records_of_misaligned_fields_are_gathered_from() -> None:
    table = np.zeros(4, [("a", "i1"), ("b", "f8")])
    made = ga.lazy.take(table, np.array([3, 1]))
    table["b"] = np.arange(4)
    assert_same(ga.copy(made)["b"], np.array([3.0, 1.0]))


def test_out_that_a_gather_reads() -> None:
    x = X.copy()
    with pytest.raises(ValueError, match=r"^copy: out .* a lazy array gathers from; pass a sep"):
        ga.copy(ga.lazy.take(x, np.arange(8)), out=x)
    with pytest.raises(TypeError, match=r"^copy: x "):
        ga.copy("abc")  # type: ignore[call-overload]
