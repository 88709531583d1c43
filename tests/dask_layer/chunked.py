"""What tests of dask arrays share: arrays in chunks, graphs that compute nothing, operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from pieces import affine, compose, first, last, leaves

__all__ = ["affine", "built", "check", "compose", "cut", "first", "last", "leaves", "ones"]


class Computed(AssertionError):
    """A chunk was asked for while a graph was built."""


def _refusing(graph: Any, keys: Any, **_: Any) -> Any:
    raise Computed(f"{len(keys)} chunks were computed while a graph was built")


def built(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what a function makes of dask arrays, which it may not compute."""
    with dask.config.set(scheduler=_refusing):
        return function(*args, **options)


def cut(x: np.ndarray[Any, Any], *sizes: Sequence[int]) -> Any:
    """Return a dask array in chunks of these sizes along each axis."""
    return da.from_array(x, chunks=tuple(map(tuple, sizes)))


def check(got: Any, want: Any) -> None:
    """Compare dask arrays with arrays: dtype, shape, all bits, and how tuples are built."""
    assert isinstance(got, tuple) == isinstance(want, tuple)
    if isinstance(want, tuple):
        assert type(got) is type(want)
        assert len(leaves(got)) == len(leaves(want))
    wanted = [np.asarray(part) for part in leaves(want)]
    for lazy, real in zip(leaves(got), wanted, strict=True):
        assert lazy.dtype == real.dtype
        assert len(lazy.shape) == real.ndim
        assert all(m == n or m != m for m, n in zip(lazy.shape, real.shape, strict=True))
    for lazy, found, real in zip(leaves(got), dask.compute(*leaves(got)), wanted, strict=True):
        found = np.asarray(found)
        assert found.dtype == real.dtype
        assert found.shape == real.shape
        assert np.array_equal(_bits(found), _bits(real)), (lazy, found, real)


def _bits(x: np.ndarray[Any, Any]) -> Any:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8) if x.dtype.names is None else x


def ones(n: int) -> tuple[int, ...]:
    """Return chunks of one element."""
    return (1,) * n
