"""`transform`: each shard for itself."""

from __future__ import annotations

from typing import Any

import gpualgo as ga
from gpualgo._algorithms.transform.scalars import is_scalar
from gpualgo.shards._arguments import Argument, built, on_each, taken

_WHERE = "transform"


def transform(op: Any, *arrays: Any, dtype: Any = None) -> Any:
    """Apply a function to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`, with sharded arrays of one shape that
    are cut alike for arrays, and numbers beside them. The result is cut as they are. Nothing moves
    between devices, and nothing waits.
    """
    given: list[Argument | Any] = []
    first = None
    for number, x in enumerate(arrays):
        if is_scalar(x):
            given.append(x)
            continue
        found = taken(x, _WHERE, f"argument {number}", first)
        first = found.first if first is None else first
        given.append(found)
    assert first is not None  # or nobody would have come here
    places = first.places

    def call(seat: int) -> Any:
        own = [x.on(seat) if isinstance(x, Argument) else x for x in given]
        return ga.transform(op, *own, dtype=dtype)

    return built(on_each(places, range(len(places)), call), places, first.axis)
