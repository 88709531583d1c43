"""Random inputs, made on the GPU from the index alone: the same on every run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpualgo._bench.support import gpu

# The finaliser of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
_HASH = """
__device__ unsigned long long mix(unsigned long long z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
"""


@functools.cache
def _kernel(expression: str) -> Any:
    body = "unsigned long long z = mix((i + 1) * 0x9e3779b97f4a7c15ull + seed); "
    return gpu().ElementwiseKernel(
        "uint64 seed", "T y", body + f"y = static_cast<T>({expression});", "fill", preamble=_HASH
    )


def _made(expression: str, n: int, dtype: str, seed: int = 0) -> Any:
    out = gpu().empty(n, dtype)
    _kernel(expression)(np.uint64(seed << 40), out)
    return out


def bits(n: int, dtype: str, seed: int = 0) -> Any:
    """Return integers all of whose bits are random."""
    return _made("z >> (64 - 8 * sizeof(T))", n, dtype, seed)


def common_bits(n: int, dtype: str, words: int) -> Any:
    """Return the AND of random words: ones get rare, and with them entropy."""
    out = bits(n, dtype)
    for seed in range(1, words):
        out &= bits(n, dtype, seed)
    return out


def floats(n: int) -> Any:
    """Return float32 of all bit patterns below 2 in magnitude, so neither NaN nor infinite."""
    out = bits(n, "uint32")
    out &= np.uint32(0xBFFFFFFF)  # without the exponent's highest bit
    return out.view("float32")


def unit(n: int, seed: int = 0) -> Any:
    """Return float32 uniform in [0, 1); a 1 would fall out of CUB's last bin."""
    return _made("static_cast<float>(z >> 40) * (1.0f / (1 << 24))", n, "float32", seed)


def steps(n: int, dtype: str) -> Any:
    """Return odd numbers from -15 to 15: float sums of 2^30 of them stay exact in any order."""
    return _made("2 * static_cast<int>(z >> 60) - 15", n, dtype)


_PEAK = "((i >> 6) & 1 ? -static_cast<float>(i >> 6) : static_cast<float>(i >> 6))"


def peaks(n: int) -> tuple[Any, Any]:
    """Return float32 whose running extreme by magnitude grows every 64th element, and those."""
    lower = f"{_PEAK} * (i & 63 ? static_cast<float>(z >> 40) * (0.9f / (1 << 24)) : 1.0f)"
    return _made(lower, n, "float32"), _made(_PEAK, n, "float32")
