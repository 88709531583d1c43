"""The public functions `top_k` and `kth_value`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from gpualgo._algorithms import materialized
from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, view_of
from gpualgo._base.errors import Elsewhere, shown
from gpualgo._base.strides import order_of
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Call, Problem, Result, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


# --- Specifications of selections by rank: the first elements of each row, or those of some
# ranks.

INDEX = np.dtype(np.int64)


class Ranked(Problem):
    """Base of both specifications: rows along an axis, and an order."""

    needs_alignment = False  # unaligned arrays are copied to dense, aligned rows
    copies_page_locked = True  # rows are read several times
    descending = False

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        super().__init__(call)
        (view,) = views
        if view.dtype.kind == "c":
            raise TypeError(
                f"{where}: x has dtype {view.dtype}, which has no order; pass a part of it, such "
                "as x.real, or abs(x)"
            )
        self.shape, self.dtype = view.shape, key_dtype_of(view.dtype, where, "x")
        self.axis = checks.axis_of(params[1], len(view.shape), where)  # None: flattened
        flat = (math.prod(view.shape),)
        self.rows_shape = flat if self.axis is None else view.shape
        self.row_items = self.rows_shape[self.axis or 0]

    def around(self, extent: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of rows with `extent` in place of the axis."""
        axis = self.axis or 0
        return (*self.rows_shape[:axis], *extent, *self.rows_shape[axis + 1 :])


class FirstElements(Ranked):
    shape_attributes = "shape", "rows_shape", "row_items"

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        super().__init__(call)
        self.k, _, self.descending, self.form = params
        if not 0 <= self.k <= self.row_items:
            raise ValueError(
                f"{where}: k is {self.k}, and there are {self.row_items} elements to choose from; "
                f"pass 0 to {self.row_items}"
            )
        shape = self.around((self.k,))
        order = () if self.axis is None else order_of(shape, [views[0].strides])
        self.results = (Result(shape, self.dtype, (), order), Result(shape, INDEX, (), order))

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        return super().of_shape(shape) if self.k <= shape[0] else None


class RankedElements(Ranked):
    """Specification of a `kth_value` call, shared by equal calls."""

    shape_attributes = "shape", "rows_shape", "row_items"
    returns_scalars = True

    def __init__(self, call: Call) -> None:
        params, where = call.params, call.where
        super().__init__(call)
        self.ranks, _, is_one = params
        for rank in self.ranks:
            if self.row_items == 0:
                raise ValueError(
                    f"{where}: x has 0 elements to choose from; pass an array that has elements"
                )
            if not 0 <= rank < self.row_items:
                raise ValueError(
                    f"{where}: rank k={rank} is out of range for {self.row_items} "
                    f"elements; pass k from 0 to {self.row_items - 1}"
                )
        shape = self.around(())
        self.results = (Result(shape if is_one else (len(self.ranks), *shape), self.dtype),)

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        return super().of_shape(shape) if max(self.ranks, default=0) < shape[0] else None


class TopK(NamedTuple):
    """The result of `top_k`."""

    values: Any
    indices: Any


_FORM = Form(TopK, (None, None))
_DESCENDING = {"largest": True, "smallest": False}


