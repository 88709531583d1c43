"""`reduce_by_key`: what each shard's keys come to, brought together by ranges of keys."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _moving
from gpualgo.shards._arguments import Argument, asked, built, on_each, refuse, taken
from gpualgo.shards._merging import exchanged
from gpualgo.shards._moving import Piece, joined
from gpualgo.shards._select import counted
from gpualgo.shards._shards import ShardedArray
from gpualgo.shards._splitters import Runs, cuts

_WHERE = "reduce_by_key"


def reduce_by_key(
    keys: Any, x: Any, init: Any = None, op: Any = operator.add, *, consecutive: Any = False,
    eq: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine the elements of equal keys: ``aggregate = init op x[i] op x[j] op …``.

    Parameters and result are those of `gpualgo.reduce_by_key`, with sharded arrays that are cut
    alike for arrays; of several dimensions they are cut along the first. Keys come in any order:
    `consecutive` is not taken. The result is sharded: distinct keys ascend from shard to shard,
    whose lengths are what elements make them.

    Notes
    -----
    Each device reduces its shard by key. Of distinct keys, which ascend there, each device takes a
    range, about as many as the others, and reduces what has come by key again, in the order of the
    shards. How many keys there are is waited for, and where they are cut, as for `radix_sort`.
    """
    if checks.flag(consecutive, "consecutive", _WHERE) or eq is not None:
        refuse(
            _WHERE, "consecutive= or eq= is given, and runs go on from shard to shard",
            "leave it out",
        )  # fmt: skip
    names = taken(keys, _WHERE, "keys")
    source = taken(x, _WHERE, "x", names.first)
    names, source = names.flat(_WHERE), source.flat(_WHERE)
    place, first = source.places[0], names.first
    options = {"dtype": dtype, "consecutive": True}  # as it is asked; a sort comes before
    (*dtypes, _), _ = asked(ga.reduce_by_key, place, names.on(0), source.on(0), init, op, **options)
    dtypes_of_x = tuple(dtypes[len(names.arrays) :])
    acc = source.packed(dtypes_of_x)

    def packed(parts: list[Any]) -> Any:
        return _split(parts, names, source)

    parts = counted(
        ga.reduce_by_key, names, lambda seat: (names.on(seat), source.on(seat), None, op),
        tuple(dtypes), packed, dtype=acc,
    )  # fmt: skip
    count = len(names.arrays)
    runs: list[Piece] = [(own[:count], own[count:]) for own in parts]
    arrived = _by_ranges(names, runs)

    def merged(seat: int) -> Any:
        own = joined(arrived[seat], names.places[seat], first.library)
        return ga.reduce_by_key(names.packed(own[0]), source.packed(own[1]), init, op, dtype=acc)

    return built(on_each(names.places, names.seats, merged), names.places, 0)


def _split(parts: list[Any], keys: Argument, x: Argument) -> tuple[Any, Any]:
    count = len(keys.arrays)
    return keys.packed(parts[:count]), x.packed(parts[count:])


def _by_ranges(keys: Argument, runs: list[Piece]) -> list[list[Piece]]:
    """Return for each device the pieces of all runs whose keys are in its range."""
    arrays = [
        ShardedArray([own[i] for own, _ in runs], keys.places, 0) for i in range(len(keys.arrays))
    ]
    distinct = Runs(keys._replace(arrays=tuple(arrays)), False, (0, None))
    lengths = np.array(distinct.lengths, np.int64)
    shares = _moving.shares(int(lengths.sum()), len(runs))
    ranks = np.cumsum(shares)[:-1].tolist()
    found = cuts(distinct, ranks)
    borders = _with_equal_ones(distinct, found)
    ends = [np.zeros((1, len(runs)), np.int64), borders, lengths[None]]
    return exchanged(keys, runs, np.concatenate(ends))


def _with_equal_ones(runs: Runs, borders: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return cuts behind all keys that are equal to the last key before them.

    A run has each key once: it is the one at the cut, or not there.
    """
    count = len(runs.lengths)
    lengths = np.array(runs.lengths)
    cuts_of_runs = borders.T.tolist()
    read = runs.at([  # the last key before each cut, if there is one, and then those behind
        [(max(0, at - 1), at, 1) for at in own] + [(at, min(at + 1, length), 1) for at in own]
        for own, length in zip(cuts_of_runs, runs.lengths, strict=True)
    ])  # fmt: skip
    found = borders.copy()
    for row, border in enumerate(borders):
        before = [i for i in range(count) if border[i] > 0]
        behind = [i for i in range(count) if border[i] < lengths[i]]
        if not before or not behind:
            continue
        keys = [
            np.concatenate(
                [read[i][row][part] for i in before]
                + [read[i][len(borders) + row][part] for i in behind]
            )
            for part in range(len(runs.keys.arrays))
        ]
        numbers = _ranks(runs, keys)
        last = numbers[: len(before)].max()
        for i, number in zip(behind, numbers[len(before) :], strict=True):
            found[row, i] += number == last
    return found


def _ranks(runs: Runs, keys: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return integers that are ordered as keys are, equal where these are."""
    whole = runs.keys.packed(keys)
    with default_device.fixed(CPU, "splitters are found on the host"):
        found: np.ndarray[Any, Any] = ga.searchsorted(ga.radix_sort(whole), whole)
    return found
