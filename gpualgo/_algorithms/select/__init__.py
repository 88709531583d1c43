"""The public functions `select` and `stable_partition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.select.problem import Marked, Selection, SelectParams
from gpualgo._arrays.view import View, as_view
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import parse_input
from gpualgo._operators.operator import is_function
from gpualgo._pipeline import counted, inputs
from gpualgo._pipeline.problem import problem_of

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


def select(
    x: ty.AnyArray | ty.Arrays, predicate: ty.Predicate | ty.AnyArray, *,
    out: ty.AnyArray | ty.Outs | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        Array of any library, shape and strides, flattened in C order; lazy or not. A tuple or
        namedtuple of arrays, which are broadcast together, or a NumPy structured array, is an array
        of tuples of up to 8 numbers (7 if `predicate` is an array).
    predicate : callable or array
        ``predicate(a)`` returns a bool and is pure; or an array of bool with the shape of `x`, lazy
        or not.
    out : array, or tuple of arrays, optional
        Array for the result: one-dimensional, of any length, with the dtype and device of `x`; a
        tuple if `x` is one. It must not share memory with `x`. Elements after the last result are
        not written.
    out_count : array, optional
        Array for the number of selected elements, even if `out` is too short for all: int64, one
        element, on the device of `x`. With it the call does not synchronise.

    Returns
    -------
    array, or tuple of arrays
        One-dimensional.

        - Without `out`: a new array; the call waits for its length.
        - With `out`: the written part of `out`; the call waits, too.
        - With `out` and `out_count`: `out` itself; the call does not wait and can be recorded in a
          graph.

    Raises
    ------
    TypeError
        `x` is not an array, `predicate` neither returns bool nor is an array of bool, or `out` has
        a wrong dtype or structure.
    ValueError
        The shapes of `x` and an array of bool differ; `out` is too short and `out_count` is not
        given (the message contains the required length); or `out` shares memory with `x`.

    Notes
    -----
    Reads each element once and writes the selected ones, in one kernel launch; temporary storage is
    8 bytes for each few thousand elements. A GPU copies large unevenly strided arrays first, such
    as transposed ones. Tiles compute their output offsets by decoupled look-back (D. Merrill and M.
    Garland, NVIDIA NVR-2016-002, 2016).

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
    """Return the elements for which a predicate is true, and the others, each in their order.

    Parameters
    ----------
    x, predicate, out_count, stream
        As for `select`.
    out : array, or tuple of arrays, optional
        Array for the result: one-dimensional, with the length, dtype and device of `x`.

    Returns
    -------
    (kept, rest)
        Two views of one new array (or of `out`), tuples of arrays if `x` is one; the call waits for
        their lengths. With `out` and `out_count`: `out` itself, without waiting.

    Raises
    ------
    TypeError, ValueError, CompileError
        As for `select`; ValueError also if `out` has another length.

    Notes
    -----
    Reads each element twice and writes it once, in two kernel launches.

    >>> kept, rest = ga.stable_partition(np.array([3, -1, 4, -1, 5]), lambda a: a > 0)
    >>> kept, rest
    (array([3, 4, 5]), array([-1, -1]))
    """
    return _solve(x, predicate, True, "stable_partition", out, out_count, stream)


def _solve(
    x: Any, predicate: Any, keeps_rest: bool, where: str, out: Any, out_count: Any, stream: Any
) -> Any:
    views, op, form, num_arguments = _input_of(x, predicate, where, (out, out_count))
    params = SelectParams(form, keeps_rest)
    problem = problem_of(Selection, views, op, None, params, where, num_arguments)
    return counted.solve(problem, views, op, None, out, stream, out_count)


def _input_of(
    x: Any, predicate: Any, where: str, outs: tuple[Any, ...]
) -> tuple[tuple[View, ...], Any, Any, int]:
    """Return the inputs, the operator, the elements' form, and op's number of arguments."""
    if is_function(predicate, where):
        return *parse_input(x, predicate, where, num_arguments=1, beside=outs), 1
    if not (is_lazy(predicate) or is_lazy(x)):
        mask = as_view(predicate, f"{where}: predicate")
        try:
            views, form = inputs.spread(x, f"{where}: x")
        except inputs.NumberOnGPU:
            pass
        else:
            return (*views, mask), None, Marked(form), 0
    from gpualgo._algorithms.select import computed

    parts = computed.paired_with_mask(x, predicate, where, outs)
    return *parts, 2  # the arguments of the placeholder operator
