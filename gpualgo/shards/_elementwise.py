"""`transform` and `select`: each shard alone; what is selected is redistributed evenly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._distributed import fields_of
from gpualgo._pipeline import checks
from gpualgo.shards import _devices
from gpualgo.shards._arguments import (
    Argument,
    Dtypes,
    infer_result,
    parse_argument,
    parse_predicate,
)
from gpualgo.shards._devices import all_on_host, cut, local_stream
from gpualgo.shards._shards import ShardedArray

# --- `transform`: one call per shard.

_TRANSFORM = "transform"


def transform(op: Any, *arrays: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`; arguments are numbers, and arrays of one
    shape that are sharded alike. The result is sharded like them. Nothing is copied between
    devices, and the host does not wait.
    """
    arguments, first = list(arrays), None
    for k, x in enumerate(arrays):
        if not is_scalar(x):
            arguments[k] = parse_argument(x, _TRANSFORM, f"argument {k}", first and first.first)
            first = first or arguments[k]
    assert first is not None  # the caller dispatches here only for sharded arguments

    def call(i: int) -> Any:
        local_args = [x.on(i) if isinstance(x, Argument) else x for x in arguments]
        return ga.transform(op, *local_args, dtype=dtype)

    return first.built(first.run(call), first.first.axis)


# --- `select`: filters each shard and redistributes the result evenly.

_SELECT = "select"
_COUNT_DTYPE = np.dtype(np.int64)


def select(x: Any, predicate: Any, *, balance: Any = True) -> Any:
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters are those of `gpualgo.select`, with arrays that are sharded alike; arrays of several
    dimensions must be sharded along the first. The result is one-dimensional. Its shards have equal
    lengths; with ``balance=False`` elements stay on their devices.

    Notes
    -----
    Each device reads its shard once and writes to an array as long as the shard. The host waits
    once for the number of elements of all devices; then elements are copied to the devices of their
    shards, which takes about as long as the selection.
    """
    balance = checks.flag_argument(balance, "balance", _SELECT)
    x_arg, arguments = parse_predicate(_SELECT, x, predicate, is_flat=True)
    (*dtypes, _), _ = infer_result(ga.select, x_arg.places[0], *arguments(0))
    kept = call_with_counts(ga.select, x_arg, arguments, tuple(dtypes), x_arg.packed)
    if not balance:
        return x_arg.built([x_arg.packed(parts) for parts in kept])
    first = x_arg.first
    lengths = _devices.shares(sum(parts[0].shape[0] for parts in kept), len(x_arg.places))
    outputs = [
        _devices.spread([parts[i] for parts in kept], 0, first.places, lengths, 0, first.library)
        for i in range(len(x_arg.arrays))
    ]
    return x_arg.packed([ShardedArray(shards, first.places, 0) for shards in outputs])


def call_with_counts(
    function: Any, source: Argument, arguments: Callable[[int], tuple[Any, ...]], dtypes: Dtypes,
    packed: Callable[[list[Any]], Any], **options: Any,
) -> list[list[Any]]:  # fmt: skip
    """Return the arrays that a call gives for each shard, where lengths depend on the data.

    On GPUs all calls are queued, with outputs of maximal length, before the host waits.
    """
    first = source.first
    if source.is_on_host:
        results = source.run(lambda i: function(*arguments(i), **options))
        return [fields_of(result)[0] for result in results]

    def queued(i: int) -> list[Any]:
        device, length = first.places[i], first.lengths[i]
        outs = [device.empty((length,), dtype, first.library) for dtype in dtypes]
        count = device.empty((), _COUNT_DTYPE, first.library)
        with local_stream(device, (), first.library) as stream:  # done reading once count is known
            out_args = {"out": packed(outs), "out_count": count, "stream": stream}
            function(*arguments(i), **out_args, **options)
        return [*outs, count]

    outputs = source.run(queued)
    counts = all_on_host([count for *_, count in outputs])
    return [
        [cut(out, 0, 0, int(count)) for out in outs]
        for (*outs, _), count in zip(outputs, counts, strict=True)
    ]
