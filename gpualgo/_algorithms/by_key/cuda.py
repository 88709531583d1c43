"""Algorithms by key on a GPU: layout of elements, tiles, the launch, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.by_key.problem import REDUCE, ByKey
from gpualgo._algorithms.radix_sort import cuda as radix_sort
from gpualgo._algorithms.radix_sort.cuda_passes import Window, position_bytes
from gpualgo._algorithms.radix_sort.problem import sort_problem
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._arrays.view import NumPy, View, dense_view, placeholder
from gpualgo._base import records
from gpualgo._base.records import Computed, Dtype
from gpualgo._base.strides import dense_strides
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import (
    NONE,
    ArgMap,
    Clear,
    Launch,
    Piece,
    Plan,
    arg_map,
    lookback_states,
)
from gpualgo._cuda.templates import (
    START,
    VECTOR_BYTES,
    WARP,
    Applied,
    fold_of,
    functor,
    kernel_spec,
    launch,
    tagged_bytes,
)
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import planners

# --- Plans that are composed of others.


class Placed(NamedTuple):
    """An array and its argument slot; in temporary storage its address is a placeholder."""

    view: View
    slot: Any


class Parts:
    """Collects the steps and temporary arrays of a plan that is composed of others."""

    def __init__(self, device: int, at: ArgMap, where: str) -> None:
        self.device, self._at, self._where = device, at, where
        self.steps: list[Launch | Clear] = []
        self.pieces: list[Piece] = []

    def array(self, dtype: np.dtype[Any], *shape: int) -> Placed:
        slot = self._at.piece(len(self.pieces))
        self.pieces.append(Piece(math.prod(shape) * dtype.itemsize))
        return Placed(placeholder(shape, dtype, self.device), slot)

    def add(
        self, plan_of: Callable[[list[View], list[View], ArgMap], Plan], sources: Sequence[Placed],
        targets: Sequence[Placed],
    ) -> None:  # fmt: skip
        """Add the plan that `plan_of` returns for these arrays."""
        (inputs, slots), (outs, out_slots) = (
            ([x.view for x in arrays], [x.slot for x in arrays]) for arrays in (sources, targets)
        )
        plan = plan_of(inputs, outs, ArgMap(slots, out_slots, self._at.piece(len(self.pieces))))
        self.steps += plan.steps
        self.pieces += [piece._replace(workspace_offset=None) for piece in plan.pieces]

    def mapped(
        self, function: Callable[..., Any], sources: Sequence[Placed], dtype: np.dtype[Any],
        shape: tuple[int, ...],
    ) -> Placed:  # fmt: skip
        """Return an array of the function's results."""
        reads, result = tuple([x.view.dtype for x in sources]), self.array(dtype, *shape)
        op = as_operator(function, self._where, len(reads))
        arguments = tuple(map(records.operand_dtype, reads))
        self.transform(Applied(op, arguments, dtype, reads), sources, [result])
        return result

    def transform(
        self, applied: Applied, sources: Sequence[Placed], targets: Sequence[Placed]
    ) -> None:
        shape = targets[0].view.shape
        self.add(
            lambda views, outs, at: elementwise.plan_of(applied, views, shape, outs, at),
            sources, targets,
        )  # fmt: skip

    def sort(
        self, arrays: Sequence[Placed], num_keys: int = 1, bits: int | None = None,
        into: Sequence[Placed] = (), first_bit: int = 0, window: Window = (NONE, 0),
    ) -> list[Placed]:  # fmt: skip
        """Sort arrays by the first ones, or by its bits up to `bits`; return the sorted arrays.

        The last ones are sorted to the arrays `into`. `window`: as for the radix sort.
        """
        views = [x.view for x in arrays]
        new = [self.array(x.dtype, math.prod(x.shape)) for x in views[: len(views) - len(into)]]
        results = [*new, *into]
        hosts = [view._replace(device=CPU, library=NumPy) for view in views]
        problem = sort_problem(hosts, num_keys, self._where, self.device, bits, first_bit=first_bit)
        self.add(
            lambda views, outs, at: radix_sort.plan_of(problem, views, None, outs, at, window),
            arrays, results,
        )  # fmt: skip
        return results


# --- Tuning table of algorithms by key: template arguments.
#
# A tile depends on dtypes only, never on the GPU, so that results have the same bits: it fits the
# shared memory of all GPUs.

