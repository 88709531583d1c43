"""Which way keys without values are sorted on the CPU: by digits, or by NumPy's vectorised sort.

The result is the same either way, and on any number of threads. Random keys, one core of a Zen 4
whose NumPy was kept to AVX2, ms by digits / by NumPy:

    keys                2^12           2^14           2^16           2^20           2^22
    int32, uint32   0.05 / 0.02    0.11 / 0.06    0.36 / 0.23     8.7 / 5.8      60 / 32
    float32         0.06 / 0.02    0.12 / 0.06    0.41 / 0.26     8.1 / 6.3      58 / 33
    int64, uint64   0.07 / 0.03    0.20 / 0.11    0.73 / 0.45    31.4 / 11.7    138 / 64
    float64         0.08 / 0.03    0.22 / 0.10    0.82 / 0.41    40.8 / 10.8    135 / 51

Narrower keys are counted, or take one pass or two: by AVX2 NumPy's sort of 2^16 int16 keys takes 3
ms where digits take 0.3. By AVX-512 of 16-bit lanes it is the faster one while a core has few keys;
Zen 5, two cores, µs by digits / by NumPy: 2^10 6 / 1.2, 2^14 30 / 15, 2^16 112 / 61, 2^19 970 /
690, 2^20 1600 / 1650; a Xeon, sixteen cores: 2^17 1030 / 420, 2^18 1310 / 880, 2^19 1950 / 1940,
2^20 2900 / 4100. Without vectors NumPy takes 1.4 to 4 times as long as digits from 2^12 keys
on. Floats of two bytes are made int16 for it (`cpu_coded`).
"""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from gpualgo._base import dtypes, threads

_SHORT = 512  # keys of a row that NumPy sorts faster by any vectors
_DTYPES = frozenset(map(np.dtype, ("i4", "u4", "f4", "i8", "u8", "f8")))
_NARROW = frozenset(map(np.dtype, ("i2", "u2")))
# Of a row of narrow ones at most: for one thread, and for several, which digits are shared by.
_NARROW_ALONE, _NARROW_SHARED = 1 << 20, 1 << 19

# Keys of a row from which on it may be worth asking whether it is in order; nobody asks it of
# floats of two bytes, whose longer rows go by digits, which look.
LOOK = 1 << 15
_CODED = frozenset(("float16", "bfloat16"))

# Of a row whose stable order NumPy finds as fast at least: it counts narrow keys as we do, and few
# are merged sooner than a kernel is called. A Xeon, whole calls, µs by digits / NumPy: 2^10 uint8
# 4.2 / 2.0, int16 8 / 4, 2^14 int16 55 / 50; 2^10 float64 21 / 15, 2^12 77 / 178.
_ORDER_KEYS = {
    **dict.fromkeys(map(np.dtype, ("?", "i1", "u1", "i2", "u2")), 1 << 14),
    **dict.fromkeys(map(np.dtype, ("i4", "u4", "f4")), 1 << 8),
    **dict.fromkeys(map(np.dtype, ("i8", "u8", "f8")), 1 << 10),
}

# Of a row from which on threads share it, each sorting runs, and of a run at least: to wake 16
# threads takes as long as one sorts 2 MB.
SHARED_BYTES, _RUN_BYTES = 1 << 23, 1 << 21


def is_by_numpy(dtype: np.dtype[Any], length: int, num_rows: int) -> bool:
    """Return whether NumPy's sort is the faster way for rows of so many keys of a dtype."""
    if dtype in _NARROW:
        most = _NARROW_ALONE if threads.num_threads() == 1 else _NARROW_SHARED
        return length <= most and is_vectorised() and _has_narrow_vectors()
    if is_coded(dtype):
        return length < LOOK and is_vectorised() and _has_narrow_vectors()
    if dtype not in _DTYPES:
        return False
    return is_vectorised() or (num_rows == 1 and length <= _SHORT and _has_vectors()[0])


def is_coded(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy sorts integers in place of such keys."""
    return dtypes.name_of(dtype) in _CODED


def most_ordered(dtype: np.dtype[Any]) -> int:
    """Return how many keys a row has at most whose stable order NumPy finds as fast at least."""
    return _ORDER_KEYS.get(dtype, 0)


def has_vectors_for(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy sorts a few thousand keys of a dtype by vectors of any kind."""
    return dtype in _DTYPES and _has_vectors()[0]


def num_runs(num_bytes: int, num_threads: int) -> int:
    """Return in how many runs, a power of two, a row is sorted before they are merged."""
    if num_bytes < SHARED_BYTES:
        return 1
    return 1 << min(num_threads, num_bytes // _RUN_BYTES).bit_length() - 1


@cache
def is_vectorised() -> bool:
    """Return whether NumPy sorts numbers of 4 and 8 bytes by AVX2 or AVX-512 at its full speed.

    On Zen 4 its code for AVX-512 is slower than plain code: a store of chosen lanes takes AMD's
    processors of that family more than 100 cycles.
    """
    has_avx2, has_avx512 = _has_vectors()
    return has_avx2 and not (has_avx512 and _is_zen4())


def _features() -> dict[str, bool]:
    """Return which instructions NumPy uses, by its names of them."""
    try:
        return dict(import_module("numpy._core._multiarray_umath").__cpu_features__)
    except (ImportError, AttributeError):
        return {}


@cache
def _has_narrow_vectors() -> bool:
    """Return whether NumPy sorts 16-bit integers by AVX-512 (VBMI2)."""
    return bool(_features().get("AVX512_ICL"))


@cache
def _has_vectors() -> tuple[bool, bool]:
    """Return whether NumPy uses AVX2, and AVX-512."""
    found = _features()
    has_avx512 = bool(found.get("X86_V4", found.get("AVX512_SKX")))
    return bool(found.get("X86_V3", found.get("AVX2"))), has_avx512


def _is_zen4() -> bool:
    """Return whether this is a processor of AMD's family 25: with AVX-512 it is Zen 4."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(1 << 10).decode(errors="replace")
    except OSError:  # not Linux, where the name of the processor tells it
        text = platform.processor()
        return "AuthenticAMD" in text and "Family 25" in text
    pairs = (line.partition(":") for line in text.splitlines())
    lines = {name.strip(): value.strip() for name, _, value in pairs}
    return lines.get("vendor_id") == "AuthenticAMD" and lines.get("cpu family") == "25"
