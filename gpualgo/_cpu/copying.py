"""Copies of memory by the threads of `team`, for transfers to and from a GPU."""

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

LEAST_BYTES = 256 << 10  # the least that is worth several threads
PIECE_BYTES = 64 << 10
BYTE_SECONDS = 2e-10  # estimate for one thread; decides how many threads copy
_MOST_LOSSES = 6

_kernels: list[Any] = []
_is_refused = False  # the kernel cannot be compiled in this process


class _CostEstimate:
    """Measured speed of one thread; decides whether several threads run the next copies.

    Several threads are slower than one if other processes use their cores. As in
    `launch.CostEstimate`, one thread then runs the next 1, 3, 7, ... copies, at most 63.
    """

    def __init__(self) -> None:
        self.byte_seconds = 0.0  # 0: not measured yet
        self.alone, self.losses = 0, 0

    def by_one(self, target: int, source: int, size: int) -> None:
        """Copy with one thread and measure the time."""
        self.alone = max(self.alone - 1, 0)
        start = perf_counter()
        ctypes.memmove(target, source, size)
        measured = (perf_counter() - start) / size
        # The thread may have been preempted: the estimate grows by at most 10 % a copy.
        previous = self.byte_seconds
        self.byte_seconds = min(measured, previous * 1.1) if previous else measured

    def learn(self, seconds: float, size: int) -> None:
        """Update the estimate from a copy by several threads."""
        if seconds > size * self.byte_seconds:
            self.losses = min(self.losses + 1, _MOST_LOSSES)
            self.alone = (1 << self.losses) - 1
        else:
            self.losses = max(self.losses - 1, 0)


_cost = _CostEstimate()


def copy(target: int, source: int, size: int) -> None:
    """Copy memory that does not overlap."""
    if size < LEAST_BYTES:
        ctypes.memmove(target, source, size)
    elif _cost.alone or not _cost.byte_seconds or not _copied_by_several(target, source, size):
        _cost.by_one(target, source, size)


def _copied_by_several(target: int, source: int, size: int) -> bool:
    """Copy with the team's threads; return False if there are none or another call uses them."""
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
    _cost.learn(perf_counter() - start, size)
    return True


def _entry() -> int:
    """Return the address of the kernel's code, 0 if it can be neither loaded nor compiled."""
    global _is_refused
    if not _kernels:
        try:
            _kernels.append(get_kernel(("copy",), _write))
        except RuntimeError as error:
            log.log(log.INFO, "copies use one thread: %s", error)
            _is_refused = True
            return 0
    return int(_kernels[0].loaded.address)


def _write() -> Callable[..., None]:
    from gpualgo._cpu.direct_kernels import copy_pieces

    return copy_pieces
