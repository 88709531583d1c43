"""Several GPUs of one host: their memory, and the order of their streams."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from gpualgo._base import forks
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, lifetime, staging, streams
from gpualgo._driver.driver import check

# Of less than this memory stays held until its copy has run; of more the stream of its owner waits,
# so that what is given back can be lent again.
HELD_BYTES = 1 << 20


class Memory(NamedTuple):
    """Where an array without gaps lies, and the stream that it is used on."""

    address: int
    device: int
    stream: int
    owner: Any


_opened: set[tuple[int, int]] = set()
_lock = threading.Lock()


@forks.in_child
def _forget() -> None:
    global _opened, _lock
    _opened, _lock = set(), threading.Lock()


def open_both(a: int, b: int) -> None:
    """Let two GPUs reach each other's memory, where the machine can; else copies go by the host."""
    pair = min(a, b), max(a, b)
    if pair in _opened:
        return
    with _lock:
        if pair not in _opened:
            for own, other in (pair, pair[::-1]):
                _open(own, other)
            _opened.add(pair)


def _open(own: int, other: int) -> None:
    """Let one GPU reach the memory of another."""
    api = driver.api()
    if not check(api.cuDeviceCanAccessPeer(own, other), "cuDeviceCanAccessPeer"):
        return
    peer = gpu.get(other)
    with gpu.get(own).outside_capture():
        (status,) = api.cuCtxEnablePeerAccess(peer.context.handle, 0)
    if status != api.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
        check((status,), f"letting cuda:{own} reach the memory of cuda:{other}")
    peer.pool.open_to(own)


def can_reach(own: int, other: int) -> bool:
    """Return whether one GPU can read and write the memory of another itself."""
    found = driver.api().cuDeviceCanAccessPeer(own, other)
    return own == other or bool(check(found, "cuDeviceCanAccessPeer"))


def wait_for(later: Memory, earlier: Memory) -> None:
    """Let a stream wait for what another, of any GPU, has queued so far; the host does not wait."""
    if later.device == earlier.device:
        streams.wait_for(later.stream, earlier.stream, later.device)
        return
    api = driver.api()
    with gpu.get(earlier.device).current():
        event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
        check(api.cuEventRecord(event, earlier.stream), "cuEventRecord")
    try:
        with gpu.get(later.device).current():
            check(api.cuStreamWaitEvent(later.stream, event, 0), "cuStreamWaitEvent")
    finally:
        check(api.cuEventDestroy(event), "cuEventDestroy")


def move(target: Memory, source: Memory, size: int) -> None:
    """Queue a copy from another GPU on the target's stream."""
    open_both(target.device, source.device)
    place, origin = gpu.get(target.device), gpu.get(source.device)
    with place.current():
        queued = driver.api().cuMemcpyPeerAsync(
            target.address, place.context.handle, source.address, origin.context.handle, size,
            target.stream,
        )  # fmt: skip
        check(queued, "cuMemcpyPeerAsync")


def copy(target: Memory, source: Memory, size: int) -> None:
    """Queue a copy on the target's stream, after what the source's has queued so far."""
    wait_for(target, source)
    if target.device == source.device:
        with gpu.get(target.device).current():
            staging.move(source.address, target.address, size, target.stream)
        if target.stream == source.stream:
            return
    else:
        move(target, source, size)
    if size < HELD_BYTES:
        lifetime.keep_until_done(target.stream, target.device, source.owner)
        return
    wait_for(source, target)
    memory = getattr(source.owner, "owner", None)
    if type(memory) is lifetime.Memory:
        memory.use_on(source.stream)