THREAD_BYTES = 128  # bytes of elements per thread
MOST_ROWS = 3  # per warp
MOST_ITEMS = 4  # per lane and row: a warp's row has fewer than 256
BLOCK_THREADS, LEAST_THREADS, STEP_THREADS = 256, 64, 64
# Threads of all resident blocks of a multiprocessor, by the upper bound on the bytes of registers
# that a thread needs for elements and folds. us of reduce_by_key and inclusive_scan_by_key of 2^27
# pairs in runs of 16 on an H200, with 1024, with 768, and with 768 and four rows: int32 and float32
# 527, 530, 524 and 370, 373, 371; int32 and float64 817, 930, 998 and 636, 704, 750; int64 and
# float64 1377, 979, 1247 and 887, 757, 817.
SM_THREADS = {120: 1024, 168: 768, 256: 512}
WIDE_SM_THREADS = 256
STAGES = 2  # tiles of results in shared memory
SHARED_BYTES = 62 << 10  # of a block; an sm_75 has 64 KiB
NARROW_COUNTS = 1 << 32  # counts below this fit into 32 bits, next to a tag in one word
_BOOL = np.dtype(np.bool_)


@dataclass(frozen=True)
class Policy:
    """Template arguments of by_key_kernel (ByKeyPolicy of by_key/tile.cuh)."""

    block_threads: int
    items: int  # per lane and row
    rows: int  # per warp
    blocks_per_sm: int = 1  # minimum of resident blocks; does not affect the bits

    @property
    def tile_items(self) -> int:
        return self.block_threads * self.rows * self.items

    def shared_bytes(self, written: tuple[Dtype, ...], acc: Dtype) -> int:
        """Return the size of Shared with padding; the kernel checks it."""
        sections = [-(-self.tile_items * field.itemsize // VECTOR_BYTES) for field in written]
        warps = self.block_threads // WARP
        remaining = (3 + warps) * acc.itemsize + 8 * warps + 64
        return STAGES * sum(sections) * VECTOR_BYTES + -(-remaining // 16) * 16

    def cpp(self, shared_bytes: int) -> Cpp:
        sizes = self.block_threads, self.items, self.rows, self.blocks_per_sm
        return cpp("ByKeyPolicy", *sizes, shared_bytes)


def policy_of(
    source: records.Source, written: tuple[Dtype, ...], acc: Dtype, spare: int = 0
) -> Policy:
    """Return the policy for elements; `spare`: bytes of registers that a thread needs besides."""
    leaves = records.field_dtypes(records.register_dtype(source))
    widest = max(field.itemsize for field in (*leaves, *records.field_dtypes(acc)))
    items = min(MOST_ITEMS, max(1, VECTOR_BYTES // widest))
    pair = sum(field.itemsize for field in leaves)
    size = max(pair, acc.itemsize)
    rows = min(MOST_ROWS, max(1, THREAD_BYTES // (items * size)))
    threads = BLOCK_THREADS
    while (policy := Policy(threads, items, rows)).shared_bytes(written, acc) > SHARED_BYTES:
        if threads > LEAST_THREADS:
            threads -= STEP_THREADS
        else:
            rows -= 1
    needed = policy.items * policy.rows * pair + (policy.rows + policy.items) * acc.itemsize + spare
    total = next((n for size, n in SM_THREADS.items() if needed <= size), WIDE_SM_THREADS)
    return replace(policy, blocks_per_sm=total // threads)


def carry_bytes(num_tiles: int, acc: Dtype) -> int:
    """Return the size of the states of tiles and of their groups (parts/keyed.cuh)."""
    return (num_tiles + num_tiles // WARP) * tagged_bytes(acc)


@dataclass(frozen=True)
class Kind:
    mode: str  # reduce, inclusive or exclusive
    op: Operator
    key: Dtype
    source: records.Source
    acc: Dtype
    access: Cpp
    policy: Policy
    written: tuple[Dtype, ...]
    is_wide: bool  # counts take 64 bits
    has_eq: bool
    has_init: bool

    @property
    def shared_bytes(self) -> int:
        return self.policy.shared_bytes(self.written, self.acc)

    @property
    def spec(self) -> Spec:
        op, source, acc = self.op, self.source, self.acc
        params = cpp("ByKeyParams", acc, source, len(self.written), self.access)
        equal, computed = "gpualgo::SameValue", None
        if self.has_eq:
            equal = functor(op.source, (self.key, self.key), _BOOL)
            # dtype that the second function returns
            computed = Computed((self.key, self.key), _BOOL)
        return kernel_spec(
            "by_key/kernel.cuh", "by_key_kernel", self.policy.cpp(self.shared_bytes),
            f"gpualgo::Way::{self.mode}", equal, fold_of(op, acc), self.key, acc, source,
            "gpualgo::uint64" if self.is_wide else "gpualgo::uint32", params, self.has_init,
            params=params, computed=computed,
        )  # fmt: skip


AddTables: TypeAlias = "Callable[[Parts, Sequence[Placed], Sequence[Placed], Any], None]"
"""Adds steps that write the results, given elements, results and the slot of a KeyWindow."""


@planners.for_cuda.register(ByKey)
def _(problem: ByKey, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    plan = partial(planned, problem, op=op, targets=targets)
    return elementwise.of_copies(views, targets, plan, only_transposed=True)


def planned(
    problem: ByKey, views: Sequence[View], op: Any, targets: Sequence[View],
    tables: tuple[AddTables, int] | None = None,
) -> Plan:  # fmt: skip
    """`tables`: what reduces keys in any order if they are this few from the least on."""
    at = arg_map(len(views), len(targets))
    if math.prod(problem.shape) == 0:
        zero = [Clear(at.targets[-1], targets[-1].dtype.itemsize)] if problem.mode == REDUCE else []
        return Plan(targets[0].device, zero)
    if problem.in_any_order:
        return _by_sorting(problem, views, op, targets, tables)
    return plan_of(
        problem.mode, problem.key, problem.source, problem.acc, views, op, targets, at,
        has_init=problem.has_init, has_eq=problem.has_eq,
    )  # fmt: skip


def plan_of(
    mode: str, key: Dtype, source: records.Source, acc: Dtype, views: Sequence[View], op: Operator,
    targets: Sequence[View], at: ArgMap, *, has_init: bool, has_eq: bool = False,
    window: Any = NONE,
) -> Plan:  # fmt: skip
    """Return the plan of runs of equal neighbouring keys; `at` gives the argument slots."""
    reduces = mode == REDUCE
    outs, shape = targets[:-1] if reduces else targets, views[0].shape
    device, num_items = outs[0].device, math.prod(shape)
    written = tuple(out.dtype for out in outs)
    tiling = policy_of(source, written, acc)
    access, fields = access_of(source, shape, views, tiling.items)
    is_wide = num_items >= NARROW_COUNTS
    num_tiles = -(-num_items // tiling.tile_items)
    count_bytes = num_tiles * 8 * (1 + is_wide) * reduces
    piece, num_words = lookback_states(count_bytes + carry_bytes(num_tiles, acc))
    kind = Kind(mode, op, key, source, acc, access, tiling, written, is_wide, has_eq, has_init)
    slots = {
        "init": START, "input": at.sources, "output": at.targets[: len(outs)],
        "num_runs": at.targets[-1] if reduces else NONE, "states": at.piece(0),
        "window": window,
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * tiling.blocks_per_sm)
    step = launch(
        kind.spec, device, grid, tiling.block_threads, slots, shared_bytes=kind.shared_bytes,
        num_items=num_items, num_tiles=num_tiles, num_words=num_words, capacity=outs[0].shape[0],
        output_steps=[out.strides[0] for out in outs], access=fields,
    )  # fmt: skip
    return Plan(device, [step], [piece])


def _by_sorting(
    problem: ByKey, views: Sequence[View], op: Any, targets: Sequence[View],
    tables: tuple[AddTables, int] | None,
) -> Plan:  # fmt: skip
    """Return the plan of keys in any order: a stable sort makes equal keys neighbours.

    With tables both ways are queued. The GPU finds where the keys lie when it counts digits for the
    sort, so that no call waits for it, and the kernels of one way return at once.
    """
    at, device, shape = arg_map(len(views), len(targets)), targets[0].device, problem.shape
    parts, results = Parts(device, at, problem.where), list(map(Placed, targets, at.targets))
    arrays, written, num_items = list(map(Placed, views, at.sources)), results, math.prod(shape)
    is_scan = problem.mode != REDUCE
    if is_scan:
        kind, steps = np.dtype(f"u{position_bytes(num_items)}"), dense_strides(shape, 1)
        counted = dense_view(0, shape, records.POSITION, device)._replace(strides=steps)
        arrays.append(parts.mapped(_converted(kind.type), [Placed(counted, NONE)], kind, shape))
        written = [parts.array(x.view.dtype, num_items) for x in results]
    window: Window = NONE, 0
    if tables is not None:
        window = parts.array(np.dtype(np.uint64), 2).slot, tables[1]
    ordered = parts.sort(arrays, problem.num_keys, window=window)
    if tables is not None:
        tables[0](parts, arrays, results, window[0])
    parts.add(
        lambda views, outs, at: plan_of(
            problem.mode, problem.key, problem.source, problem.acc, views, op, outs, at,
            has_init=problem.has_init, window=window[0],
        ),
        ordered[: len(views)], written,
    )  # fmt: skip
    if is_scan:  # results are moved to their elements' indices
        bits = max(1, (num_items - 1).bit_length())
        parts.sort((ordered[-1], *written), bits=bits, into=results)
    return Plan(device, parts.steps, parts.pieces)


def _converted(kind: Any) -> Any:
    return lambda i: kind(i)
