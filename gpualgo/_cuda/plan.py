"""Plans: the steps that a problem queues on a GPU for arrays of given layouts.

A plan is a list of steps over one tuple of addresses; each step names the indices that it takes: 0
to 3 for the initial value, whether it is given, its device address, and 0; 4 for the operator's
captured numbers; then sources, targets and pieces of temporary storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

from gpualgo._base import recording
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.pieces import Piece, Pieces
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, workspace
from gpualgo._driver.context import leave

VALUE, GIVEN, FIRST, NONE = range(4)


class Places(NamedTuple):
    """Indices of the arrays in a plan's addresses."""

    num_sources: int
    num_targets: int

    def source(self, i: int) -> int:
        return 5 + i

    def target(self, i: int) -> int:
        return 5 + self.num_sources + i

    def piece(self, i: int) -> int:
        return 5 + self.num_sources + self.num_targets + i


@final
class Clear(NamedTuple):
    """A step that sets bytes at an address to zero."""

    place: int
    num_bytes: int


class Plan:
    """Steps in order, and their temporary storage; everything is decided."""

    __slots__ = ("__weakref__", "device", "pieces", "steps", "storage", "tables",
                 "temp_storage_bytes")  # fmt: skip

    def __init__(
        self, device: int, steps: Sequence[Launch | Clear], pieces: Sequence[Piece] = (),
        tables: object = None,
    ) -> None:  # fmt: skip
        """`tables`: owner of memory that kernels read; it lives as long as the plan."""
        self.device, self.steps, self.tables = gpu.get(device), list(steps), tables
        self.pieces = tuple(pieces)
        is_shared = sum(isinstance(step, Launch) for step in steps) > 1
        self.storage = Pieces(self.device, pieces, is_shared) if pieces else None
        self.temp_storage_bytes = self.storage.num_bytes if self.storage is not None else 0

    def queue(self, stream: int, addresses: tuple[Any, ...]) -> None:
        """Queue all steps on a stream; `addresses` has everything but the temporary storage."""
        previous = None if driver.is_simple else self.device.context.enter()
        lent = None
        try:
            if self.tables is not None and driver.is_capturing(stream):
                recording.keep_alive(self)
            storage = self.storage
            if storage is not None:
                pieces = storage.kept(stream)
                if pieces is None:
                    lent = storage.lend(stream)
                    pieces = lent.pieces
                addresses += pieces
            for step in self.steps:
                if type(step) is Clear:
                    self.device.context.ensure()
                    workspace.clear(addresses[step.place], step.num_bytes, stream)
                    continue
                try:
                    block = step.free.pop()
                except IndexError:
                    block = step.new_block()
                if step.offsets is None:
                    step.pack(block.buffer, block.offset, *step.pick(addresses))
                else:
                    step.fill(block, addresses)
                if block.stream != stream:
                    block.config.hStream = driver.api().CUstream(stream)
                    block.stream = stream
                (status,) = step.submit(block.config, step.handle, block.address, 0)
                if status:
                    step.retry(status, block.config, block.address)
                step.free.append(block)
        finally:
            try:
                if lent is not None:
                    lent.release()
            finally:
                if previous is not None:
                    leave(previous)

    def packed(self, addresses: tuple[Any, ...]) -> Callable[[int], None] | None:
        """Return launch(stream) for fixed addresses; None if each call needs temporary storage.

        Only for a single device, where launches need no context switch.
        """
        (step, *others) = self.steps
        if others or self.storage is not None or isinstance(step, Clear):
            return None
        if self.tables is not None:
            return None
        return step.packed(addresses)
