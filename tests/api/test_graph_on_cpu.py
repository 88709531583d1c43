"""Graphs of the CPU: what they read when, what they hold, and what they refuse as a GPU's do."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
import gpualgo.numpy as gnp


@pytest.fixture(autouse=True)
def _on_cpu() -> Any:
    with ga.default_device("cpu"):
        yield


def test_results_are_written_by_each_launch() -> None:
    x = np.arange(5.0)
    with ga.graph() as g:
        y = ga.inclusive_scan(x)
        total = ga.reduce(y)
        low, high = ga.minmax(y)
        ga.transform(lambda a: a * 2, x, out=x)
    assert isinstance(total, np.ndarray)
    assert total.shape == low.shape == ()
    assert x.tolist() == [0, 1, 2, 3, 4]  # nothing has run
    g.launch()
    assert (total, low, high, x[4]) == (20, 0, 10, 8)
    g.launch()
    assert (total, low, high, x[4]) == (40, 0, 20, 16)


def test_arrays_are_read_at_the_launch_and_numbers_at_the_recording() -> None:
    x, table, start, number = np.arange(4), np.arange(4) * 10, np.array(100), 1
    with ga.graph() as g:
        y = ga.transform(lambda i: table[i] + number, x)
        total = ga.reduce(x, start)
    table[...], start[...], number = 5, 1000, 2
    g.launch()
    assert y.tolist() == [6, 6, 6, 6]
    assert total == 106  # an array of one element is a number
    g.update()
    g.launch()
    assert y.tolist() == [7, 7, 7, 7]
    assert total == 1006


def test_tuples_and_structured_arrays() -> None:
    pairs = np.array([(1, 2.0), (3, 0.5)], [("n", "i4"), ("v", "f8")])
    with ga.graph() as g:
        found = ga.reduce(pairs, None, lambda a, b: (a.n + b.n, max(a.v, b.v)))
        scanned = ga.inclusive_scan(pairs, None, lambda a, b: (a.n + b.n, max(a.v, b.v)))
    pairs[0] = (10, 7.0)
    for _ in range(2):
        g.launch()
        assert found[()].tolist() == (13, 7.0)
        assert scanned.tolist() == [(10, 7.0), (13, 7.0)]
        g.update()


def test_holds_what_it_touches_and_lets_it_go() -> None:
    def build() -> tuple[Any, Any, list[weakref.ref[Any]]]:
        x, table = np.arange(300), np.arange(300) * 7
        with ga.graph() as g:
            y = ga.transform(lambda i: table[i], x)
        return g, y, [weakref.ref(x), weakref.ref(table)]

    g, y, held = build()
    gc.collect()
    assert all(one() is not None for one in held)
    g.launch()
    assert y.tolist() == list(range(0, 2100, 7))
    del g, y
    gc.collect()
    assert all(one() is None for one in held)


def test_lengths_that_depend_on_the_data() -> None:
    x, out, count = np.array([3, 0, 4, 0]), np.zeros(4, int), np.zeros((), np.int64)
    with pytest.raises(RuntimeError, match=r"^select: .* cannot be recorded"), ga.graph():
        ga.select(x, lambda a: a > 0)
    with ga.graph() as g:
        ga.select(x, lambda a: a > 0, out=out, out_count=count)
    g.launch()
    assert (out[:2].tolist(), count) == ([3, 4], 2)
    x[1] = 9
    g.launch()
    assert (out[:3].tolist(), count) == ([3, 9, 4], 3)


def test_offsets_and_indices_are_checked_by_the_launch() -> None:
    x, offsets, indices = np.arange(6), np.array([0, 2, 6]), np.array([0, 1, 2, 0, 1, 2])
    with ga.graph() as g:
        sums = ga.segmented_reduce(x, offsets, 0)
    with ga.graph() as by_index:
        table = ga.reduce_by_index(indices, x, 3, 0)
    g.launch()
    by_index.launch()
    assert (sums.tolist(), table.tolist()) == ([1, 14], [3, 5, 7])
    offsets[1], indices[0] = 7, 3
    with pytest.raises(ValueError, match=r"^segmented_reduce: offsets falls from 7 to 6"):
        g.launch()
    with pytest.raises(ValueError, match=r"^reduce_by_index: indices hold 3"):
        by_index.launch()


def test_misuse_is_told_as_on_a_gpu() -> None:
    x = np.arange(5.0)
    with ga.graph() as g:
        y = ga.inclusive_scan(x)
        with pytest.raises(RuntimeError, match=r"^Graph.launch: the graph is not recorded yet"):
            g.launch()
    with pytest.raises(ValueError, match=r"^Graph.launch: stream= needs a GPU"):
        g.launch(stream=1)
    with pytest.raises(ValueError, match=r"^reduce: stream= cannot be given while"), ga.graph():
        ga.reduce(x, stream=0)
    with pytest.raises(RuntimeError, match=r"another graph"), ga.graph(), ga.graph():
        pass
    with pytest.raises(RuntimeError, match=r"^histogram: .* cannot be recorded"), ga.graph():
        ga.histogram(x, 3)
    with pytest.raises(TypeError, match=r"^reduce: op holds a list"), ga.graph():
        ga.reduce(x, None, lambda a, b: [a, b])
    with pytest.raises(ValueError, match=r"overlaps"), ga.graph():
        ga.inclusive_scan(x[:4], out=x[1:])
    with pytest.raises(RuntimeError, match=r"^sum: gpualgo.numpy runs immediately"), ga.graph():
        gnp.sum(x)
    with pytest.raises(RuntimeError, match=r"^sin: gpualgo.numpy runs immediately"), ga.graph():
        gnp.sin(x)
    x[...] = 1
    g.launch()  # the thread's calls were never recorded into it
    assert y.tolist() == [1, 2, 3, 4, 5]
    assert ga.reduce(x) == 5


def test_a_failed_call_is_no_part_of_a_graph() -> None:
    out = np.zeros(3)
    out.flags.writeable = False
    with (
        pytest.raises(RuntimeError, match=r"a call failed while it was recorded"),
        ga.graph() as g,
        pytest.raises(ValueError, match="read-only"),
    ):
        ga.transform(lambda a: a + 1, np.zeros(3), out=out)
    with pytest.raises(RuntimeError, match=r"its recording failed"):
        g.launch()


def test_launches_of_threads_follow_each_other() -> None:
    x = np.zeros(1000, int)
    with ga.graph() as g:
        ga.transform(lambda a: a + 1, x, out=x)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(g.launch) for _ in range(100)]:
            done.result()
    assert x.tolist() == [100] * 1000


def test_launched_within_another_recording() -> None:
    """A launch runs at once, as on a GPU: it is no part of the other graph."""
    x = np.arange(4)
    with ga.graph() as first:
        y = ga.inclusive_scan(x)
    with ga.graph() as second:
        first.launch()
        total = ga.reduce(y)
    assert y.tolist() == [0, 1, 3, 6]
    x[...] = 1
    second.launch()
    assert total == 10


def test_lazy_inputs_read_what_arrays_hold_by_then() -> None:
    x = np.arange(4.0)
    with ga.graph() as g:
        total = ga.reduce(ga.lazy.transform(lambda a: a * a, x))
        ordered = ga.radix_sort(-ga.lazy.asarray(x))
    g.launch()
    assert (total, ordered.tolist()) == (14, [-3, -2, -1, 0])
    x[...] = 2
    g.launch()
    assert (total, ordered.tolist()) == (16, [-2] * 4)


def test_numbers_that_code_needs_as_constants() -> None:
    """An exponent, whose value decides the code."""
    power = 2
    x = np.arange(4)
    with ga.graph() as g:
        y = ga.transform(lambda a: a**power, x)
    power = 3
    g.launch()
    assert y.tolist() == [0, 1, 4, 9]
    g.update()
    g.launch()
    assert y.tolist() == [0, 1, 8, 27]


@pytest.mark.parametrize("pairs", [((1,),), (np.arange(2.0),), ((1, 2, 3),), ([1, 2],)])
def test_update_takes_pairs(pairs: Any) -> None:
    with ga.graph("cpu") as g:
        ga.reduce(np.arange(2.0))
    with pytest.raises(TypeError, match=r"Graph\.update: takes pairs"):
        g.update(*pairs)


@pytest.mark.parametrize(
    "view", [lambda x: x[1:], lambda x: x.reshape(2, 3), lambda x: np.broadcast_to(x, (2, 6))]
)
def test_update_of_an_array_that_other_calls_see_otherwise(view: Any) -> None:
    """They would go on to read the old one."""
    x, new = np.arange(6.0), np.full(6, 100.0)
    with ga.graph("cpu") as g:
        whole, part = ga.reduce(x), ga.reduce(view(x))
    with pytest.raises(ValueError, match=r"^Graph.update: the graph also uses a part of an"):
        g.update((x, new))
    g.update((x, new), (view(x), view(new)))
    g.launch()
    assert (whole, part) == (600.0, view(new).sum())


def test_update_of_structured_arrays() -> None:
    """A graph knows them by their fields, which do not overlap."""
    kind = np.dtype([("a", "i4"), ("b", "f8")])
    x, new, out, into = (np.zeros(5, kind) for _ in range(4))
    new["a"], new["b"] = 10, 3
    with ga.graph("cpu") as g:
        ga.copy(x, out=out)
    g.update((x, new), (out, into))
    g.launch()
    assert np.array_equal(into, new)
    assert not out["a"].any()
    g.update((new["a"], x["a"]))
    g.launch()
    assert not into["a"].any()
    assert (into["b"] == 3).all()


def test_captured_numbers_that_change_their_type() -> None:
    k: Any = 2
    with ga.graph() as g:
        doubled = ga.transform(lambda a: a * k, np.arange(3))
    k = 2.5
    with pytest.raises(TypeError, match=r"^Graph\.update: transform: .* type now: record a new"):
        g.update()
    k = 3
    g.update()
    g.launch()
    assert doubled.tolist() == [0, 3, 6]
