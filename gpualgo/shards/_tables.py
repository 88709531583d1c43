"""Results of a known size: those of each shard, combined on the first device."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.segments import problem as of_segments
from gpualgo._operators.operator import as_operator
from gpualgo.shards._arguments import (
    Argument,
    infer_result,
    is_sharded,
    parse_argument,
    refuse,
    refuse_sharded,
)
from gpualgo.shards._devices import on_host
from gpualgo.shards._folds import together

# --- Sums of groups: each shard has a table of all results, in which groups may have no element.


def reduce_by_index(
    indices: Any, x: Any, size: int, init: Any = None, op: Any = operator.add, *, dtype: Any = None
) -> Any:
    """Return the elements of each index combined: ``result[k] = init op x[i] op x[j] op …``.

    Parameters are those of `gpualgo.reduce_by_index`, with arrays that are sharded alike; arrays of
    several dimensions must be sharded along the first. `op` needs an identity, also with `init`. An
    `init` for each result must be on the first device, where the result is, too.

    Notes
    -----
    Each device reads its shard once; a table of all results is copied from each to the first
    device. The host does not wait, except for indices on the host.
    """
    where = "reduce_by_index"
    k_arg = parse_argument(indices, where, "indices")
    x_arg = parse_argument(x, where, "x", k_arg.first)
    k_arg, x_arg = k_arg.flat(), x_arg.flat()
    arguments = [(k_arg.on(i), x_arg.on(i), size) for i in x_arg.seats]
    return _combined(ga.reduce_by_index, x_arg, arguments.__getitem__, init, op, dtype)


def segmented_reduce(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None
) -> Any:
    """Return each segment's elements combined: ``init op x[offsets[s]] op … op x[offsets[s+1]-1]``.

    Parameters are those of `gpualgo.segmented_reduce`, with a sharded array `x`; `offsets` is an
    array on one device or the host. `op` needs an identity, also with `init`. An `init` for each
    segment must be on the first device, where the result is, too.

    Notes
    -----
    Each device reads the parts of segments that are in its shard; a table of all results is copied
    from each to the first device. The host waits for offsets that are on a device.
    """
    where = "segmented_reduce"
    x_arg = parse_argument(x, where)
    refuse_sharded(offsets, where, "offsets")
    first = x_arg.first
    found = of_segments.view(offsets, where, None, (x_arg.on(0),))
    of_segments.check(found, where)
    of_segments.check_values(found, first.shape[0], where)
    bounds = np.clip(on_host(found.owner), 0, first.shape[0]).astype(np.int64)

    def arguments(i: int) -> tuple[Any, ...]:
        own = np.clip(bounds - first.starts[i], 0, first.lengths[i])
        return x_arg.on(i), x_arg.places[i].moved(own, first.library)

    return _combined(ga.segmented_reduce, x_arg, arguments, init, op, dtype)


def _combined(
    function: Any, x_arg: Argument, arguments: Callable[[int], tuple[Any, ...]], init: Any,
    op: Any, dtype: Any,
) -> Any:  # fmt: skip
    """Return the tables of shards combined in order; `arguments`: those of a shard, before init."""
    refuse_sharded(init, function.__name__, "init")
    device, own = x_arg.places[0], arguments(0)
    dtypes = infer_result(function, device, *own, init, op, dtype=dtype)
    if len(x_arg.places) == 1:
        return x_arg.run(lambda _: function(*own, init, op, dtype=dtype))[0]
    acc, operation = x_arg.packed(dtypes), as_operator(op, function.__name__, 2)
    if operation.identity is None and operation.identity_for(dtypes[0]) is None:
        refuse(
            function.__name__, "op has no identity, and a shard may have no element of a group",
            "pass gpualgo.Operator(op, identity=…)",
        )  # fmt: skip
    parts = x_arg.run(lambda i: function(*arguments(i), None, op, dtype=acc))
    with device.running():
        return ga.reduce(x_arg.packed(x_arg.stacked(parts)), init, op, axis=0, dtype=acc)


# --- `searchsorted`: an element's position is the sum of its positions in all shards.


def searchsorted(
    a: Any, v: Any, *, side: Any = "left", less: Any = None, descending: Any = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the indices r at which elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``.

    Parameters are those of `gpualgo.searchsorted`. One of `a` and `v` is sharded, the other one is
    on the first device, or on the host if the shards are. If `v` is sharded, so is the result;
    otherwise it is on the first device.

    Notes
    -----
    The array that is not sharded is copied to each device. If `a` is sharded, each device counts
    the elements of its shard that come before those of `v`, and the counts are added on the first
    device. The host does not wait.
    """
    where = "searchsorted"
    options = {"side": side, "less": less, "descending": descending, "dtype": dtype}
    if not is_sharded(a):
        v_arg = parse_argument(v, where, "v")

        def found(i: int) -> Any:
            return ga.searchsorted(v_arg.moved(a, i), v_arg.on(i), **options)

        return v_arg.mapped(found)
    if is_sharded(v):
        refuse(where, "a and v are both sharded", "pass one of them as an array of one device")
    a_arg = parse_argument(a, where, "a")
    length = math.prod(a_arg.first.shape)
    (kind,) = infer_result(ga.searchsorted, a_arg.places[0], a_arg.on(0), v, **options)
    if length > np.iinfo(kind).max:
        raise ValueError(f"{where}: dtype {kind} does not hold indices up to {length}")

    def local(i: int) -> Any:
        return ga.searchsorted(a_arg.on(i), a_arg.moved(v, i), **options)

    return together(a_arg, a_arg.run(local), lambda x: ga.reduce(x, None, axis=0))
