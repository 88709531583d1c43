"""The public functions `transform` and `copy`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gpualgo._algorithms.transform.problem import NUMBERS, Transformation, bind, is_scalar
from gpualgo._arrays.forms import Form, flatten_tuple, is_tuple
from gpualgo._arrays.view import View, as_view, known_viewer
from gpualgo._base import dtypes, records
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import fused
from gpualgo._operators.operator import MAX_ARITY
from gpualgo._operators.tokens import same
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

_LOOK = Transformation.problems.look
_WHERE = "transform"
_ARGUMENT = "transform: an argument"


@overload
def transform(
    op: ty.Function | Operator, x: ty.Same, /, *arrays: ty.Same | ty.Number,
    dtype: ty.DType | None = None, out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.Foreign, /, *arrays: ty.Foreign | ty.Number,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.Host, /, *arrays: ty.Host | ty.Number,
    dtype: ty.DType | None = None, out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.Number, /, *arrays: ty.AnyArray | ty.Number,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload  # tuples, one overload per argument position; ty.Foreign says why only one fits arrays
def transform(
    op: ty.Function | Operator, x: ty.Arrays, /, *arrays: ty.Argument,
    dtype: ty.DTypes | None = None, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.AnyArray | ty.Number, y: ty.Arrays, /, *arrays: ty.Argument,
    dtype: ty.DTypes | None = None, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.AnyArray | ty.Number, y: ty.AnyArray | ty.Number,
    z: ty.Arrays, /, *arrays: ty.Argument, dtype: ty.DTypes | None = None,
    out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.AnyArray | ty.Number, y: ty.AnyArray | ty.Number,
    z: ty.AnyArray | ty.Number, w: ty.Argument, /, *arrays: ty.Argument,
    dtype: ty.DTypes | None = None, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.AnyArray | ty.Number, /, *arrays: ty.Argument,
    dtype: ty.DTypeTuple, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.AnyArray | ty.Number, /, *arrays: ty.Argument,
    dtype: ty.DType | None = None, out: ty.OutTuple, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def transform(op: Any, *arrays: Any, dtype: Any = None, out: Any = None, stream: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters
    ----------
    op : callable
        A pure function with one parameter for each argument. If it returns a tuple, the result is a
        tuple of arrays, computed in one pass.
    *arrays : array, scalar, or tuple of arrays
        One to eight arguments, at least one of them an array. Arrays are on one device and are
        broadcast against each other as in NumPy. Python and NumPy scalars behave like numbers that
        `op` captures. A tuple or namedtuple of arrays, or a NumPy structured array, is an array of
        tuples: `op` gets a tuple of their elements as one argument.
    dtype : dtype, optional
        The dtype of the result. By default the dtype of `out`, else the one that NumPy 2 gives for
        `op`: Python literals are weak, so ``lambda a: a * 2.0 + 1`` on float32 gives float32. If
        `op` returns a tuple: one dtype for all fields, a tuple, or a structured dtype.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape. It may be one of the arguments; otherwise it must not
        overlap them. If `op` returns a tuple: a tuple like it, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        With the broadcast shape, in the library of the arrays; for device arrays the call does not
        synchronise. If `op` returns a tuple: a tuple of arrays, of the class of an argument with
        the same fields.

    Raises
    ------
    TypeError
        No argument is an array, a dtype is not supported, `op` takes another number of arguments,
        or its result has a wrong dtype or structure.
    ValueError
        The shapes do not broadcast, `out` has another shape or overlaps an argument, or arrays are
        on different devices.

    Notes
    -----
    Reads each input once and writes the result once, in one kernel launch, without temporary
    storage.

    >>> ga.transform(lambda a, b: a * 2 + b, np.arange(3), np.array([[10], [20]]))
    array([[10, 12, 14],
           [20, 22, 24]])
    >>> ga.transform(lambda a, k: a * k, np.float32([1, 2]), 0.5)
    array([0.5, 1. ], dtype=float32)
    >>> ga.transform(lambda p: (p[0] // p[1], p[0] % p[1]), (np.array([7, 9]), np.array([2, 4])))
    (array([3, 2]), array([1, 1]))
    """
    if not 0 < len(arrays) <= MAX_ARITY:
        raise TypeError(f"transform: pass 1 to {MAX_ARITY} arguments after op, got {len(arrays)}")
    is_usual = dtype is None and stream is None
    out_dtype = out.dtype if type(out) is np.ndarray else None
    if is_usual:
        result = run_remembered(_LOOK, op, None, out, out_dtype, arrays)
        if result is not None:
            return result
    lazy_forms: tuple[Form, ...] = ()
    are_known = all(map(known_viewer, map(type, arrays)))  # neither lazy arrays nor numbers
    if not are_known and any(map(is_lazy, arrays)):
        op, views, forms, lazy_forms = fused(op, arrays, _WHERE, out)
    else:
        if not (are_known or NUMBERS.isdisjoint(map(type, arrays))):
            op, arrays = bind(op, arrays, _WHERE)
            result = run_remembered(_LOOK, op, None, out, out_dtype, arrays) if is_usual else None
            if result is not None:
                return result
        try:
            views, forms = inputs.several(arrays, _ARGUMENT)
        except inputs.NumberOnGPU:
            op, views, forms, lazy_forms = fused(op, arrays, _WHERE)
        except Elsewhere as elsewhere:
            return elsewhere.call(_WHERE, out, stream, op, *arrays, dtype=dtype)
        except TypeError:
            if not any(map(is_scalar, arrays)):  # one of bfloat16, or of a dtype without kernels
                raise
            op, arrays = bind(op, arrays, _WHERE)
            views, forms = inputs.several(arrays, _ARGUMENT)
    if out is not None:
        if is_tuple(out):
            leaves, form = flatten_tuple(out, "transform: out")
            targets = [as_view(leaf, name) for leaf, name in leaves]
            requested = checks.dtypes_of(dtype, form.names, _WHERE)
            dtype = records.record(form.names, map(_requested, requested, targets))
        else:
            target = as_view(out, "transform: out")
            dtype = _requested(dtype, target)
            # return out itself, not a view made from its protocol
            out = target if target.owner is out else out
    params = dtype, forms, checks.classes_of(dtype), lazy_forms
    problem = problem_of(Transformation, views, op, None, params, _WHERE, len(forms))
    if is_usual and problem.warm is not None:
        remember(problem, views, op, None, out_dtype, arrays)
    return run(problem, views, op, None, out, stream)


