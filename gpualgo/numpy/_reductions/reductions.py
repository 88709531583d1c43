"""Sums, products, any, all and counts: one reduction each, conversions and masks included."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.find import count
from gpualgo._algorithms.reduce import reduce
from gpualgo.numpy._call import results
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds.reducing import BOOL, UNSET, arrayed, axis_of, flag_of, reduced

MANY_BOOLS = 1 << 22  # below, NumPy's loops are faster than two threads here

_QUIET = "no warnings for overflow or NaN"


@numpys("One reduction", differs=_QUIET)
def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the sum of the elements over axes.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.sum([1, 2, 3]))
    6
    """
    return reduced(np.add, a, axis, dtype, out, keepdims, initial, where, "sum")


@numpys("One reduction", differs=_QUIET)
def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the product of the elements over axes.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.prod([1, 2, 3, 4]))
    24
    """
    return reduced(np.multiply, a, axis, dtype, out, keepdims, initial, where, "prod")


@numpys("One reduction", few_bools=MANY_BOOLS)
def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, *, where: Any = UNSET
) -> Any:
    """Return whether any element over axes is true.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> bool(gnp.any([0, 3, 0]))
    True
    """
    return reduced(np.logical_or, a, axis, None, out, keepdims, UNSET, where, "any")


@numpys("One reduction", few_bools=MANY_BOOLS)
def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, *, where: Any = UNSET
) -> Any:
    """Return whether all elements over axes are true.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> bool(gnp.all([1, 3, 0]))
    False
    """
    return reduced(np.logical_and, a, axis, None, out, keepdims, UNSET, where, "all")


def _is_true(x: Any) -> Any:
    return x != 0


@numpys("One reduction", few=1 << 13, few_bools=MANY_BOOLS)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the number of elements over axes that are not zero.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.count_nonzero([0, 3, 0, -1]))
    2
    """
    name = "count_nonzero"
    a, keepdims = arrayed(a, name), flag_of(keepdims, name)
    axis = axis_of(axis, a.ndim, name)
    if results.dtype_of(a, name) == BOOL:
        return reduce(a, axis=axis, keepdims=keepdims, dtype=np.int64)
    return count(a, _is_true, axis=axis, keepdims=keepdims)
