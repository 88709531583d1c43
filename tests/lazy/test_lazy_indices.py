"""Lazy indices and offsets of the host are looked at as arrays are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

X = np.arange(3.0)
LAZY: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "array": lambda x: x,
    "lazy": ga.lazy.asarray,
    "computed": lambda x: ga.lazy.asarray(x) + 0,
}
INDICES: dict[str, Callable[[Any], Any]] = {
    "reduce_by_index": lambda i: ga.reduce_by_index(i, X, 3),
    "of lazy x": lambda i: ga.reduce_by_index(i, ga.lazy.asarray(X) * 2, 3),
    "with a start": lambda i: ga.reduce_by_index(i, X, 3, 1.0),
    "with starts": lambda i: ga.reduce_by_index(i, X, 3, np.ones(3)),
    "of no results": lambda i: ga.reduce_by_index(i, X, 0, 1.0),
}
OFFSETS: dict[str, Callable[[Any], Any]] = {
    "reduce": lambda offsets: ga.segmented_reduce(X, offsets),
    "inclusive": lambda offsets: ga.segmented_inclusive_scan(X, offsets),
    "exclusive": lambda offsets: ga.segmented_exclusive_scan(X, offsets, 0.0),
    "sort": lambda offsets: ga.segmented_sort(X, offsets),
    "of lazy x": lambda offsets: ga.segmented_reduce(ga.lazy.asarray(X) * 2, offsets),
}


@pytest.fixture(autouse=True)
def on_backend(backend: Backend) -> Iterator[None]:
    with ga.default_device(backend.name):
        yield


@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("call", INDICES)
@pytest.mark.parametrize("wrong", [[0, 3, 1], [0, -1, 1]])
def test_indices_out_of_range_are_refused(lazy: str, call: str, wrong: list[int]) -> None:
    with pytest.raises(ValueError, match=r"reduce_by_index: (indices hold|there are indices)"):
        INDICES[call](LAZY[lazy](np.array(wrong)))
    if call != "of no results":
        INDICES[call](LAZY[lazy](np.array([0, 2, 1])))


@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("call", OFFSETS)
@pytest.mark.parametrize("wrong", [[0, 4], [-1, 3], [0, 2, 1, 3]])
def test_offsets_that_do_not_fit_are_refused(lazy: str, call: str, wrong: list[int]) -> None:
    with pytest.raises(ValueError, match=r"offsets (has|falls)"):
        OFFSETS[call](LAZY[lazy](np.array(wrong)))
    OFFSETS[call](LAZY[lazy](np.array([0, 2, 3])))


@pytest.mark.parametrize("lazy", LAZY)
def test_no_indices_and_no_results(lazy: str) -> None:
    none = LAZY[lazy](np.zeros(0, np.int64))
    assert ga.reduce_by_index(none, np.zeros(0), 0, 1.0).shape == (0,)


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize("lazy", LAZY)
def test_launches_look_at_them(size: int, lazy: str) -> None:
    indices = np.zeros(3, np.int64)
    with ga.graph("cpu") as graph:
        ga.reduce_by_index(LAZY[lazy](indices), X, size, 1.0)
    indices[...] = 7
    with pytest.raises(ValueError, match="reduce_by_index"):
        graph.launch()
