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
from gpualgo._arrays import device_array
from gpualgo._driver import device, driver, peers

N = 1000
WAITS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoH")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(peers, "_opened", {})
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    monkeypatch.setattr(driver, "is_simple", False)
    monkeypatch.setattr(device, "is_pageable", lambda *place: True)
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
    "adjacent_difference": (lambda x: ga.adjacent_difference(x), [0, 1]),
    "reduce_by_index": (
        lambda x: ga.reduce_by_index(ga.transform(operator.pos, x, dtype=np.int32), x, 9),
        [0],
    ),
    "searchsorted": (lambda x: ga.searchsorted(x, x.shards[0]), [0]),
    "searchsorted in one array": (
        lambda x: ga.searchsorted(x.shards[0], x, dtype=np.int32),  # no other test asks for it
        [0, 1],
    ),
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


@pytest.mark.parametrize("call", [ga.reduce, lambda x: ga.histogram(x, 11, (0, 1))])
def test_numbers_are_written_and_read_where_they_lie(fake: FakeDriver, call: Any) -> None:
    """Both GPUs work before anything is exchanged, and nothing is copied."""
    x = on_two(np.ones(N, np.float16))  # of which no other test asks
    where, _ = launched(fake, lambda: call(x))
    assert where == [0, 1, 0]
    assert not fake.named("cuMemcpyPeerAsync")
    names = [call[0] for call in fake.named("cuLaunchKernelEx", "cuStreamWaitEvent")]
    assert names.index("cuStreamWaitEvent") < len(names) - 2
    assert names[-2:] != ["cuLaunchKernelEx"] * 2  # the last one waits for the other GPU


def test_numbers_are_copied_where_gpus_cannot_reach_them(fake: FakeDriver) -> None:
    fake.is_open = False
    x = on_two(np.ones(N, np.int32))
    where, _ = launched(fake, lambda: ga.reduce(x))
    assert where == [0, 1, 0]
    assert len(fake.named("cuMemcpyPeerAsync")) == 1


@pytest.mark.parametrize("call", [ga.radix_sort, ga.argsort])
def test_sorts_read_the_runs_of_all_where_they_lie(fake: FakeDriver, call: Any) -> None:
    """Each GPU sorts, then merges its part; nothing is copied, and nobody waits."""
    x = on_two(np.zeros(N, np.int32))
    where, result = launched(fake, lambda: call(x))
    cut_and_merge = 3
    assert where[-2 * cut_and_merge :] == cut_and_merge * [0] + cut_and_merge * [1]
    assert set(where[: -2 * cut_and_merge]) == {0, 1}
    assert [shard.device for shard in result.shards] == [0, 1]
    assert not fake.named("cuMemcpyPeerAsync", *WAITS)
    names = [call[0] for call in fake.named("cuLaunchKernelEx", "cuStreamWaitEvent")]
    launches = [i for i, name in enumerate(names) if name == "cuLaunchKernelEx"]
    between = names[launches[-2 * cut_and_merge - 1] : launches[-2 * cut_and_merge]]
    assert between.count("cuStreamWaitEvent") >= 2  # each GPU for the other's run
    assert "cuStreamWaitEvent" in names[launches[-1] :]  # before memory is lent again


@pytest.mark.parametrize(("reason", "dtype"), [("are_peers", "int16"), ("is_open", "uint32")])
def test_the_host_cuts_where_gpus_cannot_read(fake: FakeDriver, reason: str, dtype: str) -> None:
    """What is on the wrong GPU moves in one copy for each pair; the host waits for splitters."""
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


OWN = (0x70, 0x80)  # streams that shards are used on


def known_before_launches(fake: FakeDriver) -> tuple[list[set[Any]], dict[int, set[Any]]]:
    """Return what each launch comes behind, and what is queued on streams in the end.

    Of launches their numbers; of each stream in OWN that itself, as what is queued there at first.
    """
    done: dict[int, set[Any]] = {own: {own} for own in OWN}
    events: dict[Any, set[Any]] = {}
    found: list[set[Any]] = []
    for name, *args in fake.calls:
        if name == "cuEventRecord":
            events[args[0]] = set(done.get(args[1], ()))
        elif name == "cuStreamWaitEvent":
            done.setdefault(args[0], set()).update(events[args[1]])
        elif name in ("cuLaunchKernelEx", "cuLaunchKernel"):
            stream = args[0].hStream if name.endswith("Ex") else args[8]
            queued = done.setdefault(stream, set())
            found.append(set(queued))
            queued.add(len(found) - 1)
    return found, done


def on_streams(dtype: Any) -> Any:
    """Return an array whose shards are each used on a stream of OWN."""
    return ga.ShardedArray.from_shards([
        device_array.empty((N // 2,), np.dtype(dtype), number, own)
        for number, own in enumerate(OWN)
    ])  # fmt: skip


@pytest.mark.parametrize(("are_peers", "dtype"), [(True, "uint16"), (False, "uint8")])
@pytest.mark.parametrize("name", ["reduce", "histogram", "radix_sort"])
def test_shards_that_are_used_on_streams_of_their_own(
    fake: FakeDriver, name: str, are_peers: bool, dtype: str
) -> None:
    """They are read behind what is queued there, and what is queued there later comes behind."""
    fake.are_peers = are_peers
    fake.device_of_stream = dict(zip(OWN, (0, 1), strict=True))
    calls: dict[str, Callable[[Any], Any]] = {
        "reduce": lambda x: ga.reduce(x), "histogram": lambda x: ga.histogram(x, 7, (0, 1)),
        "radix_sort": lambda x: ga.radix_sort(x),
    }  # fmt: skip
    x = on_streams(dtype)
    where, _ = launched(fake, lambda: calls[name](x))
    assert where[:2] == [0, 1]
    found, done = known_before_launches(fake)
    for number, own in enumerate(OWN):
        assert own in found[number]
        assert number in done[own]


def test_what_is_kept_of_shards_that_are_used_on_streams_of_their_own(fake: FakeDriver) -> None:
    fake.device_of_stream = dict(zip(OWN, (0, 1), strict=True))
    x = on_streams(bool)
    launched(fake, lambda: ga.select(x, x))
    found, _ = known_before_launches(fake)
    assert all(own in found[number] for number, own in enumerate(OWN))
    assert len(fake.named("cuStreamSynchronize")) == 2  # nothing reads shards afterwards
