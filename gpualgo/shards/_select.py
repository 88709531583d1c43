"""`select`: what each shard keeps, shared out evenly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._operators.predicates import is_function
from gpualgo.shards import _moving
from gpualgo.shards._arguments import Argument, Dtypes, asked, leaves_of, on_each, taken
from gpualgo.shards._devices import all_on_host
from gpualgo.shards._moving import cut
from gpualgo.shards._reading import at_home
from gpualgo.shards._shards import ShardedArray

_WHERE = "select"
_COUNT = np.dtype(np.int64)


def select(x: Any, predicate: Any) -> Any:
    """Keep the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters are those of `gpualgo.select`, with sharded arrays that are cut alike for arrays; of
    several dimensions they are cut along the first. The result has one dimension and equal shares.

    Notes
    -----
    Each device reads its shard once, into room for all of it; the numbers of kept elements are
    waited for, once for all devices, and what does not lie where it belongs moves.
    """
    source = taken(x, _WHERE)
    mark = None
    if not is_function(predicate, _WHERE):
        mark = taken(predicate, _WHERE, "predicate", source.first).flat(_WHERE)
    source = source.flat(_WHERE)

    def arguments(seat: int) -> tuple[Any, ...]:
        return source.on(seat), predicate if mark is None else mark.on(seat)

    (*dtypes, _), _ = asked(ga.select, source.places[0], *arguments(0))
    kept = counted(ga.select, source, arguments, tuple(dtypes), source.packed)
    first = source.first
    lengths = _moving.shares(sum(parts[0].shape[0] for parts in kept), len(source.places))
    made = [
        _moving.spread([parts[i] for parts in kept], 0, first.places, lengths, 0, first.library)
        for i in range(len(source.arrays))
    ]
    return source.packed([ShardedArray(shards, first.places, 0) for shards in made])


def counted(
    function: Any, source: Argument, arguments: Callable[[int], tuple[Any, ...]], dtypes: Dtypes,
    packed: Callable[[list[Any]], Any], **options: Any,
) -> list[list[Any]]:  # fmt: skip
    """Return the arrays that a call gives of each shard, of lengths that elements decide.

    On GPUs all calls are queued, into room for as many elements as there are, before the first
    length is waited for.
    """
    first, seats = source.first, source.seats
    if source.is_on_host:
        found = on_each(first.places, seats, lambda seat: function(*arguments(seat), **options))
        return [leaves_of(result)[0] for result in found]

    def queued(seat: int) -> list[Any]:
        place, length = first.places[seat], first.lengths[seat]
        outs = [place.empty((length,), dtype, first.library) for dtype in dtypes]
        count = place.empty((), _COUNT, first.library)
        with at_home(place, (), first.library) as stream:  # all has been read once count is known
            given = {"out": packed(outs), "out_count": count, "stream": stream}
            function(*arguments(seat), **given, **options)
        return [*outs, count]

    made = on_each(first.places, seats, queued)
    counts = all_on_host([count for *_, count in made])
    return [
        [cut(out, 0, 0, int(count)) for out in outs]
        for (*outs, _), count in zip(made, counts, strict=True)
    ]
