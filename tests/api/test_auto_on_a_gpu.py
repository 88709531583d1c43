"""The default device "auto" on a GPU: results and their bits, streams, graphs, captured arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from placing import where
from support import Backend

import gpualgo as ga
from gpualgo._pipeline import auto


@pytest.fixture
def placed(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A GPU, "auto", and a table of which short sorts go there."""
    rows = {name: row._replace(least_keys=row.least_keys and 1000)
            for name, row in auto._rows.items()}  # fmt: skip
    monkeypatch.setattr(auto, "_rows", rows)
    with ga.default_device("auto"):
        yield cuda


def pinned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = ga.empty_pinned(x.shape, x.dtype)
    made[...] = x
    return made


def bits(device: str, f: Callable[..., Any], *args: Any, **kwargs: Any) -> bytes:
    with ga.default_device(device):
        return np.asarray(f(*args, **kwargs)).tobytes()


def test_results_are_those_of_the_device(placed: Backend) -> None:
    x = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    y = pinned(x)
    for f in (ga.reduce, ga.inclusive_scan):
        for _ in range(2):
            assert bits("auto", f, x) == bits("cpu", f, x)
            assert bits("auto", f, y) == bits("cuda", f, y)
    assert (where(ga.radix_sort, x), where(ga.radix_sort, x[:999])) == ("cuda:0", "cpu")
    for a in (x, y, x[:999], y[:999]):
        np.testing.assert_array_equal(ga.radix_sort(a), np.sort(a))
        np.testing.assert_array_equal(ga.argsort(a), np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(ga.radix_sort(ga.lazy.arange(1200)[::-1]), np.arange(1200))


def test_outputs_of_the_other_kind(placed: Backend) -> None:
    x = np.arange(1000.0)
    y = pinned(x)
    for a in (x, y):
        for out in (np.empty(1000), ga.empty_pinned(1000)):
            assert ga.inclusive_scan(a, out=out) is out
            assert out[-1] == 499500
            ga.radix_sort(a[::-1], out=out)
            np.testing.assert_array_equal(out, x)
    assert ga.reduce(y, 1.0) == ga.reduce(x, 1.0) == 499501
    for plan in (ga.prepare(ga.reduce, x), ga.prepare(ga.reduce, y)):
        assert plan(x) == plan(y) == 499500


def test_captured_arrays_decide(placed: Backend) -> None:
    """An array on the GPU takes the call there; one of the host goes with the call."""
    x = np.array([2, 0, 1])
    table = placed.to_device(np.array([10, 20, 30]))
    lookup = lambda i: table[i]  # noqa: E731
    found = ga.explain(ga.transform, lookup, x)
    assert (found.device, found.why) == ("cuda:0", "op captures an array on this device")
    assert ga.transform(lookup, x).tolist() == [30, 10, 20]
    table = np.array([1, 2, 3])
    assert where(ga.transform, lookup, x) == "cpu"
    assert ga.transform(lookup, x).tolist() == [3, 1, 2]
    assert ga.transform(lookup, pinned(x)).tolist() == [3, 1, 2]


def test_arrays_on_the_gpu_beside_host_arrays_are_refused(placed: Backend) -> None:
    x, there = np.arange(10.0), placed.to_device(np.arange(10.0))
    for call in (
        lambda: ga.inclusive_scan(x, out=there),
        lambda: ga.reduce(x, placed.to_device(np.array(1.0))),
        lambda: ga.transform(operator.add, x, there),
    ):
        messages = []
        for device in ("auto", "cuda"):
            with ga.default_device(device), pytest.raises((TypeError, ValueError)) as caught:
                call()
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_streams_of_the_gpu(placed: Backend) -> None:
    stream = placed.xp.cuda.Stream(non_blocking=True)
    x = np.arange(1000.0)
    assert ga.reduce(x, stream=stream) == 499500
    assert ga.histogram(x, 2, stream=stream).tolist() == [500, 500]
    y, out = pinned(x), ga.empty_pinned(1000)
    ga.inclusive_scan(y, out=out, stream=stream)
    stream.synchronize()
    assert out[-1] == 499500
    plan = ga.prepare(ga.reduce, x)
    assert plan(x) == plan(x, stream=stream) == 499500


def test_graphs_are_on_the_gpu(placed: Backend) -> None:
    x = pinned(np.arange(1000.0))
    out = ga.empty_pinned(())
    with ga.graph() as g:
        ga.reduce(x, out=out)
        inside = ga.explain(ga.reduce, np.arange(10.0))
    assert (inside.device, inside.why) == ("cuda:0", "recorded in a graph on a GPU")
    x[0] = 5
    g.launch()
    assert out == 499505
    with pytest.raises(RuntimeError, match=r"pageable"), ga.graph():
        ga.reduce(np.arange(10.0), out=out)
    assert where(ga.reduce, np.arange(10.0)) == "cpu"
