"""Kernel parameters and tuning table of selections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from gpualgo._algorithms.select.problem import HEADS, MARKED
from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor, layout_of, layout_type
from gpualgo._operators.operator import Operator

# --- Parameter structs of the selection kernels (select/kernel.cuh).

DENSE_ITEMS_PARAMS = Parameters("DenseItems")


@cache
def spaced_items_params(leaves: int, is_even: bool) -> Parameters:
    """Return SpacedItems of elements with `leaves` fields; is_even: one dimension."""
    return Parameters("SpacedItems", places=layout_of(leaves, is_even))


@cache
def select_params(inputs: int, outputs: int, access: Parameters) -> Parameters:
    """Return SelectParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "SelectParams",
        input=POINTER[inputs], output=POINTER[outputs], num_kept=POINTER, states=POINTER,
        num_items=I64, num_tiles=I64, num_words=I64, capacity=I64, output_steps=I64[outputs],
        access=access,
    )  # fmt: skip


# --- Tuning table of selections: kernels and template arguments.

Dtype = np.dtype[Any]

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
        """Elements per tile."""
        return self.block_threads * self.rows * self.items

    def shared_bytes(self, written: tuple[Dtype, ...], gives_lengths: bool = False) -> int:
        """Return the size of Shared with padding; the kernel checks it."""
        sizes = [2] if self.makes_late else [leaf.itemsize for leaf in written]
        sizes += [2] * gives_lengths
        sections = [-(-self.tile_items * size // VECTOR_BYTES) for size in sizes]
        remaining = 32 + 28 * (self.block_threads // WARP) + VECTOR_BYTES
        return STAGES * sum(sections) * VECTOR_BYTES + remaining


def policy_of(
    source: Element, written: tuple[Dtype, ...], limit: int, gives_lengths: bool = False
) -> Policy:
    """Return the policy for elements, given the limit of shared memory in bytes."""
    element = records.register_dtype(source)
    widest = max(leaf.itemsize for leaf in records.field_dtypes(element))
    items = max(1, VECTOR_BYTES // widest)
    size = sum(leaf.itemsize for leaf in records.field_dtypes(element))
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


def dense(in_packs: bool) -> Access:
    """Return the access to contiguous elements."""
    return Access(f"gpualgo::DenseItems<{str(in_packs).lower()}>", DENSE_ITEMS_PARAMS)


def spaced(leaves: int, is_even: bool) -> Access:
    """Return the access to elements of any strides."""
    layout = f"gpualgo::{layout_type(is_even)}<{leaves}>"
    cpp = f"gpualgo::SpacedItems<{layout}, {leaves}>"
    return Access(cpp, spaced_items_params(leaves, is_even))


@dataclass(frozen=True)
class Kind:
    """Parameters that determine the kernels of a selection."""

    op: Operator  # the predicate, or a placeholder if elements are marked
    source: Element
    written: tuple[Dtype, ...]
    access: Access
    policy: Policy
    kept: str  # IF, MARKED or HEADS
    is_wide: bool  # counts take 64 bits
    keeps_rest: bool = False
    gives_lengths: bool = False
    has_redux: bool = True  # the GPU adds a warp's words in one instruction

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory per block of the selecting kernel."""
        return self.policy.shared_bytes(self.written, self.gives_lengths)

    @property
    def selecting(self) -> Spec:
        """The kernel that writes the kept elements."""
        count = "gpualgo::uint64" if self.is_wide else "gpualgo::uint32"
        flags = [str(flag).lower() for flag in (self.keeps_rest, self.gives_lengths)]
        last = count, self.access.cpp, *flags
        return self._spec("kernel.cuh", "select_kernel", last)

    @property
    def counting(self) -> Spec:
        """The kernel that counts the kept elements, needed if there is a rest."""
        return self._spec("count.cuh", "select_count_kernel", (self.access.cpp,))

    def _spec(self, header: str, name: str, more_types: tuple[str, ...]) -> Spec:
        cut, op, source = self.policy, self.op, self.source
        sizes = (
            cut.block_threads, cut.items, cut.rows, BLOCKS_PER_SM, self.shared_bytes,
            str(cut.makes_late).lower(), str(self.has_redux).lower(),
        )  # fmt: skip
        element = records.register_dtype(source)
        result = element if self.kept == MARKED else _BOOL
        arguments: tuple[Dtype, ...] = (element,)
        if self.kept == HEADS:
            arguments = (element, element)
        has_no_operator = op.name == "no_operator"  # only its source is called, if it has one
        if self.kept == HEADS and has_no_operator:
            functor_type = (
                f"gpualgo::{'WithNumbers<gpualgo::SameValue>' if op.key.numbers else 'SameValue'}"
            )
        else:
            functor_type = functor(op, arguments, result)
        types = (
            f"gpualgo::SelectPolicy<{', '.join(map(str, sizes))}>",
            f"gpualgo::{self.kept}<{functor_type}>", records.cpp_name(source), *more_types,
        )  # fmt: skip
        expression = f"gpualgo::{name}<{', '.join(types)}>"
        reads, writes = len(records.field_dtypes(source)), len(self.written) + self.gives_lengths
        params = select_params(reads, writes, self.access.fields)
        computed = source if isinstance(source, records.Computed) else None
        if has_no_operator and computed is None:
            return Spec(f"select/{header}", expression, params)
        if has_no_operator:  # the source is a part of the expression
            arguments, result = (element,), element
        return Spec(f"select/{header}", expression, params, op, arguments, result, computed)
