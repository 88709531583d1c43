"""Search on a GPU: which kernel, which template arguments, how it is cut. One table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.merge_sort.policy import order_name
from gpualgo._algorithms.searchsorted import parameters
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.layout import layout_type

Dtype = np.dtype[Any]

BLOCK_THREADS = 256
BLOCKS_PER_SM = 4  # of 64 registers a thread
TREE_BYTES = 1 << 15  # of a block's tree: four of them share a multiprocessor's 227 KB
MOST_LEVELS = 12
# Elements of the sorted array that a block reads for its tree, for each of its queries, at most:
# each query then saves as many loads as the tree has levels.
LOADS_PER_QUERY = 4


@dataclass(frozen=True)
class Policy:
    """Template arguments of searchsorted_kernel (SearchPolicy). Not measured on a GPU yet."""

    items: int  # queries per thread
    levels: int  # of the tree, at most

    @property
    def tile_items(self) -> int:
        """Return how many queries a block has at once."""
        return BLOCK_THREADS * self.items

    def shared_bytes(self, element: Dtype) -> int:
        """Return the size of Shared, which checks it, with its padding."""
        return -(-(element.itemsize << self.levels) // 16) * 16


def policy_of(element: Dtype, shared_limit: int) -> Policy:
    """Return the policy for elements of which so many bytes of shared memory can be had."""
    room = min(TREE_BYTES, shared_limit) // element.itemsize
    levels = min(MOST_LEVELS, room.bit_length() - 1)
    return Policy(4 if element.itemsize <= 8 else 2 if element.itemsize <= 32 else 1, levels)


class Cut(NamedTuple):
    """How the work is shared out."""

    grid: int
    num_tiles: int
    num_levels: int
    stretch_bits: int


def cut_of(policy: Policy, num_sorted: int, num_queries: int, num_sms: int) -> Cut:
    """Return the cut for so many elements, of which there are some, and queries."""
    num_tiles = -(-num_queries // policy.tile_items)
    grid = min(num_tiles, num_sms * BLOCKS_PER_SM)
    per_block = -(-num_queries // grid)
    levels = min(policy.levels, (LOADS_PER_QUERY * per_block).bit_length(), num_sorted.bit_length())
    # The least stretches with which the nodes of all levels are enough.
    bits = num_sorted.bit_length() - levels
    return Cut(grid, num_tiles, levels, bits)


def spec(
    order: Comparison, sides: tuple[Dtype, Dtype], is_right: bool, index: Dtype, policy: Policy,
    is_even: bool,
) -> Spec:  # fmt: skip
    """Return the kernel; `sides`: the elements of the sorted array, and of the queries."""
    element, op = order.element, order.op
    leaves = len(records.leaves(element))
    sizes = BLOCK_THREADS, policy.items, policy.levels, BLOCKS_PER_SM, policy.shared_bytes(element)
    types = (
        f"gpualgo::SearchPolicy<{', '.join(map(str, sizes))}>", order_name(order),
        str(is_right).lower(), *map(records.cpp_name, (*sides, element, index)),
        f"gpualgo::{layout_type(is_even)}<{1 + leaves}>",
    )  # fmt: skip
    expression = f"gpualgo::searchsorted_kernel<{', '.join(types)}>"
    header, takes = "searchsorted/kernel.cuh", parameters.search(leaves, is_even)
    if op is None or build.is_functor(op, (element, element), BOOL):
        return Spec(header, expression, takes)
    return Spec(header, expression, takes, op, (element, element), BOOL)
