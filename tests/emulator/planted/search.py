"""Bugs of searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_KERNEL, _SAMPLES = "searchsorted/kernel.cuh", "searchsorted/samples.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "search: no barrier before the tree is read",
        _KERNEL,
        "    fill();\n    ptx::syncthreads();",
        "    fill();",
        "search",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "search: a query past the last",
        _KERNEL,
        "i < params.num_queries;",
        "i <= params.num_queries;",
        "search",
        "OUT OF BOUNDS",
    ),
    bug(
        "search: an element past the last",
        _KERNEL,
        "const bool is_element = own.is_there[k] && own.places[k] + half <= params.num_sorted;\n"
        "        if (is_element) probes",
        "const bool is_element = own.is_there[k];\n        if (is_element) probes",
        "search of stretches",
        "OUT OF BOUNDS",
    ),
    bug(
        "search: a node past the last",
        _KERNEL,
        "own.places[k] + node_items <= params.num_sorted;",
        "own.places[k] < params.num_sorted;",
        "search of samples",
        "OUT OF BOUNDS",
    ),
    bug(
        "search: what stands behind a sample is taken for a part of it",
        _KERNEL,
        "behind + half <= limit && is_behind",
        "is_behind",
        "search of samples",
        WRONG,
        "OUT OF BOUNDS",
    ),
    bug(
        "search: samples one element off",
        _SAMPLES,
        "params.sample_begins[number] + 1) << number",
        "params.sample_begins[number]) << number",
        "search of samples",
        WRONG,
        "OUT OF BOUNDS",
    ),
)


def searches(length: int, count: int) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        a = np.sort(rng.integers(0, 3 * length, length)).astype(np.int32)
        v = rng.integers(-5, 3 * length + 5, count).astype(np.int32)
        yield ga.searchsorted(gpu.to_device(a), gpu.to_device(v)), np.searchsorted(a, v)

    return calls
