"""Lazy elements with another number of fields than input arrays, in first and later calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga

X = np.array([5, 5, 7, 7, 7, 5, 2, 2, 9], np.int64)
Y = np.array([1, -1, 4, 0, 0, 3, 3, 8, 8], np.int64)
INDICES, ONE = np.arange(9), np.ones(9, np.int64)
OFFSETS = np.array([0, 3, 3, 9], np.int64)

# Elements, and the arrays of their fields.
FORMS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "two of one": (lambda x, y: ga.lazy.transform(lambda v: (v, v * 10), x), (X, X * 10)),
    "three of one": (
        lambda x, y: ga.lazy.transform(lambda v: (v // 4, v * 10, v * 100), x),
        (X // 4, X * 10, X * 100),
    ),
    "four of two": (
        lambda x, y: ga.lazy.transform(lambda v, w: (v, w, v + w, v - w), x, y),
        (X, Y, X + Y, X - Y),
    ),
    "two expressions": (lambda x, y: (ga.lazy.asarray(x), ga.lazy.asarray(x) * 2), (X, X * 2)),
    "indices": (lambda x, y: (ga.lazy.arange(9), ga.lazy.arange(9)), (INDICES, INDICES)),
    "an array and indices": (
        lambda x, y: (x, ga.lazy.arange(9), ga.lazy.arange(9) // 2), (X, INDICES, INDICES // 2),
    ),
    "numbers": (lambda x, y: (ga.lazy.asarray(x), 1, 2), (X, ONE, ONE * 2)),
    "one of two": (lambda x, y: ga.lazy.transform(lambda v, w: (v + w,), x, y), (X + Y,)),
}  # fmt: skip


def last(a: Any, b: Any) -> Any:
    return b


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "select": (ga.select, (lambda p: p[0] > 3,), {}),
    "select by a mask": (ga.select, (X > 3,), {}),
    "partition": (ga.stable_partition, (lambda p: p[0] > 3,), {}),
    "runs": (ga.run_length_encode, (), {}),
    "runs, eq": (ga.run_length_encode, (), {"eq": lambda a, b: a[0] == b[0]}),
    "find": (ga.find, (lambda p: p[0] > 5,), {}),
    "count": (ga.count, (lambda p: p[0] > 3,), {}),
    "reduce": (ga.reduce, (None, last), {}),
    "scan": (ga.inclusive_scan, (None, last), {}),
    "differences": (ga.adjacent_difference, (last,), {}),
    "windows": (ga.rolling, (), {"window": 3, "op": last}),
    "copy": (ga.copy, (), {}),
    "segments": (ga.segmented_inclusive_scan, (OFFSETS, None, last), {}),
    "sort": (ga.radix_sort, (), {}),
    "argsort": (ga.argsort, (), {}),
    "merge sort": (ga.merge_sort, (), {"less": lambda a, b: a[0] < b[0]}),
    "keys": (lambda keys, x: ga.reduce_by_key(keys, x, None, last, consecutive=True), (Y,), {}),
    "values by key": (
        lambda x, keys: ga.reduce_by_key(keys, x, None, last, consecutive=True), (Y,), {},
    ),
}  # fmt: skip


def flat(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in flat(part)]
    return [result]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_fields(backend: Backend, name: str, form: str) -> None:
    """Results are those of arrays of the same values: two calls, and two of a plan."""
    function, more, options = FUNCTIONS[name]
    build, fields = FORMS[form]
    on_device = [backend.to_device(a) if isinstance(a, np.ndarray) else a for a in more]
    arrays = tuple(map(backend.to_device, fields))
    want = [backend.to_host(leaf) for leaf in flat(function(arrays, *on_device, **options))]
    elements = build(backend.to_device(X), backend.to_device(Y))
    calls = [lambda: function(elements, *on_device, **options)] * 2
    if not name.endswith(("keys", "by key", "sort")) and name != "copy":
        plan = ga.prepare(function, elements, *on_device, **options)
        inputs = [elements, *(a for a in on_device if not callable(a) and a is not None)]
        calls += [lambda: plan(*inputs)] * 2
    for call in calls:
        got = [backend.to_host(leaf) for leaf in flat(call())]
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
