"""Tasks of a sort: sorted runs, splitters, exact cuts, merges.

Elements are ordered by key, equal keys by chunk and index, so equal keys, NaN, signed zeros and
empty chunks need no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._base import splitting
from gpualgo.dask import _order
from gpualgo.dask._exchange import Run, arrived
from gpualgo.dask._order import Plain
from gpualgo.dask._values import (
    Parts,
    Pattern,
    Source,
    copied,
    given,
    joined,
    namespace_of,
    on_host,
    packed,
    parts_of,
    result,
    taken,
)

Splitters = tuple[Parts, Any, Any]
Brackets = tuple[Splitters, Any, Splitters, Any]


def rows(
    chunks: list[Any], source: Source, moved: list[Any], moved_source: Source | None,
    index: tuple[int, ...], order: Plain, axis: int, dtype: Any,
) -> Any:  # fmt: skip
    """Sort a chunk that holds whole rows, or return the indices that sort it."""
    keys = packed(source[2], given(chunks, source, index))
    options = {**_order.options(order), "axis": axis}
    if dtype is not None:
        return ga.argsort(keys, dtype=dtype, **options)
    values = (
        None if moved_source is None else packed(moved_source[2], given(moved, moved_source, index))
    )
    return result(parts_of(ga.radix_sort(keys, values, **options)))


def run(
    chunks: list[Any], source: Source, moved: list[Any], moved_source: Source | None,
    index: tuple[int, ...], order: Plain, place: tuple[int, Any] | None,
) -> Run:  # fmt: skip
    """Sort a chunk along with its values, or with the global indices of its keys."""
    keys = given(chunks, source, index)
    pattern: Pattern = None
    values: Parts = ()
    if moved_source is not None:
        values, pattern = given(moved, moved_source, index), moved_source[2]
    elif place is not None:
        start, dtype = place
        values = (namespace_of(keys[0]).arange(start, start + len(keys[0]), dtype=dtype),)
    return _sorted(keys, values, order, (source[2], pattern), False)


def _sorted(
    keys: Parts, values: Parts, order: Plain, patterns: tuple[Pattern, Pattern], in_place: bool
) -> Run:
    options, packed_keys = _order.options(order), packed(patterns[0], keys)
    if not values:
        out = {"out": packed_keys} if in_place else {}
        return parts_of(ga.radix_sort(packed_keys, **options, **out)), ()
    packed_values = packed(patterns[1], values)
    out = {"out": (packed_keys, packed_values)} if in_place else {}
    sorted_keys, sorted_values = ga.radix_sort(packed_keys, packed_values, **options, **out)
    return parts_of(sorted_keys), parts_of(sorted_values)


def sample(own: Run, width: int) -> Parts:
    """Return every width-th key of a run."""
    return copied(taken(own[0], slice(width - 1, None, width)))


def brackets(
    samples: list[Parts], ranks: tuple[int, ...], width: int, order: Plain
) -> Brackets | None:
    """Return for each rank a splitter at or before it, and one at or behind it.

    If c samples are at or before a sample, at least c · width keys are, and each run adds fewer
    than width more.
    """
    lengths = [len(parts[0]) for parts in samples]
    total = sum(lengths)
    if not total:
        return None
    keys = joined(samples)
    runs = np.repeat(np.arange(len(samples)), lengths)
    indices = np.concatenate([np.arange(n) * width + (width - 1) for n in lengths])
    sample_order = _order.sort_indices(keys, order)
    host_order = on_host(sample_order)
    wanted = np.asarray(ranks)
    low = np.maximum((wanted - len(samples) * (width - 1)) // width, 0)
    high = -(-wanted // width)

    def splitters(counts: Any) -> Splitters:
        chosen = np.clip(counts - 1, 0, total - 1)
        selected = host_order[chosen]
        splitter_keys = taken(keys, sample_order[namespace_of(sample_order).asarray(chosen)])
        return splitter_keys, runs[selected], indices[selected]

    return splitters(low), low > 0, splitters(high), high <= total


def candidates(
    own: Run, number: int, spans: Brackets | None, order: Plain
) -> tuple[Any, Any, list[Parts]]:
    """Return for each rank bounds of the cut in a run, and the keys between them.

    Without samples these are all keys.
    """
    keys = own[0]
    if spans is None:
        return None, None, [keys]
    low, has_low, high, has_high = spans
    start = np.where(has_low, _order.before(number, keys, low, order), 0)
    end = np.where(has_high, _order.before(number, keys, high, order), len(keys[0]))
    parts = [copied(taken(keys, slice(a, b))) for a, b in zip(start, end, strict=True)]
    return start, end, parts


def cuts(
    found: list[tuple[Any, Any, list[Parts]]], ranks: tuple[int, ...], order: Plain
) -> np.ndarray[Any, Any]:
    """Return where each run is cut: a row for each rank."""
    is_whole = found[0][0] is None
    rows = []
    for number, rank in enumerate(ranks):
        windows = [parts[0 if is_whole else number] for _, _, parts in found]
        starts = [0 if is_whole else int(start[number]) for start, _, _ in found]
        lengths = [len(parts[0]) for parts in windows]
        keys = np.split(_order.ranks(joined(windows), order), np.cumsum(lengths)[:-1])
        (lengths_before,) = _cut(keys, lengths, rank - sum(starts))
        rows.append([start + more for start, more in zip(starts, lengths_before, strict=True)])
    return np.array(rows, np.int64).reshape(len(ranks), len(found))


def _cut(keys: Sequence[Any], lengths: list[int], rank: int) -> list[list[int]]:
    """Return the cuts of runs of integers at a rank."""

    def count(run: int, key: Any, has_equal: bool, low: int, high: int) -> int:
        side = "right" if has_equal else "left"
        return low + int(np.searchsorted(keys[run][low:high], key, side))  # type: ignore[call-overload]

    return splitting.cuts(lengths, [rank], lambda run, place: keys[run][place], count)


def merge(
    parts: list[Any], order: Plain, patterns: tuple[Pattern, Pattern], wants_values: bool
) -> Any:
    """Join the slices for a result chunk in the order of their runs, and sort them stably."""
    keys, values = arrived(parts)
    keys, values = _sorted(keys, values, order, patterns, True)
    return result(values if wants_values else (*keys, *values))
