"""Choice between the digit sort and NumPy's SIMD sort for keys without values on the CPU.

Both give the same result on any number of threads. Random keys, one core of a Zen 4 whose NumPy was
limited to AVX2, ms by digits / by NumPy:

    keys                2^12           2^14           2^16           2^20           2^22
    int32, uint32   0.05 / 0.02    0.11 / 0.06    0.36 / 0.23     8.7 / 5.8      60 / 32
    float32         0.06 / 0.02    0.12 / 0.06    0.41 / 0.26     8.1 / 6.3      58 / 33
    int64, uint64   0.07 / 0.03    0.20 / 0.11    0.73 / 0.45    31.4 / 11.7    138 / 64
    float64         0.08 / 0.03    0.22 / 0.10    0.82 / 0.41    40.8 / 10.8    135 / 51

Narrower keys are counted or take one or two passes: with AVX2, NumPy sorts 2^16 int16 keys in 3 ms,
the digit sort in 0.3 ms. With AVX-512 of 16-bit lanes NumPy is faster while a core has few keys.
Zen 5, two cores, µs by digits / by NumPy: 2^10 6 / 1.2, 2^14 30 / 15, 2^16 112 / 61, 2^19 970 /
690, 2^20 1600 / 1650; a Xeon, sixteen cores: 2^17 1030 / 420, 2^18 1310 / 880, 2^19 1950 / 1940,
2^20 2900 / 4100. Without SIMD NumPy takes 1.4 to 4 times as long as digits from 2^12 keys on.
16-bit floats are sorted as int16 (`cpu_coded`).
"""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from gpualgo._base import dtypes, threads

_SHORT = 512  # up to this many keys, NumPy sorts a row faster with any SIMD
_DTYPES = frozenset(map(np.dtype, ("i4", "u4", "f4", "i8", "u8", "f8")))
_NARROW = frozenset(map(np.dtype, ("i2", "u2")))
# Longest rows of 16-bit integers for NumPy: with one thread, and with several that share digits.
_NARROW_ALONE, _NARROW_SHARED = 1 << 20, 1 << 19

# From this many keys on, rows are first checked for being sorted. 16-bit floats are not checked:
# their longer rows use the digit sort, which checks.
CHECK_SORTED_KEYS = 1 << 15
_CODED = frozenset(("float16", "bfloat16"))

# Longest rows whose stable order NumPy finds at least as fast: it counts narrow keys as the digit
# sort does, and merges few keys faster than a kernel is called. A Xeon, whole calls, µs by digits /
# NumPy: 2^10 uint8 4.2 / 2.0, int16 8 / 4, 2^14 int16 55 / 50; 2^10 float64 21 / 15, 2^12 77 / 178.
_ORDER_KEYS = {
    **dict.fromkeys(map(np.dtype, ("?", "i1", "u1", "i2", "u2")), 1 << 14),
    **dict.fromkeys(map(np.dtype, ("i4", "u4", "f4")), 1 << 8),
    **dict.fromkeys(map(np.dtype, ("i8", "u8", "f8")), 1 << 10),
}

# From SHARED_BYTES on, threads share a row, each sorting runs of at least _RUN_BYTES: waking 16
# threads takes as long as one thread sorts 2 MB.
SHARED_BYTES, _RUN_BYTES = 1 << 23, 1 << 21


def is_by_numpy(dtype: np.dtype[Any], length: int, num_rows: int) -> bool:
    """Return whether NumPy's sort is faster for rows of `length` keys of a dtype."""
    if dtype in _NARROW:
        most = _NARROW_ALONE if threads.num_threads() == 1 else _NARROW_SHARED
        return length <= most and is_vectorised() and _has_narrow_vectors()
    if is_sorted_as_int16(dtype):
        return length < CHECK_SORTED_KEYS and is_vectorised() and _has_narrow_vectors()
    if dtype not in _DTYPES:
        return False
    return is_vectorised() or (num_rows == 1 and length <= _SHORT and _has_vectors()[0])


def is_sorted_as_int16(dtype: np.dtype[Any]) -> bool:
    """Return whether such keys are sorted as integer codes by NumPy."""
    return dtypes.name_of(dtype) in _CODED


def max_ordered_keys(dtype: np.dtype[Any]) -> int:
    """Return the longest row whose stable order NumPy finds at least as fast; 0 if none."""
    return _ORDER_KEYS.get(dtype, 0)


def has_vectors_for(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy sorts a few thousand keys of a dtype with SIMD of any kind."""
    return dtype in _DTYPES and _has_vectors()[0]


def num_runs(num_bytes: int, num_threads: int) -> int:
    """Return the number of runs, a power of two, that a row is sorted in before merging."""
    if num_bytes < SHARED_BYTES:
        return 1
    return 1 << min(num_threads, num_bytes // _RUN_BYTES).bit_length() - 1


@cache
def is_vectorised() -> bool:
    """Return whether NumPy sorts numbers of 4 and 8 bytes at full speed with AVX2 or AVX-512.

    On Zen 4 NumPy's AVX-512 sort is slower than scalar code: a compressed store takes more than 100
    cycles there.
    """
    has_avx2, has_avx512 = _has_vectors()
    return has_avx2 and not (has_avx512 and _is_zen4())


def _features() -> dict[str, bool]:
    """Return the CPU features that NumPy uses, by its names for them."""
    try:
        return dict(import_module("numpy._core._multiarray_umath").__cpu_features__)
    except (ImportError, AttributeError):
        return {}


@cache
def _has_narrow_vectors() -> bool:
    """Return whether NumPy sorts 16-bit integers with AVX-512 (VBMI2)."""
    return bool(_features().get("AVX512_ICL"))


@cache
def _has_vectors() -> tuple[bool, bool]:
    """Return whether NumPy uses AVX2, and AVX-512."""
    features = _features()
    has_avx512 = bool(features.get("X86_V4", features.get("AVX512_SKX")))
    return bool(features.get("X86_V3", features.get("AVX2"))), has_avx512


def _is_zen4() -> bool:
    """Return whether the processor is of AMD's family 25; with AVX-512 it is Zen 4."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(1 << 10).decode(errors="replace")
    except OSError:  # not Linux: use the processor name
        text = platform.processor()
        return "AuthenticAMD" in text and "Family 25" in text
    pairs = (line.partition(":") for line in text.splitlines())
    lines = {name.strip(): value.strip() for name, _, value in pairs}
    return lines.get("vendor_id") == "AuthenticAMD" and lines.get("cpu family") == "25"
