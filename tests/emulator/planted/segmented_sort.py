"""Bugs of segmented sorts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_TILES, _SPANS, _MERGE = (f"segmented_sort/{name}.cuh" for name in ("tiles", "spans", "merge"))
_PLAIN = "segmented_sort/plain.cuh"
N = 9003

BUGS: tuple[Bug, ...] = (
    bug(
        "sorted segments: no barrier before own keys are taken", _TILES,
        "    load();\n    ptx::syncthreads();", "    load();", "sorted segments", "RACE",
    ),
    bug(
        "sorted segments: no barrier before what all found is read", _TILES,
        "    look();\n    ptx::syncthreads();", "    look();", "sorted segments", "RACE",
    ),
    bug(
        "sorted segments: no barrier before runs are merged", _TILES,
        "      put_own();\n      ptx::syncthreads();", "      put_own();", "sorted segments",
        "RACE",
    ),
    bug(
        "sorted segments: no barrier after runs are merged", _TILES,
        "      merge_round<By>(round);\n      ptx::syncthreads();",
        "      merge_round<By>(round);", "sorted segments", "RACE",
    ),
    bug(
        "sorted segments: values written before all are read", _TILES,
        "      ptx::syncthreads();  // all are read before any is written, which may be in place\n",
        "", "sorted segments in place", "RACE", WRONG,
    ),
    bug(
        "sorted segments: an exchange across a head", "segmented_sort/registers.cuh",
        "heads >> (k + 1) & 1", "heads >> k & 1", "sorted segments", WRONG,
    ),
    bug(
        "sorted segments: a round too few", _TILES,
        "const int rounds = ptx::popc(shared.threads_of_one);",
        "const int rounds = ptx::popc(shared.threads_of_one >> 1);", "sorted segments", WRONG,
        "OUT OF BOUNDS", "RACE",
    ),
    bug(
        "sorted segments: a segment that ends with its group", _TILES,
        "(group + 2 * half) * items < end ?", "false ?", "sorted segments", WRONG,
        "RACE", "UNINITIALISED", "OUT OF BOUNDS",
    ),
    bug(
        "sorted segments: a key past the end", _TILES,
        "if (is_whole || k * threads < left)\n        loaded",
        "if (is_whole || k * threads <= left)\n        loaded", "sorted segments", "OUT OF BOUNDS",
    ),
    bug(
        "sorted segments: all of a tile at home", _TILES,
        "rounds_of<tile_items>(params.spans[at]) % 2 == 1", "false", "sorted segments", WRONG,
        "UNINITIALISED",
    ),
    bug(
        "spans: heads behind the last offset", _SPANS,
        "if (inside < 32) found |= all_lanes << inside;", "", "sorted segments", WRONG,
        "OUT OF BOUNDS",
    ),
    bug(
        "rounds of segments: the part of another segment", _MERGE,
        "span.begin < part * part_items) span", "span.begin > part * part_items) span",
        "sorted segments", WRONG, "UNINITIALISED",
    ),
    bug(
        "plain keys: NaN is one", _PLAIN, "if (x != x) return true;", "", "segments of NaN", WRONG,
        "RACE", "OUT OF BOUNDS",
    ),
)  # fmt: skip


def sorts(*, in_place: bool = False, has_nan: bool = False) -> Any:
    """Return sorts of pairs, in which many keys are equal, from segments of all lengths."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        few = np.sort(rng.integers(2500, N - 9, 700))
        offsets = np.array([3, 4, 4, 21, 60, 2400, *few, N - 7])
        x = rng.integers(0, 9, N).astype(np.float32)
        if has_nan:
            x[rng.integers(0, N, N // 5)] = np.nan
        places = np.arange(N, dtype=np.int32)
        want = places.copy()
        for begin, end in itertools.pairwise(offsets):
            want[begin:end] = begin + np.argsort(x[begin:end], kind="stable")
        given, ends = (gpu.to_device(x), gpu.to_device(places)), gpu.to_device(offsets)
        out = given if in_place else None
        got = ga.segmented_sort(given[0], ends, values=given[1], out=out)
        if not has_nan:
            yield got[0], x[want]
        yield got[1], want

    return calls
