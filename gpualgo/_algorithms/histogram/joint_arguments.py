"""Parsing of bins and ranges for samples of several dimensions."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.arguments import MAX_BINS, Edges
from gpualgo._arrays.view import View

Found = TypeVar("Found")

_WHERE = "histogram"


def bins_of_each(
    bins: Any, ranges: Any, views: Sequence[View], names: Sequence[str], stream: Any,
    computed: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the bins of each dimension (see `arguments.bins_of`)."""
    bins_of_dims, ends = _bins_of_each(bins, len(views)), _ranges_of_each(ranges, len(views))

    def parse(i: int) -> Any:
        return named(i, lambda: arguments.parse_bins(bins_of_dims[i], stream))

    def parse_all(i: int) -> Any:
        return named(i, lambda: _bins_of(numbers[i], ends[i], lambda: detect(i)))

    def detect(i: int) -> tuple[Any, Any]:
        field = None if computed is None else computed[computed.dtype.names[i]]
        return arguments.detect_range(views[i], stream, names[i], field)

    numbers = [parse(i) for i in range(len(views))]
    total = math.prod(parsed if isinstance(parsed, int) else parsed.size - 1 for parsed in numbers)
    if total > MAX_BINS:
        raise ValueError(
            f"{_WHERE}: bins make {total} bins in all, at most {MAX_BINS} are possible; use fewer"
        )
    return tuple([parse_all(i) for i in range(len(views))])


def bins_again(
    bins: Sequence[Any], views: Sequence[View], names: Sequence[str], stream: Any
) -> tuple[Any, ...]:
    """Return the same bins with detected ranges recomputed."""
    return tuple(
        arguments.even_bins(one[0], *arguments.detect_range(view, stream, name), True)
        if not isinstance(one, Edges) and one[-1]
        else one
        for one, view, name in zip(bins, views, names, strict=False)
    )


def _bins_of(parsed: Any, ends: Any, detect: Callable[[], tuple[Any, Any]]) -> Any:
    if isinstance(parsed, int):
        lo, hi = detect() if ends is None else arguments.parse_range(ends)
        return arguments.even_bins(parsed, lo, hi, ends is None)
    if ends is not None:
        raise ValueError(f"{_WHERE}: range is for a number of bins; pass None with edges")
    return Edges(parsed)


def _bins_of_each(bins: Any, dims: int) -> tuple[Any, ...]:
    if isinstance(bins, tuple):
        if len(bins) != dims:
            raise ValueError(
                f"{_WHERE}: bins is a tuple of {len(bins)} for samples of {dims} dimensions; "
                "pass an int, or a number or edges for each dimension"
            )
        return bins
    try:
        return (_index(bins),) * dims
    except TypeError:
        got = repr(bins) if isinstance(bins, (str, bool, float)) else type(bins).__name__
        raise TypeError(
            f"{_WHERE}: bins must be an int or a tuple of {dims}, numbers or edges, where x is a "
            f"tuple, got {got}; pass one item for each dimension"
        ) from None


def _index(bins: Any) -> int:
    if isinstance(bins, (bool, np.bool_)):
        raise TypeError
    return operator.index(bins)


def _ranges_of_each(given: Any, dims: int) -> tuple[Any, ...]:
    if given is None:
        return (None,) * dims
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{_WHERE}: range must be a tuple of {dims} pairs where x is a tuple, got {given!r}; "
            "pass (lo, hi) or None for each dimension"
        )
    if len(given) != dims:
        raise ValueError(
            f"{_WHERE}: range has {len(given)} items for samples of {dims} dimensions; "
            "pass (lo, hi) or None for each dimension"
        )
    return tuple(given)


_BEGIN = re.compile(rf"^{_WHERE}: (bins|range)\b")
_NUMBER = re.compile(rf"^{_WHERE}: (\d+ bins)\b")


def named(i: int, find: Callable[[], Found]) -> Found:
    """Return `find()` for dimension i; errors name the dimension."""
    try:
        return find()
    except (TypeError, ValueError) as error:
        text = _BEGIN.sub(rf"{_WHERE}: \1[{i}]", str(error))
        raise type(error)(_NUMBER.sub(rf"{_WHERE}: \1 of dimension {i}", text)) from None
