"""NumPy's order of complex numbers: by real part, then imaginary part, NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np


def less(a: Any, b: Any) -> Any:
    """Return whether a precedes b: NaN parts follow all numbers, a NaN real part comes last."""
    if a.real < b.real:
        return a.imag == a.imag or b.imag != b.imag
    if a.real > b.real:
        return a.imag == a.imag and b.imag != b.imag
    if a.real == b.real or (a.real != a.real and b.real != b.real):
        return a.imag < b.imag or (a.imag == a.imag and b.imag != b.imag)
    return b.real != b.real


def more(a: Any, b: Any) -> Any:
    """Return whether a precedes b in descending order, with NaN last as well."""
    if a.real > b.real:
        return a.imag == a.imag or b.imag != b.imag
    if a.real < b.real:
        return a.imag == a.imag and b.imag != b.imag
    if a.real == b.real or (a.real != a.real and b.real != b.real):
        return a.imag > b.imag or (a.imag == a.imag and b.imag != b.imag)
    return b.real != b.real


def group(a: Any) -> Any:
    """Return the primary sort key: 0 for a number, 1 if only the imaginary part is NaN, else 2."""
    if a.real != a.real:
        return np.uint8(2)
    return np.uint8(a.imag != a.imag)


def real(a: Any) -> Any:
    return a.real


def imag(a: Any) -> Any:
    return a.imag
