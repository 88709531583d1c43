"""Parts of complex numbers: real and imaginary parts, and angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo._lazy import is_lazy
from gpualgo.numpy._call import function, results
from gpualgo.numpy._call.arguments import array_of, as_array, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._elementwise.ufunc_calls import mapped
from gpualgo.numpy._elementwise.ufuncs import UFUNCS

_ALL = 1 << 62


@numpys(
    "None for host arrays; one transform on a GPU", arrays=0,
    differs="on a GPU a new array, not a view",
)  # fmt: skip
def real(val: Any) -> Any:
    """Return the real parts; real numbers are returned unchanged.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.real([1 + 2j, 3])
    array([1., 3.])
    """
    return _part(val, np.real, "real")


@numpys(
    "None for host arrays; one transform on a GPU", arrays=0,
    differs="on a GPU a new array, not a view",
)  # fmt: skip
def imag(val: Any) -> Any:
    """Return the imaginary parts; zeros for real numbers.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.imag([1 + 2j, 3])
    array([2., 0.])
    """
    return _part(val, np.imag, "imag")


def _part(val: Any, native: Any, name: str) -> Any:
    if isinstance(val, (np.number, np.bool_)) or type(val) in (bool, int, float, complex):
        return native(val)
    val = array_of(val, name)
    if is_lazy(val):
        return getattr(val, name)
    if is_host(val):
        return native(val)
    if name == "real" and results.dtype_of(val, name).kind != "c":
        return val
    return mapped(native, (val,), None, name)


def _angle(z: Any) -> Any:
    return np.arctan2(np.imag(z), np.real(z))


def _degrees(z: Any) -> Any:
    return np.arctan2(np.imag(z), np.real(z)) * (180 / math.pi)


def _angle_of_real(x: Any) -> Any:
    return np.arctan2(0, x)


def _degrees_of_real(x: Any) -> Any:
    return np.arctan2(0, x) * (180 / math.pi)


@numpys("One transform; host arrays: NumPy's loops on all cores")
def angle(z: Any, deg: Any = False) -> Any:
    """Return the angles of complex numbers, in radians or degrees.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.angle([1, 1j, -1], deg=True)
    array([  0.,  90., 180.])
    """
    x = as_array(z, "angle")
    is_complex = results.dtype_of(x, "angle").kind == "c"
    if type(x) is np.ndarray and function.is_few(x.size, _ALL):
        angles = UFUNCS["arctan2"](x.imag if is_complex else 0, x.real)
        if not deg:
            return angles
        return UFUNCS["multiply"](angles, 180 / math.pi, out=angles if angles.ndim else None)
    ops = (_angle, _degrees) if is_complex else (_angle_of_real, _degrees_of_real)
    return mapped(ops[bool(deg)], (x,), None, "angle")
