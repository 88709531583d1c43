"""The public function `merge`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms.merge_sort.comparison import plain_ways
from gpualgo._algorithms.merge_sort.merge_problem import Merge, arguments_of
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import inputs
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    import numpy as np

    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


@overload
def merge(
    a: np.ndarray[Any, ty.Kind], b: np.ndarray[Any, ty.Kind], *, a_values: None = None,
    b_values: None = None, less: ty.BinaryFunction | Operator | None = None,
    descending: ty.Ways = False, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> np.ndarray[Any, ty.Kind]: ...  # fmt: skip
@overload
def merge(
    a: ty.Same, b: ty.Same, *, a_values: None = None, b_values: None = None,
    less: ty.BinaryFunction | Operator | None = None, descending: bool = False,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def merge(
    a: ty.AnyArray | ty.Arrays, b: ty.AnyArray | ty.Arrays, *,
    a_values: ty.AnyArray | ty.Arrays | None = None,
    b_values: ty.AnyArray | ty.Arrays | None = None,
    less: ty.BinaryFunction | Operator | None = None, descending: ty.Ways = False,
    out: ty.Outs | ty.OutPair | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def merge(
    a: Any,
    b: Any,
    *,
    a_values: Any = None,
    b_values: Any = None,
    less: Any = None,
    descending: Any = False,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Merge two sorted arrays to one; of equal keys those of a come first.

    Parameters
    ----------
    a, b : array, or tuple of arrays
        Keys of one dtype, each in order by `less`; of one dimension, any length, any stride. Tuples
        and structured arrays as for `merge_sort`.
    a_values, b_values : array, or tuple of arrays, optional
        Moved as the keys are: both or neither, alike, as for `merge_sort`.
    less : callable, optional
        As for `merge_sort`.
    descending : bool, or tuple of bools
        As for `merge_sort`: a and b fall.
    out : array or tuple of two arrays, optional
        Where to write the keys, with values the keys and the values; it shares no memory with the
        inputs.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array or tuple of two arrays
        The keys of both, ``merge_sort`` of a followed by b; with values the tuple (keys, values);
        `out` itself if given.

    Raises
    ------
    TypeError
        As `merge_sort`; or a and b, or their values, are not alike; or one has values alone.
    ValueError
        There is not one dimension, there is not one value for each key, or out overlaps.
    CompileError
        numba cannot compile `less`.

    Notes
    -----
    Reads and writes each element once; two kernel launches. Whether a and b are in order is not
    looked at: where they are not, the result has no meaning. See docs/merge_sort.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.merge(np.array([1, 3, 5]), np.array([2, 3]))
    array([1, 2, 3, 3, 5])
    >>> ga.merge(np.array([1, 3]), np.array([3]), a_values=np.array(["a", "b"]),
    ...          b_values=np.array(["c"]))
    (array([1, 3, 3]), array(['a', 'b', 'c'], dtype='<U1'))
    """
    given = [a, b]
    if (a_values is None) != (b_values is None):
        missing, found = ("a", "b") if a_values is None else ("b", "a")
        raise TypeError(
            f"merge: {missing}_values is missing where {found}_values is given; pass both, or none"
        )
    if a_values is not None:
        given += [a_values, b_values]
    if any(map(is_lazy, given)):
        from gpualgo._lazy.real import made

        names = ("a", "b", "a_values", "b_values")
        given = [
            made(x, False, f"merge: {name}", stream) for x, name in zip(given, names, strict=False)
        ]
    views, forms = arguments_of(tuple(given), "merge", less is not None)
    ways = plain_ways(descending, forms[0], less, "merge")
    num_keys = 1 if forms[0] is None else len(forms[0].names)
    num_arguments = 0 if less is None else 2
    problem = problem_of(Merge, views, less, None, (ways, num_keys, forms), "merge", num_arguments)
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, less, None, out, stream)
