"""Structured dask arrays, alone, beside other arrays and in tuples: nothing is computed early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chunked import built, check, cut, first, last

import gpualgo as ga

RNG = np.random.default_rng(16)
KEYS = RNG.integers(0, 4, 24)


def records(fields: Any, **options: Any) -> np.ndarray[Any, Any]:
    found = np.zeros(24, np.dtype(fields, **options))
    for name in found.dtype.names or ():
        found[name] = RNG.integers(0, 3, 24)
    return found


RECORDS = {
    "two": records([("a", "i4"), ("b", "f8")]),
    "one": records([("a", "i4")]),
    "aligned": records([("a", "i1"), ("b", "f8")], align=True),
}

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "values": ga.radix_sort,
    "keys": lambda k, s: ga.radix_sort(s, k),
    "tuples": lambda k, s: ga.radix_sort((k, s), (s, k)),
    "a NumPy array as values": lambda k, s: ga.radix_sort(k, RECORDS["two"]),
    "a NumPy array in values": lambda k, s: ga.radix_sort(k, (k, RECORDS["two"])),
    "unique": lambda k, s: ga.unique(s, return_counts=True, return_inverse=True),
    "unique tuples": lambda k, s: ga.unique((k, s), return_index=True),
    "unique runs": lambda k, s: ga.unique(s, consecutive=True, return_counts=True),
    "by structured key": lambda k, s: ga.reduce_by_key(s, k),
    "by key": lambda k, s: ga.reduce_by_key(k, s, None, first),
    "by key, tuples": lambda k, s: ga.reduce_by_key((k, s), (s, k), None, last),
    "runs": lambda k, s: ga.reduce_by_key(s, s, None, last, consecutive=True),
    "histogram": lambda k, s: ga.histogram(s, 3, weights=k),
    "reduce tuples": lambda k, s: ga.reduce((k, s), None, last),
    "scan tuples": lambda k, s: ga.inclusive_scan((s, k), None, last),
    "select tuples": lambda k, s: ga.select((k, s), lambda p: p[0] > 1),
    "transform": lambda k, s: ga.transform(lambda p, q: (q, p), k, s),
    "transform tuples": lambda k, s: ga.transform(lambda p: (p[1], p[0]), (k, s)),
}


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("name", CALLS)
def test_several_results(name: str, kind: str) -> None:
    call = CALLS[name]
    for sizes in ((24,), (8, 0, 9, 7)):
        got = built(call, cut(KEYS, sizes), cut(RECORDS[kind], sizes))
        check(got, call(KEYS, RECORDS[kind]))


def test_dtypes_of_nested_elements() -> None:
    x = KEYS, RECORDS["two"]
    dtype = np.dtype(np.float64), np.dtype([("a", "i8"), ("b", "f8")])
    total = ga.reduce(x, None, last, dtype=dtype)
    assert (total[0].dtype, total[1].dtype) == dtype
