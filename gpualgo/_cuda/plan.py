"""Plans: the steps that a problem queues on a GPU for arrays of given layouts.

A plan is a list of steps over one tuple of addresses; each step names the indices that it takes: 0
to 3 for the initial value, whether it is given, its device address, and 0; 4 for the operator's
captured numbers; then sources, targets and pieces of temporary storage.
"""

from __future__ import annotations

import copy
import ctypes
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, final

from gpualgo._base import recording
from gpualgo._cuda.parameters import NUMBERS, Packed
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver.device import KEPT_BYTES, STATE_BYTES, TICKET_BYTES, Device, aligned, clear
from gpualgo._driver.driver import leave

# --- Temporary storage of a plan: pieces of a stream's workspace, or of one allocation.

TICKETS, KEPT, STATES = 0, TICKET_BYTES, TICKET_BYTES + KEPT_BYTES  # offsets in a workspace
MARKS = STATES + STATE_BYTES
_ENDS = {TICKETS: KEPT, KEPT: STATES, STATES: MARKS, MARKS: MARKS + gpu.MARK_BYTES}


class Piece(NamedTuple):
    num_bytes: int
    workspace_offset: int | None = (
        None  # offset in a stream's workspace, used if the piece fits there
    )
    is_zeroed: bool = False  # zero before each launch; kernels reset it to zero

    @property
    def fits(self) -> bool:
        if self.workspace_offset is None:
            return False
        start = max(start for start in _ENDS if start <= self.workspace_offset)
        return self.workspace_offset + self.num_bytes <= _ENDS[start]


CONTROL_BYTES = 256  # of LookbackControl, before the states


def lookback_states(num_bytes: int) -> tuple[Piece, int]:
    """Return memory for the states of tiles, and how many words of it the kernel clears."""
    piece = Piece(CONTROL_BYTES + num_bytes, STATES, is_zeroed=True)
    return piece, (max(piece.num_bytes, STATE_BYTES) - CONTROL_BYTES) // 8


def kept_piece(num_bytes: int) -> Piece:
    """Return a piece of the stream's workspace, or allocated by each call if it is too large."""
    piece = Piece(num_bytes, KEPT)
    return piece if piece.fits else Piece(num_bytes)


class Lent(NamedTuple):
    """The pieces of one call, and what is needed to release them."""

    device: Device
    pieces: tuple[int, ...]
    address: int  # of the allocation, or 0
    stream: int
    turn: AbstractContextManager[int] | None  # lock of the shared workspace

    def release(self) -> None:
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


# --- Launches: a kernel, its grid and its prepacked parameters; a `Plan` queues them.

MAX_GRID = (1 << 31) - 1  # blocks of a launch
AT_NUMBERS = 4  # index of an operator's captured numbers in a call's addresses, see `Plan`


class Block:
    """The parameter memory and launch configuration of one launch."""

    __slots__ = ("_table", "address", "buffer", "config", "offset", "stream")

    def __init__(self, head_bytes: int, tail: bytes, config: Any) -> None:
        size = head_bytes + len(tail)
        self.buffer = bytearray(size + 32)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.buffer))
        self.offset = -base % 16
        self.buffer[self.offset + head_bytes : self.offset + size] = tail
        self._table = (ctypes.c_void_p * 1)(base + self.offset)
        self.address = ctypes.addressof(self._table)
        self.config, self.stream = config, -1


