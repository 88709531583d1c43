"""Search on a GPU: layout of queries, and the launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.merge_sort.problem import Comparison
from gpualgo._algorithms.merge_sort.tuning import order_type
from gpualgo._algorithms.searchsorted.problem import IN_EITHER, PLACE, Search
from gpualgo._arrays.view import View, strides_for
from gpualgo._base import records
from gpualgo._base.strides import merge
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.plan import KEPT, NONE, Piece, Plan, arg_map
from gpualgo._cuda.templates import VECTOR_BYTES, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

MOST_SAMPLES = 16  # most_samples of searchsorted/kernel.cuh
WINDOW_BYTES = 16  # of Search::Window

# --- Tuning table of searches on a GPU: kernels, template arguments, tilings.

Dtype = np.dtype[Any]

BLOCK_THREADS = 256
BLOCKS_PER_SM = 4  # with 64 registers a thread
SAMPLE_BLOCKS_PER_SM = 8
TREE_BYTES = 1 << 15  # of a block's tree: four of them share a multiprocessor's 227 KB
MOST_LEVELS = 12
# Upper bound on the elements of the sorted array that a block loads for its tree, per query: each
# query then saves as many loads as the tree has levels.
LOADS_PER_QUERY = 4
# With at least one query per this many elements of the sorted array, samples of it are computed
# first: that reads it once, and saves two of three loads of each query.
ITEMS_PER_QUERY = 32
# With so many queries, those of a tile are looked for in a window of the sorted array if they are
# close. Windows are found while samples are computed, which takes as long.
WINDOW_QUERIES = 1 << 21
NODE_BITS = {4: 3, 8: 2}  # by the upper bound on an element's bytes: nodes of a 32-byte sector


@dataclass(frozen=True)
class Policy:
    """Template arguments of searchsorted_kernel (SearchPolicy)."""

    items: int  # queries per thread
    levels: int  # maximum, of the tree
    node_bits: int = 0  # of the samples, if there are any
    in_packs: bool = False  # the sorted array has the samples' layout
    answer: str = PLACE  # to each query

    @property
    def may_fall(self) -> bool:
        """Whether the sorted array may be descending; then there are no samples."""
        return self.answer == IN_EITHER

    @property
    def tile_items(self) -> int:
        """Queries that a block processes at once."""
        return BLOCK_THREADS * self.items

    def shared_bytes(self, element: Dtype) -> int:
        return -(-(element.itemsize << self.levels) // 16) * 16


def policy_of(element: Dtype, shared_limit: int) -> Policy:
    room = min(TREE_BYTES, shared_limit) // element.itemsize
    levels = min(MOST_LEVELS, room.bit_length() - 1)
    return Policy(4 if element.itemsize <= 8 else 2 if element.itemsize <= 32 else 1, levels)


def with_samples(
    policy: Policy, element: Dtype, num_sorted: int, num_queries: int, alignment: int
) -> Policy:
    """Return the policy with samples of the sorted array, if these help.

    `alignment` is that of the sorted array if it has its samples' layout, else 0.
    """
    bits = next((bits for limit, bits in NODE_BITS.items() if element.itemsize <= limit), 0)
    in_packs = alignment >= min(VECTOR_BYTES, element.itemsize << bits)
    if len(records.field_dtypes(element)) > 1 or num_queries * ITEMS_PER_QUERY < num_sorted:
        return policy
    if policy.may_fall or not 0 < bits < num_sorted.bit_length() - policy.levels:
        return policy
    return replace(policy, node_bits=bits, in_packs=in_packs)


class Tiling(NamedTuple):
    grid: int
    num_tiles: int
    num_levels: int
    stretch_bits: int
    begins: tuple[int, ...] = ()  # start of each sample level, and end of the last one

    @property
    def num_samples(self) -> int:
        return max(0, len(self.begins) - 1)


def tiling_of(policy: Policy, num_sorted: int, num_queries: int, num_sms: int) -> Tiling:
    num_tiles = -(-num_queries // policy.tile_items)
    grid = min(num_tiles, num_sms * BLOCKS_PER_SM)
    if policy.node_bits:
        return _sampled(policy, num_sorted, num_tiles, grid)
    per_block = -(-num_queries // grid)
    levels = min(policy.levels, (LOADS_PER_QUERY * per_block).bit_length(), num_sorted.bit_length())
    # The shortest stretches for which the nodes of all levels suffice.
    bits = num_sorted.bit_length() - levels
    return Tiling(grid, num_tiles, levels, bits)


def _sampled(policy: Policy, num_sorted: int, num_tiles: int, grid: int) -> Tiling:
    bits, length = policy.node_bits, num_sorted.bit_length()
    count = -(-(length - policy.levels) // bits)
    starts = [0]
    for level in range(1, count + 1):
        nodes = (num_sorted >> level * bits >> bits) + 1
        starts.append(starts[-1] + (nodes << bits))
    return Tiling(grid, num_tiles, length - count * bits, count * bits, tuple(starts))


def specs(
    order: Comparison, sides: tuple[Dtype, Dtype], is_right: bool, index: Dtype, policy: Policy,
    is_even: bool,
) -> list[Spec]:  # fmt: skip
    """Return the kernels: the samples' if there are any, and the search's.

    `sides` are the elements of the sorted array and of the queries.
    """
    element = order.element
    tuned = cpp(
        "SearchPolicy", BLOCK_THREADS, policy.items, policy.levels, BLOCKS_PER_SM,
        policy.shared_bytes(element), policy.node_bits, policy.in_packs,
        f"gpualgo::Answer::{policy.answer}",
    )  # fmt: skip
    places = cpp("EvenLayout" if is_even else "Layout", 1 + len(records.field_dtypes(element)))
    types = tuned, order_type(order), is_right, *sides, element, index, places
    search = kernel_spec("searchsorted/kernel.cuh", "searchsorted_kernel", *types)
    if not policy.node_bits:
        return [search]
    return [kernel_spec("searchsorted/samples.cuh", "search_samples_kernel", *types), search]


@planners.for_cuda.register(Search)
def _(problem: Search, views: Sequence[View], op: Operator | None, targets: Sequence[View]) -> Plan:
    (out,), count, device = targets, problem.num_fields, targets[0].device
    order = problem.order.with_op(op)
    shape, at = out.shape, arg_map(len(views), 1)
    sorted_views, queries = views[:count], views[count:]
    strides = zip(out.strides, *(strides_for(view, shape) for view in queries), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    # Neighbouring threads should read and write neighbours; the order of dimensions is free.
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
    dev = gpu.get(device)
    kind = policy_of(order.element, dev.shared_limit)
    kind = replace(kind, answer=problem.answer)
    num_queries = math.prod(shape)
    # If the sorted array has the layout of its samples, else 0.
    is_like = problem.sides[0] == order.element and views[0].strides[0] == order.element.itemsize
    alignment = math.gcd(VECTOR_BYTES, views[0].ptr) if is_like else 0
    kind = with_samples(kind, order.element, problem.num_sorted, num_queries, alignment)
    tiling = tiling_of(kind, problem.num_sorted, num_queries, dev.num_sms)
    *sampling, searching = specs(
        order, problem.sides, problem.is_right, problem.results[0].dtype, kind, len(dims) <= 1
    )
    num_items = tiling.begins[-1] if sampling else 0
    num_windows = tiling.num_tiles if sampling and num_queries >= WINDOW_QUERIES else 0
    window_blocks = min(-(-num_windows // BLOCK_THREADS), dev.num_sms)
    windows_at = aligned(num_items * order.element.itemsize)
    slots = {
        "sorted": at.sources[:count], "queries": at.sources[count:], "output": at.targets[0],
        "samples": at.piece(0) if sampling else NONE,
        "windows": (at.piece(0), windows_at) if window_blocks else NONE,
    }  # fmt: skip
    fixed: dict[str, Any] = {
        "num_sorted": problem.num_sorted, "num_queries": num_queries,
        "num_tiles": tiling.num_tiles, "steps": [view.strides[0] for view in sorted_views],
        "num_levels": tiling.num_levels, "stretch_bits": tiling.stretch_bits,
        "num_samples": tiling.num_samples, "window_blocks": window_blocks, "places": dims,
        "sample_begins": (0, *tiling.begins, *[0] * (MOST_SAMPLES + 1))[: MOST_SAMPLES + 2],
    }  # fmt: skip
    shared_bytes = kind.shared_bytes(order.element)
    steps = [
        launch(searching, device, tiling.grid, BLOCK_THREADS, slots, shared_bytes=shared_bytes,
               **fixed)
    ]  # fmt: skip
    for sampler in sampling:
        grid = -(-num_items // BLOCK_THREADS) + window_blocks
        grid = min(grid, dev.num_sms * SAMPLE_BLOCKS_PER_SM)
        steps.insert(0, launch(sampler, device, grid, BLOCK_THREADS, slots, **fixed))
    pieces = [Piece(windows_at + WINDOW_BYTES * num_windows, KEPT)] if sampling else []
    return Plan(device, steps, pieces)
