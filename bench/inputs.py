"""Random inputs from a fixed seed: the same on every run. `xp` is the library that holds them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

COLUMNS = 1 << 10  # of a matrix
Draw = Any  # a function of a library, n, and what a distribution needs


def integers(xp: Any, n: int, low: int, high: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Return integers from low to below high: float sums of small ones are exact."""
    return xp.random.default_rng(seed).integers(low, high, n, dtype="int32").astype(dtype)


uniform: Draw = lambda xp, n, dtype="float32", seed=0: (  # from 0 to below 1
    xp.random.default_rng(seed).random(n, dtype=dtype))  # fmt: skip
in_runs: Draw = lambda xp, n, length: (  # int32 in runs of a length, neighbours of which differ
    xp.arange(n, dtype="int64") // length * 7919 % 1_000_003).astype("int32")  # fmt: skip
matrix: Draw = lambda xp, n: uniform(xp, n).reshape(-1, COLUMNS)
pair: Draw = lambda xp, n: (uniform(xp, n), uniform(xp, n, seed=1))

# Those below are made on the GPU from the index alone, without memory for intermediate arrays: z is
# the finaliser of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
_HASH = """
unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
z ^= z >> 31;
"""
_kernel: Any = functools.cache(lambda cupy, expression: cupy.ElementwiseKernel(
    "uint64 seed", "T y", f"{_HASH}y = static_cast<T>({expression});", "fill"))  # fmt: skip


def hashed(cupy: Any, n: int, expression: str, dtype: str = "float32", seed: int = 0) -> Any:
    out = cupy.empty(n, dtype)
    _kernel(cupy, expression)(np.uint64(seed << 40), out)
    return out


bits: Draw = lambda xp, n, dtype, seed=0: (  # random integers
    integers(np, n, 0, 1 << 31, dtype, seed) if xp is np
    else hashed(xp, n, "z >> (64 - 8 * sizeof(T))", dtype, seed))  # fmt: skip
# All bit patterns below 2 in magnitude, so neither NaN nor infinite: no highest bit of exponents.
floats: Draw = lambda xp, n, seed=0: (
    uniform(np, n, seed=seed) - np.float32(0.5) if xp is np
    else (bits(xp, n, "uint32", seed) & np.uint32(0xBFFFFFFF)).view("float32"))  # fmt: skip
unit: Draw = lambda xp, n, seed=0: (  # in [0, 1); a 1 would fall out of CUB's last bin
    uniform(xp, n, seed=seed) if xp is np
    else hashed(xp, n, "static_cast<float>(z >> 40) * (1.0f / (1 << 24))", seed=seed))  # fmt: skip
# Odd numbers from -15 to 15: float sums of 2^30 of them stay exact in any order.
steps: Draw = lambda xp, n, dtype="float32": (
    2 * integers(xp, n, -8, 8, dtype) + xp.asarray(1, dtype) if xp is np
    else hashed(xp, n, "2 * static_cast<int>(z >> 60) - 15", dtype))  # fmt: skip
