"""`top_k`: the first of each shard, and of these the first, on the first device."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.shards._arguments import asked, built, on_each, refuse, taken
from gpualgo.shards._moving import one_after_another

_WHERE = "top_k"


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: str = "largest") -> Any:
    """Find the k first elements in order: ``x[i]``, i = ``argsort(x, descending=…)[:k]``.

    Parameters and result are those of `gpualgo.top_k`. Along the axis that is cut, of one row, the
    result is on the first device; along others it is sharded as x is.

    Notes
    -----
    Each device reads its shard once; k elements of each go to the first device. Nothing waits.
    """
    source = taken(x, _WHERE)
    line = checks.axis_of(checks.plain_axis(axis, _WHERE), source.first.ndim, _WHERE)
    if line is None:
        source, line = source.flat(_WHERE), 0
    first, places = source.first, source.places
    options: dict[str, Any] = {"axis": line, "mode": mode}
    k = checks.integer(k, "k", _WHERE)
    if line != first.axis:
        found = on_each(places, source.seats, lambda seat: ga.top_k(source.on(seat), k, **options))
        return built(found, places, first.axis)
    length = first.shape[line]
    asked(ga.top_k, places[0], source.on(0), max(0, min(k, first.lengths[0])), **options)
    if not 0 <= k <= length:
        raise ValueError(
            f"{_WHERE}: k is {k}, and there are {length} elements to choose from; pass 0 to "
            f"{length}"
        )
    if first.ndim > 1:
        refuse(
            _WHERE, f"the rows along axis {line} are cut, in shape {first.shape}",
            "pass gpualgo.distribute(x, axis=…) with another axis",
        )  # fmt: skip
    if len(places) == 1:
        with places[0].running():
            return ga.top_k(source.on(0), k, **options)
    found = on_each(
        places, source.seats,
        lambda seat: ga.top_k(source.on(seat), min(k, first.lengths[seat]), **options),
    )  # fmt: skip
    starts, place, library = first.starts, places[0], first.library
    indices = on_each(places, source.seats, lambda seat: shifted(found[seat][1], starts[seat]))
    with place.running():
        values = one_after_another([own[0] for own in found], place, library)
        whole = one_after_another(indices, place, library)
        chosen = ga.top_k(values, k, mode=mode)
        return ga.TopK(chosen.values, taken_at(whole, chosen.indices))


def shifted(indices: Any, start: int) -> Any:
    """Return places in the whole array, of places in a shard."""
    if isinstance(indices, (np.ndarray, np.generic)):
        return np.asarray(indices) + start
    return ga.transform(_plus, indices, start) if start else indices


def _plus(a: Any, b: Any) -> Any:
    return a + b


def taken_at(x: Any, indices: Any) -> Any:
    """Return the elements of an array at places, which lie where it does."""
    if isinstance(x, np.ndarray):
        return x[indices]
    return ga.copy(ga.lazy.take(x, indices))
