"""The public function `run_length_encode`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.runs.problem import RunLengthEncoded, Runs, RunsParams
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import input_of, parse_input
from gpualgo._operators.operator import builtin
from gpualgo._pipeline import counted, inputs
from gpualgo._pipeline.problem import problem_of

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

__all__ = ["RunLengthEncoded", "run_length_encode"]


def run_length_encode(
    x: ty.AnyArray | ty.Arrays, *, eq: ty.BinaryPredicate | None = None,
    out: ty.OutPair | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> RunLengthEncoded:  # fmt: skip
    """Return the first element of each run of equal elements, and the lengths of the runs.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `select`; flattened in C order.
    eq : callable, optional
        ``eq(a, b)`` returns a bool: whether an element b belongs to the run of the previous element
        a. By default elements are equal if their values are; -0.0 equals 0.0, and all NaN are
        equal.
    out : tuple of two arrays, optional
        Arrays for values (a tuple if `x` is one) and lengths (int64): one-dimensional, of the same
        length, on the device of `x`. Elements after the last result are not written.
    out_count : array, optional
        Array for the number of runs, as for `select`.
    stream : stream, optional
        CUDA stream for device arrays; by default the current stream of the array's library.

    Returns
    -------
    RunLengthEncoded
        A namedtuple of one-dimensional arrays: ``values`` of the dtype of `x` (a tuple if `x`
        is one), ``lengths`` int64. The call waits for their length in the same cases as `select`.
        With `out` and `out_count` both, `out` is returned as given.

    Raises
    ------
    TypeError
        `x` is not an array, `eq` does not return a bool, or `out` has a wrong dtype or structure.
    ValueError
        `out` is too short and `out_count` is not given, or `out` shares memory with `x`.
    CompileError
        numba cannot compile `eq`.

    Notes
    -----
    Reads each element once and writes each run, in one kernel launch. Temporary storage: 16 bytes
    for each few thousand elements.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/runs.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.run_length_encode(np.array([5, 5, 7, 7, 7, 5]))
    RunLengthEncoded(values=array([5, 7, 5]), lengths=array([2, 3, 1]))
    """
    result: RunLengthEncoded = solve(x, eq, True, "run_length_encode", out, out_count, stream)
    return result


def solve(
    x: Any, eq: Any, gives_lengths: bool, where: str, out: Any, out_count: Any, stream: Any
) -> Any:
    """Return the first elements of runs, and their lengths if wanted."""
    op: Any
    form: Any
    outs = (out, out_count)
    if eq is not None:
        views, op, form = parse_input(x, eq, where, beside=outs)
    elif is_lazy(x):
        views, op, form = input_of(x, builtin("no_operator"), where, beside=outs)
    else:
        op = None
        try:
            views, form = inputs.spread(x, f"{where}: x")
        except inputs.NumberOnGPU:
            views, op, form = input_of(x, builtin("no_operator"), where)
    num_arguments = 0 if op is None else 2
    problem = problem_of(
        Runs, views, op, None, RunsParams(form, gives_lengths), where, num_arguments
    )
    return counted.solve(problem, views, op, out, out_count, stream)
