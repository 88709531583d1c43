"""Bugs of selections by rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_SEARCH, _SELECT = "top_k/search.cuh", "top_k/select.cuh"
_SAMPLE, _ROWS, _TAKE = "top_k/sample.cuh", "top_k/rows.cuh", "top_k/take.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "search: no barrier between two surveys",
        _SEARCH,
        "    ptx::syncthreads();  // all have read those of the survey before\n",
        "",
        "first elements that are equal",
        "RACE",
    ),
    bug(
        "search: no barrier before what warps have seen is read",
        _SEARCH,
        "    ptx::syncthreads();\n    ones = zeros = 0;",
        "    ones = zeros = 0;",
        "first elements",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "search: no barrier after the counts are cleared",
        _SEARCH,
        "shared.counts[i] = 0;\n    ptx::syncthreads();",
        "shared.counts[i] = 0;",
        "first elements",
        "RACE",
    ),
    bug(
        "search: no barrier before counts are looked up",
        _SEARCH,
        "    ptx::syncthreads();\n  }\n\n  // Finds the digit",
        "  }\n\n  // Finds the digit",
        "first elements",
        "RACE",
    ),
    bug(
        "search: no barrier before the digit is read",
        _SEARCH,
        "    look_up();\n    ptx::syncthreads();",
        "    look_up();",
        "first elements",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "search: no barrier between the warps' sums",
        _SEARCH,
        "    before -= sum;\n    ptx::syncthreads();",
        "    before -= sum;",
        "first elements",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "search: equal neighbours are added once each",
        _SEARCH,
        "add(common, ptx::popc(lanes));",
        "add(common, 1);",
        "first elements",
        "OUT OF BOUNDS",
        "UNINITIALISED",
        WRONG,
    ),
    bug(
        "search: an element too far",
        _SEARCH,
        "const bool is_there = int(threadIdx.x) + j * threads < left;",
        "const bool is_there = int(threadIdx.x) + j * threads <= left;",
        "first elements",
        "OUT OF BOUNDS",
    ),
    bug(
        "search: a count too few",
        _SEARCH,
        "rank >= before && rank < before + number",
        "rank > before && rank < before + number",
        "first elements",
        "UNDEFINED",
        WRONG,
    ),
    bug(
        "select: what is taken is counted before it is zero",
        _SELECT,
        "    search.find(source, result != select_one);\n    ptx::syncthreads();",
        "    search.find(source, result != select_one);",
        "all elements",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "select: no barrier within the sort",
        _SELECT,
        "(low & width) == 0);\n        }\n        ptx::syncthreads();",
        "(low & width) == 0);\n        }",
        "first elements",
        "RACE",
    ),
    bug(
        "select: places are not filled up",
        _SELECT,
        "    for (int i = count + threadIdx.x; i < size; i += threads) {",
        "    for (int i = count + 1 + threadIdx.x; i < size; i += threads) {",
        "first elements",
        "UNINITIALISED",
        WRONG,
    ),
    bug(
        "select: more was kept than there is room for",
        _SAMPLE,
        "num_kept <= uint64(capacity) && ",
        "",
        "first elements of a long row without room",
        "OUT OF BOUNDS",
        "UNDEFINED",
        "UNINITIALISED",
    ),
    bug(
        "narrow: states of a call before",
        "top_k/sample.cuh",
        "    params.control[i] = 0;\n",
        "",
        "many first elements, narrowed",
        WRONG,
        "UNINITIALISED",
        "UNDEFINED",
        "OUT OF BOUNDS",
    ),
    bug(
        "short rows: an element too far",
        _ROWS,
        "      if (uint32(i * warp_threads + lane) < length) held[i]",
        "      if (uint32(i * warp_threads + lane) <= length) held[i]",
        "first elements of short rows",
        "OUT OF BOUNDS",
    ),
    bug(
        "short rows: no barrier before the places are read",
        _ROWS,
        "    ptx::syncwarp();\n    position = length + lane;",
        "    position = length + lane;",
        "first elements of short rows",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "short rows: more come up to the bound than there are lanes",
        _ROWS,
        "if (ptx::any_sync(all_lanes, total > warp_threads)) return false;",
        "",
        "first elements of short rows of a few lanes",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
        "UNDEFINED",
    ),
    bug(
        "short rows: a row too far",
        _ROWS,
        "  if (number >= params.num_rows) return;",
        "  if (number > params.num_rows) return;",
        "first elements of short rows",
        "OUT OF BOUNDS",
    ),
    bug(
        "short rows: of equal keys the last",
        _ROWS,
        "const bool is_behind = other < key || (other == key && other_position < position);",
        "const bool is_behind = other < key || (other == key && other_position > position);",
        "first elements of short rows",
        WRONG,
    ),
    bug(
        "take: an element too far",
        _TAKE,
        "  if (item >= params.num_items) return;",
        "  if (item > params.num_items) return;",
        "many first elements of a long row",
        "UNINITIALISED",
        "OUT OF BOUNDS",
    ),
)


def firsts(shape: tuple[int, ...], k: int, spread: int = 300) -> Any:
    """Return calls for the first elements of rows."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = rng.integers(-spread, spread + 1, shape).astype(np.int32)
            want = np.argsort(~x, axis=-1, kind="stable")[..., :k]
            values, indices = ga.top_k(gpu.to_device(x), k)
            yield indices, want
            yield values, np.take_along_axis(x, want, -1)

    return calls


def firsts_of_a_few_lanes(gpu: Backend, rng: np.random.Generator) -> Results:
    """Return rows whose first elements stand 32 apart."""
    x = rng.integers(0, 100, (9, 1000)).astype(np.int32)
    x[:, 3::32] += 1000
    x[:, 7::32] += 1000
    want = np.argsort(~x, axis=-1, kind="stable")[..., :12]
    yield ga.top_k(gpu.to_device(x), 12).indices, want


def ranks(shape: tuple[int, ...], k: Any, spread: int = 300) -> Any:
    """Return calls for the elements of some ranks in each row."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        x = rng.integers(-spread, spread + 1, shape).astype(np.int32)
        yield ga.kth_value(gpu.to_device(x), k), np.moveaxis(np.sort(x)[..., k], -1, 0)

    return calls
