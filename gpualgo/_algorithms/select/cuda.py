"""Selection on a GPU: layout of elements, tiles, launches, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.select import tuning
from gpualgo._algorithms.select.problem import MARKED, Selecting
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.plan import STATES, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import Access, is_aligned
from gpualgo._driver import device as gpu
from gpualgo._driver.pools import STATE_BYTES
from gpualgo._operators.operator import builtin
from gpualgo._pipeline import planners

_BYTE = np.dtype(np.uint8)
_CONTROL_BYTES = 256  # LookbackControl
_NO_OPERATOR = builtin("no_operator")


@planners.for_cuda.register(Selecting)
def plan_of(problem: Selecting, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan of a selection into targets of any stride; the last one is the count."""
    *outs, count = targets
    args, device = ArgMap(len(views), len(targets)), count.device
    shape = views[0].shape  # may be one block of the whole array
    num_items = math.prod(shape)
    if num_items == 0:
        return Plan(device, [Clear(args.target(len(outs)), count.dtype.itemsize)])
    source, written = problem.source, problem.written
    if problem.kept == MARKED and not isinstance(source, records.Computed):
        numbers = [*records.field_dtypes(source)[:-1], _BYTE]  # any nonzero byte is true
        source = records.with_leaves(source, numbers)
    strides = zip(*(view.strides for view in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    if _is_index_only(problem):
        cut = tuning.index_policy(gpu.get(device).shared_limit)
    else:
        cut = tuning.policy_of(source, written, gpu.get(device).shared_limit, problem.gives_lengths)
    access, fields = access_of(source, dims, [view.ptr for view in views], cut.items)
    is_wide = num_items >= tuning.NARROW_COUNTS
    num_tiles = -(-num_items // cut.tile_items)
    state_words = (1 + is_wide) * (1 + problem.gives_lengths)
    piece = Piece(_CONTROL_BYTES + 8 * num_tiles * state_words, STATES, is_zeroed=True)
    kind = tuning.Kind(
        _NO_OPERATOR if op is None else op, source, written, access, cut, problem.kept, is_wide,
        problem.keeps_rest, problem.gives_lengths, gpu.get(device).capability >= (8, 0),
    )  # fmt: skip
    words = max(piece.num_bytes, STATE_BYTES) - _CONTROL_BYTES
    fixed = {
        "num_items": num_items, "num_tiles": num_tiles, "num_words": words // 8,
        "capacity": outs[0].shape[0], "output_steps": [out.strides[0] for out in outs],
        "access": fields,
    }  # fmt: skip
    slots = {
        "input": [args.source(i) for i in range(len(views))],
        "output": [args.target(i) for i in range(len(outs))],
        "num_kept": args.target(len(outs)), "states": args.piece(0),
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * tuning.BLOCKS_PER_SM)
    specs = [kind.counting, kind.selecting] if problem.keeps_rest else [kind.selecting]
    shared = [0, kind.shared_bytes] if problem.keeps_rest else [kind.shared_bytes]
    launches = [
        Launch(
            kernel,
            grid,
            cut.block_threads,
            spec.parameters.pack(**fixed),
            device,
            slots,
            shared_bytes=size,
        )
        for kernel, spec, size in zip(build.kernels(specs, device), specs, shared, strict=True)
    ]
    if not problem.keeps_rest:
        return Plan(device, launches, [piece])
    zero = Clear(args.target(len(outs)), count.dtype.itemsize)
    return Plan(device, [zero, *launches], [piece])


def _is_index_only(problem: Selecting) -> bool:
    """Return whether elements are indices only, with a mask that is read."""
    source, picks = problem.source, problem.picks
    if picks is None or not isinstance(source, records.Computed):
        return False
    *index_fields, mask = (source.numbers[i] for i in picks)
    return mask.itemsize == 1 and all(number == records.POSITION for number in index_fields)


def access_of(
    source: records.Element, dims: Dims, pointers: Sequence[int], items: int
) -> tuple[Access, dict[str, Any]]:
    """Return how the kernel accesses elements, and the fields of that access's parameters."""
    numbers = records.field_dtypes(source)
    if not dims or (len(dims) == 1 and dims[0][1] == records.read_bytes(source)):
        is_packed = is_aligned(numbers, items, math.gcd(16, *pointers))
        return tuning.dense(is_packed), {}
    is_even = len(dims) == 1
    return tuning.spaced(len(numbers), is_even), {"places": dims}
