"""Bugs of segmented reductions and scans."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from support import Backend, affine, compose

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_REDUCE = "segments/reduce.cuh"
_SCAN = "segments/scan.cuh"
_RAGGED = "parts/ragged.cuh"
_WRITTEN = "    ptx::syncwarp();\n    if (count > 0) {"

BUGS: tuple[Bug, ...] = (
    bug(
        "segments: an element too far of a warp's last ones", _RAGGED,
        "if (k * warp_threads + lane < rest) values", "if (k * warp_threads + lane <= rest) values",
        "segments of the end", "OUT OF BOUNDS",
    ),
    bug(
        "segments: what a warp has of a row that is not full", _RAGGED,
        "reduce_group_partial<warp_threads, Op>(values[k], active)",
        "reduce_group_partial<warp_threads, Op>(values[k], warp_threads)", "segments", WRONG,
    ),
    bug(
        "segments: offsets as they are", _RAGGED,
        "uint64(offset) > uint64(num_items) ? num_items : int64(offset)", "int64(offset)",
        "segments of any offsets", "OUT OF BOUNDS",
    ),
    bug(
        "segments: short ones folded before they are there", _REDUCE, _WRITTEN,
        "    if (count > 0) {", "segments", "RACE",
        WRONG, "UNINITIALISED",
    ),
    bug(
        "segments: a list that is not emptied", _REDUCE, "    params.list->num_chunks = 0;\n", "",
        "segments", WRONG, "OUT OF BOUNDS", "UNINITIALISED",
    ),
    bug(
        "segments: a list emptied while warps look at it", _REDUCE,
        "    ptx::syncthreads();  // all have read how many there are\n", "",
        "segments that overlap", "RACE", WRONG, seeds=12,
    ),
    bug(
        "segments: partials of one chunk too many", _REDUCE,
        "folded_partials(begin + i, count);", "folded_partials(begin + i, count + 1);", "segments",
        WRONG, "UNINITIALISED",
    ),
    bug(
        "scan of segments: a tile scanned before it is there", _SCAN,
        "    load(begin, count);\n    ptx::syncthreads();", "    load(begin, count);",
        "scan of segments", "RACE", "UNINITIALISED",
    ),
    bug(
        "scan of segments: totals of warps not waited for", _SCAN,
        "join_lanes(own, count);\n    ptx::syncthreads();", "join_lanes(own, count);",
        "scan of segments", "RACE", "UNINITIALISED",
    ),
    bug(
        "scan of segments: the tile's prefix not waited for", _SCAN,
        "    ptx::syncthreads();\n    finish(own, in_warp);", "    finish(own, in_warp);",
        "scan of segments", "RACE", "UNINITIALISED",
    ),
    bug(
        "scan of segments: results that leave before they are there", _SCAN,
        "    ptx::syncthreads();\n#pragma unroll\n    for (int k = 0; k < items; ++k) {\n"
        "      const int i = k * threads + threadIdx.x;\n      if (i >= count) break;",
        "#pragma unroll\n    for (int k = 0; k < items; ++k) {\n"
        "      const int i = k * threads + threadIdx.x;\n      if (i >= count) break;",
        "scan of segments", "RACE", WRONG,
    ),
    bug(
        "scan of segments: an aggregate published as a prefix", _SCAN,
        "whole.has_begun ? prefix : aggregate", "prefix", "scan of segments", WRONG,
    ),
    bug(
        "scan of segments: looked back over a tile that is not there", _SCAN,
        "if (later != 0) {", "if (false) {", "scan of segments", WRONG, "UNINITIALISED", "RACE",
        seeds=12,
    ),
    bug(
        "scan of segments: an element too far",
        _SCAN,
        "      if (i < count) {\n        values[k] =",
        "      if (i <= count) {\n        values[k] =",
        "scan of segments",
        "OUT OF BOUNDS",
    ),
    bug(
        "scan of segments: a search that ends too early", _RAGGED,
        "offsets.at(low + step) <= place", "offsets.at(low + step) < place",
        "scan of segments from starts", WRONG,
    ),
    bug(
        "scan of segments: a lane too far in the search for a warp's first segment", _RAGGED,
        "low += (number - 1) * step;", "low += number * step;", "scan of segments from starts",
        WRONG, "OUT OF BOUNDS",
    ),
    bug(
        "segments: more chunks than there is room for are looked up",
        _REDUCE,
        "const bool is_full = uint64(num_chunks) > uint64(params.capacity);",
        "const bool is_full = false;",
        "segments that overlap",
        "RACE",
        WRONG,
        "OUT OF BOUNDS",
    ),
    bug(
        "scan of segments: values of the window not waited for", _SCAN,
        "      ptx::syncwarp();\n    }\n    A value = shared.window[known];",
        "    }\n    A value = shared.window[known];", "scan of segments", "RACE",
    ),
)  # fmt: skip

N = 9001


def _offsets(kind: str) -> Any:
    if kind == "overlap":
        return np.array([0, N] * 20 + [5])
    if kind == "any":
        return np.array([2 * N, 3, N // 2, 5 * N])
    if kind == "end":
        return np.array([0, N - 40, N])
    return np.array([7, 8, 8, 40, 45, 80, 200, 8200, 8201, 8300, N - 3])


def reductions(kind: str) -> Any:
    """Return calls of functions that are composed, so that all mistakes of order show."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        offsets = _offsets(kind)
        for is_turned in (False, True):
            offsets = N - offsets[::-1] if is_turned else offsets
            x = affine(N, seed=int(rng.integers(1 << 30)))
            ends = np.clip(offsets, 0, N)
            want = []
            for begin, end in itertools.pairwise(ends):
                total = np.uint64(1 << 32)
                for value in x[begin:end]:
                    total = compose(total, value)
                want.append(total)
            start = np.uint64(1 << 32)
            given = gpu.to_device(x), gpu.to_device(offsets)
            yield ga.segmented_reduce(*given, start, compose), np.array(want, np.uint64)

    return calls


def scans(has_row_init: bool) -> Any:
    """Return calls of an inclusive scan, or of an exclusive one from starts."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        offsets = np.array([7, 8, 8, 40, 41, 41, 41, 41, 8300, N - 3])
        for _ in range(2):
            x, starts = affine(N, seed=int(rng.integers(1 << 30))), affine(9, seed=1)
            want = x.copy()
            for start, (begin, end) in zip(starts, itertools.pairwise(offsets), strict=True):
                for i in range(begin, end):
                    if has_row_init:
                        want[i] = start if i == begin else compose(want[i - 1], x[i - 1])
                    elif i > begin:
                        want[i] = compose(want[i - 1], x[i])
            given = gpu.to_device(x), gpu.to_device(offsets)
            if has_row_init:
                result = ga.segmented_exclusive_scan(*given, gpu.to_device(starts), compose)
            else:
                result = ga.segmented_inclusive_scan(*given, None, compose)
            yield result, want

    return calls
