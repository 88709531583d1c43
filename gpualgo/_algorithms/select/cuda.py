"""Selection on a GPU: layout of elements, tiles, launches, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.select.problem import HEADS, MARKED, Selecting
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import Clear, Launch, Plan, arg_map, lookback_states
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Applied, is_aligned, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.host_whole import Operand
from gpualgo._pipeline.problem import NO_INIT, Dtype

# --- Tuning table of selections: kernels and template arguments.

THREAD_BYTES = 64  # bytes of elements per thread
# Upper bound on values per thread, each in a register: more small ones would spill. Not measured on
# a GPU; with numbers of 4 bytes and more, or 4 bytes and a mark, there are fewer anyway.
THREAD_NUMBERS = 24
MOST_ROWS = 4  # whose counts fit into a word
LATE_ROWS = 2  # rows of marks per warp
BLOCK_THREADS, BLOCKS_PER_SM = 512, 2
STAGES = 2  # tiles of kept elements in shared memory
NARROW_COUNTS = 1 << 32  # counts below this fit into 32 bits, next to a tag in one word
_BOOL = np.dtype(np.bool_)


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
    element = records.register_dtype(source)
    widest = max(field.itemsize for field in records.field_dtypes(element))
    items = max(1, VECTOR_BYTES // widest)
    size = sum(field.itemsize for field in records.field_dtypes(element))
    numbers = items * len(records.field_dtypes(element))
    rows = min(MOST_ROWS, max(1, min(THREAD_BYTES // (items * size), THREAD_NUMBERS // numbers)))
    threads = BLOCK_THREADS
    while (policy := Policy(threads, items, rows)).shared_bytes(written, gives_lengths) > limit:
        threads //= 2
    return policy


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
        keeps: Any = Applied(op, arguments, element if self.criterion == MARKED else _BOOL)
        call = None
        if op.name == "no_operator":  # only its source is called, if it has one
            call = Applied(op, (element,), element)
            if self.criterion == HEADS:
                keeps = cpp("SameValue")
                keeps = cpp("WithNumbers", keeps) if op.key.numbers else keeps
        params = cpp("SelectParams", source, len(self.written) + self.gives_lengths, self.access)
        types = policy, cpp(self.criterion, keeps), source, *more_types
        return kernel_spec(f"select/{header}", name, *types, params=params, call=call)


_BYTE = np.dtype(np.uint8)
_NO_OPERATOR = builtin("no_operator")


@planners.for_cuda.register(Selecting)
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
    strides = zip(*(view.strides for view in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    if _is_index_only(problem):
        tiling = index_policy(gpu.get(device).shared_limit)
    else:
        tiling = policy_of(source, written, gpu.get(device).shared_limit, problem.gives_lengths)
    access, fields = access_of(source, dims, [view.ptr for view in views], tiling.items)
    is_wide = num_items >= NARROW_COUNTS
    num_tiles = -(-num_items // tiling.tile_items)
    piece, num_words = lookback_states(8 * num_tiles * (1 + is_wide) * (1 + problem.gives_lengths))
    kind = Kind(
        _NO_OPERATOR if op is None else op, source, written, access, tiling, problem.criterion,
        is_wide, problem.keeps_rest, problem.gives_lengths, gpu.get(device).capability >= (8, 0),
    )  # fmt: skip
    slots = {
        "input": at.sources, "output": at.targets[:-1], "num_kept": at.targets[-1],
        "states": at.piece(0),
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * BLOCKS_PER_SM)
    steps: list[Launch | Clear] = []
    specs = [(kind.selecting, kind.shared_bytes)]
    if problem.keeps_rest:
        steps.append(Clear(at.targets[-1], count.dtype.itemsize))
        specs.insert(0, (kind.counting, 0))
    build.kernels([spec for spec, _ in specs], device)
    steps += [
        launch(
            spec, device, grid, tiling.block_threads, slots, shared_bytes=shared_bytes,
            num_items=num_items, num_tiles=num_tiles, num_words=num_words,
            capacity=outs[0].shape[0], output_steps=[out.strides[0] for out in outs],
            access=fields,
        )
        for spec, shared_bytes in specs
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
    source: records.Element, dims: Dims, pointers: Sequence[int], items: int
) -> tuple[Cpp, dict[str, Any]]:
    """Return how the kernel accesses elements, and the fields of that access's parameters."""
    numbers = records.field_dtypes(source)
    if not dims or (len(dims) == 1 and dims[0][1] == records.read_bytes(source)):
        is_packed = is_aligned(numbers, items, math.gcd(16, *pointers))
        return dense(is_packed), {}
    is_even = len(dims) == 1
    return spaced(len(numbers), is_even), {"places": dims}


# --- Selection of pageable arrays on a GPU in blocks; only the kept elements are copied back.

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 256 << 20


