"""The public functions `run_length_encode` and `unique`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.runs.problem import Rest, Runs
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import input_of, taken
from gpualgo._operators.operator import known
from gpualgo._pipeline import checks, counted, inputs
from gpualgo._pipeline.problem import problem_of

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


def run_length_encode(
    x: ty.AnyArray | ty.Arrays, *, eq: ty.BinaryFunction | None = None,
    out: ty.OutPair | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Encode runs of equal elements: the first of each, and how many they are.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `select`, lazy or not; taken in C order.
    eq : callable, optional
        ``eq(a, b)`` returns a bool: whether an element b belongs to the run of a, the one before
        it. Without it elements of equal values do: zeros of both signs, and all NaN.
    out : tuple of two arrays, optional
        Where to write values (a tuple where `x` is one) and lengths (int64): one dimension, one
        length, the library and device of `x`. Nothing is written past their ends.
    out_count : array, optional
        Where to write how many runs there are: as for `select`.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    (values, lengths)
        Arrays of one dimension, the first of the dtype of `x` (a tuple where `x` is one), the
        second int64. When a call waits is as for `select`.

    Raises
    ------
    TypeError
        `x` is no array, `eq` returns no bool, or out does not fit.
    ValueError
        out is too short (not where `out_count` is given) or shares memory with `x`.
    CompileError
        numba cannot compile `eq`.

    Notes
    -----
    Reads each element once and writes each run, in one kernel launch; temporary storage 16 bytes
    for each few thousand elements. See docs/runs.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> values, lengths = ga.run_length_encode(np.array([5, 5, 7, 7, 7, 5]))
    >>> values, lengths
    (array([5, 7, 5]), array([2, 3, 1]))
    """
    return _runs(x, eq, True, "run_length_encode", out, out_count, stream)


def unique(
    x: ty.AnyArray | ty.Arrays, *, consecutive: bool = False, return_index: bool = False,
    return_inverse: bool = False, return_counts: bool = False, out: ty.Outs | None = None,
    out_count: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Find the distinct elements, ascending; or, consecutive, the first of each run.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `radix_sort`; consecutive, as for `run_length_encode`. It is flattened in C order.
    consecutive : bool
        Look for elements that differ from the one before, in the order of `x`, which is not sorted.
    return_index : bool
        Also where each result first stands in `x`.
    return_inverse : bool
        Also which result each element of `x` is, in the shape of `x`.
    return_counts : bool
        Also how many elements are equal to each; consecutive, how many follow one another.
    out, out_count
        Where to write the elements alone: as for `select`. Not with a further result.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        One dimension, of the dtype of `x`, a tuple where `x` is one. With further results a tuple
        of it and of them, int64, in the order of the arguments.

    Raises
    ------
    TypeError
        `x` is no array or, where it is sorted, of a dtype without an order; out does not fit.
    ValueError
        out is too short (not where `out_count` is given), or it is given with a further result.

    Notes
    -----
    NaN are equal, and last; -0.0 is equal to 0.0: of equal elements the first in `x` is given. A
    stable sort, then one pass. See docs/runs.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = np.array([3, 1, 3, 3, 2, 1])
    >>> ga.unique(x)
    array([1, 2, 3])
    >>> ga.unique(x, consecutive=True)
    array([3, 1, 3, 2, 1])
    >>> ga.unique(x, return_counts=True)
    (array([1, 2, 3]), array([2, 1, 3]))
    """
    where = "unique"
    flags = {"consecutive": consecutive, "return_index": return_index,
             "return_inverse": return_inverse, "return_counts": return_counts}  # fmt: skip
    consecutive, *more = [checks.flag(flag, name, where) for name, flag in flags.items()]
    if any(more) and (out is not None or out_count is not None):
        raise ValueError(
            f"{where}: out takes the elements alone; leave out return_index, return_inverse and "
            "return_counts"
        )
    if consecutive and not any(more):
        return _runs(x, None, False, where, out, out_count, stream)
    from gpualgo._algorithms.runs import distinct

    if not any(more):
        keys = distinct.sorted_keys(x, stream)
        return _runs(keys, None, False, where, out, out_count, stream)

    def encode(keys: Any) -> Any:
        return _runs(keys, None, True, where, None, None, stream)

    index, inverse, counts = more
    return distinct.described(encode, x, consecutive, index, inverse, counts, stream)


def _runs(
    x: Any, eq: Any, gives_lengths: bool, where: str, out: Any, out_count: Any, stream: Any
) -> Any:
    op: Any
    form: Any
    if eq is not None:
        views, op, form = taken(x, eq, where)
    elif is_lazy(x):
        views, op, form = input_of(x, known("no_operator"), where)
    else:
        op = None
        try:
            views, form = inputs.spread(x, f"{where}: x")
        except inputs.NumberOnGPU:
            views, op, form = input_of(x, known("no_operator"), where)
    num_arguments = 0 if op is None else 2
    problem = problem_of(Runs, views, op, None, Rest(form, gives_lengths), where, num_arguments)
    return counted.solve(problem, views, op, out, out_count, stream)
