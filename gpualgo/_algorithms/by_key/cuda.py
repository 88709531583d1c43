"""Algorithms by key on a GPU: layout of elements, tiles, the launch, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from gpualgo._algorithms.by_key.problem import ByKey
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.records import Computed, Dtype
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init
from gpualgo._cuda.plan import NONE, STATES, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import START, VECTOR_BYTES, WARP, Access, functor, tagged_bytes
from gpualgo._driver import device as gpu
from gpualgo._driver.device import STATE_BYTES
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

# --- Parameter structs of the kernel by key (by_key/kernel.cuh).


@cache
def by_key_params(item_bytes: int, inputs: int, outputs: int, access: Parameters) -> Parameters:
    """Return ByKeyParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "ByKeyParams",
        init=init(item_bytes), input=POINTER[inputs], output=POINTER[outputs], num_runs=POINTER,
        states=POINTER, num_items=I64, num_tiles=I64, num_words=I64, capacity=I64,
        output_steps=I64[outputs], access=access,
    )  # fmt: skip


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
    access: Access
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
        sizes = (
            tiling.block_threads,
            tiling.items,
            tiling.rows,
            tiling.blocks_per_sm,
            self.shared_bytes,
        )
        equal, computed = "gpualgo::SameValue", None
        if self.has_eq:
            equal = functor(op.source, (self.key, self.key), _BOOL)
            # dtype that the second function returns
            computed = Computed((self.key, self.key), _BOOL)
        elif isinstance(source, Computed):
            computed = source
        types = (
            f"gpualgo::ByKeyPolicy<{', '.join(map(str, sizes))}>",
            f"gpualgo::Way::{self.mode}", equal, functor(op, (acc, acc), acc),
            *map(records.cpp_name, (self.key, acc, source)),
            "gpualgo::uint64" if self.is_wide else "gpualgo::uint32",
            self.access.cpp, str(self.has_init).lower(),
        )  # fmt: skip
        expression = f"gpualgo::by_key_kernel<{', '.join(types)}>"
        reads, writes = len(records.field_dtypes(source)), len(self.written)
        params = by_key_params(acc.itemsize, reads, writes, self.access.fields)
        if op.name is not None and computed is None:
            return Spec("by_key/kernel.cuh", expression, params)
        return Spec("by_key/kernel.cuh", expression, params, op, (acc, acc), acc, computed)


_CONTROL_BYTES = 256  # LookbackControl


@planners.for_cuda.register(ByKey)
def _(problem: ByKey, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    reduces = problem.has_dynamic_length
    outs = targets[:-1] if reduces else targets
    args, device = ArgMap(len(views), len(targets)), outs[0].device
    num_items = math.prod(problem.shape)
    if num_items == 0:
        zero = [Clear(args.target(len(outs)), targets[-1].dtype.itemsize)] if reduces else []
        return Plan(device, zero)
    source, acc = problem.source, problem.acc
    written = tuple(out.dtype for out in outs)
    strides = zip(*(view.strides for view in views), strict=True)
    dims = merge(list(zip(problem.shape, strides, strict=True)))
    tiling = policy_of(source, written, acc)
    access, fields = access_of(source, dims, [view.ptr for view in views], tiling.items)
    is_wide = num_items >= NARROW_COUNTS
    num_tiles = -(-num_items // tiling.tile_items)
    tile_bytes = tagged_bytes(acc) + 8 * (1 + is_wide) * reduces
    piece = Piece(_CONTROL_BYTES + num_tiles * tile_bytes, STATES, is_zeroed=True)
    kind = Kind(
        problem.mode, op, problem.key, source, acc, access, tiling, written, is_wide,
        problem.has_eq, problem.has_init,
    )  # fmt: skip
    words = max(piece.num_bytes, STATE_BYTES) - _CONTROL_BYTES
    spec = kind.spec
    packed = spec.parameters.pack(
        num_items=num_items, num_tiles=num_tiles, num_words=words // 8,
        capacity=outs[0].shape[0], output_steps=[out.strides[0] for out in outs], access=fields,
    )  # fmt: skip
    slots = {
        "init": START,
        "input": [args.source(i) for i in range(len(views))],
        "output": [args.target(i) for i in range(len(outs))],
        "num_runs": args.target(len(outs)) if reduces else NONE, "states": args.piece(0),
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * tiling.blocks_per_sm)
    launch = Launch(
        build.kernel(spec, device), grid, tiling.block_threads, packed, device, slots,
        shared_bytes=kind.shared_bytes,
    )  # fmt: skip
    return Plan(device, [launch], [piece])