class Launch:
    """A kernel with its grid and parameter struct, whose head changes from call to call.

    `takes` maps each field of the head to an index into a call's addresses (see `Plan`), or to
    (index, bytes to add). A field without value takes `NONE`. Parameter blocks are taken from
    `free` and returned, so threads never share one.
    """

    __slots__ = (
        "_groups", "_head", "_overlaps", "_parameters", "_tail", "device", "free", "grid", "handle",
        "kernel", "offsets", "pack", "pick", "shared_bytes", "slots", "submit", "threads",
    )  # fmt: skip

    def __init__(
        self, kernel: driver.Kernel, grid: int, threads: int, packed: Packed,
        device: int, takes: Mapping[str, Any], *, shared_bytes: int = 0, overlaps: bool = False,
        groups: int = 0,
    ) -> None:  # fmt: skip
        """`overlaps`: the kernel may start before the previous one ends; it waits by itself.

        `groups`: the grid has so many groups of blocks, a power of two each. Those of a group may
        wait for each other: if it has several, all run at the same time (a cooperative launch).
        """
        self.kernel, self.threads, self.device = kernel, threads, device
        self.shared_bytes = shared_bytes
        self._overlaps, self._groups = overlaps, groups
        kernel.allow_shared(shared_bytes, device)
        self._parameters, self._head = packed.parameters, packed.parameters.head
        self._set_size(grid, packed)
        self.pack, self.handle = self._head.pack_into, kernel.handle
        if NUMBERS in packed.parameters.fields:
            takes = {NUMBERS: AT_NUMBERS, **takes}
        places, offsets = packed.parameters.address_indices(takes)
        self._take_from(places)
        self.offsets = offsets if any(offsets) else None
        self.submit = kernel.wrapped(driver.api().cuLaunchKernelEx)

    def _take_from(self, places: tuple[int, ...]) -> None:
        self.slots = places
        only = places[0] if len(places) == 1 else None  # itemgetter of one item returns no tuple
        self.pick: Callable[[Any], Any] = operator.itemgetter(
            *places if only is None else (slice(only, only + 1),)
        )

    def _set_size(self, grid: int, packed: Packed) -> None:
        if grid > MAX_GRID:
            raise ValueError(
                f"the call needs {grid} blocks in one launch, of which a GPU takes {MAX_GRID}; "
                "call for parts of the arrays"
            )
        self.grid, self._tail = grid, packed.tail
        self.free: list[Block] = []

    def resized(self, grid: int, **fixed: Any) -> Launch:
        """Return the launch of the same kernel on the same addresses, for another size."""
        launch: Launch = object.__new__(Launch)
        for name in _OF_ALL_SIZES:
            setattr(launch, name, getattr(self, name))
        launch._set_size(grid, self._parameters.pack(**fixed))
        return launch

    def reading(self, moved: Mapping[int, int]) -> Launch:
        """Return the same launch with other indices of addresses instead of some."""
        launch: Launch = copy.copy(self)
        launch._take_from(tuple(moved.get(place, place) for place in self.slots))
        launch.free = []
        return launch

    def new_block(self) -> Block:
        api = driver.api()
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = self.grid, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = self.threads, 1, 1
        config.sharedMemBytes = self.shared_bytes
        is_grouped = 0 < self._groups < self.grid
        if self._overlaps or is_grouped:
            attribute, kinds = api.CUlaunchAttribute(), api.CUlaunchAttributeID
            if is_grouped:
                attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                attribute.value.cooperative = 1
            else:
                attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs, config.numAttrs = [attribute], 1
        return Block(self._head.size, self._tail, config)

    def fill(self, block: Block, addresses: tuple[Any, ...]) -> None:
        assert self.offsets is not None
        picked = self.pick(addresses)
        self.pack(
            block.buffer, block.offset,
            *[a + offset if offset else a for a, offset in zip(picked, self.offsets, strict=True)],
        )  # fmt: skip

    def packed(self, addresses: tuple[Any, ...]) -> Callable[[int], None]:
        """Return launch(stream) for fixed addresses; thread-safe."""
        submit, handle, to_stream = self.submit, self.handle, driver.api().CUstream
        free = [self._filled(addresses)]

        def launch(stream: int) -> None:
            try:
                block = free.pop()
            except IndexError:
                block = self._filled(addresses)
            if block.stream != stream:
                block.config.hStream, block.stream = to_stream(stream), stream
            (status,) = submit(block.config, handle, block.address, 0)
            if status:
                self.retry(status, block.config, block.address)
            free.append(block)

        return launch

    def _filled(self, addresses: tuple[Any, ...]) -> Block:
        block = self.new_block()
        if self.offsets is None:
            self.pack(block.buffer, block.offset, *self.pick(addresses))
        else:
            self.fill(block, addresses)
        return block

    def retry(self, status: Any, config: Any, parameters: int) -> None:
        """Launch again in a thread without a context, or smaller groups; raise any other error.

        A process that has only a part of the GPU cannot run all blocks at the same time.
        """
        errors = driver.api().CUresult
        if status == errors.CUDA_ERROR_INVALID_CONTEXT:
            with gpu.get(self.device).current():
                (status,) = self.submit(config, self.handle, parameters, 0)
        too_large = errors.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        while status == too_large and config.gridDimX > self._groups:
            config.gridDimX //= 2
            config.numAttrs = int(config.gridDimX > self._groups)  # a block alone waits for none
            with gpu.get(self.device).current():
                (status,) = self.submit(config, self.handle, parameters, 0)
        driver.check((status,), f"launching {self.kernel.name}")


_OF_ALL_SIZES = tuple(name for name in Launch.__slots__ if name not in ("_tail", "free", "grid"))
VALUE, GIVEN, FIRST, NONE = range(4)


class ArgMap(NamedTuple):
    """Indices of the arrays in a plan's addresses, or (index, bytes to add)."""

    sources: Sequence[Any]
    targets: Sequence[Any]
    first_piece: int = 0

    def piece(self, i: int) -> int:
        return self.first_piece + i


def arg_map(num_sources: int, num_targets: int) -> ArgMap:
    """Return the indices of a plan's own arrays: sources, then targets, then pieces."""
    targets = 5 + num_sources
    end = targets + num_targets
    return ArgMap(range(5, targets), range(targets, end), end)


@final
class Clear(NamedTuple):
    """A step that sets bytes at an address to zero."""

    slot: int
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

    def then(self, other: Plan) -> Plan:
        """Return the plan that also runs another's steps, over the same addresses.

        One of the two has no temporary storage and no tables.
        """
        plan, rest = (other, self) if self.storage is self.tables is None else (self, other)
        assert rest.storage is rest.tables is None
        plan.steps = [*self.steps, *other.steps]
        return plan

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
                    gpu.clear(addresses[step.slot], step.num_bytes, stream)
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
        except BaseException:
            if lent is not None and lent.turn is not None:  # earlier steps left counters there
                for piece, address in zip(self.pieces, lent.pieces, strict=True):
                    if piece.is_zeroed:
                        gpu.clear(address, piece.num_bytes, stream)
            raise
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
