"""What calls on two GPUs queue, without any: where, in which order, and that nobody waits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeDriver
from sharded import leaves

import gpualgo as ga
from gpualgo._driver import addresses, driver, peers
from gpualgo.shards import _sort

N = 1000
WAITS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoH")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(peers, "_opened", set())
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    monkeypatch.setattr(driver, "is_simple", False)
    monkeypatch.setattr(addresses, "is_pageable", lambda *place: True)
    return made


def on_two(x: Any) -> Any:
    return ga.distribute(x, ["cuda:0", "cuda:1"])


def launched(fake: FakeDriver, call: Callable[[], Any]) -> tuple[list[int], Any]:
    """Return in which GPUs' contexts a call launches kernels, in order, and its result."""
    found: list[int] = []
    fake.on_launch = lambda: found.append(fake.current - 100)
    fake.calls.clear()
    result = call()
    fake.on_launch = lambda: None
    return found, result


QUEUED: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "reduce": (lambda x: ga.reduce(x, None, operator.mul), [0]),
    "inclusive_scan": (lambda x: ga.inclusive_scan(x), [0, 1]),
    "exclusive_scan": (lambda x: ga.exclusive_scan(x, reverse=True), [0, 1]),
    "transform": (lambda x: ga.transform(operator.neg, x), [0, 1]),
    "histogram": (lambda x: ga.histogram(x, 9, (0, 1)), [0]),
    "top_k": (lambda x: ga.top_k(x, 3), [0, 0]),
    "minmax": (lambda x: ga.minmax(x), [0, 0]),
}


@pytest.mark.parametrize("name", QUEUED)
def test_calls_that_nobody_waits_for(fake: FakeDriver, name: str) -> None:
    x = on_two(np.ones(N, np.float32))
    call, devices = QUEUED[name]
    where, result = launched(fake, lambda: call(x))
    assert set(where) == {0, 1}
    assert not fake.named(*WAITS)
    if isinstance(result, ga.ShardedArray):
        assert [shard.device for shard in result.shards] == devices
    else:
        assert [part.device for part in leaves(result)] == devices


def test_both_gpus_work_before_anything_is_exchanged(fake: FakeDriver) -> None:
    x = on_two(np.ones(N, np.float32))
    launched(fake, lambda: ga.reduce(x))
    names = [
        call[0] for call in fake.named("cuLaunchKernelEx", "cuLaunchKernel", "cuMemcpyPeerAsync")
    ]
    assert [name for name in names if "Launch" in name] == names[:2] + names[3:]
    assert names.count("cuMemcpyPeerAsync") == 1


def test_sorts_read_the_runs_of_others_where_they_lie(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is copied between GPUs; each reads behind the other's sort, and writes its own."""
    monkeypatch.setattr(_sort, "on_host", lambda cuts: np.full(cuts.shape, N // 4))
    keys, values = on_two(np.zeros(N, np.int32)), on_two(np.zeros(N, np.float64))
    where, (found, moved) = launched(fake, lambda: ga.radix_sort(keys, values))
    assert where[:3] == [0, 1, 0]  # sorts, cuts
    assert sorted(where[3:]) == where[3:]  # merges
    assert set(where[3:]) == {0, 1}
    assert [shard.device for shard in found.shards] == [0, 1]
    assert [shard.shape for shard in moved.shards] == [(500,), (500,)]
    assert not fake.named("cuMemcpyPeerAsync", "cuStreamSynchronize")
    names = [call[0] for call in fake.named("cuLaunchKernelEx", "cuStreamWaitEvent")]
    launches = [i for i, name in enumerate(names) if name == "cuLaunchKernelEx"]
    assert launches[2] - launches[1] > 2  # each waits for the other's sort, and merges
    assert len(names) - launches[-1] > 2  # and for the other's merge, before memory is lent again


@pytest.mark.parametrize(("reason", "dtype"), [("are_peers", "int16"), ("is_open", "uint32")])
def test_sorts_move_each_element_once(fake: FakeDriver, reason: str, dtype: str) -> None:
    """Where GPUs cannot read it, in one copy for each pair; the host waits for splitters."""
    setattr(fake, reason, False)
    keys, values = on_two(np.zeros(N, dtype)), on_two(np.zeros(N))
    where, (found, moved) = launched(fake, lambda: ga.radix_sort(keys, values))
    assert set(where) == {0, 1}
    assert [shard.device for shard in found.shards] == [0, 1]
    assert [shard.shape for shard in moved.shards] == [(500,), (500,)]
    sizes = [call[5] for call in fake.named("cuMemcpyPeerAsync")]
    assert sum(sizes) % (keys.dtype.itemsize + 8) == 0
    assert len(sizes) in (0, 2, 4)  # as the memory has it, which no kernel has written


def test_select_waits_once_for_both_lengths(fake: FakeDriver) -> None:
    x, mark = on_two(np.zeros(N)), on_two(np.zeros(N, bool))
    where, found = launched(fake, lambda: ga.select(x, mark))
    assert [shard.device for shard in found.shards] == [0, 1]
    names = [call[0] for call in fake.named("cuLaunchKernelEx", "cuLaunchKernel", *WAITS)]
    first_wait = next(i for i, name in enumerate(names) if name in WAITS)
    assert len(names[:first_wait]) == len(where) >= 2
