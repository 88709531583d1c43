"""Random inputs from a fixed seed: the same on every run. `xp` is the library that holds them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

COLUMNS = 1 << 10  # of a matrix
# Return numbers from 0 to below 1.
uniform = lambda xp, n, dtype="float32", seed=0: xp.random.default_rng(seed).random(n, dtype=dtype)
# Return integers from low to below high: float sums of small ones are exact.
integers = lambda xp, n, low, high, dtype="float32", seed=0: (
    xp.random.default_rng(seed).integers(low, high, n, dtype="int32").astype(dtype)
)
# Return int32 in runs of a length, neighbours of which differ.
in_runs = lambda xp, n, length: (xp.arange(n, dtype="int64") // length * 7919 % 1_000_003).astype(
    "int32"
)


matrix = lambda xp, n: uniform(xp, n).reshape(-1, COLUMNS)
pair = lambda xp, n: (uniform(xp, n), uniform(xp, n, seed=1))

# Those below are made on the GPU from the index alone, without memory for intermediate arrays: z is
# the finaliser of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
_HASH = """
unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
z ^= z >> 31;
"""
_PEAK = "((i >> 6) & 1 ? -static_cast<float>(i >> 6) : static_cast<float>(i >> 6))"
_BELOW = f"{_PEAK} * (i & 63 ? static_cast<float>(z >> 40) * (0.9f / (1 << 24)) : 1.0f)"


@functools.cache
def _kernel(cupy: Any, expression: str) -> Any:
    body = f"{_HASH}y = static_cast<T>({expression});"
    return cupy.ElementwiseKernel("uint64 seed", "T y", body, "fill")


def hashed(cupy: Any, n: int, expression: str, dtype: str = "float32", seed: int = 0) -> Any:
    out = cupy.empty(n, dtype)
    _kernel(cupy, expression)(np.uint64(seed << 40), out)
    return out


# Return integers all of whose bits are random.
bits = lambda cupy, n, dtype, seed=0: hashed(cupy, n, "z >> (64 - 8 * sizeof(T))", dtype, seed)


def common_bits(cupy: Any, n: int, dtype: str, words: int) -> Any:
    """Return the AND of random words: ones get rare, and with them entropy."""
    out = bits(cupy, n, dtype)
    for seed in range(1, words):
        out &= bits(cupy, n, dtype, seed)
    return out


def floats(cupy: Any, n: int, seed: int = 0) -> Any:
    """Return float32 of all bit patterns below 2 in magnitude, so neither NaN nor infinite."""
    out = bits(cupy, n, "uint32", seed)
    out &= np.uint32(0xBFFFFFFF)  # without the exponent's highest bit
    return out.view("float32")


# Return float32 uniform in [0, 1); a 1 would fall out of CUB's last bin.
unit = lambda cupy, n, seed=0: hashed(
    cupy, n, "static_cast<float>(z >> 40) * (1.0f / (1 << 24))", seed=seed
)
# Return odd numbers from -15 to 15: float sums of 2^30 of them stay exact in any order.
steps = lambda cupy, n, dtype="float32": hashed(
    cupy, n, "2 * static_cast<int>(z >> 60) - 15", dtype
)


# Float32 whose running extreme by magnitude grows every 64th element, and that extreme.
peaks = lambda cupy, n: hashed(cupy, n, _BELOW)
running_peaks = lambda cupy, n: hashed(cupy, n, _PEAK)
