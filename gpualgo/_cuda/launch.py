"""Launches: a kernel, its grid, and its parameters packed in advance; a `Plan` queues them."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Mapping
from typing import Any

from gpualgo._cuda.parameters import NUMBERS, Packed
from gpualgo._driver import device as gpu
from gpualgo._driver import driver

AT_NUMBERS = 4  # where a call's addresses hold what an operator's numbers are, see `Plan`


class Block:
    """Memory of one launch: its parameters as the kernel reads them, and how it is launched."""

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
    """A kernel with its grid and its parameters: one struct, whose head changes from call to call.

    `takes` names the fields of the head: each takes what stands at a place in the addresses of a
    call (see `Plan`), (place, offset) with so many bytes added. What takes nothing takes `NONE`.
    Parameter blocks are lent out and taken back (`free`), so that threads never share one.
    """

    __slots__ = ("_head", "_overlaps", "_tail", "device", "free", "grid", "handle", "kernel",
                 "offsets", "pack", "pick", "places", "shared_bytes", "submit",
                 "threads")  # fmt: skip

    def __init__(
        self, kernel: driver.Kernel, grid: int, threads: int, packed: Packed,
        device: int, takes: Mapping[str, Any], *, shared_bytes: int = 0, overlaps: bool = False,
    ) -> None:  # fmt: skip
        """`overlaps`: start while the kernel queued before still runs; the kernel waits itself."""
        self.kernel, self.grid, self.threads, self.device = kernel, grid, threads, device
        self.shared_bytes, self._overlaps = shared_bytes, overlaps
        kernel.allow_shared(shared_bytes, device)
        self._head, self._tail = packed.parameters.head, packed.tail
        self.pack, self.handle = self._head.pack_into, kernel.handle
        if NUMBERS in packed.parameters.fields:
            takes = {NUMBERS: AT_NUMBERS, **takes}
        places, offsets = packed.parameters.taken(takes)
        self.places = places
        one = places[0] if len(places) == 1 else None  # itemgetter of one item gives no tuple
        self.pick: Callable[[Any], Any] = operator.itemgetter(
            *places if one is None else (slice(one, one + 1),)
        )
        self.offsets = offsets if any(offsets) else None
        self.submit = kernel.wrapped(driver.api().cuLaunchKernelEx)
        self.free: list[Block] = []

    def new_block(self) -> Block:
        """Return a block for one launch at a time."""
        api = driver.api()
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = self.grid, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = self.threads, 1, 1
        config.sharedMemBytes = self.shared_bytes
        if self._overlaps:
            attribute, kinds = api.CUlaunchAttribute(), api.CUlaunchAttributeID
            attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs, config.numAttrs = [attribute], 1
        return Block(self._head.size, self._tail, config)

    def fill(self, block: Block, addresses: tuple[Any, ...]) -> None:
        """Write what is taken, with the offsets added, into a block."""
        assert self.offsets is not None
        taken = self.pick(addresses)
        self.pack(
            block.buffer, block.offset,
            *[a + offset if offset else a for a, offset in zip(taken, self.offsets, strict=True)],
        )  # fmt: skip

    def packed(self, addresses: tuple[Any, ...]) -> Callable[[int], None]:
        """Return launch(stream) for addresses that stay; threads may call it side by side."""
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
        """Launch once more in a thread that CUDA has not seen yet; raise where that is not it."""
        if status == driver.api().CUresult.CUDA_ERROR_INVALID_CONTEXT:
            with gpu.get(self.device).current():
                (status,) = self.submit(config, self.handle, parameters, 0)
        driver.check((status,), f"launching {self.kernel.name}")
