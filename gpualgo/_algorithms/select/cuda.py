"""Selection on a GPU: layout of elements, tiles, launches, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpualgo._algorithms.select.problem import BOOL, HEADS, MARKED, NO_OPERATOR, Selecting
from gpualgo._algorithms.transform.cuda import of_copies
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import Clear, Launch, Plan, arg_map, lookback_states
from gpualgo._cuda.templates import (
    VECTOR_BYTES,
    WARP,
    Applied,
    is_aligned,
    kernel_spec,
    launch_again,
)
from gpualgo._driver import device as gpu
from gpualgo._driver import staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.problem import Dtype

# --- Tuning table of selections: kernels and template arguments.

# By the least bytes of the widest number: threads per block, written bytes per thread, registers
# for elements. us on an H200, half kept: 2^28 float32 by a function 447 (512 threads of 64 bytes
# 494; 320 of 128 463; 416 of 128 511; 480 of 96 474), by a mask 497 (7 rows 511; 512 threads of 64
# bytes 545), consecutive runs 368 (430). 2^28 uint8 by a function 245, by a mask 233 (32 bytes 289,
# 270; 384 threads 255, 238). 2^27 float64 by a mask 475 (8 rows 492).
TUNED = {4: (384, 128, 44), 1: (512, 64, 32)}
TUNED_FOR_LENGTHS = 512, 64, 32  # of runs: 2^28 int32 558 in an earlier run (as others 606)
LATE_ROWS = 2  # rows of marks per warp
BLOCK_THREADS, BLOCKS_PER_SM = 512, 2  # threads of blocks that read marks only
STAGES = 2  # tiles of kept elements in shared memory
NARROW_COUNTS = 1 << 32  # counts below this fit into 32 bits, next to a tag in one word


@dataclass(frozen=True)
class Policy:
    """Template arguments of select_kernel (SelectPolicy of select/kernel.cuh)."""

    block_threads: int
    items: int  # per lane and row
    rows: int  # per warp
    makes_late: bool = False  # elements are computed from their indices when they are written

    @property
    def tile_items(self) -> int:
        return self.block_threads * self.rows * self.items

    def shared_bytes(self, written: tuple[Dtype, ...], gives_lengths: bool = False) -> int:
        sizes = [2] if self.makes_late else [field.itemsize for field in written]
        sizes += [2] * gives_lengths
        sections = [-(-self.tile_items * size // VECTOR_BYTES) for size in sizes]
        remaining = 32 + 28 * (self.block_threads // WARP) + VECTOR_BYTES
        return STAGES * sum(sections) * VECTOR_BYTES + remaining


def policy_of(
    source: Element, written: tuple[Dtype, ...], limit: int, gives_lengths: bool = False
) -> Policy:
    fields = records.field_dtypes(records.register_dtype(source))
    widest = max(field.itemsize for field in fields)
    items = max(1, VECTOR_BYTES // widest)
    size = items * sum(field.itemsize for field in written)
    registers = _registers(written, items) + _registers(fields[len(written) :], items)
    tuned = next(tuned for least, tuned in TUNED.items() if widest >= least)
    threads, most_bytes, most_registers = TUNED_FOR_LENGTHS if gives_lengths else tuned
    rows = max(1, min(most_bytes // size, most_registers // registers))
    policy = Policy(threads, items, rows)
    while policy.rows > 1 and policy.shared_bytes(written, gives_lengths) > limit // BLOCKS_PER_SM:
        policy = replace(policy, rows=policy.rows - 1)
    while policy.shared_bytes(written, gives_lengths) > limit:
        policy = replace(policy, block_threads=policy.block_threads // 2)
    return policy


def _registers(fields: Sequence[Dtype], items: int) -> int:
    """Return how many registers hold so many elements: narrow ones share some if they are alone."""
    sizes = [field.itemsize for field in fields]
    is_shared = len(sizes) == 1 and sizes[0] < 4 and sizes[0] * items % 4 == 0
    return sizes[0] * items // 4 if is_shared else sum(-(-size // 4) * items for size in sizes)


def index_policy(limit: int) -> Policy:
    """Return the policy for indices, of which only a mark each is read."""
    policy = Policy(BLOCK_THREADS, VECTOR_BYTES, LATE_ROWS, makes_late=True)
    while policy.shared_bytes(()) > limit:
        policy = replace(policy, block_threads=policy.block_threads // 2)
    return policy


def dense(in_packs: bool) -> Cpp:
    return cpp("DenseItems", in_packs)


def spaced(leaves: int, is_even: bool) -> Cpp:
    return cpp("SpacedItems", cpp("EvenLayout" if is_even else "Layout", leaves), leaves)


@dataclass(frozen=True)
class Kind:
    op: Operator  # the predicate, or a placeholder if elements are marked
    source: Element
    written: tuple[Dtype, ...]
    access: Cpp
    policy: Policy
    criterion: str  # IF, MARKED or HEADS
    is_wide: bool  # counts take 64 bits
    keeps_rest: bool = False
    gives_lengths: bool = False
    has_redux: bool = True  # the GPU adds a warp's words in one instruction

    @property
    def shared_bytes(self) -> int:
        return self.policy.shared_bytes(self.written, self.gives_lengths)

    @property
    def selecting(self) -> Spec:
        count = "gpualgo::uint64" if self.is_wide else "gpualgo::uint32"
        last = count, self.access, self.keeps_rest, self.gives_lengths
        return self._spec("kernel.cuh", "select_kernel", last)

    @property
    def counting(self) -> Spec:
        """The kernel that counts the kept elements, needed if there is a rest."""
        return self._spec("count.cuh", "select_count_kernel", (self.access,))

    def _spec(self, header: str, name: str, more_types: tuple[Any, ...]) -> Spec:
        tiling, op, source = self.policy, self.op, self.source
        policy = cpp(
            "SelectPolicy", tiling.block_threads, tiling.items, tiling.rows, BLOCKS_PER_SM,
            self.shared_bytes, tiling.makes_late, self.has_redux,
        )  # fmt: skip
        element = records.register_dtype(source)
        arguments = (element,) * (2 if self.criterion == HEADS else 1)
        keeps: Any = Applied(op, arguments, element if self.criterion == MARKED else BOOL)
        call = None
        if op.name == NO_OPERATOR.name:  # only its source is called, if it has one
            call = Applied(op, (element,), element)
            if self.criterion == HEADS:
                keeps = cpp("SameValue")
                keeps = cpp("WithNumbers", keeps) if op.key.numbers else keeps
        params = cpp("SelectParams", source, len(self.written) + self.gives_lengths, self.access)
        kept: list[Dtype] = []
        if self.criterion == MARKED:
            numbers = records.field_dtypes(element)[:-1]
            names = map(str, range(len(numbers)))
            kept = [numbers[0] if len(numbers) == 1 else records.record(names, numbers)]
        types = policy, cpp(self.criterion, keeps, *kept), source, *more_types
        return kernel_spec(f"select/{header}", name, *types, params=params, call=call)


_BYTE = np.dtype(np.uint8)


@planners.for_cuda.register(Selecting)
def _(problem: Selecting, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    return of_copies(views, targets, lambda dense: plan_of(problem, dense, op, targets))


def plan_of(problem: Selecting, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan of a selection into targets of any stride; the last one is the count."""
    *outs, count = targets
    at, device = arg_map(len(views), len(targets)), count.device
    shape = views[0].shape  # may be one block of the whole array
    num_items = math.prod(shape)
    if num_items == 0:
        return Plan(device, [Clear(at.targets[-1], count.dtype.itemsize)])
    source, written = problem.source, problem.written
    if problem.criterion == MARKED and not isinstance(source, records.Computed):
        numbers = [*records.field_dtypes(source)[:-1], _BYTE]  # any nonzero byte is true
        source = records.with_fields(source, numbers)
    if _is_index_only(problem):
        tiling = index_policy(gpu.get(device).shared_limit)
    else:
        tiling = policy_of(source, written, gpu.get(device).shared_limit, problem.gives_lengths)
    access, fields = access_of(source, shape, views, tiling.items)
    is_wide = num_items >= NARROW_COUNTS
    num_tiles = -(-num_items // tiling.tile_items)
    piece, num_words = lookback_states(8 * num_tiles * (1 + is_wide) * (1 + problem.gives_lengths))
    kind = Kind(
        NO_OPERATOR if op is None else op, source, written, access, tiling, problem.criterion,
        is_wide, problem.keeps_rest, problem.gives_lengths, gpu.get(device).capability >= (8, 0),
    )  # fmt: skip
    slots = {
        "input": at.sources, "output": at.targets[:-1], "num_kept": at.targets[-1],
        "states": at.piece(0),
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * BLOCKS_PER_SM)
    steps: list[Launch | Clear] = []
    kernels = [("selecting", kind.shared_bytes)]
    if problem.keeps_rest:
        steps.append(Clear(at.targets[-1], count.dtype.itemsize))
        kernels.insert(0, ("counting", 0))
    key = access, tiling, is_wide
    if (kernels[0][0], key) not in problem.launches:  # compiles both at the same time
        build.kernels([getattr(kind, name) for name, _ in kernels], device)
    steps += [
        launch_again(
            problem.launches, (name, key), partial(getattr, kind, name), device, grid,
            tiling.block_threads, slots, shared_bytes=shared_bytes, num_items=num_items,
            num_tiles=num_tiles, num_words=num_words,
            capacity=outs[0].shape[0], output_steps=[out.strides[0] for out in outs],
            access=fields,
        )
        for name, shared_bytes in kernels
    ]  # fmt: skip
    return Plan(device, steps, [piece])


def _is_index_only(problem: Selecting) -> bool:
    """Return whether elements are indices only, with a mask that is read."""
    source, picks = problem.source, problem.picks
    if picks is None or not isinstance(source, records.Computed):
        return False
    *index_fields, mask = (source.numbers[i] for i in picks)
    return mask.itemsize == 1 and all(number == records.POSITION for number in index_fields)


def access_of(
    source: records.Element, shape: tuple[int, ...], views: Sequence[View], items: int
) -> tuple[Cpp, dict[str, Any]]:
    """Return how the kernel accesses elements, and the fields of that access's parameters."""
    numbers, strides = records.field_dtypes(source), zip(*(x.strides for x in views), strict=True)
    dims = [] if 0 in shape else merge(list(zip(shape, strides, strict=True)))
    if not dims or (len(dims) == 1 and dims[0][1] == records.read_bytes(source)):
        is_packed = is_aligned(numbers, items, math.gcd(16, *(view.ptr for view in views)))
        return dense(is_packed), {}
    is_even = len(dims) == 1
    return spaced(len(numbers), is_even), {"places": dims}


# --- Selection of pageable arrays on a GPU in blocks; only the kept elements are copied back.

BLOCK_BYTES = 256 << 20


@planners.for_blocks.register(Selecting)
def _(problem: Selecting, call: planners.HostCall) -> bool:
    """Select from blocks in C order; the rest of each, if wanted, is kept until its start is known.

    Results are written up to the length of the outputs.
    """
    if call.is_forced:
        return False
    *outs, count = call.results
    arrays = [np.broadcast_to(array, problem.shape) for array in call.arrays]
    block_bytes = BLOCK_BYTES
    if problem.criterion == HEADS:  # one block, since a run may continue in the next one
        block_bytes = sum(array.nbytes for array in arrays) + 1
    size = sum(records.step_of(number) for number in records.field_dtypes(problem.source))
    total, kept, rests = 0, np.zeros((), np.int64), list[list[np.ndarray[Any, Any]]]()
    for index in staging.pieces(problem.shape, max(1, size), block_bytes):
        parts = [array[(*index, ...)] for array in arrays]
        num_items = parts[0].size
        if not num_items:
            break
        room = [out[total : total + num_items] for out in outs]
        has_room = len(room[0]) == num_items
        into = room if has_room else [np.empty(num_items, out.dtype) for out in outs]
        with host_whole.on_device(
            problem.device, call.stream, parts, [*into, kept], problem.where,
            is_upper_bound=not problem.keeps_rest,
        ) as (handle, sources, targets):  # fmt: skip
            host_whole.queue(problem, handle, sources, targets, call.op, None)
        if not has_room:
            for out, part in zip(room, into, strict=True):
                out[:kept] = part[: min(int(kept), len(out))]
        rests.append([part[kept:].copy() for part in into] if problem.keeps_rest else [])
        total += int(kept)
    for out, parts in zip(outs, zip(*rests, strict=True), strict=False):
        np.concatenate(parts, out=out[total:])
    count[...] = total
    return True
