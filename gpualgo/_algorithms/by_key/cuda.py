"""Algorithms by key on a GPU: layout of elements, tiles, the launch, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.by_key.problem import REDUCE, ByKey
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.records import Computed, Dtype
from gpualgo._base.strides import merge
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import NONE, ArgMap, Clear, Plan, arg_map, lookback_states
from gpualgo._cuda.templates import (
    START,
    VECTOR_BYTES,
    WARP,
    fold_of,
    functor,
    kernel_spec,
    launch,
    tagged_bytes,
)
from gpualgo._driver import device as gpu
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

# --- Tuning table of algorithms by key: template arguments.
#
# A tile depends on dtypes only, never on the GPU, so that results have the same bits: it fits the
# shared memory of all GPUs.

THREAD_BYTES = 128  # bytes of elements per thread
MOST_ROWS = 4  # per warp
MOST_ITEMS = 4  # per lane and row: a warp's row has fewer than 256
BLOCK_THREADS, LEAST_THREADS, STEP_THREADS = 256, 64, 64
# Threads of all resident blocks of a multiprocessor, by the upper bound on the bytes of registers
# that a thread needs for elements and folds.
SM_THREADS = {168: 768, 256: 512}
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


def policy_of(source: records.Source, written: tuple[Dtype, ...], acc: Dtype) -> Policy:
    leaves = records.field_dtypes(records.register_dtype(source))
    widest = max(field.itemsize for field in (*leaves, *records.field_dtypes(acc)))
    items = min(MOST_ITEMS, max(1, VECTOR_BYTES // widest))
    size = max(sum(field.itemsize for field in leaves), acc.itemsize)
    rows = min(MOST_ROWS, max(1, THREAD_BYTES // (items * size)))
    threads = BLOCK_THREADS
    while (policy := Policy(threads, items, rows)).shared_bytes(written, acc) > SHARED_BYTES:
        if threads > LEAST_THREADS:
            threads -= STEP_THREADS
        else:
            rows -= 1
    pair, count = records.register_dtype(source).itemsize, policy.items * policy.rows
    needed = count * pair + (policy.rows + policy.items) * acc.itemsize
    total = next((n for size, n in SM_THREADS.items() if needed <= size), WIDE_SM_THREADS)
    return replace(policy, blocks_per_sm=total // threads)


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
        tiling, op, source, acc = self.policy, self.op, self.source, self.acc
        policy = cpp(
            "ByKeyPolicy", tiling.block_threads, tiling.items, tiling.rows, tiling.blocks_per_sm,
            self.shared_bytes,
        )  # fmt: skip
        equal, computed = "gpualgo::SameValue", None
        if self.has_eq:
            equal = functor(op.source, (self.key, self.key), _BOOL)
            # dtype that the second function returns
            computed = Computed((self.key, self.key), _BOOL)
        return kernel_spec(
            "by_key/kernel.cuh", "by_key_kernel", policy, f"gpualgo::Way::{self.mode}", equal,
            fold_of(op, acc), self.key, acc, source,
            "gpualgo::uint64" if self.is_wide else "gpualgo::uint32", self.access, self.has_init,
            params=cpp("ByKeyParams", acc, source, len(self.written), self.access),
            computed=computed,
        )  # fmt: skip


@planners.for_cuda.register(ByKey)
def _(problem: ByKey, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    at = arg_map(len(views), len(targets))
    if math.prod(problem.shape) == 0:
        zero = [Clear(at.targets[-1], targets[-1].dtype.itemsize)] if problem.mode == REDUCE else []
        return Plan(targets[0].device, zero)
    return plan_of(
        problem.mode, problem.key, problem.source, problem.acc, views, op, targets, at,
        has_init=problem.has_init, has_eq=problem.has_eq,
    )  # fmt: skip


def plan_of(
    mode: str, key: Dtype, source: records.Source, acc: Dtype, views: Sequence[View], op: Operator,
    targets: Sequence[View], at: ArgMap, *, has_init: bool, has_eq: bool = False,
) -> Plan:  # fmt: skip
    """Return the plan of runs of equal neighbouring keys; `at` gives the argument slots."""
    reduces = mode == REDUCE
    outs, shape = targets[:-1] if reduces else targets, views[0].shape
    device, num_items = outs[0].device, math.prod(shape)
    written = tuple(out.dtype for out in outs)
    strides = zip(*(view.strides for view in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    tiling = policy_of(source, written, acc)
    access, fields = access_of(source, dims, [view.ptr for view in views], tiling.items)
    is_wide = num_items >= NARROW_COUNTS
    num_tiles = -(-num_items // tiling.tile_items)
    tile_bytes = tagged_bytes(acc) + 8 * (1 + is_wide) * reduces
    piece, num_words = lookback_states(num_tiles * tile_bytes)
    kind = Kind(mode, op, key, source, acc, access, tiling, written, is_wide, has_eq, has_init)
    slots = {
        "init": START, "input": at.sources, "output": at.targets[: len(outs)],
        "num_runs": at.targets[-1] if reduces else NONE, "states": at.piece(0),
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * tiling.blocks_per_sm)
    step = launch(
        kind.spec, device, grid, tiling.block_threads, slots, shared_bytes=kind.shared_bytes,
        num_items=num_items, num_tiles=num_tiles, num_words=num_words, capacity=outs[0].shape[0],
        output_steps=[out.strides[0] for out in outs], access=fields,
    )  # fmt: skip
    return Plan(device, [step], [piece])
