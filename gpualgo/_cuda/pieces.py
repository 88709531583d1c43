"""Temporary storage of a plan: pieces of a stream's workspace, or of one allocation."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from gpualgo._driver.device import Device
from gpualgo._driver.workspace import KEPT_BYTES, STATE_BYTES, TICKET_BYTES, aligned, clear

TICKETS, KEPT, STATES = 0, TICKET_BYTES, TICKET_BYTES + KEPT_BYTES  # offsets in a workspace
_ENDS = {TICKETS: TICKET_BYTES, KEPT: STATES, STATES: STATES + STATE_BYTES}


class Piece(NamedTuple):
    """Temporary storage for one purpose."""

    num_bytes: int
    workspace_offset: int | None = (
        None  # offset in a stream's workspace, used if the piece fits there
    )
    is_zeroed: bool = False  # zero before each launch; kernels reset it to zero

    @property
    def fits(self) -> bool:
        """Return whether the piece fits into its part of the workspace."""
        if self.workspace_offset is None:
            return False
        start = max(start for start in _ENDS if start <= self.workspace_offset)
        return self.workspace_offset + self.num_bytes <= _ENDS[start]


class Lent(NamedTuple):
    """The pieces of one call, and what is needed to release them."""

    device: Device
    pieces: tuple[int, ...]
    address: int  # of the allocation, or 0
    stream: int
    turn: AbstractContextManager[int] | None  # lock of the shared workspace

    def release(self) -> None:
        """Release the pieces in stream order."""
        try:
            if self.address:
                self.device.free(self.address, self.stream)
        finally:
            if self.turn is not None:
                self.turn.__exit__(None, None, None)


class Pieces:
    """Offsets of a plan's pieces: in a stream's workspace, and in one allocation (zeroed first).

    A piece with `workspace_offset` None is allocated in both cases.
    """

    __slots__ = ("_device", "_is_kept", "_is_shared", "_kept", "_large_bytes", "_own",
                 "_zeroed_bytes", "num_bytes")  # fmt: skip

    def __init__(self, device: Device, pieces: Sequence[Piece], is_shared: bool) -> None:
        """`is_shared`: several launches use the pieces one after the other."""
        self._device, self._is_shared = device, is_shared
        order = sorted(range(len(pieces)), key=lambda i: not pieces[i].is_zeroed)
        offsets = [0] * len(pieces)
        end = self._zeroed_bytes = 0
        for i in order:
            offsets[i] = aligned(end)
            end = offsets[i] + pieces[i].num_bytes
            if pieces[i].is_zeroed:
                self._zeroed_bytes = end
        self._own, self.num_bytes = tuple(offsets), end
        large = [piece for piece in pieces if piece.workspace_offset is None]
        self._is_kept = all(piece.fits for piece in pieces if piece.workspace_offset is not None)
        self._is_kept &= len(large) < len(pieces) and not any(piece.is_zeroed for piece in large)
        self._large_bytes = sum(aligned(piece.num_bytes) for piece in large)
        # Offsets in the workspace; -1 - offset for pieces in the separate allocation.
        self._kept: list[int] = []
        position = 0
        for piece in pieces:
            if piece.workspace_offset is None:
                self._kept.append(-1 - position)
                position += aligned(piece.num_bytes)
            else:
                self._kept.append(piece.workspace_offset)

    def kept(self, stream: int) -> tuple[int, ...] | None:
        """Return the pieces' addresses in the stream's workspace; None if `lend` is needed.

        Launches on one stream run one after the other, so plans of one launch share a workspace.
        """
        if not self._is_kept or self._is_shared or self._large_bytes:
            return None
        base = self._device.kept_workspace(stream)
        return tuple([base + start for start in self._kept]) if base else None

    def lend(self, stream: int) -> Lent:
        """Return pieces for one call, in the stream's second workspace or allocated."""
        if self._is_kept and self._is_shared:
            turn = self._device.second_workspace(stream)
            base = turn.__enter__()
            if base:
                try:
                    large = self._allocate(self._large_bytes, stream) if self._large_bytes else 0
                except BaseException:
                    turn.__exit__(None, None, None)
                    raise
                kept = [base + start if start >= 0 else large - 1 - start for start in self._kept]
                return Lent(self._device, tuple(kept), large, stream, turn)
            turn.__exit__(None, None, None)
        self._device.context.ensure()  # memsets and allocations need a context, too
        address = self._allocate(self.num_bytes, stream)
        try:
            if self._zeroed_bytes:
                clear(address, self._zeroed_bytes, stream)
        except BaseException:
            self._device.free(address, stream)
            raise
        return Lent(
            self._device, tuple([address + start for start in self._own]), address, stream, None
        )

    def _allocate(self, num_bytes: int, stream: int) -> int:
        return self._device.allocate(num_bytes, stream)
