"""Which way keys without values are sorted on the CPU: by digits, or by NumPy's vectorised sort.

The result is the same either way, and on any number of threads.
"""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

_DTYPES = frozenset(map(np.dtype, ("i4", "u4", "f4", "i8", "u8", "f8")))

LONG_ROW = 1 << 17  # keys from which threads share a row: each sorts runs, which are merged
_RUN_KEYS = 1 << 15  # of a run at least


def is_by_numpy(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy's sort is the faster way for rows of keys of a dtype."""
    return dtype in _DTYPES and is_vectorised()


def num_runs(length: int, threads: int) -> int:
    """Return in how many runs, a power of two, a row is sorted before they are merged."""
    if length < LONG_ROW:
        return 1
    most = min(threads, length // _RUN_KEYS)
    return 1 << (max(1, most)).bit_length() - 1


@cache
def is_vectorised() -> bool:
    """Return whether NumPy sorts numbers of 4 and 8 bytes by AVX2 or AVX-512 at its full speed.

    On Zen 4 its code for AVX-512 is slower than plain code: a store of chosen lanes takes AMD's
    processors of that family more than 100 cycles.
    """
    try:
        found = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):
        return False
    has_avx2 = bool(found.get("X86_V3", found.get("AVX2")))
    has_avx512 = bool(found.get("X86_V4", found.get("AVX512_SKX")))
    return has_avx2 and not (has_avx512 and _is_zen4())


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
