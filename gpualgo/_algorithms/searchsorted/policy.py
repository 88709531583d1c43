"""Search on a GPU: which kernel, which template arguments, how it is cut. One table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.merge_sort.policy import order_name
from gpualgo._algorithms.searchsorted import parameters
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.layout import layout_type
from gpualgo._cuda.templates import VECTOR_BYTES

Dtype = np.dtype[Any]

BLOCK_THREADS = 256
BLOCKS_PER_SM = 4  # of 64 registers a thread
SAMPLE_BLOCKS_PER_SM = 8
TREE_BYTES = 1 << 15  # of a block's tree: four of them share a multiprocessor's 227 KB
MOST_LEVELS = 12
# Elements of the sorted array that a block reads for its tree, for each of its queries, at most:
# each query then saves as many loads as the tree has levels.
LOADS_PER_QUERY = 4
# With at least one query for so many elements of the sorted array, samples of it are made first:
# that reads it once, and saves each query two loads of three.
ITEMS_PER_QUERY = 32
NODE_BITS = {4: 3, 8: 2}  # by the bytes of an element (up to): nodes of a sector of 32 bytes


@dataclass(frozen=True)
class Policy:
    """Template arguments of searchsorted_kernel (SearchPolicy)."""

    items: int  # queries per thread
    levels: int  # of the tree, at most
    node_bits: int = 0  # of the samples, if there are any
    in_packs: bool = False  # the sorted array lies as the samples do
    may_fall: bool = False  # it may be in the opposite order; then there are no samples

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


def with_samples(
    policy: Policy, element: Dtype, num_sorted: int, num_queries: int, alignment: int
) -> Policy:
    """Return the policy where samples of the sorted array are made, if these help.

    `alignment`: of the sorted array, if it lies as its samples do; else 0.
    """
    bits = next((bits for most, bits in NODE_BITS.items() if element.itemsize <= most), 0)
    in_packs = alignment >= min(VECTOR_BYTES, element.itemsize << bits)
    if len(records.leaves(element)) > 1 or num_queries * ITEMS_PER_QUERY < num_sorted:
        return policy
    if policy.may_fall or not 0 < bits < num_sorted.bit_length() - policy.levels:
        return policy
    return replace(policy, node_bits=bits, in_packs=in_packs)


class Cut(NamedTuple):
    """How the work is shared out."""

    grid: int
    num_tiles: int
    num_levels: int
    stretch_bits: int
    begins: tuple[int, ...] = ()  # of the samples, from the first on, and the end of the last

    @property
    def num_samples(self) -> int:
        """Return how many samples there are."""
        return max(0, len(self.begins) - 1)


def cut_of(policy: Policy, num_sorted: int, num_queries: int, num_sms: int) -> Cut:
    """Return the cut for so many elements, of which there are some, and queries."""
    num_tiles = -(-num_queries // policy.tile_items)
    grid = min(num_tiles, num_sms * BLOCKS_PER_SM)
    if policy.node_bits:
        return _sampled(policy, num_sorted, num_tiles, grid)
    per_block = -(-num_queries // grid)
    levels = min(policy.levels, (LOADS_PER_QUERY * per_block).bit_length(), num_sorted.bit_length())
    # The least stretches with which the nodes of all levels are enough.
    bits = num_sorted.bit_length() - levels
    return Cut(grid, num_tiles, levels, bits)


def _sampled(policy: Policy, num_sorted: int, num_tiles: int, grid: int) -> Cut:
    bits, length = policy.node_bits, num_sorted.bit_length()
    count = -(-(length - policy.levels) // bits)
    begins = [0]
    for number in range(1, count + 1):
        nodes = (num_sorted >> number * bits >> bits) + 1
        begins.append(begins[-1] + (nodes << bits))
    return Cut(grid, num_tiles, length - count * bits, count * bits, tuple(begins))


def samples_spec(sorted_element: Dtype, element: Dtype, node_bits: int) -> Spec:
    """Return the kernel that makes samples."""
    names = records.cpp_name(sorted_element), records.cpp_name(element)
    types = ", ".join(map(str, (BLOCK_THREADS, node_bits, *names)))
    expression = f"gpualgo::search_samples_kernel<{types}>"
    return Spec("searchsorted/samples.cuh", expression, parameters.samples())


def spec(
    order: Comparison, sides: tuple[Dtype, Dtype], is_right: bool, index: Dtype, policy: Policy,
    is_even: bool,
) -> Spec:  # fmt: skip
    """Return the kernel; `sides`: the elements of the sorted array, and of the queries."""
    element, op = order.element, order.op
    leaves = len(records.leaves(element))
    sizes = (
        BLOCK_THREADS, policy.items, policy.levels, BLOCKS_PER_SM, policy.shared_bytes(element),
        policy.node_bits, str(policy.in_packs).lower(), str(policy.may_fall).lower(),
    )  # fmt: skip
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
