"""Small pageable arrays of the host on a GPU: what the first call decides, later ones repeat.

Arrays and results lie side by side in one piece of memory. Up to `IN_PLACE_BYTES` that is memory of
the host that is page-locked, where kernels read and write them; as far as a tray reaches, such and
as much of the GPU's, with one copy each way; beyond that each travels for itself, to a larger tray
or to memory of the pool.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View, dense_view
from gpualgo._base import log, records
from gpualgo._base.extents import inverse
from gpualgo._cpu.address import address
from gpualgo._driver import addresses, driver, staging, trays
from gpualgo._driver import device as gpu
from gpualgo._driver.context import leave
from gpualgo._driver.workspace import aligned
from gpualgo._operators.operator import CapturesChanged
from gpualgo._pipeline import host_whole

if TYPE_CHECKING:
    from gpualgo._operators.operator import Operator
    from gpualgo._pipeline.problem import Array, Problem, Start

MOST_BYTES = 32 << 20  # of all arrays
IN_PLACE_BYTES = 1 << 16  # of those that kernels read and write over the bus

IN_PLACE, BY_TRAY, BY_COPIES = "on a tray", "by a tray", "in one piece"


def run(
    problem: Problem, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None,
    start: Any, init: Array | None, is_new: bool,
) -> bool:  # fmt: skip
    """Solve a problem for such arrays and results; False: they are no such arrays.

    It starts from `start`, which `init` is as an array. `is_new`: nobody else has the results.
    On return the results are there, and nothing of the GPU reads or writes any array.
    """
    if op is not None and op.arrays:  # copies of them lie somewhere else each time
        return False
    operands = (*arrays, *results)
    if sum([operand.nbytes for operand in operands]) > MOST_BYTES:
        return False
    for operand in operands:
        if not operand.nbytes or not operand.flags.c_contiguous:
            return False
        if records.is_position(operand.dtype):  # which lies nowhere
            return False
    for operand in arrays if is_new else operands:
        if not addresses.is_pageable(address(operand), operand.nbytes):
            return False
    found = problem.small
    if found is not None and problem.is_counted and not found.is_for(results):
        found = None  # outputs of another length
    if found is None:
        nowhere: list[View | None] = [None] * len(operands)
        if problem.in_blocks(list(arrays), list(results), op, init, None, nowhere):
            return True
        found = problem.small = Small(problem, arrays, results, op)
        if found.is_warm:
            problem.warm = found
    found.solve(arrays, results, problem.start(start), b"" if op is None else op.words)
    return True


class Small:
    """The plan of a problem, and where its arrays and results lie in one piece of memory."""

    def __init__(
        self, problem: Problem, arrays: Sequence[Array], results: Sequence[Array],
        op: Operator | None,
    ) -> None:  # fmt: skip
        operands, self._offsets, end = (*arrays, *results), list[int](), 0
        self._sizes = [operand.nbytes for operand in operands]
        for size in self._sizes:  # at multiples of 256, as memory begins
            self._offsets.append(end)
            end += aligned(size)
        self.num_bytes, self._count = end, len(arrays)
        self._middle = self._offsets[self._count]  # from there on there are results
        self._last = self._offsets[-1] + self._sizes[-1]
        base = 1 << 20  # any address will do that is aligned
        views = [
            dense_view(base + offset, operand.shape, operand.dtype, problem.device)
            for operand, offset in zip(operands, self._offsets, strict=True)
        ]
        self._plan = problem.cuda(views[: self._count], op, views[self._count :])
        self._device = problem.device
        self._problem: Problem = weakref.proxy(problem)  # no cycle: as in `host_warm`
        self._results = [(result.shape, result.dtype) for result in results]
        self._is_bound = problem.is_counted and problem.results[0].is_bound
        is_plain = problem.structure is None and not (problem.is_counted or problem.reads_data)
        is_plain &= not any(inverse(result.order) for result in problem.results)
        self.is_warm = is_plain and not problem.arrays  # may be called
        self._is_scalar = problem.gives_scalars and not results[0].shape
        if end > trays.TRAY_BYTES:
            self._way = BY_COPIES
        elif end > IN_PLACE_BYTES or problem.copies_page_locked:
            self._way = BY_TRAY
        else:
            self._way = IN_PLACE

    def __call__(self, views: tuple[View, ...], op: Any, init: Any, out: Any) -> Any:
        """Return the result; None: the general path is to say what it is, or what is wrong."""
        arrays = []
        for view in views:
            array = view.owner
            if type(array) is not np.ndarray or array.shape != view.shape:
                return None
            arrays.append(array)
        if out is None:
            results = [np.empty(shape, dtype) for shape, dtype in self._results]
        else:
            out = out.owner if type(out) is View else out
            if not self._fits(out, arrays):
                return None
            results = [out]
        problem = self._problem
        known, start = problem.last_start
        words = b""
        try:
            if known is not init:
                if type(init) is View:
                    return None
                start = problem.start(init)
            if problem.has_numbers:
                words = problem.words(op)
        except (TypeError, ValueError, CapturesChanged):
            return None
        context = gpu.get(self._device).context
        before = context.enter()
        try:
            for array in arrays if out is None else (*arrays, out):
                if addresses.is_known(address(array)):
                    return None
            self.solve(arrays, results, start, words)
        finally:
            leave(before)
        if log.is_on(log.INFO):
            self.tell()
        if out is not None:
            return out
        if self._is_scalar:
            results = [result[()] for result in results]
        return tuple(results) if len(results) > 1 else results[0]

    def is_for(self, results: Sequence[Array]) -> bool:
        """Return whether results have the shapes of those that it was made for."""
        return [result.shape for result in results] == [shape for shape, _ in self._results]

    def _fits(self, out: Any, arrays: Sequence[Array]) -> bool:
        """Return whether an output is as a new result would be, and shares no memory."""
        if len(self._results) > 1 or type(out) is not np.ndarray:
            return False
        flags = out.flags
        if (out.shape, out.dtype) != self._results[0] or not (flags.c_contiguous and flags.aligned):
            return False
        return flags.writeable and not any(np.may_share_memory(out, array) for array in arrays)

    def tell(self) -> None:
        """Tell those who listen what a call has done."""
        given, made = sum(self._sizes[: self._count]), sum(self._sizes[self._count :])
        text = "staged %s on cuda:%d %s: %d bytes there, %d bytes back"
        log.tell(log.INFO, text, self._problem.where, self._device, self._way, given, made)

    def solve(
        self, arrays: Sequence[Array], results: Sequence[Array], start: Start, words: bytes
    ) -> None:
        """Solve the problem for pageable arrays and results, within the device's context."""
        device = gpu.get(self._device)
        lent = device.large_trays if self._way is BY_COPIES else device.trays
        tray = lent.take() if self.num_bytes <= trays.LARGE_BYTES else None
        if tray is None:
            memory = device.allocate(self.num_bytes, 0)
            try:
                self._by_copies(memory, arrays, results, start, words)
            finally:
                device.free(memory, 0)
            return
        try:
            if self._way is BY_COPIES:
                self._by_copies(tray.device, arrays, results, start, words)
            else:
                self._on_tray(tray, arrays, results, start, words)
        except BaseException:
            lent.give_back_in_doubt(tray)
            raise
        lent.give_back(tray)

    def _on_tray(
        self, tray: trays.Tray, arrays: Sequence[Array], results: Sequence[Array], start: Start,
        words: bytes,
    ) -> None:  # fmt: skip
        offsets, sizes, host, count = self._offsets, self._sizes, tray.host, self._count
        for array, offset, size in zip(arrays, offsets, sizes, strict=False):
            ctypes.memmove(host + offset, address(array), size)
        if self._way is IN_PLACE:
            self._plan.queue(0, (*start, words, *[host + offset for offset in offsets]))
        else:
            memory, middle = tray.device, self._middle
            staging.send(host, memory, middle, 0)
            self._plan.queue(0, (*start, words, *[memory + offset for offset in offsets]))
            staging.fetch(memory + middle, host + middle, self._last - middle, 0)
        driver.synchronize(0)
        sizes = sizes[count:]
        if self._is_bound:
            ctypes.memmove(address(results[-1]), host + offsets[-1], sizes[-1])
            results = host_whole.written(results)
            sizes = [result.nbytes for result in results]
        for result, offset, size in zip(results, offsets[count:], sizes, strict=True):
            ctypes.memmove(address(result), host + offset, size)

    def _by_copies(
        self, memory: int, arrays: Sequence[Array], results: Sequence[Array], start: Start,
        words: bytes,
    ) -> None:  # fmt: skip
        ordinal, count = self._device, self._count
        places = [memory + offset for offset in self._offsets]
        for array, place in zip(arrays, places, strict=False):
            _upload(array, place, ordinal)
        self._plan.queue(0, (*start, words, *places))
        if self._is_bound:
            _download(places[-1], results[-1], ordinal)
            driver.synchronize(0)
            results = host_whole.written(results)
        for result, place in zip(results, places[count:], strict=True):
            _download(place, result, ordinal)
        driver.synchronize(0)


def _upload(array: Array, target: int, device: int) -> None:
    """Copy an array without gaps to the device, which is known to begin in pageable memory.

    So the driver need not be asked.
    """
    size = array.nbytes
    is_direct = 0 < size < staging.DIRECT_BYTES
    if not (is_direct and staging.sends(address(array), target, size, 0)):
        staging.upload(array, target, device, 0)


def _download(source: int, array: Array, device: int) -> None:
    """Copy memory of the device into such an array."""
    size = array.nbytes
    is_direct = 0 < size < staging.DIRECT_BYTES
    if not (is_direct and staging.fetches(source, address(array), size, 0)):
        staging.download(source, array, device, 0)
