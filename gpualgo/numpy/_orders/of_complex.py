"""NumPy's order of complex numbers: real parts first, then imaginary ones, NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np


def less(a: Any, b: Any) -> Any:
    """Return whether a comes before b: any NaN behind all numbers, of the real part behind all."""
    if a.real < b.real:
        return a.imag == a.imag or b.imag != b.imag
    if a.real > b.real:
        return a.imag == a.imag and b.imag != b.imag
    if a.real == b.real or (a.real != a.real and b.real != b.real):
        return a.imag < b.imag or (a.imag == a.imag and b.imag != b.imag)
    return b.real != b.real


def more(a: Any, b: Any) -> Any:
    """Return whether a comes before b where the largest come first, and NaN last all the same."""
    if a.real > b.real:
        return a.imag == a.imag or b.imag != b.imag
    if a.real < b.real:
        return a.imag == a.imag and b.imag != b.imag
    if a.real == b.real or (a.real != a.real and b.real != b.real):
        return a.imag > b.imag or (a.imag == a.imag and b.imag != b.imag)
    return b.real != b.real


def group(a: Any) -> Any:
    """Return 0, 1 or 2: a number, one whose imaginary part alone is NaN, NaN."""
    if a.real != a.real:
        return np.uint8(2)
    return np.uint8(a.imag != a.imag)


def real(a: Any) -> Any:
    """Return the real part."""
    return a.real


def imag(a: Any) -> Any:
    """Return the imaginary part."""
    return a.imag
