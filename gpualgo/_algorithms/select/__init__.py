"""The public functions `select` and `stable_partition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.select.problem import Marked, Rest, Selection
from gpualgo._arrays.view import View, as_view
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import taken
from gpualgo._operators.predicates import is_function
from gpualgo._pipeline import counted, inputs
from gpualgo._pipeline.problem import problem_of

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


def select(
    x: ty.AnyArray | ty.Arrays, predicate: ty.Predicate | ty.AnyArray, *,
    out: ty.AnyArray | ty.Outs | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Keep the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        NumPy, CuPy, PyTorch or anything with ``__cuda_array_interface__`` or DLPack; any shape,
        which is flattened in C order, any strides; or lazy. A tuple or namedtuple of arrays, which
        are broadcast together, or a NumPy structured array, is an array of tuples of up to 8
        numbers (7 if `predicate` is an array).
    predicate : callable or array
        ``predicate(a)`` returns a bool; or an array of bool of the shape of `x`, lazy or not.
    out : array, or tuple of arrays, optional
        Where to write: one dimension, of any length, the dtype and device of `x`; a tuple
        if `x` is one. It shares no memory with `x`. Nothing is written past its end.
    out_count : array, optional
        Where to write how many elements were kept, even if `out` is too short for all: int64, of
        one element, on the device of `x`. With it the call does not wait.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        One dimension. Without `out`: a new array of the kept elements; the call waits for their
        number. With `out` alone: the part of it that was written, also after waiting. With `out`
        and `out_count`: `out` itself, without waiting, which can be recorded into a graph.

    Raises
    ------
    TypeError
        `x` is no array, `predicate` returns no bool or is no array of bool, or out does not fit.
    ValueError
        The shapes of `x` and an array of bool differ, out is too short for the result and
        `out_count` is not given (the message has the length), or out shares memory with `x`.
    CompileError
        numba cannot compile `predicate`.

    Notes
    -----
    Reads each element once and writes the kept ones, in one kernel launch; temporary storage 8
    bytes for each few thousand elements. See docs/select.md. Tiles compute their output offsets by
    the decoupled look-back of D. Merrill and M. Garland (NVIDIA NVR-2016-002, 2016).

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.select(np.array([3, -1, 4, -1, 5]), lambda a: a > 0)
    array([3, 4, 5])
    >>> ga.select(np.arange(4), np.array([True, False, False, True]))
    array([0, 3])
    """
    try:
        return _solve(x, predicate, False, "select", out, out_count, stream)
    except Elsewhere as elsewhere:
        out = out_count if out is None else out
        return elsewhere.call("select", out, stream, x, predicate)


def stable_partition(
    x: ty.AnyArray | ty.Arrays, predicate: ty.Predicate | ty.AnyArray, *,
    out: ty.AnyArray | ty.Outs | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Put the elements for which a predicate is true before the others, each in their order.

    Parameters
    ----------
    x, predicate, out_count, stream
        As for `select`.
    out : array, or tuple of arrays, optional
        Where to write: one dimension, as many elements as `x` has, its dtype and device.

    Returns
    -------
    (kept, rest)
        Two views of one new array (or of `out`), tuples of arrays if `x` is one; the call waits for
        the number of kept elements. With `out` and `out_count`: `out` itself, without waiting.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `select`; out has another length.

    Notes
    -----
    Reads each element twice, as the rest begins where the kept elements end, and writes it once, in
    two kernel launches. See docs/select.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> kept, rest = ga.stable_partition(np.array([3, -1, 4, -1, 5]), lambda a: a > 0)
    >>> kept, rest
    (array([3, 4, 5]), array([-1, -1]))
    """
    return _solve(x, predicate, True, "stable_partition", out, out_count, stream)


def _solve(
    x: Any, predicate: Any, keeps_rest: bool, where: str, out: Any, out_count: Any, stream: Any
) -> Any:
    views, op, form, num_arguments = _input_of(x, predicate, where, (out, out_count))
    params = Rest(form, keeps_rest)
    problem = problem_of(Selection, views, op, None, params, where, num_arguments)
    return counted.solve(problem, views, op, out, out_count, stream)


def _input_of(
    x: Any, predicate: Any, where: str, outs: tuple[Any, ...]
) -> tuple[tuple[View, ...], Any, Any, int]:
    """Return the inputs, the operator, the elements' form, and op's number of arguments."""
    if is_function(predicate, where):
        return *taken(x, predicate, where, num_arguments=1, beside=outs), 1
    if not (is_lazy(predicate) or is_lazy(x)):
        mask = as_view(predicate, f"{where}: predicate")
        try:
            views, form = inputs.spread(x, f"{where}: x")
        except inputs.NumberOnGPU:
            pass
        else:
            return (*views, mask), None, Marked(form), 0
    from gpualgo._algorithms.select import computed

    parts = computed.marked(x, predicate, where, outs)
    return *parts, 2  # the arguments of the placeholder operator