def _requested(dtype: Any, out: View) -> np.dtype[Any]:
    if dtype is not None and dtypes.as_dtype(dtype, _WHERE) != out.dtype:
        raise TypeError(f"transform: out has dtype {out.dtype} but dtype={dtype}; pass one of them")
    return out.dtype


def copy(x: Any, *, out: Any = None, stream: Any = None) -> Any:
    """Return an array's elements in new memory: ``result[i] = x[i]``.

    Parameters
    ----------
    x : array, lazy array, or tuple of arrays
        The array to copy, or to materialize: any library, shape and strides.
    out : array, or tuple of arrays, optional
        Array for the result, instead of new memory.

    Returns
    -------
    array, or tuple of arrays
        In the library of `x`, C-contiguous; for device arrays the call does not synchronise. A lazy
        array that reads no array gives a NumPy array, or a `gpualgo.DeviceArray` if it is computed
        on a GPU. `out` itself if it is given.

    Raises
    ------
    TypeError, ValueError
        As for `gpualgo.transform`.

    Notes
    -----
    Reads and writes each element once, in one kernel launch.

    >>> ga.copy(ga.lazy.arange(6).reshape(2, 3)[:, ::-1])
    array([[2, 1, 0],
           [5, 4, 3]])
    """
    try:
        return transform(same, x, out=out, stream=stream)
    except (TypeError, ValueError) as error:
        found = re.search(r"op returns (\w+), which does not fit (\w+)", str(error))
        if found is not None:
            dtypes_of_both = f"x has dtype {found[1]}, which does not fit out's {found[2]}"
            raise TypeError(f"copy: {dtypes_of_both}; pass another out") from None
        with checks.renamed_errors("copy", _WHERE, {"argument 1": "x"}):
            raise
