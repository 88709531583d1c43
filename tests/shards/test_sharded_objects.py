"""What a sharded array is as a Python object: no value to compare, nothing to set, picklable."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sharded import check, cut
from support import Backend

import gpualgo as ga

H = np.arange(7)
X = ga.distribute(H, ["cpu:0", "cpu:1"])


@pytest.mark.parametrize("call", [lambda: X == X, lambda: X != H, lambda: bool(X), lambda: not X])
def test_it_is_no_value(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"a ShardedArray .*; use "):
        call()


def test_nothing_of_it_is_set() -> None:
    for name in ("shape", "axis", "dtype", "shards", "more"):
        with pytest.raises(
            AttributeError, match=rf"ShardedArray's {name} cannot be set.*distribute"
        ):
            setattr(X, name, (1, 7))
    assert {X: 1}[X] == 1
    check(X, H)


def test_copies_of_it() -> None:
    for again in (copy.copy(X), copy.deepcopy(X), pickle.loads(pickle.dumps(X))):
        assert (again.devices, again.shape, again.axis) == (X.devices, X.shape, X.axis)
        check(ga.inclusive_scan(again), np.cumsum(H))


@pytest.mark.parametrize("devices", [{"cpu:0", "cpu:1"}, {"cpu:0": 1}, b"cpu", iter(["cpu"])])
def test_devices_have_an_order(devices: Any) -> None:
    with pytest.raises(TypeError, match="devices must be a list"):
        ga.distribute(H, devices)


def test_memory_of_the_host_runs_out() -> None:
    with pytest.raises(MemoryError, match="cpu:0"):
        ga.distribute(np.broadcast_to(np.int64(1), 1 << 50), ["cpu:0", "cpu:1"])


def test_types_of_results_of_one_shard(backend: Backend) -> None:
    """Whether there is one shard or several, NumPy's numbers are numbers."""
    marks = H > 3
    for count in (1, 2):
        got = ga.find(cut(backend, H, count), lambda a: a > 3)
        again = ga.find(cut(backend, H, count), cut(backend, marks, count))
        if backend.name == "cpu":
            assert type(got) is type(again) is np.int64
        check((got, again), (np.int64(4), np.int64(4)))


def test_a_dtype_without_order_is_named_first() -> None:
    """Not only after rows were brought together."""
    x = ga.distribute(np.zeros((4, 3), complex), ["cpu:0", "cpu:1"])
    for call in (lambda: ga.argmin(x, 0), lambda: ga.top_k(x, 1, axis=0)):
        with pytest.raises(TypeError, match="complex"):
            call()


def test_graphs_do_not_record_copies() -> None:
    """They would be made while recording, and never again."""
    calls: list[Callable[[], Any]] = [X.gather, lambda: ga.distribute(H, ["cpu:0"])]
    for call in calls:
        with pytest.raises(RuntimeError, match="a graph cannot record this"), ga.graph():
            call()
