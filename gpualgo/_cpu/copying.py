"""Copies of memory by the threads that stand by: what travels to a GPU and back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter
from typing import Any

from gpualgo._base import log, threads
from gpualgo._cpu import team
from gpualgo._cpu.kernels import get_kernel
from gpualgo._cpu.memory import Memory
from gpualgo._cpu.parameters import COPY_WORDS, PIECE, SIZE_OF_ALL, SOURCE, TARGET

LEAST_BYTES = 256 << 10  # worth several threads
PIECE_BYTES = 64 << 10
BYTE_SECONDS = 2e-10  # of one thread, which decides by how many threads
_MOST_LOSSES = 6

_kernels: list[Any] = []
_is_refused = False  # nothing can be compiled here


class _Pace:
    """How fast one thread has copied, and for how many copies the others are left alone.

    Where several take longer than one, other processes have their cores: as of `launch.Pace`, the
    next copies are one thread's, 1, then 3, 7, and 63 at most.
    """

    def __init__(self) -> None:
        self.byte_seconds = 0.0  # 0: nobody has looked yet
        self.alone, self.losses = 0, 0

    def by_one(self, target: int, source: int, size: int) -> None:
        """Copy, and look how long it takes."""
        self.alone = max(self.alone - 1, 0)
        start = perf_counter()
        ctypes.memmove(target, source, size)
        found = (perf_counter() - start) / size
        # It may have been stopped on the way: what is slower counts bit by bit.
        known = self.byte_seconds
        self.byte_seconds = min(found, known * 1.1) if known else found

    def learn(self, seconds: float, size: int) -> None:
        """Learn from a copy by several."""
        if seconds > size * self.byte_seconds:
            self.losses = min(self.losses + 1, _MOST_LOSSES)
            self.alone = (1 << self.losses) - 1
        else:
            self.losses = max(self.losses - 1, 0)


_pace = _Pace()


def copy(target: int, source: int, size: int) -> None:
    """Copy memory that does not overlap."""
    if size < LEAST_BYTES:
        ctypes.memmove(target, source, size)
    elif _pace.alone or not _pace.byte_seconds or not _copied_by_several(target, source, size):
        _pace.by_one(target, source, size)


def _copied_by_several(target: int, source: int, size: int) -> bool:
    """Copy by the threads that stand by; False: there are none, or others have them."""
    most = threads.num_threads()
    if most < 2 or _is_refused or (leader := team.current()) is None:
        return False
    entry = _entry()
    if not entry:
        return False
    table = Memory(8 * COPY_WORDS)
    words = table.words
    words[TARGET], words[SOURCE] = target, source
    words[SIZE_OF_ALL], words[PIECE] = size, PIECE_BYTES
    tasks = -(-size // PIECE_BYTES)
    start = perf_counter()
    if leader.run(entry, table.address, 0, tasks, size * BYTE_SECONDS, most) <= 0:
        return False
    _pace.learn(perf_counter() - start, size)
    return True


def _entry() -> int:
    """Return the address of the kernel's code, 0 if it can be neither found nor compiled."""
    global _is_refused
    if not _kernels:
        try:
            _kernels.append(get_kernel(("copy",), _write))
        except RuntimeError as error:
            log.tell(log.INFO, "one thread copies: %s", error)
            _is_refused = True
            return 0
    return int(_kernels[0].loaded.address)


def _write() -> Callable[..., None]:
    from gpualgo._cpu.copying_kernel import copied

    return copied
