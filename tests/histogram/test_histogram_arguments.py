"""Bins of `histogram` as its problems keep them: told apart, remembered, found from data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._arrays.view import NumPy
from gpualgo._base import recording


def test_edges_are_told_apart() -> None:
    a = Edges(np.array([0.0, 1.0]))
    assert a == Edges(np.array([0.0, 1.0]))
    assert hash(a) == hash(Edges(np.array([0.0, 1.0])))
    assert a != Edges(np.array([0.0, 2.0]))
    assert a != Edges(np.array([0.0, 1.0], np.float32))
    assert Edges(np.array([1, 0], np.int32)) != Edges(np.array([1], np.int64))  # alike in bytes
    assert a != (2, 0.0, 1.0)


def test_long_edges_are_not_remembered() -> None:
    view = NumPy.view(np.arange(3.0))
    edges = np.arange((1 << 17) + 1.0)
    with pytest.raises(TypeError, match="cannot be hashed"):
        hash(arguments.bins_of(edges, None, view, None))
    assert isinstance(hash(arguments.bins_of(edges[:-1], None, view, None)), int)


class Recorder:
    def __init__(self, is_graph: bool) -> None:
        self.is_graph = is_graph

    def call(self, request: Any) -> Any:
        return request


def test_a_range_is_found_for_a_plan_but_not_for_a_graph() -> None:
    view = NumPy.view(np.arange(3.0))
    with recording.recording(Recorder(is_graph=False)):
        assert arguments.bins_of(4, None, view, None) == (
            arguments.even_bins(4, np.float64(0.0), np.float64(2.0), True)
        )
    with (
        recording.recording(Recorder(is_graph=True)),
        pytest.raises(RuntimeError, match=r"cannot be recorded"),
    ):
        arguments.bins_of(4, None, view, None)


def test_suspended_calls_run() -> None:
    recorder = Recorder(is_graph=False)
    with recording.recording(recorder):
        with recording.suspended():
            assert recording.current() is None
        assert recording.current() is recorder