@planners.for_blocks.register(Selecting)
def _(problem: Selecting, call: planners.HostCall) -> bool:
    if call.is_forced:
        return False
    *outs, count = call.results
    if 0 in problem.shape:
        count[...] = 0
        return True
    arrays = [np.broadcast_to(array, problem.shape) for array in call.arrays]
    block_bytes = BLOCK_BYTES
    if problem.criterion == HEADS:  # one block, since a run may continue in the next one
        block_bytes = sum(array.nbytes for array in arrays) + 1
    places = call.device_views  # views of arrays that kernels access in place
    reason = host_whole.pageable(None in places[: len(arrays)], problem.where)
    handle = host_whole.begin(problem.device, call.stream, arrays[0], problem.where, reason)
    if call.stream is None and any(places):  # work queued there comes first
        driver.synchronize(handle)
    operands = [Operand(array, place) for array, place in zip(arrays, places, strict=False)]
    _Blocks(problem, operands, call.op, handle, block_bytes).run(outs, count)
    return True


class _Blocks:
    """Blocks in C order: each is uploaded and selected from, and its kept elements downloaded.

    The rest, if wanted, stays on the host until its start is known.
    """

    def __init__(
        self, problem: Selecting, operands: Sequence[Operand], op: Operator | None, stream: int,
        block_bytes: int,
    ) -> None:  # fmt: skip
        self.problem, self.operands, self.op, self.stream = problem, operands, op, stream
        self.device = problem.device
        shape = operands[0].array.shape
        size = sum(records.step_of(number) for number in records.field_dtypes(problem.source))
        pieces = staging.pieces(shape, max(1, size), block_bytes)
        self.indices = [(*index, ...) for index in pieces]
        self.plans: dict[Any, Plan] = {}

    def run(self, outs: Sequence[Array], count: Array) -> None:
        """Write to outs, up to their length."""
        problem, device, stream = self.problem, self.device, self.stream
        most = max(self.operands[0].array[index].size for index in self.indices)
        sizes = [
            *(0 if x.device_view else most * x.array.dtype.itemsize for x in self.operands),
            *(most * out.dtype.itemsize for out in outs), count.dtype.itemsize,
        ]  # fmt: skip
        block_rests: list[list[Array]] = []
        total, capacity = 0, outs[0].shape[0]
        buffers = staging.device_buffers(device, stream, sizes)
        with buffers as memory, host_whole.sync_on_error(stream):
            sources, targets = memory[: len(self.operands)], memory[len(self.operands) :]
            for index in self.indices:
                num_items, kept = self._select(index, sources, targets)
                parts = [out[total : min(total + kept, capacity)] for out in outs]
                rest = [np.empty(num_items - kept, out.dtype) for out in outs]
                for part, rest_part, target in zip(parts, rest, targets, strict=False):
                    staging.download(target, part, device, stream)
                    if problem.keeps_rest:
                        first = target + kept * part.dtype.itemsize
                        staging.download(first, rest_part, device, stream)
                block_rests.append(rest)
                total += kept
            driver.synchronize(stream)
        if problem.keeps_rest:
            for out, parts_behind in zip(outs, zip(*block_rests, strict=True), strict=True):
                np.concatenate(parts_behind, out=out[total:])
        count[...] = total

    def _select(
        self, index: Any, sources: Sequence[int], targets: Sequence[int]
    ) -> tuple[int, int]:
        """Select from a block on the device; return its number of elements, and of kept ones."""
        blocks = [operand.array[index] for operand in self.operands]
        for operand, block, source in zip(self.operands, blocks, sources, strict=True):
            if operand.device_view is None:  # on the stream, after the previous block's selection
                staging.upload(block, source, self.device, self.stream)
        views = [
            operand.view(index, source, self.device)
            for operand, source in zip(self.operands, sources, strict=True)
        ]
        plan = self._plan(views, targets)
        words = b"" if self.op is None else self.op.words
        plan.queue(self.stream, (*NO_INIT, words, *[view.ptr for view in views], *targets))
        kept = np.empty((), np.int64)
        staging.fetch(targets[-1], kept.ctypes.data, kept.nbytes, self.stream)
        driver.synchronize(self.stream)
        return blocks[0].size, int(kept)

    def _plan(self, views: Sequence[View], targets: Sequence[int]) -> Plan:
        shape, kinds = views[0].shape, [result.dtype for result in self.problem.results]
        key = (shape, *((view.ptr & 15, view.strides) for view in views))
        if key not in self.plans:
            size = (int(np.prod(shape)),)
            shapes = [*[size] * (len(targets) - 1), ()]
            outs = [
                dense_view(target, out_shape, kind, self.device)
                for target, out_shape, kind in zip(targets, shapes, kinds, strict=True)
            ]
            self.plans[key] = plan_of(self.problem, views, self.op, outs)
        return self.plans[key]
