"""Distinct elements with what tells of them, put together from sorts, scans and runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.transform.copying import copy


def sorted_keys(x: Any, stream: Any) -> Any:
    """Return all elements in order, flattened."""
    return radix_sort(x, axis=None, stream=stream)


def described(
    encode: Callable[[Any], tuple[Any, Any]], x: Any, consecutive: bool, index: bool, inverse: bool,
    counts: bool, stream: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return distinct elements and what is asked for besides; encode(keys) gives runs."""
    from gpualgo.lazy import take

    keys = _flat(x, stream) if consecutive else sorted_keys(x, stream)
    order: Any = None if consecutive else argsort(x, axis=None, stream=stream)
    values, lengths = encode(keys)
    found = [values]
    if index:
        starts = exclusive_scan(lengths, stream=stream)
        is_moved = order is not None and lengths.shape[0] > 0
        found.append(copy(take(order, starts), stream=stream) if is_moved else starts)
    if inverse:
        numbers = _numbers(keys, stream) if lengths.shape[0] else lengths
        if order is not None and lengths.shape[0]:
            numbers = copy(take(numbers, argsort(order, stream=stream)), stream=stream)
        found.append(numbers.reshape(_shape(x)))
    if counts:
        found.append(lengths)
    return tuple(found)


def _flat(x: Any, stream: Any) -> Any:
    """Return elements in C order, each number's array of one dimension."""
    made = copy(x, stream=stream)
    return tuple([one.reshape(-1) for one in made]) if isinstance(made, tuple) else made.reshape(-1)


def _shape(x: Any) -> tuple[int, ...]:
    while isinstance(x, tuple):
        x = x[0]
    return tuple(x.shape)


def _numbers(keys: Any, stream: Any) -> Any:
    """Return which run each element belongs to, counted from 0."""
    from gpualgo import lazy

    parts = keys if isinstance(keys, tuple) else (keys,)
    begins: Any = None
    for part in parts:
        before = lazy.take(part, lazy.arange(part.shape[0]) - 1, mode="clip")  # the first: itself
        differs = lazy.transform(_differs, before, part)
        begins = differs if begins is None else lazy.transform(max, begins, differs)
    return inclusive_scan(begins, stream=stream)


def _differs(a: Any, b: Any) -> Any:
    return np.int64(0) if a == b or (a != a and b != b) else np.int64(1)
