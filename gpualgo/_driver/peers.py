"""Several GPUs of one host: their memory, and the order of their streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from gpualgo._base import forks
from gpualgo._driver import addresses, driver, lifetime, staging
from gpualgo._driver import device as gpu
from gpualgo._driver.driver import check

# Of less than this our own memory is held until its copy has run; of more the stream of its owner
# waits, so that what is given back can be lent again.
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


class Copy(NamedTuple):
    """So many bytes that go from one place to another."""

    target: Memory
    source: Memory
    size: int


Stream = tuple[int, int]
"""A device, and the handle of one of its streams."""


def _stream_of(memory: Memory) -> Stream:
    return memory.device, memory.stream


def _after(earlier: Stream) -> Any:
    """Return a new event that comes when a stream has done what it has queued so far."""
    device, stream = earlier
    with gpu.get(device).current():
        event = check(driver.api().cuEventCreate(2), "cuEventCreate")  # 2: no timing
        check(driver.api().cuEventRecord(event, stream), "cuEventRecord")
    return event


def _wait(waiting: dict[Stream, list[Stream]]) -> None:
    """Let streams wait for what others, of any GPU, have queued so far; the host does not wait.

    All is looked at before any waits: two may wait for each other.
    """
    wanted = {earlier for several in waiting.values() for earlier in several}
    events = {earlier: _after(earlier) for earlier in wanted}
    try:
        for (device, stream), several in waiting.items():
            with gpu.get(device).current():
                for earlier in several:
                    waits = driver.api().cuStreamWaitEvent(stream, events[earlier], 0)
                    check(waits, "cuStreamWaitEvent")
    finally:
        for event in events.values():
            check(driver.api().cuEventDestroy(event), "cuEventDestroy")


def move(copy: Copy) -> None:
    """Queue a copy on the target's stream, and nothing else."""
    (target, source, size), api = copy, driver.api()
    place = gpu.get(target.device)
    if target.device == source.device:
        with place.current():
            staging.move(source.address, target.address, size, target.stream)
        return
    open_both(target.device, source.device)
    origin = gpu.get(source.device)
    with place.current():
        queued = api.cuMemcpyPeerAsync(
            target.address, place.context.handle, source.address, origin.context.handle, size,
            target.stream,
        )  # fmt: skip
        check(queued, "cuMemcpyPeerAsync")


def copy_all(copies: Sequence[Copy], are_ours: bool) -> None:
    """Queue copies, each on its target's stream, after what the source's has queued so far.

    None of them waits for another but on the same stream, so that they go both ways at once. What
    is queued on the sources' streams from now on comes behind them; `are_ours`: small sources are
    held instead, as nobody writes to them.
    """
    before: dict[Stream, list[Stream]] = {}
    behind: dict[Stream, list[Stream]] = {}
    held: dict[Stream, list[Any]] = {}
    for target, source, size in copies:
        into, origin = _stream_of(target), _stream_of(source)
        if into == origin:
            continue
        _add(before, into, origin)
        if are_ours and size < HELD_BYTES:
            held.setdefault(into, []).append(source.owner)
        else:
            _add(behind, origin, into)
    _wait(before)
    for copy in copies:
        move(copy)
    for (device, stream), owners in held.items():
        lifetime.keep_until_done(stream, device, *owners)
    _wait(behind)
    _use([source for _, source, _ in copies])


def can_read(reader: int, memory: Memory) -> bool:
    """Return whether kernels of a GPU can read memory of another one where it lies.

    What cuMemAlloc gave they can once the GPUs reach each other, and what our own pool lends; of
    other pools and of what is mapped otherwise nobody knows.
    """
    if reader == memory.device:
        return True
    if not can_reach(reader, memory.device):
        return False
    open_both(reader, memory.device)
    pool = addresses.pool_of(memory.address)
    return gpu.get(memory.device).pool.is_own(pool) or addresses.is_open(memory.address)


Read = tuple[Stream, Memory]
"""A stream whose kernels read, and what they read."""


@contextmanager
def reading(reads: Sequence[Read]) -> Iterator[None]:
    """Let streams read memory by what is queued on them within, wherever it lies.

    That comes after what the memory's own stream has queued so far; what is queued there later
    comes behind it.
    """
    before: dict[Stream, list[Stream]] = {}
    behind: dict[Stream, list[Stream]] = {}
    for reader, memory in reads:
        origin = _stream_of(memory)
        if origin != reader:
            _add(before, reader, origin)
            _add(behind, origin, reader)
    _wait(before)
    try:
        yield
    finally:
        _wait(behind)
        _use([memory for _, memory in reads])


def _use(memories: Sequence[Memory]) -> None:
    """Have memory of our own given back after what its stream has queued by now."""
    for memory in memories:
        own = getattr(memory.owner, "owner", None)
        if type(own) is lifetime.Memory:
            own.use_on(memory.stream)


def _add(waiting: dict[Stream, list[Stream]], later: Stream, earlier: Stream) -> None:
    several = waiting.setdefault(later, [])
    if earlier not in several:
        several.append(earlier)
