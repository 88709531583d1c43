"""Plans and graphs of histograms of tuples and with weights: what their calls take, and keep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from support import Backend, assert_same, random_array

import gpualgo as ga


class Point(NamedTuple):
    """Samples by name."""

    x: Any
    y: Any


BINS, ENDS = (5, 7), ((-9, 9), (-20, 20))


def _arrays(backend: Backend, seed: int = 0) -> list[Any]:
    x = [random_array((40, 30), np.dtype("f4"), seed + i) for i in range(3)]
    return [backend.to_device(a) for a in x]


def test_a_plan_refuses_what_is_built_otherwise(backend: Backend) -> None:
    x, y, w = _arrays(backend)
    plan = ga.prepare(ga.histogram, Point(x, y), BINS, ENDS)
    plan(Point(x, y))
    with pytest.raises(TypeError, match=r"another tuple structure .*; prepare another plan$"):
        plan((x, y))
    with pytest.raises(TypeError, match=r"the plan takes 2 array\(s\), got 3"):
        plan(Point(x, y), w)


def test_fields_of_any_name() -> None:
    """There is no operator that would have to know them."""
    x = np.zeros(9, [("a b", "f4"), ("class", "i2"), ("1", "f8")])
    x["a b"], x["class"], x["1"] = np.arange(9), np.arange(9) % 2, 1
    ends = (0, 9), (0, 1), (0, 2)
    want = ga.histogram((x["a b"], x["class"], x["1"]), 3, ends)
    assert_same(ga.histogram(x, 3, ends), want)
    assert_same(ga.prepare(ga.histogram, x, 3, ends)(x), want)


def test_a_plan_looks_at_the_range_each_time(backend: Backend) -> None:
    x, y, w = _arrays(backend)
    plan = ga.prepare(ga.histogram, (x, y), (4, [-9, 0, 9]), weights=w)
    for scale in (1, 5):
        given = (x * np.float32(scale), y)
        want = backend.to_host(ga.histogram(given, (4, [-9, 0, 9]), weights=w))
        assert_same(backend.to_host(plan(given, w)), want)
    single = ga.prepare(ga.histogram, x, 4, weights=0.5)
    for scale in (1, 5):
        given = x * np.float32(scale)
        want = backend.to_host(ga.histogram(given, 4, weights=0.5))
        assert_same(backend.to_host(single(given)), want)


def test_numbers_of_a_kind_share_a_plan(backend: Backend) -> None:
    x, _, _ = _arrays(backend)
    counts = backend.to_host(ga.histogram(x, 5, (-9, 9)))
    for number in (0.5, 0.25, -3.0, 0.5):
        got = ga.histogram(x, 5, (-9, 9), weights=number)
        assert_same(backend.to_host(got), counts * number)
    plan = ga.prepare(ga.histogram, x, 5, (-9, 9), weights=np.float32(0.75))
    assert_same(backend.to_host(plan(x)), (counts * 0.75).astype(np.float32))


def test_graphs_refuse_what_the_host_reads(cuda: Backend) -> None:
    x, y, _ = _arrays(cuda)
    with pytest.raises(RuntimeError, match=r"^histogram: range= was not given"), ga.graph():
        ga.histogram((x, y), BINS, (None, (0, 1)))
