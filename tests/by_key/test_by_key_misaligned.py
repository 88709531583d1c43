"""Keys in any order, and their values, at addresses that are no multiples of their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpualgo as ga

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "inclusive": ga.inclusive_scan_by_key,
    "exclusive": lambda keys, x: ga.exclusive_scan_by_key(keys, x, 0.0),
    "pairs": lambda keys, x: ga.inclusive_scan_by_key((keys, keys), x),
}


def misaligned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = np.ndarray(x.shape, x.dtype, np.zeros(x.nbytes + 1, np.uint8), 1)
    made[...] = x
    return made


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("which", [{0}, {1}, {0, 1}])
def test_in_a_graph(call: str, which: set[int]) -> None:
    """Each launch reads what the arrays hold by then."""
    rng = np.random.default_rng(0)
    samples = [
        (rng.integers(0, 9, 100).astype(np.float32), rng.integers(0, 9, 100).astype(np.float64))
        for _ in range(3)
    ]
    arrays = [misaligned(x) if i in which else x.copy() for i, x in enumerate(samples[0])]
    with ga.default_device("cpu"):
        with ga.graph("cpu") as graph:
            found = CALLS[call](*arrays)
        for sample in samples:
            for array, other in zip(arrays, sample, strict=True):
                array[...] = other
            graph.launch()
            assert np.array_equal(found, CALLS[call](*sample))
