"""Bugs of reductions by index."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import Backend, affine, compose

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_TABLES = "by_index/tables.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "by index: marks not waited for", _TABLES,
        "    }\n    ptx::syncwarp();\n  }\n\n  // The lanes", "    }\n  }\n\n  // The lanes",
        "by index", "RACE", "UNINITIALISED",
    ),
    bug(
        "by index: marks that are not cleared", _TABLES,
        "      words[i] = make_uint4(0, 0, 0, 0);\n", "", "by index", WRONG, "UNINITIALISED",
    ),
    bug(
        "by index: a row added before the last one is there", _TABLES,
        "      assign(entry, value);\n    }\n    ptx::syncwarp();",
        "      assign(entry, value);\n    }", "by index", "RACE",
    ),
    bug(
        "by index: each lane adds its own", _TABLES,
        "is_there && (group & up_to) == 1u << lane", "is_there", "by index", "RACE", WRONG,
    ),
    bug(
        "by index: joined with what comes behind the next one", _TABLES,
        "      next = next < 0 ? -1 : behind;", "      next = -1;", "by index", WRONG,
    ),
    bug(
        "by index: an element too far", _TABLES,
        "        if (i < end) {", "        if (i <= end) {", "by index", "OUT OF BOUNDS", WRONG,
    ),
    bug(
        "by index: indices as they come", _TABLES,
        "return uint64(index) < uint64(params.size) ? uint32(index) : nowhere;",
        "return uint32(index);", "by index", "OUT OF BOUNDS",
    ),
    bug(
        "by index: an entry where nothing was added", _TABLES,
        "if (loaded[j] != 0) total.append(items[j]);", "total.append(items[j]);",
        "by index", WRONG,
    ),
    bug(
        "by index: others of an index in a row forgotten", _TABLES,
        "is_there && before == row", "false", "by index", WRONG, "RACE",
    ),
    bug(
        "by index: new where another lane has been", _TABLES,
        "      is_new = (ptx::ballot_sync(all_lanes, is_new) & group) != 0;\n", "", "by index",
        WRONG, "UNINITIALISED",
    ),
    bug(
        "by index: a table too many in a group", _TABLES,
        "begin = number * params.group, end = begin + params.group;",
        "begin = number * params.group, end = begin + params.group + 1;",
        "by index of many shares", WRONG,
    ),
    bug(
        "by index: what warps come to is not waited for", _TABLES,
        "    ptx::syncthreads();\n    if (warp == 0) {", "    if (warp == 0) {", "by index",
        "RACE", "UNINITIALISED",
    ),
)  # fmt: skip


def reductions(gpu: Backend, rng: np.random.Generator) -> Results:
    """Return functions that are composed, of indices of which some are out of range."""
    n, size = 3000, 45
    for spread in (size, 3):
        x = affine(n, seed=int(rng.integers(1 << 30)))
        indices = np.where(rng.random(n) < 0.02, 99_999, rng.integers(-1, spread + 1, n))
        start = np.uint64(1 << 32)
        want = np.full(size, start, np.uint64)
        for k, element in zip(indices.tolist(), x, strict=True):
            if 0 <= k < size:
                want[k] = compose(want[k], element)
        given: Any = gpu.to_device(indices), gpu.to_device(x), size, start
        yield ga.reduce_by_index(*given, compose), want
