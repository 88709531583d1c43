"""Tokens: hashable contents of immutable values that compiled code depends on."""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._operators import classes
from gpualgo._operators.content import Token
from gpualgo._operators.markers import Known


def number_token(value: Any) -> Token | None:
    kind = type(value)
    if kind is float:
        return ("float", _bits(value))
    if kind is complex:
        return ("complex", _bits(value.real), _bits(value.imag))
    if kind in (int, bool, str, bytes, type(None), type(Ellipsis)):
        return (kind.__name__, value)
    if isinstance(value, np.generic) and dtypes.name_of(value.dtype) is not None:
        return ("scalar", value.dtype.name, value.dtype.str, value.tobytes())
    items: Any = (value.start, value.stop, value.step) if kind is slice else value
    if kind in (tuple, frozenset, slice):
        tokens = [constant_token(item) for item in items]
        return (kind.__name__, tuple(sorted(tokens, key=repr) if kind is frozenset else tokens))
    return None


def _bits(value: float) -> str:
    """Return a float as text; a NaN with all its bits, as NaNs do not compare equal."""
    return value.hex() if value == value else struct.pack(">d", value).hex()


def constant_token(value: Any) -> Token:
    """Return the token of a code object's constant, except nested code."""
    token = number_token(value)
    return object_token(value) if token is None else token


def object_token(value: Any) -> Token:
    """Return the token of a class or a C function; raise TypeError for unsupported values."""
    if type(value) is Known:
        return ("known", value.name)
    token = classes.object_token(value)
    if token is not None:
        return token
    if isinstance(value, functools.partial):
        raise TypeError(
            "op is a functools.partial, which numba cannot compile; "
            "write it as a lambda that captures the value"
        )
    raise TypeError(
        f"op captures a value of type {type(value).__name__}, which kernels cannot hold; "
        "capture numbers, NumPy scalars, arrays or functions"
    )
