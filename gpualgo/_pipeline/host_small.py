"""Small pageable arrays of the host on a GPU: one piece of its memory, copies by the driver.

What the first call decides is kept: later ones only find out where their arrays lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gpualgo._arrays.view import dense_view
from gpualgo._base import records
from gpualgo._driver import addresses, driver, staging
from gpualgo._driver import device as gpu
from gpualgo._driver.workspace import aligned

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._operators.operator import Operator
    from gpualgo._pipeline.problem import Array, Problem

MOST_BYTES = staging.DIRECT_BYTES  # of all arrays


class Small(NamedTuple):
    """The plan of a problem, and where its arrays and results lie in one piece of memory."""

    plan: Plan
    offsets: tuple[int, ...]
    num_bytes: int


def run(
    problem: Problem, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None,
    start: Any, init: Array | None,
) -> bool:  # fmt: skip
    """Solve a problem for such arrays and new results; False: they are no such arrays.

    It starts from `start`, which `init` is as an array.
    On return the results are there, and nothing of the GPU reads or writes any array.
    """
    if op is not None and op.arrays:  # copies of them lie somewhere else each time
        return False
    operands = (*arrays, *results)
    if sum([operand.nbytes for operand in operands]) > MOST_BYTES:
        return False
    hosts = []
    for operand in operands:
        if not operand.nbytes or not operand.flags.c_contiguous:
            return False
        if records.is_position(operand.dtype):  # which lies nowhere
            return False
        hosts.append(operand.__array_interface__["data"][0])
    for array, host in zip(arrays, hosts, strict=False):
        if not addresses.is_pageable(host, array.nbytes):
            return False
    if problem.in_blocks(list(arrays), list(results), op, init, None, [None] * len(operands)):
        return True
    found = problem.small
    if found is None:
        found = problem.small = _small(problem, arrays, results, op)
    device, num_inputs = gpu.get(problem.device), len(arrays)
    memory = device.allocate(found.num_bytes, 0)
    try:
        places = [memory + offset for offset in found.offsets]
        for array, host, place in zip(arrays, hosts, places, strict=False):
            staging.send(host, place, array.nbytes, 0)
        words = b"" if op is None else op.words
        found.plan.queue(0, (*problem.start(start), words, *places))
        for result, host, place in zip(
            results, hosts[num_inputs:], places[num_inputs:], strict=True
        ):
            staging.fetch(place, host, result.nbytes, 0)
        driver.synchronize(0)
    finally:
        device.free(memory, 0)
    return True


def _small(
    problem: Problem, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> Small:
    """Decide all but addresses: pieces begin at multiples of 256, as memory does."""
    operands, offsets, end = (*arrays, *results), [], 0
    for operand in operands:
        offsets.append(end)
        end += aligned(operand.nbytes)
    start = 1 << 20  # any address will do that is aligned
    views = [
        dense_view(start + offset, operand.shape, operand.dtype, problem.device)
        for operand, offset in zip(operands, offsets, strict=True)
    ]
    count = len(arrays)
    plan = problem.cuda(views[:count], op, views[count:])
    return Small(plan, tuple(offsets), end)
