"""Launches: a kernel, its grid and its prepacked parameters; a `Plan` queues them."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Mapping
from typing import Any

from gpualgo._cuda.parameters import NUMBERS, Packed
from gpualgo._driver import device as gpu
from gpualgo._driver import driver

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

    __slots__ = ("_head", "_overlaps", "_tail", "device", "free", "grid", "handle", "kernel",
                 "offsets", "pack", "pick", "places", "shared_bytes", "submit",
                 "threads")  # fmt: skip

    def __init__(
        self, kernel: driver.Kernel, grid: int, threads: int, packed: Packed,
        device: int, takes: Mapping[str, Any], *, shared_bytes: int = 0, overlaps: bool = False,
    ) -> None:  # fmt: skip
        """`overlaps`: the kernel may start before the previous one ends; it waits by itself."""
        self.kernel, self.grid, self.threads, self.device = kernel, grid, threads, device
        self.shared_bytes, self._overlaps = shared_bytes, overlaps
        kernel.allow_shared(shared_bytes, device)
        self._head, self._tail = packed.parameters.head, packed.tail
        self.pack, self.handle = self._head.pack_into, kernel.handle
        if NUMBERS in packed.parameters.fields:
            takes = {NUMBERS: AT_NUMBERS, **takes}
        places, offsets = packed.parameters.taken(takes)
        self.places = places
        only = places[0] if len(places) == 1 else None  # itemgetter of one item returns no tuple
        self.pick: Callable[[Any], Any] = operator.itemgetter(
            *places if only is None else (slice(only, only + 1),)
        )
        self.offsets = offsets if any(offsets) else None
        self.submit = kernel.wrapped(driver.api().cuLaunchKernelEx)
        self.free: list[Block] = []

    def new_block(self) -> Block:
        """Return a new block, for one launch at a time."""
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
        """Write the addresses plus offsets into a block."""
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
        """Launch again in a thread without a context; raise any other error."""
        if status == driver.api().CUresult.CUDA_ERROR_INVALID_CONTEXT:
            with gpu.get(self.device).current():
                (status,) = self.submit(config, self.handle, parameters, 0)
        driver.check((status,), f"launching {self.kernel.name}")
