"""The public function `adjacent_difference`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from gpualgo._base import dtypes, records
from gpualgo._base.errors import Elsewhere
from gpualgo._base.strides import order_of
from gpualgo._lazy.sources import arguments_of, elements_of, parse_input
from gpualgo._pipeline import checks, outputs
from gpualgo._pipeline.problem import Array, Call, Problem, Result, problem_of
from gpualgo._pipeline.run import remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


# --- Slices along an axis: op of later and earlier elements gives all results but the first.


class Parts(NamedTuple):
    """Index tuples that slice an array along an axis."""

    first: Any
    later: Any  # all but the first
    earlier: Any  # all but the last

    @classmethod
    def along(cls, axis: int) -> Parts:
        lead = (slice(None),) * axis
        return cls(*((*lead, slice(*ends)) for ends in ((0, 1), (1, None), (None, -1))))

    def split(
        self, arrays: Sequence[Array], outs: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Return op's operands, later elements before earlier ones, and the results' views."""
        _, later, earlier = self
        if len(arrays) == 1:  # the usual case, which each warm call takes
            return [arrays[0][later], arrays[0][earlier]], [outs[0][later]]
        operands = [array[part] for part in (later, earlier) for array in arrays]
        return operands, [out[later] for out in outs]

    def copy_first(self, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        first = self.first
        for array, out in zip(arrays, outs, strict=True):
            if array.dtype == out.dtype:
                out[first] = array[first]
                continue
            with np.errstate(all="ignore"):  # kernels do not warn
                np.copyto(out[first], array[first], casting="unsafe")


class AdjacentDifference(Problem):
    shape_attributes = "shape", "results"
    spreads_tuples = True

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        axis, form = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
        checks.same_place(list(views), where)
        self.source, element_form, _ = elements_of(op, views, form, device, where)
        self.shape = views[0].shape
        checked_axis = checks.axis_of(axis, len(self.shape), where)
        assert checked_axis is not None
        self.axis: int = checked_axis
        element = records.register_dtype(self.source)
        checks.check_operator(op, element, where)
        self.result = outputs.dtype_of(op, (element, element), None, device, where)
        _check_first(element, self.result, where)
        # Results have the structure of x's elements, because first elements are copied.
        self.result = records.with_fields(element, records.field_dtypes(self.result))
        self.form = element_form
        # A repeated array does not affect the order, as in a transformation.
        self.order = order_of(self.shape, [view.strides for view in views])
        self.results = tuple(
            Result(self.shape, leaf, order=self.order) for leaf in records.field_dtypes(self.result)
        )


def _check_first(element: np.dtype[Any], result: np.dtype[Any], where: str) -> None:
    """Raise TypeError unless x[0] can be converted to op's result."""
    shown = f"{where}: op returns {records.shown(result)} for {records.shown(element)}"
    if _structure(element) != _structure(result):
        raise TypeError(
            f"{shown}, but y[0] is x[0], which has another structure; return as many numbers as an "
            "element has, or pass x[1:] and x[:-1] to transform"
        )
    for source, target in zip(
        records.field_dtypes(element), records.field_dtypes(result), strict=True
    ):
        if dtypes.kind(source) == "c" != dtypes.kind(target):
            raise TypeError(
                f"{shown}, but y[0] is x[0], whose imaginary part would be lost; return a complex "
                "number, or pass x[1:] and x[:-1] to transform"
            )


def _structure(dtype: np.dtype[Any]) -> tuple[str, ...] | None:
    """Return the nesting of an element's tuples; None for a number."""
    if dtype.names is None:
        return None
    return tuple(name.rpartition(".")[0] for name in dtype.names)


_LOOK = AdjacentDifference.problems.look
_WHERE = "adjacent_difference"


@overload
def adjacent_difference(
    x: ty.Same, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def adjacent_difference(
    x: ty.Foreign, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def adjacent_difference(
    x: ty.Host, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def adjacent_difference(  # tuples
    x: ty.Arrays, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def adjacent_difference(
    x: Any, op: Any = operator.sub, *, axis: Any = -1, out: Any = None, stream: Any = None
) -> Any:
    """Return elements combined with the one before: ``y[0] = x[0]``, ``y[i] = op(x[i], x[i-1])``.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `reduce`, with at least one axis. A tuple or namedtuple of arrays, or a NumPy
        structured array, is an array of tuples: `op` takes and returns tuples of their elements.
    op : callable
        ``op(a, b)`` of an element a and the element b before it; pure. It need not be associative.
    axis : int
        The axis to go along, each row separately.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. It must not share
        memory with `x`. For tuples a tuple like the result, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        With the shape of `x`, in its library, of the dtype that `transform` gives for `op`;
        ``y[0]`` is ``x[0]`` converted to it, as NumPy's ``astype`` does. For device arrays the call
        does not synchronise.

    Raises
    ------
    TypeError
        `x` is not an array, a dtype is not supported, `axis` is not an int, `op` takes another
        number of arguments, its result has another structure than the elements of `x` or is real
        while they are complex, or `out` has a wrong dtype or structure.
    ValueError
        `out` has another shape or shares memory with `x`.
    numpy.exceptions.AxisError
        The axis is out of range, or `x` has no axes.

    Notes
    -----
    Reads each element and writes each result once, in one kernel launch, without temporary storage.
    A GPU copies large unevenly strided arrays first; on the CPU lazy arrays are materialized.

    >>> ga.adjacent_difference(np.array([3, 1, 4, 1, 5]))
    array([ 3, -2,  3, -3,  4])
    >>> ga.adjacent_difference(np.array([[1, 2], [3, 5]]), lambda a, b: a * 10 + b, axis=0)
    array([[ 1,  2],
           [31, 52]])
    """
    if type(axis) is not int:
        if axis is None:
            raise TypeError(f"{_WHERE}: axis must be an int, got None; pass x.reshape(-1), say")
        axis = checks.plain_axis(axis, _WHERE, "an int")
    if stream is None:
        result = run_remembered(_LOOK, op, None, out, axis, (x,))
        if result is not None:
            return result
    try:
        views, op, form = parse_input(x, op, _WHERE, beside=(out,))
    except Elsewhere as elsewhere:
        return elsewhere.call(_WHERE, out, stream, x, op, axis=axis)
    problem = problem_of(AdjacentDifference, views, op, None, (axis, form), _WHERE)
    if stream is None and problem.warm is not None:
        remember(problem, views, op, None, axis, (x,))
    return run(problem, views, op, None, out, stream)
