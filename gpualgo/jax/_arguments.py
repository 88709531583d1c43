"""Checks of arguments when a call is traced."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpualgo._api.derivatives import (
    both_of,
    functions_of,
    given_of,
    numbers,
    rebound,
    variables_of,
)
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._operators.key import frozen
from gpualgo._operators.operator import Operator, check_associativity
from gpualgo._pipeline import checks
from gpualgo.jax._gradients import Scan


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
    if not isinstance(x.dtype, np.dtype):
        raise TypeError(f"{where} has dtype {x.dtype}, which has no kernel; pass numbers")
    dtypes.check(x.dtype, where)
    if ndim is not None and x.ndim != ndim:
        raise ValueError(f"{where} has {x.ndim} axes and must have {ndim}; batch it by jax.vmap")
    return x


def arrays(x: Any, where: str, ndim: int | None = None) -> list[Any]:
    """Return the arrays of x: one, or the two or more of a tuple, of one shape."""
    xs = [array(each, f"{where}: x", ndim) for each in (x if isinstance(x, tuple) else (x,))]
    if isinstance(x, tuple) and len(x) < 2:
        raise ValueError(f"{where}: x is a tuple of {len(x)} arrays; pass two or more, or an array")
    if any(each.shape != xs[0].shape for each in xs):
        raise ValueError(f"{where}: x is a tuple of shapes {[each.shape for each in xs]}, but must "
                         "have arrays of one shape")  # fmt: skip
    return xs


def alike(x: Any, other: Any, where: str, name: str) -> tuple[Any, Any]:
    """Return x and another array of its shape, both flattened."""
    x, other = array(x, f"{where}: x"), array(other, f"{where}: {name}")
    if x.shape != other.shape:
        raise ValueError(f"{where}: x has shape {x.shape} and {name} {other.shape}; they are equal")
    return x.reshape(-1), other.reshape(-1)


def along(axis: Any, x: Any, where: str) -> tuple[Any, int]:
    """Return x, flattened if axis is None, and the axis, counted from the end."""
    if axis is None:
        return x.reshape(-1), -1
    axis = checks.integer(axis, "axis", where)
    return x, np.lib.array_utils.normalize_axis_index(axis, x.ndim, where) - x.ndim


def function(fn: Any, where: str) -> Any:
    """Return the operator of a copy of fn that keeps the numbers which fn captures now.

    None is returned for None.
    """
    if fn is None:
        return None
    op = fn if isinstance(fn, Operator) else Operator(fn)
    if any(map(is_array, jax.tree.leaves(op.identity))):
        raise TypeError(f"{where}: identity must be a Python or NumPy number, got an array")
    if op.is_known:
        return op
    for name, value in itertools.chain(*map(variables_of, functions_of(op.fn, []))):
        if is_array(value):
            raise TypeError(f"{where}: {shown(op.fn)} captures the array {name}; {_NUMBERS}")
    op = Operator(frozen(op.fn), identity=op.identity, commutative=op.commutative)
    if op.arrays:
        raise TypeError(f"{where}: {shown(op.fn)} captures an array; {_NUMBERS}")
    return op


_NUMBERS = "an operator in a jax program captures Python and NumPy numbers only"


def scan(where: str, xs: list[Any], init: Any, op: Any, dtype: Any, vjp: Any) -> Scan:
    """Return a scan by an operator, with Python numbers or arrays as initial values."""
    given = given_of(vjp, where, lambda derivative: rebound(derivative, lambda value: value, {}))
    op = getattr(np, op.__name__) if isinstance(op, jnp.ufunc) else op  # jnp.maximum, say
    op = op if isinstance(op, Operator) else Operator(op)
    check_associativity(op, where)
    op = function(op, where)
    if len(xs) > 1:
        if dtype is not None:
            raise TypeError(f"{where}: tuples have no dtype=; convert their arrays")
        if init is not None and not (isinstance(init, tuple) and len(init) == len(xs)):
            raise TypeError(f"{where}: init must be a tuple of {len(xs)} for x, a tuple")
        accs = [x.dtype for x in xs]
    else:
        is_strong = isinstance(init, np.generic) or (is_array(init) and not _is_weak(init))
        dtype = dtype if dtype is not None else init.dtype if is_strong else xs[0].dtype
        accs = [checks.accumulator(xs[0], None, canonical(dtype, where), where)]
    init = jax.tree.map(lambda i: i.item() if isinstance(i, np.generic) else i, init)
    return Scan(where, where, init, op, given and both_of(given), tuple(accs))


def _is_weak(x: Any) -> bool:
    """Return whether an array has the dtype of a Python number, which other dtypes replace."""
    return bool(getattr(x, "weak_type", False))


def first_value(init: Any, dtype: np.dtype[Any], shape: Any, where: str) -> Any:
    """Return an initial value, a number or an array, as an array of a dtype and a shape."""
    init = array(jnp.asarray(init), f"{where}: init")
    fits = (
        jnp.result_type(init, dtype) == dtype if _is_weak(init)
        else dtypes.can_cast(init.dtype, dtype)
    )  # fmt: skip
    if not fits:
        raise TypeError(
            f"{where}: init of dtype {init.dtype} does not fit {dtype}; convert it first"
        )
    try:
        return jnp.broadcast_to(init.astype(dtype), shape)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{where}: init has shape {init.shape} and must broadcast to {tuple(shape)}"
        ) from error


def check_number(init: Any, where: str) -> None:
    if any(map(is_array, numbers(init))):
        raise TypeError(
            f"{where}: init must be a number, got an array; combine it with the results"
        )


def canonical(dtype: Any, where: str) -> np.dtype[Any]:
    """Return a dtype, by default int64, as jax has it: without its 64-bit mode of 32 bits."""
    dtype = dtypes.as_dtype(np.int64 if dtype is None else dtype, where)
    return jax.dtypes.canonicalize_dtype(dtype)  # type: ignore[no-any-return]
