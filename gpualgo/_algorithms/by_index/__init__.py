"""The public function `reduce_by_index`: by tables of all results, or of buckets of them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.by_key import problem as calls
from gpualgo._base.errors import Elsewhere
from gpualgo._base.records import Computed
from gpualgo._lazy.sources import tried
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import PLAIN, parse, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

_WHERE = "reduce_by_index"
_MOST_RESULTS = (1 << 31) - 3  # keys of a sort are one more


def reduce_by_index(
    indices: ty.AnyArray, x: ty.AnyArray | ty.Arrays, size: int,
    init: ty.FirstValues | None = None, op: ty.BinaryFunction | Operator = operator.add, *,
    dtype: ty.DTypes | None = None, out: ty.AnyArray | ty.Outs | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the elements of each index combined: ``result[k] = init op x[i] op x[j] op …``.

    Parameters
    ----------
    indices : array
        Integers from 0 to ``size - 1``, of any shape and strides; lazy or not. Other indices on the
        host raise ValueError. Other indices on a GPU are ignored with their elements; with
        GPUALGO_CHECK=1 in the environment the call waits and raises, unless the indices are lazy.
    x : array, or tuple of arrays
        An element for each index; otherwise as for `reduce_by_key`.
    size : int
        The number of results, less than 2**31 - 2.
    init : scalar, array of length `size`, or tuple of them, optional
        The initial value of each result, and so the result of an index without elements; by default
        the operator's identity. An array, on the device of `x`, gives an initial value for each
        result.
    op : callable
        ``op(a, b)``, associative and pure, as for `reduce`. Elements of an index are combined in
        their order. Without `init` it needs an identity: ``gpualgo.Operator(op, identity=...)``
        gives it one.
    dtype : dtype, optional
        The dtype of the accumulator and the result, as for `reduce`.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`.

    Returns
    -------
    array, or tuple of arrays
        One-dimensional, of length `size`, in the library of `x`. For device arrays the call does
        not synchronise.

    Raises
    ------
    TypeError
        `indices` are not integers, `x` is not an array, or `init`, `out` or the result of `op` has
        a wrong dtype or structure.
    ValueError
        An index on the host is out of range; there is neither `init` nor an identity; `indices` and
        `x` differ in shape; `size` is negative or too large; `out` has another shape or shares
        memory with an input.

    Notes
    -----
    If a table of the results fits in 48 KiB of shared memory (up to 6144 results of 4 bytes), a GPU
    reads the elements once, into a table for each warp, and then combines the tables. Otherwise it
    sorts the elements by the high bits of their indices first, and the tables have the results of
    one bucket. The CPU reads the elements once for any size.

    The grouping depends only on the lengths and on the positions of equal indices: the same input
    gives the same bits, float sums included.

    >>> ga.reduce_by_index(np.array([2, 0, 2, 2]), np.array([1, 2, 3, 4]), 4)
    array([2, 0, 8, 0])
    """
    size = checks.integer(size, "size", _WHERE)
    if size < 0:
        raise ValueError(f"{_WHERE}: size is {size}; pass the number of results")
    if size > _MOST_RESULTS:
        raise ValueError(f"{_WHERE}: size is {size}, and at most {_MOST_RESULTS} is possible")
    indices, x = calls.place_lazy_inputs(indices, x, (init, out), _WHERE)
    try:
        views, op, form, num_keys, classes = calls.input_of(indices, x, op, None, _WHERE, stream)
    except (TypeError, ValueError) as error:
        text = str(error)
        if text.startswith((f"{_WHERE}: keys", f"{_WHERE}: a key")):
            text = text.replace("keys", "indices", 1).replace("a key", "an index", 1)
            error.args = (text,)
        if isinstance(error, Elsewhere):
            return error.call(_WHERE, out, stream, indices, x, size, init, op, dtype=dtype)
        raise
    params: tuple[Any, ...] = (
        dtype, form, num_keys, classes, False, checks.classes_of(dtype), False, size
    )  # fmt: skip
    if type(init) not in PLAIN:
        init, views, params = parse(init, views, params, _WHERE)
    problem = problem_of(ByIndex, views, op, init, params, _WHERE)
    assert isinstance(problem, ByIndex)
    problem.for_data(views, stream)
    if isinstance(problem.source, Computed):
        problem.check_computed(indices, views, stream)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    return run(problem, views, op, init, out, stream)
