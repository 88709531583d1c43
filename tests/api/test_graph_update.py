"""Graph.update: other arrays in the places of those that a graph was recorded with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
from gpualgo._api.explain import describe
from gpualgo._api.graph import Graph, _with_arrays
from gpualgo._arrays.view import address_of

N = 200_003


def sample(seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-1000, 1000, N).astype(np.int32)


def test_update(backend: Backend) -> None:
    x, other = backend.to_device(np.arange(6)), backend.to_device(np.arange(12))[::-2]
    with ga.graph(backend.name) as g:
        y = ga.inclusive_scan(x, None, lambda a, b: b)
        z = ga.inclusive_scan(x, None, lambda a, b: a)
    into = backend.to_device(np.zeros(6, np.int64))
    g.update((x, other), (y, into))
    g.launch()
    assert backend.to_host(into).tolist() == backend.to_host(other).tolist()
    assert backend.to_host(z).tolist() == [11] * 6
    with pytest.raises(ValueError, match=r"^Graph.update: the graph does not touch"):
        g.update((x, other))
    with pytest.raises(ValueError, match=r"^Graph.update: an array of shape"):
        g.update((other, backend.to_device(np.zeros(3))))
    with pytest.raises(ValueError, match="overlap"):
        g.update((into, other[::-1]))
    other[...] = 3
    g.launch()  # as it was before the refused ones
    assert backend.to_host(into).tolist() == backend.to_host(z).tolist() == [3] * 6


class Exported:
    """An array known by its protocol alone: each look at it gives another object."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> Any:
        return self._array.__array_interface__


def test_an_array_is_known_by_its_memory() -> None:
    """For `Graph.update`; no GPU is needed to see which arrays are replaced."""
    memory = np.arange(12.0)
    old, other, new = Exported(memory[:4]), memory[4:8], Exported(memory[8:])
    requests = [
        describe("test", ga.transform, (lambda a, b: a + b, old, other), {})._replace(out=result)
        for result in (np.zeros(4), memory[:4])
    ]
    recorded = Graph.__new__(Graph)
    recorded._calls = requests
    successors = dict([recorded._successor(old, new)])
    into_another, in_place = (_with_arrays(request, successors) for request in requests)
    assert [address_of(view) for view in into_another.views] == [
        memory[8:].ctypes.data, other.ctypes.data
    ]  # fmt: skip
    assert into_another.out is requests[0].out
    assert in_place.out is new
    for stranger in (Exported(memory[:3]), memory[:4].view(np.int64), memory[1:5], memory[:8:2]):
        with pytest.raises(ValueError, match=r"does not touch an old array"):
            recorded._successor(stranger, new)


class Lent:
    """A device array that shows DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **asked: Any) -> Any:
        return self._array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_update_of_arrays_known_by_protocol(cuda: Backend) -> None:
    a, b = sample(), sample(seed=1)
    x, successor, result = (cuda.to_device(h) for h in (a, b, np.zeros(N, np.int32)))
    with ga.graph() as g:
        ga.inclusive_scan(Lent(x), out=Lent(result))
    other = cuda.xp.zeros_like(result)
    g.update((Lent(x), Lent(successor)), (Lent(result), Lent(other)))
    g.launch()
    np.testing.assert_array_equal(cuda.to_host(other), np.cumsum(b, dtype=np.int32))
    assert not cuda.to_host(result).any()
