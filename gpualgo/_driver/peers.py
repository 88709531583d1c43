"""Several GPUs of one host: peer access, copies, and ordering between their streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from gpualgo._base import forks
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging, streams
from gpualgo._driver.driver import check

# Smaller sources owned by this package are kept alive until copied. For larger ones the owner's
# stream waits, so that freed memory can be reused.
HELD_BYTES = 1 << 20


class Memory(NamedTuple):
    """A contiguous array's memory, and the stream that uses it."""

    address: int
    device: int
    stream: int
    owner: Any


_opened: dict[tuple[int, int], bool] = {}  # whether two GPUs access each other's memory
_lock = forks.Lock()


def open_both(a: int, b: int) -> bool:
    """Enable peer access between two GPUs; return False if it is not supported.

    Copies then go through the host.
    """
    pair = (a, b) if a < b else (b, a)
    is_open = _opened.get(pair)
    if is_open is None:
        with _lock:
            is_open = all(_open(own, other) for own, other in (pair, pair[::-1]))
            _opened[pair] = is_open
    return is_open


def _open(own: int, other: int) -> bool:
    """Let one GPU access the memory of another, if it can."""
    api = driver.api()
    if not can_reach(own, other):
        return False
    peer = gpu.get(other)
    with gpu.get(own).outside_capture():
        (status,) = api.cuCtxEnablePeerAccess(peer.context.handle, 0)
    if status != api.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
        check((status,), f"letting cuda:{own} reach the memory of cuda:{other}")
    peer.pool.open_to(own)
    return True


def can_reach(own: int, other: int) -> bool:
    result = driver.api().cuDeviceCanAccessPeer(own, other)
    return own == other or bool(check(result, "cuDeviceCanAccessPeer"))


class Copy(NamedTuple):
    target: Memory
    source: Memory
    size: int


Stream = tuple[int, int]
"""A device, and the handle of one of its streams."""


def _stream_of(memory: Memory) -> Stream:
    return memory.device, memory.stream


def _wait(pairs: Iterable[tuple[Stream, Stream]]) -> None:
    """Let the first stream of each pair, of any GPU, wait for the work queued so far on the second.

    The host does not wait. All events are recorded before any stream waits, as two streams may wait
    for each other.
    """
    waiting: dict[Stream, dict[Stream, Any]] = {}
    for later, earlier in pairs:
        if later != earlier:
            waiting.setdefault(later, {})[earlier] = None
    events: dict[Stream, Any] = {}
    for device, stream in {earlier for several in waiting.values() for earlier in several}:
        with gpu.get(device).current():
            events[device, stream] = driver.record(stream, driver.new_event())
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
    """Queue a copy on the target's stream, without any ordering."""
    (target, source, size), api = copy, driver.api()
    to_gpu = gpu.get(target.device)
    if target.device == source.device:
        with to_gpu.current():
            staging.move(source.address, target.address, size, target.stream)
        return
    open_both(target.device, source.device)
    from_gpu = gpu.get(source.device)
    with to_gpu.current():
        queued = api.cuMemcpyPeerAsync(
            target.address, to_gpu.context.handle, source.address, from_gpu.context.handle, size,
            target.stream,
        )  # fmt: skip
        check(queued, "cuMemcpyPeerAsync")


def copy_all(copies: Sequence[Copy], are_ours: bool) -> None:
    """Queue copies on their targets' streams, after the work queued so far on the sources' streams.

    Copies on different streams are not ordered, so both directions overlap. Later work on the
    sources' streams waits for the copies; with `are_ours`, small sources are kept alive instead, as
    nobody writes to them.
    """
    used: list[tuple[Stream, Stream]] = []  # the streams of each source that is not kept alive
    kept: dict[Stream, list[Any]] = {}
    for target, source, size in copies:
        if are_ours and size < HELD_BYTES and _stream_of(target) != _stream_of(source):
            kept.setdefault(_stream_of(target), []).append(source.owner)
        else:
            used.append((_stream_of(source), _stream_of(target)))
    _wait((_stream_of(target), _stream_of(source)) for target, source, _ in copies)
    for copy in copies:
        move(copy)
    for (device, stream), owners in kept.items():
        streams.keep_until_done(stream, device, *owners)
    _wait(used)
    _mark_used([source for _, source, _ in copies])


def can_read(readers: Iterable[int], memory: Memory) -> bool:
    """Return whether the kernels of some GPUs can read memory of one GPU in place.

    True for memory of cuMemAlloc and of this package's pool, once peer access is enabled. For other
    pools and mappings this is unknown.
    """
    others = [reader for reader in readers if reader != memory.device]
    if not all(open_both(reader, memory.device) for reader in others):
        return False
    if not others:
        return True
    pool = gpu.pool_of(memory.address)
    return gpu.get(memory.device).pool.is_own(pool) or gpu.is_open(memory.address)


Read = tuple[Stream, Memory]
"""A stream whose kernels read, and the memory that they read."""


@contextmanager
def reading(reads: Sequence[Read]) -> Iterator[None]:
    """Let streams read memory of any GPU in the work that is queued within the block.

    That work waits for the work queued so far on the memory's own stream, and later work there
    waits for it.
    """
    pairs = [(reader, _stream_of(memory)) for reader, memory in reads]
    _wait(pairs)
    try:
        yield
    finally:
        _wait((source, reader) for reader, source in pairs)
        _mark_used([memory for _, memory in reads])


def _mark_used(memories: Sequence[Memory]) -> None:
    """Let memory of this package be freed only after the work that its stream has queued so far."""
    for memory in memories:
        own = getattr(memory.owner, "owner", None)
        if type(own) is streams.Memory:
            own.use_on(memory.stream)
