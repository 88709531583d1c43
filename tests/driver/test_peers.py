"""Copies between GPUs: what waits for what, in which context, and whose memory is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fake_driver
import pytest
from fake_driver import FakeDriver

from gpualgo._driver import peers, streams
from gpualgo._driver.peers import HELD_BYTES, Copy, Memory

STREAMS = (0x40, 0x50)  # of cuda:0 and cuda:1
CONTEXTS = (100, 101)
LARGE, SMALL = HELD_BYTES, 64


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(peers, "_opened", {})
    return fake_driver.install(monkeypatch)


def at(device: int, address: int = 0x1000, owner: Any = None) -> Memory:
    return Memory(address, device, STREAMS[device], owner)


class Order:
    """What has to be done before what, by what was queued and waited for."""

    def __init__(self, calls: Sequence[tuple[Any, ...]]) -> None:
        self.done: dict[int, set[str]] = {stream: set() for stream in STREAMS}
        self.before: dict[str, set[str]] = {}
        events: dict[Any, set[str]] = {}
        for name, *args in calls:
            if name == "cuEventRecord":
                events[args[0]] = set(self.done[args[1]])
            elif name == "cuStreamWaitEvent":
                self.done[args[0]] |= events[args[1]]
            elif name == "cuMemcpyPeerAsync":
                target, _, source, _, _, stream = args
                copy = f"{source:#x} -> {target:#x}"
                self.before[copy] = set(self.done[stream])
                self.done[stream].add(copy)


def queued_before(fake: FakeDriver) -> None:
    """Have something queued on each stream that copies must wait for."""
    for stream in STREAMS:
        fake.calls.append(("cuMemcpyPeerAsync", stream, 0, 0, 0, 0, stream))


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("are_ours", [False, True])
def test_both_ways_at_once(fake: FakeDriver, size: int, are_ours: bool) -> None:
    fake.is_done = False
    queued_before(fake)
    there, back = Copy(at(1, 0xB), at(0, 0xA), size), Copy(at(0, 0xD), at(1, 0xC), size)
    peers.copy_all([there, back], are_ours)
    order = Order(fake.calls)
    earlier = {"0x0 -> 0x40", "0x0 -> 0x50"}
    assert order.before["0xa -> 0xb"] == order.before["0xc -> 0xd"] == earlier
    both = {"0xa -> 0xb", "0xc -> 0xd"}
    if are_ours and size == SMALL:  # their owners are held instead
        assert [len(held) for held in streams._in_use.values()] == [1, 1]
    else:
        assert all(both <= order.done[stream] for stream in STREAMS)
        assert not streams._in_use


def test_contexts(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are recorded in their streams' contexts; copies name both."""
    found: list[Any] = []

    def noting(name: str) -> None:
        usual = getattr(fake, name)

        def call(*args: Any) -> Any:
            found.append((name, fake.current, *args))
            return usual(*args)

        monkeypatch.setattr(fake, name, call, raising=False)

    for name in ("cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync"):
        noting(name)
    fake.current = 55
    peers.copy_all([Copy(at(1, 0xB), at(0, 0xA), LARGE)], are_ours=False)
    assert fake.current == 55
    recorded, waits, copied, recorded_after, waits_after = found
    assert (recorded[1], recorded[3]) == (CONTEXTS[0], STREAMS[0])
    assert (waits[1], waits[2]) == (CONTEXTS[1], STREAMS[1])
    assert copied[1:] == (CONTEXTS[1], 0xB, CONTEXTS[1], 0xA, CONTEXTS[0], LARGE, STREAMS[1])
    assert (recorded_after[1], recorded_after[3]) == (CONTEXTS[1], STREAMS[1])
    assert (waits_after[1], waits_after[2]) == (CONTEXTS[0], STREAMS[0])
    created = fake.named("cuEventCreate")
    assert len(created) == len(fake.named("cuEventDestroy")) == 2


def test_memory_is_opened_once_both_ways(fake: FakeDriver) -> None:
    for _ in range(2):
        peers.copy_all([Copy(at(1), at(0), SMALL), Copy(at(0), at(1), SMALL)], are_ours=False)
    assert [call[1] for call in fake.named("cuCtxEnablePeerAccess")] == [CONTEXTS[1], CONTEXTS[0]]
    opened = fake.named("cuMemPoolSetAccess")
    assert [call[2][0].location.id for call in opened] == [0, 1]
    assert len(fake.named("cuMemcpyPeerAsync")) == 4


def test_gpus_that_are_no_peers_are_left_to_the_driver(fake: FakeDriver) -> None:
    fake.are_peers = False
    assert not peers.can_reach(0, 1)
    assert peers.can_reach(1, 1)
    peers.copy_all([Copy(at(1), at(0), SMALL)], are_ours=False)
    assert not fake.named("cuCtxEnablePeerAccess", "cuMemPoolSetAccess")
    assert len(fake.named("cuMemcpyPeerAsync")) == 1


def test_within_a_stream_nothing_waits(fake: FakeDriver) -> None:
    copy = Copy(at(0, 0x2000), at(0), LARGE)
    peers.copy_all([copy], are_ours=False)
    assert fake.named("cuMemcpyAsync") == [("cuMemcpyAsync", 0x2000, 0x1000, LARGE, STREAMS[0])]
    assert not fake.named("cuEventCreate", "cuMemcpyPeerAsync")
