"""Radix sort: which kernel, which template arguments, how the work is cut. Tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo import _dtypes
from gpualgo._cuda.build import Spec

WARP = 32
VECTOR_BYTES = 16
DIGIT_BITS = 8
NUM_DIGITS = 1 << DIGIT_BITS
TABLE_BYTES = 4 * NUM_DIGITS
RING = 2048  # tile states of one pass, at most
WORDS = (1, 2, 4, 8, 16)  # sizes of values that move as they are


@dataclass(frozen=True)
class Policy:
    """Template arguments of radix_pass_kernel (RadixPolicy of radix_sort.cuh)."""

    block_threads: int
    items: int  # keys per thread
    blocks_per_sm: int
    window: int = 8  # tile states that a thread reads at once

    @property
    def tile_items(self) -> int:
        """Return how many keys a tile has."""
        return self.block_threads * self.items

    def shared_bytes(self, key_bytes: int, value_bytes: int, index_bytes: int = 8) -> int:
        """Return the size of RadixPass::Shared, which checks it."""
        tables = (self.block_threads // WARP + index_bytes // 4) * TABLE_BYTES
        moved = self.tile_items * (key_bytes + value_bytes)
        return tables + -(-(moved + 112) // TABLE_BYTES) * TABLE_BYTES


# By the bytes of a key (up to) and of its value (up to).
LARGE = {
    (4, 0): Policy(384, 20, 3),
    (4, 4): Policy(384, 14, 3),
    (4, 8): Policy(384, 12, 3),
    (4, 16): Policy(384, 8, 2),
    (8, 0): Policy(384, 14, 3),
    (8, 4): Policy(384, 10, 3),
    (8, 8): Policy(512, 8, 2),
    (8, 16): Policy(384, 8, 2),
}
# Fewer keys: tiles so small that every multiprocessor gets some.
MEDIUM_KEYS, MEDIUM = 1 << 22, Policy(256, 8, 3)
SMALL_KEYS, SMALL = 1 << 17, Policy(256, 4, 3)


def pass_policy(
    num_keys: int, key_bytes: int, value_bytes: int, index_bytes: int, shared_limit: int
) -> Policy:
    """Return the policy of radix_pass_kernel."""
    if num_keys <= SMALL_KEYS:
        policy = SMALL
    elif num_keys <= MEDIUM_KEYS:
        policy = MEDIUM
    else:
        wide = next(size for size in (0, 4, 8, 16) if value_bytes <= size)
        policy = LARGE[(4 if key_bytes <= 4 else 8, wide)]
    while policy.shared_bytes(key_bytes, value_bytes, index_bytes) > shared_limit:
        policy = replace(policy, items=policy.items // 2)
    return policy


@dataclass(frozen=True)
class HistogramPolicy:
    """Template arguments of radix_histogram_kernel (RadixHistogramPolicy)."""

    block_threads: int
    loads: int  # vectors of 16 bytes per thread
    replicas: int  # tables side by side
    blocks_per_sm: int

    def shared_bytes(self, num_passes: int) -> int:
        """Return the size of RadixHistogramShared."""
        return num_passes * TABLE_BYTES * self.replicas + 16


LARGE_HISTOGRAM = HistogramPolicy(1024, 4, 32, 1)
SMALL_HISTOGRAM = HistogramPolicy(512, 1, 4, 2)
SMALL_HISTOGRAM_BYTES = 8 << 20


def histogram_policy(num_bytes: int, num_passes: int, shared_limit: int) -> HistogramPolicy:
    """Return the policy of radix_histogram_kernel."""
    policy = SMALL_HISTOGRAM if num_bytes <= SMALL_HISTOGRAM_BYTES else LARGE_HISTOGRAM
    while policy.shared_bytes(num_passes) > shared_limit:
        policy = replace(policy, replicas=policy.replicas // 2)
    return policy


@dataclass(frozen=True)
class Digit:
    """Where a pass finds its digit (Digit of radix_keys.cuh), and a key for empty places."""

    shift: int
    mask: int
    flip: int
    padding: int  # no key's digit is higher


def digits_of(
    dtype: np.dtype[Any], descending: bool, begin_bit: int, end_bit: int, even: bool
) -> list[Digit]:
    """Return the digits of all passes, the lowest first; `even`: an even number of passes."""
    num_passes = -(-(end_bit - begin_bit) // DIGIT_BITS)
    num_passes += even and num_passes % 2
    width = -(-(end_bit - begin_bit) // num_passes)
    bits = 8 * dtype.itemsize
    flipped = (1 << bits) - 1 if descending else 0
    if _dtypes.kind(dtype) == "i":
        flipped ^= 1 << bits - 1
    digits = []
    for shift in range(begin_bit, begin_bit + num_passes * width, width):
        mask = (1 << max(0, min(width, end_bit - shift))) - 1
        shift = min(shift, bits - 1)
        flip = flipped >> shift & mask
        digits.append(Digit(shift, mask, flip, _padding(dtype, shift, mask, flip)))
    return digits


def _padding(dtype: np.dtype[Any], shift: int, mask: int, flip: int) -> int:
    """Return the bits of a key whose digit, once flipped, is as high as any."""
    wanted = mask ^ flip
    bits = 8 * dtype.itemsize
    if _dtypes.kind(dtype) != "f":
        return wanted << shift
    infinity = _infinity(dtype)
    if shift + DIGIT_BITS == bits:  # NaN or -inf
        return (1 << bits) - 1 if wanted else 1 << bits - 1 | infinity
    # A positive key: `zero` is the number that +0 is mapped to (KeyOrder::ordered).
    zero = 1 << bits - 1 if dtype == np.float32 else infinity + 1
    number = zero & ~(mask << shift) | wanted << shift
    if number < zero:
        number += mask + 1 << shift
    return number - zero


def _infinity(dtype: np.dtype[Any]) -> int:
    return int(np.array(np.inf).astype(dtype).view(f"u{dtype.itemsize}"))


def _order(dtype: np.dtype[Any]) -> str:
    """Return the C++ type of the keys' order; that of integers is their unsigned word's."""
    if _dtypes.kind(dtype) != "f":
        dtype = np.dtype(f"u{dtype.itemsize}")
    return f"gpualgo::KeyOrder<{_dtypes.cpp_name(dtype)}>"


def word(itemsize: int) -> str:
    """Return the C++ type of a word that is moved."""
    if itemsize == 0:
        return "gpualgo::NoValue"
    return "uint4" if itemsize == 16 else f"gpualgo::uint{8 * itemsize}"


def histogram_spec(
    dtype: np.dtype[Any], num_passes: int, index_bytes: int, policy: HistogramPolicy
) -> Spec:
    """Return the kernel that counts the digits and plans the passes."""
    arguments = (policy.block_threads, policy.loads, policy.replicas)
    return Spec(
        "radix_histogram.cuh",
        "gpualgo::radix_histogram_kernel<gpualgo::RadixHistogramPolicy"
        f"<{', '.join(map(str, arguments))}>, {num_passes}, {_order(dtype)}, {word(index_bytes)}>",
    )


def pass_spec(
    dtype: np.dtype[Any], value_bytes: int, result_bytes: int, index_bytes: int, policy: Policy
) -> Spec:
    """Return the kernel of a pass; result_bytes are those of a value that the last one writes."""
    shared = policy.shared_bytes(dtype.itemsize, value_bytes, index_bytes)
    arguments = (policy.block_threads, policy.items, policy.blocks_per_sm, policy.window, shared)
    return Spec(
        "radix_sort.cuh",
        f"gpualgo::radix_pass_kernel<gpualgo::RadixPolicy<{', '.join(map(str, arguments))}>, "
        f"{_order(dtype)}, {word(value_bytes)}, {word(result_bytes)}, {word(index_bytes)}>",
    )
