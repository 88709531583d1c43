"""Dtypes that NumPy takes for equal: a result does not depend on which of them was seen first."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpualgo as ga

Dtype = np.dtype[Any]
KEYS, NOTED = np.arange(5, dtype=np.int32)[::-1], {"unit": "m"}
FIRST, LAST = lambda a, b: a, lambda a, b: b
_numbers = itertools.count()


def _noted(dtype: Any) -> Dtype:
    return np.dtype(dtype, metadata=NOTED)


def _record(dtype: Any) -> Dtype:
    return np.dtype((np.record, dtype))


# By what they differ in: two equal dtypes, with a field of a name that no call has seen.
PAIRS: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "record": lambda n: (_record([(n, "i4"), ("b", "f8")]), [(n, "i4"), ("b", "f8")]),
    "record within": lambda n: ([("b", _record([(n, "i4")]))], [("b", [(n, "i4")])]),
    "metadata": lambda n: (_noted([(n, "i4"), ("b", "f8")]), [(n, "i4"), ("b", "f8")]),
    "metadata of a field": lambda n: ([(n, _noted("i4")), ("b", "f8")], [(n, "i4"), ("b", "f8")]),
    "metadata of items": lambda n: ([(n, _noted("i4"), 2)], [(n, "i4", 2)]),
    "longlong": lambda n: ([(n, np.longlong)], [(n, np.int64)]),
    "alignment": lambda n: (np.dtype([(n, "i4"), ("b", "f4")], align=True),
                            [(n, "i4"), ("b", "f4")]),
    "metadata of text": lambda n: (_noted("S3"), "S3"),
    "metadata of dates": lambda n: (_noted("M8[s]"), "M8[s]"),
    "metadata of other bytes": lambda n: (_noted(">i8"), ">i8"),
}  # fmt: skip
CALLS: dict[str, Callable[[Any], Any]] = {
    "radix_sort values": lambda x: ga.radix_sort(KEYS, x)[1],
    "merge_sort values": lambda x: ga.merge_sort(KEYS, x)[1],
    "merge values": lambda x: ga.merge(KEYS[::-1], KEYS[::-1], x, x)[1],
    "segmented_sort values": lambda x: ga.segmented_sort(KEYS, np.array([0, 2, 5]), values=x)[1],
    "radix_sort": ga.radix_sort,
    "transform": lambda x: ga.transform(lambda a: a, x),
    "copy": ga.copy,
    "select": lambda x: ga.select(x, KEYS > 2),
    "reduce": lambda x: ga.reduce(x, None, LAST),
    "inclusive_scan": lambda x: ga.inclusive_scan(x, None, LAST),
    "adjacent_difference": lambda x: ga.adjacent_difference(x, FIRST),
    "reduce_by_key": lambda x: ga.reduce_by_key(KEYS, x, None, LAST)[1],
    "unique": ga.unique,
}


def _described(dtype: Dtype) -> Any:
    """Return what `==` of dtypes ignores."""
    within = [dtype[name] for name in dtype.names or ()]
    within += [dtype.subdtype[0]] if dtype.subdtype is not None else []
    return (dtype.str, dtype.char, dtype.type, dtype.isalignedstruct, dict(dtype.metadata or {}),
            *map(_described, within))  # fmt: skip


def _results(call: Callable[[Any], Any], dtypes: tuple[Any, Any]) -> list[Any]:
    """Return a result's dtype for each dtype, or which error there was."""
    found = []
    for dtype in dtypes:
        try:
            found.append(_described(call(np.zeros(5, dtype)).dtype))
        except TypeError as error:
            found.append(type(error))
    return found


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("about", PAIRS)
def test_the_first_call_does_not_decide(about: str, call: str) -> None:
    with ga.default_device("cpu"):
        odd, plain = PAIRS[about](f"a{next(_numbers)}")
        assert np.dtype(odd) == np.dtype(plain)
        before = _results(CALLS[call], (odd, plain))
        odd, plain = PAIRS[about](f"a{next(_numbers)}")
        after = _results(CALLS[call], (plain, odd))[::-1]
    assert before == after
    assert "unit" not in repr(before)
