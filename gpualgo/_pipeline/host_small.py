"""Small pageable host arrays on a GPU: a cached plan and one buffer for all arrays of a call.

| arrays and results together | buffer |
| up to 64 KiB (`IN_PLACE_BYTES`) | page-locked host memory, which kernels access in place |
| up to 1 MiB (a tray) | page-locked and device memory, one copy each way |
| up to 32 MiB (`MOST_BYTES`) | device memory, one copy per array |
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._arrays.view import View, dense_view
from gpualgo._base import log, records
from gpualgo._base.errors import CapturesChanged
from gpualgo._cpu.memory import address
from gpualgo._driver import device, driver, pinned, staging
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._driver.driver import leave
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.host_warm import Warm, are_inputs, new_results

if TYPE_CHECKING:
    from gpualgo._operators.operator import Operator
    from gpualgo._pipeline.problem import Array, Problem, Start

MOST_BYTES = 32 << 20  # of all arrays and results
IN_PLACE_BYTES = 1 << 16  # up to this size kernels access host memory over the bus

IN_PLACE, VIA_BUFFER, SEPARATE_COPIES = (
    "in a page-locked buffer",
    "through a page-locked buffer",
    "by separate copies",
)


def run(
    problem: Problem, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None,
    start: Any, init: Array | None, is_new: bool,
) -> bool:  # fmt: skip
    """Run a problem on small arrays; return False if this path does not apply.

    `start` is the initial value, `init` the same as an array. `is_new`: the results are new arrays
    that nobody else holds. On return the results are complete and the GPU uses none of the arrays.
    """
    if op is not None and op.arrays:  # copies of captured arrays have a new address in each call
        return False
    operands = (*arrays, *results)
    if sum([operand.nbytes for operand in operands]) > MOST_BYTES:
        return False
    for operand in operands:
        if not operand.nbytes or not operand.flags.c_contiguous:
            return False
        if records.is_position(operand.dtype):  # has no memory
            return False
    for operand in arrays if is_new else operands:
        if not device.is_pageable(address(operand), operand.nbytes):
            return False
    small = problem.small
    if small is not None and small.shapes != [result.shape for result in results]:
        small = None  # cached for outputs of another length
    if small is None:
        no_views: list[View | None] = [None] * len(operands)
        call = planners.HostCall(list(arrays), list(results), op, init, None, no_views)
        if planners.run_chunked(problem, call):
            return True
        small = problem.small = Small(problem, arrays, results, op)
        if small.is_warm:
            problem.warm = small
    small.solve(arrays, results, problem.start(start), b"" if op is None else op.words)
    return True


class Small(Warm):
    """The plan of a problem, and the offsets of its arrays and results in one buffer.

    If `is_warm`, later calls use it without the general path.
    """

    def __init__(
        self, problem: Problem, arrays: Sequence[Array], results: Sequence[Array],
        op: Operator | None,
    ) -> None:  # fmt: skip
        super().__init__(problem, None, arrays)
        operands, self._offsets, end = (*arrays, *results), list[int](), 0
        self._sizes = [operand.nbytes for operand in operands]
        for size in self._sizes:  # aligned to 256 bytes, like allocations
            self._offsets.append(end)
            end += aligned(size)
        self.num_bytes, self._count = end, len(arrays)
        self._results_offset = self._offsets[self._count]  # offset of the first result
        self._end = self._offsets[-1] + self._sizes[-1]
        base = 1 << 20  # a placeholder: any aligned address will do
        views = [
            dense_view(base + offset, operand.shape, operand.dtype, problem.device)
            for operand, offset in zip(operands, self._offsets, strict=True)
        ]
        self._plan = planners.cuda_plan(problem, views[: self._count], op, views[self._count :])
        self._device = problem.device
        self.shapes = [result.shape for result in results]
        is_usual = not (self._is_counted or problem.reads_data or problem.arrays)
        self.is_warm = is_usual and all(strides is None for *_, strides in self._new)
        if end > pinned.TRAY_BYTES:
            self._strategy = SEPARATE_COPIES
        elif end > IN_PLACE_BYTES or problem.copies_page_locked:
            self._strategy = VIA_BUFFER
        else:
            self._strategy = IN_PLACE

    def call(self, arrays: Sequence[Array], op: Any, init: Any, out: Any) -> Any:
        """Return the result for arrays of the problem's shapes; None as `__call__` does."""
        results: Sequence[Any]
        if out is None:
            results, _ = new_results(self._new, None)
        else:
            out = out.owner if type(out) is View else out
            results = out if len(self._outputs) > 1 and type(out) is tuple else (out,)
            if are_inputs(self._outputs, results, arrays) is not False:
                return None
        problem = self._problem
        cached_init, start = problem.last_start
        scalars = b""
        try:
            if cached_init is not init:
                if type(init) is View:
                    return None
                start = problem.start(init)
            if problem.has_numbers:
                scalars = problem.captured_scalars(op)
        except (TypeError, ValueError, CapturesChanged):
            return None
        context = gpu.get(self._device).context
        previous_context = context.enter()
        try:
            for array in arrays if out is None else (*arrays, *results):
                if device.is_known(address(array)):
                    return None
            self.solve(arrays, results, start, scalars)
        finally:
            leave(previous_context)
        log_staged(problem, self._strategy, arrays, results)
        return self._result_of(results) if out is None else out

    def solve(
        self, arrays: Sequence[Array], results: Sequence[Array], start: Start, words: bytes
    ) -> None:
        """Run the problem on pageable arrays; the device's context must be current."""
        device = gpu.get(self._device)
        tray = None if self._strategy is SEPARATE_COPIES else device.trays.take()
        if tray is None:
            memory = device.allocate(self.num_bytes, 0)
            try:
                self._by_copies(memory, arrays, results, start, words)
            finally:
                device.free(memory, 0)
            return
        try:
            self._on_tray(tray, arrays, results, start, words)
        except BaseException:
            device.trays.give_back_in_doubt(tray)
            raise
        device.trays.give_back(tray)

    def _on_tray(
        self, tray: pinned.SmallBuffer, arrays: Sequence[Array], results: Sequence[Array],
        start: Start, scalars: bytes,
    ) -> None:  # fmt: skip
        offsets, sizes, host, count = self._offsets, self._sizes, tray.host, self._count
        for array, offset, size in zip(arrays, offsets, sizes, strict=False):
            ctypes.memmove(host + offset, address(array), size)
        if self._strategy is IN_PLACE:
            self._plan.queue(0, (*start, scalars, *[host + offset for offset in offsets]))
        else:
            memory, split = tray.device, self._results_offset
            staging.send(host, memory, split, 0)
            self._plan.queue(0, (*start, scalars, *[memory + offset for offset in offsets]))
            staging.fetch(memory + split, host + split, self._end - split, 0)
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
        scalars: bytes,
    ) -> None:  # fmt: skip
        ordinal, count = self._device, self._count
        targets = [memory + offset for offset in self._offsets]
        for array, target in zip(arrays, targets, strict=False):
            _copy(array, target, ordinal, is_upload=True)
        self._plan.queue(0, (*start, scalars, *targets))
        if self._is_bound:
            _copy(results[-1], targets[-1], ordinal, is_upload=False)
            driver.synchronize(0)
            results = host_whole.written(results)
        for result, target in zip(results, targets[count:], strict=True):
            _copy(result, target, ordinal, is_upload=False)
        driver.synchronize(0)


def log_staged(
    problem: Problem, strategy: str, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Log how host arrays were moved."""
    if log.is_on(log.INFO):
        bytes_in, bytes_out = (sum([array.nbytes for array in each]) for each in (arrays, results))
        text = "staged %s on cuda:%d %s: %d bytes to the GPU, %d bytes back"
        log.log(log.INFO, text, problem.where, problem.device, strategy, bytes_in, bytes_out)


def _copy(array: Array, memory: int, device: int, is_upload: bool) -> None:
    """Copy a contiguous array that is known to be pageable to or from the device.

    The driver need not be asked whether it is page-locked.
    """
    size = array.nbytes
    is_direct = 0 < size < staging.DIRECT_BYTES
    if not (is_direct and staging.try_copy(memory, address(array), size, 0, is_upload)):
        staging.copy_all([array], memory, device, 0, is_upload)
