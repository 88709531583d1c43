"""The public function `copy`."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.transform import transform
from gpualgo._operators.tokens import same


def copy(x: Any, *, out: Any = None, stream: Any = None) -> Any:
    """Return an array's elements in new memory: ``result[i] = x[i]``.

    Parameters
    ----------
    x : array, lazy array, or tuple of arrays
        The array to copy, or to materialize: any library, shape and strides.
    out : array, or tuple of arrays, optional
        Array for the result, instead of new memory.
    stream : stream, optional
        CUDA stream for device arrays; by default the current stream of the array's library.

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

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.copy(ga.lazy.arange(6).reshape(2, 3)[:, ::-1])
    array([[2, 1, 0],
           [5, 4, 3]])
    """
    return transform(same, x, out=out, stream=stream)
