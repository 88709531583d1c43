"""Bugs of reductions and scans by key, and of the look-back of open runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_KEYED = "parts/keyed.cuh"
_TILE = "by_key/tile.cuh"
_RESULTS = "by_key/results.cuh"
_KERNEL = "by_key/kernel.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "by key: a tile staged while an earlier one leaves",
        _KERNEL,
        "      ptx::syncthreads();  // behind it, the stage is free again\n",
        "",
        "reduce by key",
        "RACE",
        "OUT OF BOUNDS",
        "UNINITIALISED",
    ),
    bug(
        "by key: no barrier before a tile leaves",
        _KERNEL,
        "carry_back(last, parity ^ 1);\n      }\n      ptx::syncthreads();",
        "carry_back(last, parity ^ 1);\n      }",
        "reduce by key",
        "RACE",
    ),
    bug(
        "by key: one stage for two",
        _KERNEL,
        "if (ready.tile >= 0) write(ready, parity);",
        "if (ready.tile >= 0) write(ready, parity ^ 1);",
        "scan by key",
        WRONG,
        "UNINITIALISED",
        "RACE",
    ),
    bug(
        "by key: an open run published as if nothing preceded it",
        _KERNEL,
        "carries.publish(tile, whole, heads != 0 ? prefix : aggregate);",
        "carries.publish(tile, whole, prefix);",
        "scan by key",
        WRONG,
    ),
    bug(
        "by key: results joined while others copy them",
        _RESULTS,
        "    ptx::syncthreads();\n  }\n  __device__ void write_results",
        "  }\n  __device__ void write_results",
        "scan by key",
        "RACE",
    ),
    bug(
        "by key: written past the end of the output",
        _RESULTS,
        "return room < count ? room > 0 ? int(room) : 0 : count;",
        "return room < count - 1 ? room > 0 ? int(room) : 0 : count;",
        "reduce by key",
        "OUT OF BOUNDS",
    ),
    bug(
        "by key: an aggregate one place too far",
        _RESULTS,
        "      put_aggregate(before - 1, value);",
        "      put_aggregate(before, value);",
        "reduce by key",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
    ),
    bug(
        "by key: an element too far",
        _TILE,
        "        if (i < count) {",
        "        if (i <= count) {",
        "scan by key",
        "OUT OF BOUNDS",
    ),
    bug(
        "by key: a run that begins behind the last element",
        _TILE,
        "is_full || k < rest_of(row, count);",
        "is_full || k <= rest_of(row, count);",
        "reduce by key",
        WRONG,
        "OUT OF BOUNDS",
    ),
    bug(
        "open runs: a lane goes beyond its run",
        _KEYED,
        "if (delta <= reach) value = Op::apply(other, value);",
        "if (delta <= reach + 1) value = Op::apply(other, value);",
        "scan by key",
        WRONG,
    ),
    bug(
        "open runs: not waited for",
        _KEYED,
        "begin + lane >= 0 && status == nothing && (reached >> lane & 1)",
        "false",
        "scan by key",
        WRONG,
        "UNINITIALISED",
        seeds=6,
    ),
    bug(
        "open runs: the tiles next to the own are left out",
        _KEYED,
        "for (begin += warp_threads; begin < tile;",
        "for (begin += 2 * warp_threads; begin < tile;",
        "scan of pairs of one key",
        WRONG,
        seeds=6,
    ),
    bug(
        "open runs: what is being replaced is taken as it is",
        _KEYED,
        "while (ptx::any_sync(all_lanes, status == nothing));",
        "while (false);",
        "scan of pairs of one key",
        WRONG,
        seeds=12,
    ),
)


def _arrays(rng: np.random.Generator, size: int, runs: int) -> tuple[Any, Any, Any]:
    """Return keys in so many runs, numbers, and where runs begin."""
    starts = np.sort(rng.choice(np.arange(1, size), runs - 1, replace=False))
    starts = np.append([0], starts)
    keys = np.repeat(np.arange(runs) % 7, np.diff(np.append(starts, size))).astype(np.int32)
    return keys, rng.integers(-1000, 1000, size).astype(np.int32), starts


def reductions_by_key(gpu: Backend, rng: np.random.Generator) -> Results:
    """Into outputs that are too short by one."""
    for runs in (9, 3000):
        keys, x, starts = _arrays(rng, 10_003, runs)
        outs = tuple(gpu.to_device(np.zeros(runs - 1, np.int32)) for _ in range(2))
        count = gpu.to_device(np.zeros((), int))
        ga.reduce_by_key(
            gpu.to_device(keys), gpu.to_device(x), consecutive=True, out=outs, out_count=count
        )
        yield count, np.array(runs)
        yield outs[0], keys[starts][:-1]
        yield outs[1], np.add.reduceat(x, starts)[:-1].astype(np.int32)
        found = ga.reduce_by_key(gpu.to_device(keys), gpu.to_device(x), consecutive=True)
        yield found.aggregates, np.add.reduceat(x, starts).astype(np.int32)


def scans_by_key(*all_runs: int) -> Any:
    """Return calls on so many runs, one after the other."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for runs in all_runs:
            keys, x, starts = _arrays(rng, 10_003, runs)
            whole = np.cumsum(x, dtype=np.int32)
            lengths = np.diff(np.append(starts, x.size))
            want = whole - np.repeat(whole[starts] - x[starts], lengths)
            given = gpu.to_device(keys), gpu.to_device(x)
            yield ga.inclusive_scan_by_key(*given, consecutive=True), want.astype(np.int32)

    return calls


def scans_of_pairs(gpu: Backend, rng: np.random.Generator) -> Results:
    """One run of pairs, whose states are two words."""
    keys, x, _ = _arrays(rng, 20_003, 1)
    given = gpu.to_device(x), gpu.to_device(x)
    found = ga.inclusive_scan_by_key(
        gpu.to_device(keys), given, None, lambda a, b: (a[0] + b[0], a[1] + b[1]), consecutive=True
    )
    for mine in found:
        yield mine, np.cumsum(x, dtype=np.int32)
