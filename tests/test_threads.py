"""Calls from several threads at once, on one stream and on the CPU's cores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array

import gpualgo as ga

SIZES = (900, 20_000, 150_000)  # storage within a stream's workspace, partly, and beyond it

CALLS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "radix_sort": ("int32", ga.radix_sort, np.sort),
    "argsort": ("int16", ga.argsort, lambda x: np.argsort(x, kind="stable")),
    "counting": ("uint16", ga.radix_sort, np.sort),
    "scan": ("int64", ga.inclusive_scan, np.cumsum),
    "reduce": ("int64", ga.reduce, np.sum),
    "histogram": (
        "int32",
        lambda x: ga.histogram(x, 300, (-(2**31), 2**31 - 1)),
        lambda x: np.histogram(x, 300, (-(2**31), 2**31 - 1))[0],
    ),
}


@pytest.mark.parametrize("n", SIZES)
def test_algorithms_side_by_side(backend: Backend, n: int) -> None:
    work = []
    for seed in range(24):
        for dtype, call, reference in CALLS.values():
            x = random_array(n, np.dtype(dtype), seed)
            work.append((call, backend.to_device(x), np.asarray(reference(x))))

    def run(item: tuple[Any, Any, Any]) -> Any:
        call, x, _ = item
        with ga.default_device(backend.name):
            return call(x)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, work))
    for got, (_, _, want) in zip(results, work, strict=True):
        assert_same(backend.to_host(got), want)
