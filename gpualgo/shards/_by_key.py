"""`reduce_by_key`: reduces each shard by key, then exchanges ranges of keys and reduces again."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _devices
from gpualgo.shards._arguments import Argument, infer_result, parse_argument, refuse
from gpualgo.shards._devices import Piece, joined
from gpualgo.shards._elementwise import call_with_counts
from gpualgo.shards._sort import Runs, exact_cuts, exchanged

_NAME = "reduce_by_key"


def reduce_by_key(
    keys: Any, x: Any, init: Any = None, op: Any = operator.add, *, consecutive: Any = False,
    eq: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of each key combined: ``aggregate = init op x[i] op x[j] op …``.

    Parameters and result are those of `gpualgo.reduce_by_key`, with arrays that are sharded alike;
    arrays of several dimensions must be sharded along the first. Keys may be in any order;
    `consecutive` is not supported. The result is sharded: distinct keys ascend from shard to shard,
    and the lengths of shards depend on the data.

    Notes
    -----
    Each device reduces its shard by key. Then each device gets a range of keys, about as many as
    the others, and reduces these by key again, in the order of the shards. The host waits for the
    number of keys and for the bounds of the ranges, as in `radix_sort`.
    """
    if checks.flag_argument(consecutive, "consecutive", _NAME) or eq is not None:
        refuse(
            _NAME, "consecutive= or eq= is given, but runs may continue across shards",
            "leave it out",
        )  # fmt: skip
    k_arg = parse_argument(keys, _NAME, "keys")
    x_arg = parse_argument(x, _NAME, "x", k_arg.first)
    k_arg, x_arg = k_arg.flat(_NAME), x_arg.flat(_NAME)
    device, first = x_arg.places[0], k_arg.first
    options = {"dtype": dtype, "consecutive": True}  # only checked here; the call sorts first
    (*dtypes, _), _ = infer_result(
        ga.reduce_by_key, device, k_arg.on(0), x_arg.on(0), init, op, **options
    )
    count = len(k_arg.arrays)
    acc = x_arg.packed(tuple(dtypes[count:]))
    parts = call_with_counts(
        ga.reduce_by_key, k_arg, lambda i: (k_arg.on(i), x_arg.on(i), None, op), tuple(dtypes),
        lambda parts: (k_arg.packed(parts[:count]), x_arg.packed(parts[count:])), dtype=acc,
    )  # fmt: skip
    runs: list[Piece] = [(part[:count], part[count:]) for part in parts]
    slices = _by_ranges(k_arg, runs)

    def merged(i: int) -> Any:
        part = joined(slices[i], k_arg.places[i], first.library)
        return ga.reduce_by_key(k_arg.packed(part[0]), x_arg.packed(part[1]), init, op, dtype=acc)

    return k_arg.built(k_arg.run(merged))


def _by_ranges(keys: Argument, runs: list[Piece]) -> list[list[Piece]]:
    """Return for each device the slices of all runs whose keys are in its range."""
    distinct = Runs(keys.of([keys_ for keys_, _ in runs]), False, (0, None))
    lengths = np.array(distinct.lengths, np.int64)
    ranks = np.cumsum(_devices.shares(int(lengths.sum()), len(runs)))[:-1].tolist()
    borders = _behind_equal_keys(distinct, exact_cuts(distinct, ranks))
    ends = [np.zeros((1, len(runs)), np.int64), borders, lengths[None]]
    return exchanged(keys, runs, np.concatenate(ends))


def _behind_equal_keys(runs: Runs, borders: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Move cuts behind all keys that are equal to the last key before them.

    A run has each key at most once, so the equal key is the one at the cut, if any.
    """
    count = len(runs.lengths)
    lengths = np.array(runs.lengths)
    cuts_of_runs = borders.T.tolist()
    keys_at_cuts = runs.at([  # the key before each cut, if any; then the key behind each
        [(max(0, c - 1), c, 1) for c in run_cuts] + [(c, min(c + 1, length), 1) for c in run_cuts]
        for run_cuts, length in zip(cuts_of_runs, runs.lengths, strict=True)
    ])  # fmt: skip
    moved = borders.copy()
    for row, border in enumerate(borders):
        before = [i for i in range(count) if border[i] > 0]
        behind = [i for i in range(count) if border[i] < lengths[i]]
        if not before or not behind:
            continue
        keys = [keys_at_cuts[i][row] for i in before]
        keys += [keys_at_cuts[i][len(borders) + row] for i in behind]
        ranks = _ranks(runs, [np.concatenate(parts) for parts in zip(*keys, strict=True)])
        last_rank = ranks[: len(before)].max()
        for i, rank in zip(behind, ranks[len(before) :], strict=True):
            moved[row, i] += rank == last_rank
    return moved


def _ranks(runs: Runs, keys: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return integers that sort like the keys."""
    packed = runs.keys.packed(keys)
    with default_device.fixed(CPU, "splitters are found on the host"):
        ranks: np.ndarray[Any, Any] = ga.searchsorted(ga.radix_sort(packed), packed)
    return ranks
