"""Transformation of numbers that lie together in memory, as the fields of records do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpualgo._algorithms.transform import policy
from gpualgo._algorithms.transform.cuda_case import Case, Cut
from gpualgo._base import records
from gpualgo._base.records import Element, Interleaved
from gpualgo._cuda.interleaved import interleaved
from gpualgo._cuda.templates import VECTOR_BYTES, is_aligned

MOST_NUMBERS = 4  # of a record that is read (apply_to_numbers of transform/kernel.cuh)


def cut(case: Case) -> Cut | None:
    """Return the kernel for operands without gaps, of which some are records in one piece."""
    if len(case.dims) != 1:
        return None
    num_items, steps = case.dims[0]
    outputs, told = _outputs(case)
    inputs = list(_inputs(case))
    operands = (outputs, *(operand for operand, _ in inputs))
    if not any(isinstance(operand, Interleaved) for operand in operands):
        return None
    places = (*told, *(place for _, place in inputs))
    if [steps[i] for i in places] != [n for one in operands for n in records.read_bytes(one)]:
        return None
    anywhere = records.POSITION, records.SHARED_POSITION
    found = [case.pointers[i] for i in places if case.operands[i] not in anywhere]
    alignment = math.gcd(VECTOR_BYTES, *found)
    items = policy.pack_items(operands, VECTOR_BYTES)
    if not is_aligned(operands, items, alignment):
        return None
    loads = policy.loads_in_flight(case.applied.inputs, items)
    spec = policy.flat_spec(case.applied, items, loads, operands)
    blocks = -(-num_items // (policy.BLOCK_THREADS * items * loads))
    firsts = (told, [place - case.num_outputs for _, place in inputs])
    return Cut(spec, blocks, {"num_items": num_items}, firsts)


def _outputs(case: Case) -> tuple[Element, list[int]]:
    """Return what is written, and which outputs' addresses tell where."""
    count, result = case.num_outputs, case.applied.result
    found = _together(case, 0, count)
    if found is None or not found.is_tight:  # what lies between the numbers is another's
        return result, list(range(count))
    return Interleaved(result, found.size, found.offsets), [found.offsets.index(0)]


def _inputs(case: Case) -> Iterator[tuple[Element, int]]:
    """Give what is read, and the place among the operands of the address that tells where."""
    begin, end = case.num_outputs, len(case.operands)
    while begin < end:
        for stop in range(min(end, begin + MOST_NUMBERS), begin + 1, -1):
            found = _together(case, begin, stop)
            if found is not None:
                yield found, begin + found.offsets.index(0)
                begin = stop
                break
        else:
            yield case.operands[begin], begin
            begin += 1


def _together(case: Case, begin: int, end: int) -> Interleaved | None:
    """Return how some operands lie together; None if they do not."""
    operands, (_, steps) = case.operands[begin:end], case.dims[0]
    if len(operands) < 2 or any(map(records.is_position, operands)):
        return None
    record = records.record(map(str, range(len(operands))), operands)
    return interleaved(record, case.pointers[begin:end], [steps[begin:end]], steps[begin])
