"""Selection: which kernel, which template arguments. One table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.select import parameters
from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.layout import layout_type
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]

THREAD_BYTES = 64  # of elements that a thread holds
# Which it holds at most, each in a register: of more of a byte or two much spills. Not measured on
# a GPU; numbers of 4 bytes and more, and 4 bytes with a mark, are fewer anyway.
THREAD_NUMBERS = 24
MOST_ROWS = 4  # whose counts fit a word
LATE_ROWS = 2  # of marks
BLOCK_THREADS, BLOCKS_PER_SM = 512, 2
IF, MARKED, HEADS = "KeepIf", "KeepMarked", "KeepHeads"  # what is kept, of select/tile.cuh
STAGES = 2  # tiles of what is kept, in shared memory
NARROW_COUNTS = 1 << 32  # elements whose count fits 32 bits, beside a tag in one word
_BOOL = np.dtype(np.bool_)


@dataclass(frozen=True)
class Policy:
    """Template arguments of select_kernel (SelectPolicy of select/kernel.cuh)."""

    block_threads: int
    items: int  # of a lane in a row
    rows: int  # of a warp
    makes_late: bool = False  # elements, that are not read, as they leave

    @property
    def tile_items(self) -> int:
        """How many elements a tile has."""
        return self.block_threads * self.rows * self.items

    def shared_bytes(self, written: tuple[Dtype, ...], gives_lengths: bool = False) -> int:
        """Return the size of Shared, which checks it, with its padding."""
        sizes = [2] if self.makes_late else [leaf.itemsize for leaf in written]
        sizes += [2] * gives_lengths
        sections = [-(-self.tile_items * size // VECTOR_BYTES) for size in sizes]
        others = 32 + 28 * (self.block_threads // WARP) + VECTOR_BYTES
        return STAGES * sum(sections) * VECTOR_BYTES + others


def policy_of(
    source: Element, written: tuple[Dtype, ...], limit: int, gives_lengths: bool = False
) -> Policy:
    """Return the policy for elements of which so many bytes of shared memory can be had."""
    element = records.held(source)
    widest = max(leaf.itemsize for leaf in records.leaves(element))
    items = max(1, VECTOR_BYTES // widest)
    size = sum(leaf.itemsize for leaf in records.leaves(element))
    numbers = items * len(records.leaves(element))
    rows = min(MOST_ROWS, max(1, min(THREAD_BYTES // (items * size), THREAD_NUMBERS // numbers)))
    threads = BLOCK_THREADS
    while (found := Policy(threads, items, rows)).shared_bytes(written, gives_lengths) > limit:
        threads //= 2
    return found


def late_policy(limit: int) -> Policy:
    """Return the policy for positions, of which a mark each is all that is read."""
    found = Policy(BLOCK_THREADS, VECTOR_BYTES, LATE_ROWS, makes_late=True)
    while found.shared_bytes(()) > limit:
        found = replace(found, block_threads=found.block_threads // 2)
    return found


def dense(in_packs: bool) -> Access:
    """Return the access to elements without gaps."""
    return Access(f"gpualgo::DenseItems<{str(in_packs).lower()}>", parameters.DENSE_ITEMS)


def spaced(leaves: int, is_even: bool) -> Access:
    """Return the access to elements in any strides."""
    places = f"gpualgo::{layout_type(is_even)}<{leaves}>"
    cpp = f"gpualgo::SpacedItems<{places}, {leaves}>"
    return Access(cpp, parameters.spaced_items(leaves, is_even))


@dataclass(frozen=True)
class Kind:
    """What decides the kernels of a selection."""

    op: Operator  # the predicate, or none, where elements are marked
    source: Element
    written: tuple[Dtype, ...]
    access: Access
    policy: Policy
    kept: str  # IF, MARKED or HEADS
    is_wide: bool  # counts take 64 bits
    keeps_rest: bool = False
    gives_lengths: bool = False
    has_redux: bool = True  # the GPU adds up a warp's words at once

    @property
    def shared_bytes(self) -> int:
        """What a block of the kernel that selects has of shared memory."""
        return self.policy.shared_bytes(self.written, self.gives_lengths)

    @property
    def selecting(self) -> Spec:
        """The kernel that writes what is kept."""
        count = "gpualgo::uint64" if self.is_wide else "gpualgo::uint32"
        flags = [str(flag).lower() for flag in (self.keeps_rest, self.gives_lengths)]
        last = count, self.access.cpp, *flags
        return self._spec("kernel.cuh", "select_kernel", last)

    @property
    def counting(self) -> Spec:
        """The kernel that counts what is kept, where there is a rest."""
        return self._spec("count.cuh", "select_count_kernel", (self.access.cpp,))

    def _spec(self, header: str, name: str, last: tuple[str, ...]) -> Spec:
        cut, op, source = self.policy, self.op, self.source
        sizes = (
            cut.block_threads, cut.items, cut.rows, BLOCKS_PER_SM, self.shared_bytes,
            str(cut.makes_late).lower(), str(self.has_redux).lower(),
        )  # fmt: skip
        element = records.held(source)
        result = element if self.kept == MARKED else _BOOL
        arguments: tuple[Dtype, ...] = (element,)
        if self.kept == HEADS:
            arguments = (element, element)
        is_nobody = op.name == "no_operator"  # whose source alone is called, if it has one
        if self.kept == HEADS and is_nobody:
            called = (
                f"gpualgo::{'WithNumbers<gpualgo::SameValue>' if op.key.numbers else 'SameValue'}"
            )
        else:
            called = functor(op, arguments, result)
        types = (
            f"gpualgo::SelectPolicy<{', '.join(map(str, sizes))}>",
            f"gpualgo::{self.kept}<{called}>", records.cpp_name(source), *last,
        )  # fmt: skip
        expression = f"gpualgo::{name}<{', '.join(types)}>"
        reads, writes = len(records.leaves(source)), len(self.written) + self.gives_lengths
        takes = parameters.select(reads, writes, self.access.fields)
        computed = source if isinstance(source, records.Computed) else None
        if is_nobody and computed is None:
            return Spec(f"select/{header}", expression, takes)
        if is_nobody:  # which is a part of the expression
            arguments, result = (element,), element
        return Spec(f"select/{header}", expression, takes, op, arguments, result, computed)
