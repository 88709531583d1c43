"""Transformation of interleaved numbers, such as the fields of records."""

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
    """Return the kernel for contiguous operands of which some are whole records, or None."""
    if len(case.dims) != 1:
        return None
    num_items, steps = case.dims[0]
    outputs, out_indices = _outputs(case)
    inputs = list(_inputs(case))
    operands = (outputs, *(operand for operand, _ in inputs))
    if not any(isinstance(operand, Interleaved) for operand in operands):
        return None
    indices = (*out_indices, *(index for _, index in inputs))
    if [steps[i] for i in indices] != [n for item in operands for n in records.read_bytes(item)]:
        return None
    index_dtypes = records.POSITION, records.SHARED_POSITION
    pointers = [case.pointers[i] for i in indices if case.operands[i] not in index_dtypes]
    alignment = math.gcd(VECTOR_BYTES, *pointers)
    items = policy.pack_items(operands, VECTOR_BYTES)
    if not is_aligned(operands, items, alignment):
        return None
    loads = policy.loads_in_flight(case.applied.inputs, items)
    spec = policy.flat_spec(case.applied, items, loads, operands)
    blocks = -(-num_items // (policy.BLOCK_THREADS * items * loads))
    firsts = (out_indices, [index - case.num_outputs for _, index in inputs])
    return Cut(spec, blocks, {"num_items": num_items}, firsts)


def _outputs(case: Case) -> tuple[Element, list[int]]:
    """Return the output element type, and the operands whose addresses are passed."""
    count, result = case.num_outputs, case.applied.result
    record = _interleaved_record(case, 0, count)
    if record is None or not record.is_tight:  # the gaps between the numbers belong to other arrays
        return result, list(range(count))
    return Interleaved(result, record.size, record.offsets), [record.offsets.index(0)]


def _inputs(case: Case) -> Iterator[tuple[Element, int]]:
    """Yield the input element types, with the operand whose address is passed."""
    start, end = case.num_outputs, len(case.operands)
    while start < end:
        for stop in range(min(end, start + MOST_NUMBERS), start + 1, -1):
            record = _interleaved_record(case, start, stop)
            if record is not None:
                yield record, start + record.offsets.index(0)
                start = stop
                break
        else:
            yield case.operands[start], start
            start += 1


def _interleaved_record(case: Case, start: int, end: int) -> Interleaved | None:
    """Return how some operands are interleaved, or None if they are not."""
    operands, (_, steps) = case.operands[start:end], case.dims[0]
    if len(operands) < 2 or any(map(records.is_position, operands)):
        return None
    record = records.record(map(str, range(len(operands))), operands)
    return interleaved(record, case.pointers[start:end], [steps[start:end]], steps[start])