def top_k(
    x: ty.AnyArray, k: SupportsIndex, *, axis: ty.Axis = -1, mode: ty.TopMode = "largest",
    out: tuple[ty.AnyArray, ty.AnyArray] | None = None, stream: ty.Stream | None = None,
) -> TopK:  # fmt: skip
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters
    ----------
    x : array
        Array of bool, integers, float16, bfloat16, float32 or float64; any library, shape and
        strides; lazy or not.
    k : int
        The number of elements, from 0 to the length of the axis.
    axis : int or None
        The axis to search along, each row separately; None flattens in C order.
    mode : "largest" or "smallest"
        Which elements to return.
    out : tuple of two arrays, optional
        Arrays for values (of the dtype of `x`) and indices (int64), with the shape of `x` but
        length `k` along the axis. They must not share memory with `x`.

    Returns
    -------
    TopK
        A namedtuple of ``values`` and ``indices``: the elements in order, and their int64 indices
        along the axis. For device arrays the call does not synchronise.

    Raises
    ------
    TypeError
        `x` is not an array or its dtype has no order (complex, tuples), `k` is not an int, or `out`
        has a wrong dtype.
    ValueError
        `k` is negative or larger than the axis, `mode` is another string, or `out` has another
        shape or overlaps `x`.

    Notes
    -----
    The order is that of ``argsort(x, descending=mode == "largest")``: NaN is last in both modes,
    -0.0 equals 0.0, and equal elements keep their input order, so the result is unique.

    On a GPU elements are selected by their bits ("radix selection": J. Zhang, A. Naruse, X. Li and
    Y. Wang, SC 2023, doi:10.1145/3581784.3607062): few of up to 2^23 in parts, whose first k are
    selected from again (rows of up to 64 are sorted); more of up to 16 MB by all blocks, which
    share the counts. A longer array is read once: a sample gives bounds of the wanted elements,
    and those within the bounds are stored. Temporary storage: k elements and positions of each
    part, or the stored elements, about k and a few thousandths of the array.

    >>> values, indices = ga.top_k(np.array([3, 9, 4, 9, 5]), 3)
    >>> values, indices
    (array([9, 9, 5]), array([1, 3, 4]))
    >>> ga.top_k(np.array([[0.5, np.nan, -1.0]]), 2, mode="smallest").values
    array([[-1. ,  0.5]])
    """
    if type(k) is not int:
        k = checks.integer(k, "k", "top_k")
    if not isinstance(mode, str) or mode not in _DESCENDING:
        wrong = ValueError if isinstance(mode, str) else TypeError
        raise wrong(f"top_k: mode must be 'largest' or 'smallest', got {shown(mode)}")
    try:
        view, axis = _parse(x, axis, out, stream, "top_k")
    except Elsewhere as elsewhere:
        return elsewhere.call("top_k", out, stream, x, k, axis=axis, mode=mode)  # type: ignore[no-any-return]
    params = (k, axis, _DESCENDING[mode], _FORM)
    problem = problem_of(FirstElements, (view,), None, None, params, "top_k", 0)
    if out is not None:
        return run(problem, (view,), None, None, out, stream)  # type: ignore[no-any-return]
    result = run(problem, (view,), None, None, None, stream, True)
    return TopK(*result) if type(result) is tuple else result


def kth_value(
    x: ty.AnyArray, k: SupportsIndex | Sequence[SupportsIndex] | ty.NumPyArray, *,
    axis: ty.Axis = -1, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the element of a rank, without sorting: ``x[argsort(x)[k]]``.

    Parameters
    ----------
    x, stream
        As for `top_k`.
    k : int, or a sequence or NumPy array of ints
        The rank, 0 for the smallest; or several ranks, in any order. Negative ranks raise
        ValueError.
    axis : int or None
        The axis to search along, each row separately; None flattens in C order.
    out : array, optional
        Array for the result, with its shape and the dtype of `x`. It must not share memory with
        `x`.

    Returns
    -------
    array or scalar
        With the shape of `x` without the axis; several ranks add a first axis, as in
        `numpy.quantile`. A NumPy scalar if a NumPy array has no axis left. For device arrays the
        call does not synchronise.

    Raises
    ------
    TypeError
        As for `top_k`; also if `k` is neither an int nor a sequence of ints.
    ValueError
        A rank is negative or not below the length of the axis, or `out` has another shape or
        overlaps `x`.

    Notes
    -----
    Order and cost are those of `top_k` with ``mode="smallest"``. On a GPU up to eight ranks are
    found together. For more ranks, and of many rows where it is faster, the rows are sorted:
    temporary storage is then as large as `x` or twice that.

    >>> int(ga.kth_value(np.array([3, 9, 4, 9, 5]), 2))
    5
    >>> ga.kth_value(np.array([[3, 9, 4], [7, 1, 2]]), [0, 2])
    array([[3, 1],
           [9, 7]])
    """
    ranks, is_one = _ranks_of(k)
    view, axis = _parse(x, axis, out, stream, "kth_value")
    params = (ranks, axis, is_one)
    problem = problem_of(RankedElements, (view,), None, None, params, "kth_value", 0)
    return run(problem, (view,), None, None, out, stream)


def _parse(x: Any, axis: Any, out: Any, stream: Any, where: str) -> tuple[View, int | None]:
    """Return the view of an argument, computed if it is lazy, and the axis as an int."""
    if type(axis) is not int:
        axis = checks.plain_axis(axis, where)
    (x,) = materialized({"x": x}, (out,), where, stream, axis is None)
    if isinstance(x, tuple):
        raise TypeError(
            f"{where}: x is a tuple, and tuples are not supported here; pass "
            "one array, or use gpualgo.argsort"
        )
    view = view_of(x, f"{where}: x")
    if view.dtype.names is not None:
        raise TypeError(
            f"{where}: x has structured dtype {view.dtype}, which is not supported here; pass one "
            "of its fields, or use gpualgo.argsort"
        )
    return view, axis


def _ranks_of(k: Any) -> tuple[tuple[int, ...], bool]:
    if type(k) is int:
        return (k,), True
    if isinstance(k, np.ndarray) and k.ndim:
        if k.ndim > 1 or k.dtype.kind not in "iu":
            raise TypeError(
                f"kth_value: k is an array of {k.ndim} dimensions and dtype {k.dtype}; "
                "pass an int, or a sequence of ints"
            )
        return tuple(k.tolist()), False
    if isinstance(k, (list, tuple, range)):
        return tuple([checks.integer(rank, "each of k", "kth_value") for rank in k]), False
    return (checks.integer(k, "k", "kth_value"),), True
