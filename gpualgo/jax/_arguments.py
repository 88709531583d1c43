"""Checks of arguments when a call is traced."""

from __future__ import annotations

import inspect
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._operators.key import frozen
from gpualgo._operators.operator import Operator, check_associativity
from gpualgo.jax._gradients import Derived


def is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray)


def array(x: Any, where: str, ndim: int | None = None) -> Any:
    """Return x as a jax array; `where` names the function and the argument."""
    if not is_array(x):
        raise TypeError(
            f"{where} must be a jax or NumPy array, got {type(x).__name__}; wrap it with "
            "jax.numpy.asarray(x)"
        )
    x = jnp.asarray(x)
    dtypes.check(x.dtype, where)
    if ndim is not None and x.ndim != ndim:
        raise ValueError(f"{where} has {x.ndim} axes and must have {ndim}; batch it by jax.vmap")
    return x


def alike(x: Any, other: Any, where: str, name: str) -> tuple[Any, Any]:
    """Return x and another array of its shape, both flattened."""
    x, other = array(x, f"{where}: x"), array(other, f"{where}: {name}")
    if x.shape != other.shape:
        raise ValueError(f"{where}: x has shape {x.shape} and {name} {other.shape}; they are equal")
    return x.reshape(-1), other.reshape(-1)


def along(axis: Any, x: Any) -> tuple[Any, int]:
    """Return x, flattened if axis is None, and the axis, counted from the end."""
    if axis is None:
        return x.reshape(-1), -1
    return x, np.lib.array_utils.normalize_axis_index(axis, x.ndim) - x.ndim


def function(fn: Any, where: str) -> Any:
    """Return a copy of fn that keeps the numbers which fn captures now; None for None."""
    if isinstance(fn, types.FunctionType):
        read = inspect.getclosurevars(fn)
        for name, value in (*read.nonlocals.items(), *read.globals.items()):
            if is_array(value):
                raise TypeError(f"{where}: {shown(fn)} captures the array {name}; {_NUMBERS}")
    return fn if fn is None else frozen(fn)


_NUMBERS = "an operator in a jax program captures Python and NumPy numbers only"


def fold(
    where: str, x: Any, init: Any, op: Any, dtype: Any, vjp: Any
) -> tuple[Any, Derived, np.dtype[Any]]:
    """Return init as an array, a Python number or None, the operator, the accumulator's dtype."""
    if vjp is not None and not (isinstance(vjp, tuple) and len(vjp) == 2):
        raise TypeError(f"{where}: vjp must be a tuple of two functions, (d_left, d_right)")
    op = op if isinstance(op, Operator) else Operator(op)
    check_associativity(op, where)
    if not op.is_known:
        fn = function(op.fn, where)
        op = Operator(fn, identity=op.identity, commutative=op.commutative)
        if op.arrays:
            raise TypeError(f"{where}: {shown(op.fn)} captures an array; {_NUMBERS}")
    if dtype is None:
        dtype = init.dtype if is_array(init) or isinstance(init, np.generic) else x.dtype
    acc = canonical(dtype, where)
    return init.item() if isinstance(init, np.generic) else init, Derived(op, vjp), acc


def number(init: Any, where: str) -> Any:
    if is_array(init):
        raise TypeError(
            f"{where}: init must be a number, got an array; combine it with the results"
        )
    return init


def canonical(dtype: Any, where: str) -> np.dtype[Any]:
    """Return a dtype, by default int64, as jax has it: without its 64-bit mode of 32 bits."""
    dtype = dtypes.as_dtype(np.int64 if dtype is None else dtype, where)
    return jax.dtypes.canonicalize_dtype(dtype)  # type: ignore[no-any-return]
