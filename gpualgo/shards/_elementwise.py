"""Elementwise calls: each shard alone; what is selected is redistributed evenly."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.runs import RunLengthEncoded
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._distributed import fields_of, joints
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _devices
from gpualgo.shards._arguments import (
    Argument,
    Dtypes,
    infer_result,
    parse_argument,
    parse_predicate,
)
from gpualgo.shards._devices import (
    all_on_host,
    cut,
    local_stream,
    one_after_another,
    to_devices,
)
from gpualgo.shards._shards import ShardedArray

# --- `transform`: one call per shard.

_TRANSFORM = "transform"


def transform(op: Any, *arrays: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`; arguments are numbers, and arrays of one
    shape that are sharded alike. The result is sharded like them.
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

    return first.mapped(call)


# --- `adjacent_difference`: each shard alone, then its first element with the one before it.


def adjacent_difference(x: Any, op: Any = operator.sub, *, axis: Any = -1) -> Any:
    """Return elements combined with the one before: ``y[0] = x[0]``, ``y[i] = op(x[i], x[i-1])``.

    Parameters are those of `gpualgo.adjacent_difference`; the result is sharded like x.
    """
    where = "adjacent_difference"
    if axis is None:
        raise TypeError(f"{where}: axis must be an int, got None")
    x_arg, line = parse_argument(x, where).line(axis)
    results = x_arg.run(lambda i: ga.adjacent_difference(x_arg.on(i), op, axis=line))
    if line != x_arg.first.axis:
        return x_arg.built(results, x_arg.first.axis)
    moves = []
    for before, i in itertools.pairwise(x_arg.full):
        n = x_arg.first.lengths[before]
        moves += [(x_arg.places[i], cut(x.shards[before], line, n - 1, n)) for x in x_arg.arrays]
    moved = iter(to_devices(moves, x_arg.first.library))

    def first(i: int) -> None:
        last = x_arg.packed([next(moved) for _ in x_arg.arrays])
        own = x_arg.packed([cut(x.shards[i], line, 0, 1) for x in x_arg.arrays])
        outs = [cut(out, line, 0, 1) for out in fields_of(results[i])[0]]
        ga.transform(op, own, last, out=x_arg.packed(outs))

    x_arg.run(first, x_arg.full[1:])
    return x_arg.built(results, line)


# --- `select`: filters each shard and redistributes the result evenly.

_SELECT = "select"
_COUNT_DTYPE = np.dtype(np.int64)


def select(x: Any, predicate: Any, *, balance: Any = True) -> Any:
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters are those of `gpualgo.select`, with arrays that are sharded alike; arrays of several
    dimensions must be sharded along the first. The result is one-dimensional. Its shards have equal
    lengths; with ``balance=False`` elements stay on their devices.
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
        _devices.spread(pieces, 0, first.places, lengths, 0, first.library)
        for pieces in zip(*kept, strict=True)
    ]
    return x_arg.packed([ShardedArray(shards, first.places, 0) for shards in outputs])


# --- `run_length_encode`: of each shard; runs that go on in the next shard are joined.


def run_length_encode(x: Any, *, eq: Any = None) -> Any:
    """Return the first element of each run of equal elements, and the lengths of the runs.

    Parameters and result are those of `gpualgo.run_length_encode`, with sharded arrays for arrays;
    those of several dimensions must be sharded along the first. A run is in the shard where it
    begins.
    """
    where = "run_length_encode"
    x_arg = parse_argument(x, where).flat()
    first, pack = x_arg.first, x_arg.packed
    (*dtypes, _), _ = infer_result(ga.run_length_encode, x_arg.places[0], x_arg.on(0), eq=eq)
    parts = call_with_counts(
        ga.run_length_encode, x_arg, lambda i: (x_arg.on(i),), tuple(dtypes),
        lambda parts: (pack(parts[:-1]), parts[-1]), eq=eq,
    )  # fmt: skip

    def is_same_run(before: int, i: int) -> bool:
        """Return whether the first element of a shard is in the last run of one before it."""
        n = first.lengths[before]
        ends = [[cut(x.shards[before], 0, n - 1, n), cut(x.shards[i], 0, 0, 1)]
                for x in x_arg.arrays]  # fmt: skip
        both = [one_after_another(each, x_arg.places[i], first.library) for each in ends]
        (found,) = x_arg.run(lambda _: ga.run_length_encode(pack(both), eq=eq), [i])
        return bool(found.lengths.shape[0] == 1)

    heads = all_on_host([cut(lengths, 0, 0, 1) for *_, lengths in parts])
    edges = [(part[-1].shape[0], i, int(heads[i].sum()), i) for i, part in enumerate(parts)]
    found = joints(edges, is_same_run, operator.add)

    def own_runs(i: int) -> RunLengthEncoded:
        start, more, _ = found[i]
        *values, lengths = (cut(part, 0, start, part.shape[0]) for part in parts[i])
        count = lengths.shape[0]
        if more and count:
            last = cut(lengths, 0, count - 1, count)
            ga.transform(operator.add, last, more, out=last)
        return RunLengthEncoded(pack(values), lengths)

    return x_arg.built(x_arg.run(own_runs))


def call_with_counts(
    function: Any, source: Argument, arguments: Callable[[int], tuple[Any, ...]], dtypes: Dtypes,
    packed: Callable[[list[Any]], Any], **options: Any,
) -> list[list[Any]]:  # fmt: skip
    """Return the arrays that a call gives for each shard, where lengths depend on the data.

    On GPUs all calls are queued, with outputs of maximal length, before the host waits.
    """
    first = source.first
    if source.places[0].number == CPU:
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
