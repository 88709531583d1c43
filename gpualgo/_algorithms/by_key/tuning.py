"""Kernel parameters and tuning table of reductions and scans by key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Computed
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor
from gpualgo._operators.operator import Operator

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

Dtype = np.dtype[Any]

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
        """Elements per tile."""
        return self.block_threads * self.rows * self.items

    def shared_bytes(self, written: tuple[Dtype, ...], acc: Dtype) -> int:
        """Return the size of Shared with padding; the kernel checks it."""
        sections = [-(-self.tile_items * leaf.itemsize // VECTOR_BYTES) for leaf in written]
        warps = self.block_threads // WARP
        remaining = (3 + warps) * acc.itemsize + 8 * warps + 64
        return STAGES * sum(sections) * VECTOR_BYTES + -(-remaining // 16) * 16


def policy_of(source: records.Source, written: tuple[Dtype, ...], acc: Dtype) -> Policy:
    """Return the policy for the pairs of a key and a value that are read, and the output fields."""
    leaves = records.field_dtypes(records.register_dtype(source))
    widest = max(leaf.itemsize for leaf in (*leaves, *records.field_dtypes(acc)))
    items = min(MOST_ITEMS, max(1, VECTOR_BYTES // widest))
    size = max(sum(leaf.itemsize for leaf in leaves), acc.itemsize)
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
    """Parameters that determine a kernel."""

    way: str  # reduce, inclusive or exclusive
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
        """Bytes of shared memory per block."""
        return self.policy.shared_bytes(self.written, self.acc)

    @property
    def spec(self) -> Spec:
        cut, op, source, acc = self.policy, self.op, self.source, self.acc
        sizes = cut.block_threads, cut.items, cut.rows, cut.blocks_per_sm, self.shared_bytes
        equal, computed = "gpualgo::SameValue", None
        if self.has_eq:
            equal = functor(op.source, (self.key, self.key), _BOOL)
            # dtype that the second function returns
            computed = Computed((self.key, self.key), _BOOL)
        elif isinstance(source, Computed):
            computed = source
        types = (
            f"gpualgo::ByKeyPolicy<{', '.join(map(str, sizes))}>",
            f"gpualgo::Way::{self.way}", equal, functor(op, (acc, acc), acc),
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
