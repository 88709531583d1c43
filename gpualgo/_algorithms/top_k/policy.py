"""Selection by rank on a GPU: which way, which template arguments, how large a sample. Tables.

Not measured on a GPU yet, but for what CUB's and PyTorch's take there (docs/top_k.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort.digits import order
from gpualgo._algorithms.top_k import parameters
from gpualgo._cuda.build import Spec
from gpualgo._cuda.templates import VECTOR_BYTES, WARP

Dtype = np.dtype[Any]

SHORT, BLOCK, LONG, SORT = "a warp for each row", "a block for each row", "a sample", "a sort"
SHORT_ROW = 1024  # elements that a warp holds, 32 to a lane
SHORT_COUNT = WARP  # of them that it finds
SHORT_THREADS = 256
# To filter a row takes four launches, whatever its length; of shorter ones, or of more at once,
# blocks that have a row each are sooner done.
LONG_ROW = 1 << 15  # elements of a row for each row that there is
MOST_SORTED = 2048  # elements that a block puts in order in shared memory
FEW_SORTED = 64
LARGEST_SHARE = 16  # more of a row than this part is no quicker to select than to sort
MOST_RANKS = 8  # more are taken from a sorted row


def way_of(num_rows: int, row_items: int, count: int) -> str:
    """Return how the first so many elements of each row are found."""
    if row_items <= SHORT_ROW and count <= SHORT_COUNT:
        return SHORT
    if row_items >= LONG_ROW * num_rows:
        return LONG if count <= max(MOST_SORTED, row_items // LARGEST_SHARE) else SORT
    return BLOCK if count <= MOST_SORTED else SORT


def way_of_rank(num_rows: int, row_items: int, rank: int) -> str:
    """Return how the element of a rank is found in each row."""
    if row_items <= SHORT_ROW and rank < SHORT_COUNT:
        return SHORT
    return LONG if row_items >= LONG_ROW * num_rows else BLOCK


def ordered_bytes(dtype: Dtype) -> int:
    """Return the size of a key as it is compared."""
    return max(4, dtype.itemsize)


def index_bytes(row_items: int) -> int:
    """Return the size of a position, and of a number of elements, within a row."""
    return 4 if row_items < 1 << 32 else 8


# --- samples ------------------------------------------------------------------------------------

REFINED_ROW, REFINED_BITS = 1 << 23, 15
DEVIATIONS, MORE = 6, 6  # of the number of samples before a rank: how far bounds lie away from it


@dataclass(frozen=True)
class Sample:
    """How many elements are looked at, and which of their ranks are bounds."""

    bits: int  # 2 to the power of these
    first: int  # -1: everything that comes before the last
    last: int  # the number of samples: everything that comes behind the first
    capacity: int  # elements between them that there is room for
    refined: int = 0  # the capacity of what is kept of these, by a sample of as many; 0: all are


def sample_of(row_items: int, rank: int, is_one: bool) -> Sample:
    """Return the sample for the elements up to a rank, or (is_one) for the element of it.

    The samples before a rank are as many as its share of them, give or take a few of the square
    root of that. Up to a rank, candidates and samples cost alike where the samples are about
    sqrt(8 n); for one that lies in the middle, where they are about (3 n) ** (2 / 3). Of long rows
    it is sooner done to take a sample of the candidates again.
    """
    log = row_items.bit_length() - 1
    bits = (2 * log + 3) // 3 if is_one else (log + 3) // 2
    is_refined = is_one and row_items >= REFINED_ROW
    if is_refined:
        bits = REFINED_BITS
    bits = max(8, min(bits, 20, log - 2))
    size = 1 << bits
    expected = (rank + 1) * size / row_items
    away = DEVIATIONS * math.sqrt(expected * max(0.0, 1 - expected / size)) + MORE
    first = max(-1, math.floor(expected - away)) if is_one else -1
    last = min(size, math.ceil(expected + away))
    between = last - first
    capacity = min(row_items, math.ceil(_room(between) * row_items / size))
    refined = 0
    if is_refined:
        widest = 2 * (DEVIATIONS * math.sqrt(size / 4) + MORE) + 2
        refined = min(capacity, math.ceil(_room(widest) * max(1, capacity / size)))
    return Sample(bits, first, last, capacity, refined)


def _room(between: float) -> float:
    """Return for how many samples there is room where so many are expected."""
    return between + 8 * math.sqrt(between) + 32


# --- kernels ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectPolicy:
    """Template arguments of select_rows_kernel (SelectRowsPolicy of top_k/select.cuh)."""

    block_threads: int
    capacity: int  # elements that are sorted

    def shared_bytes(self, dtype: Dtype, row_items: int) -> int:
        """Return the size of SelectRow::Shared, which checks it, with its padding."""
        index, warps = index_bytes(row_items), self.block_threads // WARP
        search = 2048 * index + (16 + index) * warps + 2 * index + 48
        return search + self.capacity * (ordered_bytes(dtype) + index) + 64


LARGE_BLOCK = 512  # threads of a block that has a multiprocessor for itself, of 128 registers


def select_policy(row_items: int, num_sorted: int) -> SelectPolicy:
    """Return the policy for rows of so many elements, of which so many are put in order."""
    threads = LARGE_BLOCK
    if row_items <= 1 << 14:
        threads = 128 if row_items <= 1 << 11 else 256
    capacity = 1
    if num_sorted:
        capacity = FEW_SORTED if num_sorted <= FEW_SORTED else MOST_SORTED
    return SelectPolicy(threads, capacity)


SORTED, LISTED, ONE = "select_sorted", "select_listed", "select_one"


def _flag(is_true: bool) -> str:
    return str(is_true).lower()


def _types(dtype: Dtype, descending: bool, row_items: int) -> str:
    return f"{order(dtype, descending)}, gpualgo::uint{8 * index_bytes(row_items)}"


def select_spec(
    dtype: Dtype, descending: bool, row_items: int, policy: SelectPolicy, result: str,
    is_left: bool = False, overlaps: bool = False,
) -> Spec:  # fmt: skip
    """Return the kernel that finds elements of rows, a block for each.

    is_left: in what was kept of one row. It `overlaps` if it is launched while the kernel before
    it still runs (sm_90).
    """
    shared = policy.shared_bytes(dtype, row_items)
    return Spec(
        "top_k/select.cuh",
        f"gpualgo::select_rows_kernel<gpualgo::SelectRowsPolicy<{policy.block_threads}, "
        f"{policy.capacity}, {shared}, {_flag(overlaps)}>, gpualgo::{result}, {_flag(is_left)}, "
        f"{_types(dtype, descending, row_items)}>",
        parameters.SELECT_ROWS,
    )


GATHER_THREADS = 256
FILTER_THREADS, FILTER_BLOCKS = 512, 2  # of a multiprocessor, of 64 registers
FILTER_LOADS, FILTER_ITEMS = 4, 32  # vectors that a thread holds, of at most so many elements


def sample_specs(dtype: Dtype, descending: bool, row_items: int, overlaps: bool) -> list[Spec]:
    """Return the kernels that take a sample, find bounds in it, and keep what lies between."""
    types = _types(dtype, descending, row_items)
    gather, bound = f"{GATHER_THREADS}, {_flag(overlaps)}", f"{LARGE_BLOCK}, {_flag(overlaps)}"
    keep = _filter(dtype.itemsize, overlaps)
    kernels = (
        (f"gather_sample_kernel<{gather}, {types}>", parameters.GATHER_SAMPLE),
        (f"bound_sample_kernel<{bound}, {types}>", parameters.BOUND_SAMPLE),
        (f"filter_kernel<{keep}, {types}>", parameters.FILTER),
    )
    return [Spec("top_k/sample.cuh", f"gpualgo::{name}", takes) for name, takes in kernels]


def refining_specs(dtype: Dtype, descending: bool, row_items: int, overlaps: bool) -> list[Spec]:
    """Return the kernels that find bounds in what is kept, and keep what lies between these."""
    types = _types(dtype, descending, row_items)
    bound, keep = f"{LARGE_BLOCK}, {_flag(overlaps)}", _filter(ordered_bytes(dtype), overlaps)
    kernels = (
        (f"bound_kept_kernel<{bound}, {types}>", parameters.BOUND_KEPT),
        (f"filter_kept_kernel<{keep}, {types}>", parameters.FILTER_KEPT),
    )
    return [Spec("top_k/refine.cuh", f"gpualgo::{name}", takes) for name, takes in kernels]


def _filter(itemsize: int, overlaps: bool) -> str:
    numbers = FILTER_THREADS, _filter_loads(itemsize), FILTER_BLOCKS, _flag(overlaps)
    return f"gpualgo::FilterPolicy<{', '.join(map(str, numbers))}>"


def filter_grid(num_items: int, itemsize: int, num_sms: int) -> int:
    """Return how many blocks filter so many items."""
    tile = FILTER_THREADS * _filter_loads(itemsize) * VECTOR_BYTES // itemsize
    return max(1, min(-(-num_items // tile), num_sms * FILTER_BLOCKS))


def _filter_loads(itemsize: int) -> int:
    return min(FILTER_LOADS, FILTER_ITEMS * itemsize // VECTOR_BYTES)


def short_spec(dtype: Dtype, descending: bool, row_items: int) -> Spec:
    """Return the kernel that finds the first elements of rows, a warp for each."""
    items = 1 << max(0, -(-row_items // WARP) - 1).bit_length()
    return Spec(
        "top_k/rows.cuh",
        f"gpualgo::short_rows_kernel<{SHORT_THREADS}, {items}, {order(dtype, descending)}>",
        parameters.SHORT_ROWS,
    )


TAKE_THREADS = 256


def take_spec(itemsize: int) -> Spec:
    """Return the kernel that takes elements by their positions."""
    expression = f"gpualgo::take_kernel<{TAKE_THREADS}, gpualgo::uint{8 * itemsize}>"
    return Spec("top_k/take.cuh", expression, parameters.TAKE)
