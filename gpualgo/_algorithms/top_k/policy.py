"""Selection by rank on a GPU: which way, which template arguments, how large a sample. Tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
# To filter a row takes four launches or more, whatever its length; of shorter ones, or of more at
# once, blocks that have a row each are sooner done.
LONG_ROW = 1 << 15  # elements of a row for each row that there is
MOST_SORTED = 2048  # elements that a block puts in order in shared memory
FEW_SORTED = 64
LARGEST_SHARE = 16  # more of a row than this part is no quicker to select than to sort
MOST_RANKS = parameters.RANKS  # more are taken from a sorted row
MOST_LEFT = 1 << 14  # elements that are kept: of more than that many blocks find a rank


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

MOST_SAMPLE_BITS = 15  # of samples for an element of a rank, in which a block finds each bound
DEVIATIONS, MORE = 6, 6  # of the number of samples before a rank: how far bounds lie away from it


@dataclass(frozen=True)
class Sample:
    """How many elements are looked at, and which of their ranks are bounds."""

    bits: int  # 2 to the power of these
    first: int  # -1: everything that comes before the last
    last: int  # the number of samples: everything that comes behind the first
    capacity: int  # elements between them that there is room for

    def kept(self, row_items: int) -> int:
        """Return about how many elements lie between the bounds."""
        return ((self.last - self.first) * row_items) >> self.bits


class Lists(NamedTuple):
    """Samples whose bounds do not overlap, and which of them holds a rank."""

    samples: tuple[Sample, ...]
    of_ranks: tuple[int, ...]


def lists_of(row_items: int, ranks: Sequence[int], is_one: bool) -> Lists:
    """Return the samples for the elements of some ranks, or (not is_one) up to a rank."""
    wanted = [sample_of(row_items, rank, is_one) for rank in ranks]
    found: list[Sample] = []
    of_ranks = [0] * len(ranks)
    for i in sorted(range(len(ranks)), key=lambda i: (wanted[i].first, wanted[i].last)):
        one = wanted[i]
        if found and one.first <= found[-1].last:
            before = found.pop()
            last = max(before.last, one.last)
            capacity = min(row_items, before.capacity + one.capacity)
            one = replace(before, last=last, capacity=capacity)
        found.append(one)
        of_ranks[i] = len(found) - 1
    return Lists(tuple(found), tuple(of_ranks))


def sample_of(row_items: int, rank: int, is_one: bool) -> Sample:
    """Return the sample for the elements up to a rank, or (is_one) for the element of it.

    The samples before a rank are as many as its share of them, give or take a few of the square
    root of that. Up to a rank, candidates and samples cost alike where the samples are about
    sqrt(8 n); for one that lies in the middle, where they are about (3 n) ** (2 / 3).
    """
    log = row_items.bit_length() - 1
    bits = min((2 * log + 3) // 3, MOST_SAMPLE_BITS) if is_one else (log + 3) // 2
    bits = max(8, min(bits, 20, log - 2))
    size = 1 << bits
    expected = (rank + 1) * size / row_items
    away = DEVIATIONS * math.sqrt(expected * max(0.0, 1 - expected / size)) + MORE
    first = max(-1, math.floor(expected - away)) if is_one else -1
    last = min(size, math.ceil(expected + away))
    between = last - first
    room = between + 8 * math.sqrt(between) + 32  # where so many are expected
    return Sample(bits, first, last, min(row_items, math.ceil(room * row_items / size)))


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
FEW_LISTS = 4  # for which these are enough; with more there is one block
FILTER_LOADS, FILTER_ITEMS = 8, 32  # vectors that a thread holds, of at most so many elements


FILTER_STAGED = 2048  # bytes that a warp gathers of what it keeps


def sample_specs(
    dtype: Dtype, descending: bool, row_items: int, num_lists: int, overlaps: bool
) -> list[Spec]:
    """Return the kernels that take a sample, find bounds in it, and keep what lies between."""
    types = _types(dtype, descending, row_items)
    gather, bound = f"{GATHER_THREADS}, {_flag(overlaps)}", f"{LARGE_BLOCK}, {_flag(overlaps)}"
    staged = FILTER_STAGED // (ordered_bytes(dtype) + index_bytes(row_items))
    numbers = (
        FILTER_THREADS, _filter_loads(dtype.itemsize), staged // WARP * WARP,
        FILTER_BLOCKS if num_lists <= FEW_LISTS else 1, _flag(overlaps),
    )  # fmt: skip
    keep = f"gpualgo::FilterPolicy<{', '.join(map(str, numbers))}>, {num_lists}"
    kernels = (
        ("sample", f"gather_sample_kernel<{gather}, {types}>", parameters.GATHER_SAMPLE),
        ("sample", f"bound_sample_kernel<{bound}, {types}>", parameters.BOUND_SAMPLE),
        ("filter", f"filter_kernel<{keep}, {types}>", parameters.FILTER),
    )
    return [Spec(f"top_k/{file}.cuh", f"gpualgo::{name}", takes) for file, name, takes in kernels]


def filter_grid(num_items: int, itemsize: int, num_sms: int) -> int:
    """Return how many blocks filter so many items."""
    tile = FILTER_THREADS * _filter_loads(itemsize) * VECTOR_BYTES // itemsize
    return max(1, min(-(-num_items // tile), num_sms * FILTER_BLOCKS))


def _filter_loads(itemsize: int) -> int:
    return min(FILTER_LOADS, FILTER_ITEMS * itemsize // VECTOR_BYTES)


NARROW_THREADS, NARROW_BLOCKS = 256, 4  # of a multiprocessor
NARROW_SHARE = 1 << 12  # elements of a block, at least
DIGIT_BITS = 11


def narrow_specs(
    dtype: Dtype, descending: bool, row_items: int, takes_all: bool, overlaps: bool
) -> list[Spec]:
    """Return the kernels that find ranks among what is kept, and that write what they find."""
    policy = f"gpualgo::NarrowPolicy<{NARROW_THREADS}, {NARROW_BLOCKS}, {_flag(overlaps)}>"
    types = f"{policy}, {_flag(takes_all)}, {_types(dtype, descending, row_items)}"
    return [
        Spec("top_k/narrow.cuh", f"gpualgo::{name}<{types}>", parameters.NARROW)
        for name in ("narrow_kernel", "write_ranks_kernel")
    ]


def narrow_grid(num_items: int, num_ranks: int, num_sms: int) -> int:
    """Return how many blocks find a rank among so many items: a power of two."""
    blocks = min(-(-num_items // NARROW_SHARE), num_sms * NARROW_BLOCKS // num_ranks)
    return 1 << max(0, blocks.bit_length() - 1)


def num_digits(dtype: Dtype, row_items: int) -> int:
    """Return of how many digits keys and positions are."""
    positions = max(1, (row_items - 1).bit_length())
    return -(-8 * ordered_bytes(dtype) // DIGIT_BITS) + -(-positions // DIGIT_BITS)


def control_bytes(num_ranks: int, row_items: int) -> int:
    """Return the size of states, and counts, of some ranks."""
    return num_ranks * (parameters.STATE_BYTES + (index_bytes(row_items) << DIGIT_BITS))


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
