"""Lazy arrays: expressions that are computed inside the kernel that reads them, without memory.

Every algorithm accepts them: see https://github.com/gpualgo/gpualgo/blob/main/docs/lazy.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo._algorithms.transform import copy
from gpualgo._lazy import combining, construction, hooks
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.combining import applied, zipped
from gpualgo.lazy import functions

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

hooks.applied, hooks.reshaped, hooks.copy = applied, combining.reshaped, copy
hooks.functions = functions.TABLE

__all__ = ["LazyArray", "arange", "asarray", "full", "random", "random_bits", "take", "transform"]


def asarray(x: ty.Argument) -> LazyArray:
    """Return an array as a lazy array; NumPy functions of it return lazy arrays or reduce it.

    Parameters
    ----------
    x : array, scalar, lazy array, or tuple of arrays
        Any library, shape and strides; it is not copied. A tuple or namedtuple of arrays, which are
        broadcast together, or a NumPy structured array, is an array of tuples.

    Returns
    -------
    LazyArray
        With the shape and dtype of `x`, computed on its device. `x` is read when the lazy array is.

    Raises
    ------
    TypeError
        `x` is not an array, or its dtype is not supported.
    ValueError
        `x` has more than 32 dimensions, or its memory on a GPU is not aligned.

    Notes
    -----
    Costs neither memory nor a launch.

    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 1.0])
    >>> float(np.sum(ga.lazy.asarray(x) * y))
    6.0
    """
    if is_number(x):
        return full((), x)
    return zipped(x, "lazy.asarray: x")


def transform(op: ty.Function, *arrays: ty.Argument, dtype: ty.DTypes | None = None) -> LazyArray:
    """Return a function applied to each element, lazily: ``result[i] = op(a[i], b[i], …)``.

    Parameters
    ----------
    op : callable
        A pure function with one parameter for each argument, as for `gpualgo.transform`. If it
        returns a tuple, elements are tuples.
    *arrays : array, lazy array, scalar, or tuple of arrays
        One to eight arguments, at least one of them an array. Arrays are on one device and are
        broadcast against each other. A tuple or namedtuple of arrays, or a NumPy structured array,
        is an array of tuples.
    dtype : dtype, optional
        The dtype of the result; by default the one that NumPy 2 gives for `op`. For tuples one
        dtype for all fields, a tuple, or a structured dtype.

    Returns
    -------
    LazyArray
        With the broadcast shape of the arguments.

    Raises
    ------
    TypeError
        No argument is an array, a dtype is not supported, `op` takes another number of arguments or
        captures an unsupported value, its result does not fit `dtype`, or more than 16 arrays would
        be read.
    ValueError
        The shapes do not broadcast, or arrays are on different devices.
    CompileError
        numba cannot compile `op`; raised when the result or its dtype is first used.

    Notes
    -----
    Costs neither memory nor a launch. Scalar arguments and numbers that `op` captures are frozen by
    this call; arrays are read when the result is. Each step is rounded to its dtype, as if its
    result were stored in an array.

    Examples
    --------
    >>> import operator
    >>> import numpy as np, gpualgo as ga
    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 1.0])
    >>> float(ga.reduce(ga.lazy.transform(operator.mul, x, y)))
    6.0
    """
    if not arrays:
        raise TypeError("lazy.transform: pass at least one array after op")
    return applied(op, arrays, "lazy.transform", dtype)


def arange(
    start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None,
    device: ty.Device | None = None,
) -> LazyArray:  # fmt: skip
    """Return evenly spaced numbers, as `numpy.arange` does: ``result[i] = start + i · step``.

    Parameters
    ----------
    start, stop, step : number
        A single number is `stop`, and `start` is 0. `step` may be negative, but not zero.
    dtype : dtype, optional
        By default the common dtype of the numbers and int64, as in NumPy.
    device : str, optional
        "cpu", "cuda" or "cuda:1": where to compute if no array of the call determines it. By
        default it is treated like a NumPy array.

    Returns
    -------
    LazyArray
        One-dimensional, bit-identical to `numpy.arange`.

    Raises
    ------
    TypeError
        An argument is not a real number, or the dtype is not supported.
    ValueError
        `step` is zero, the number of steps is not finite, or the first two numbers do not fit the
        dtype.
    NoDeviceError
        There is no such device.

    Examples
    --------
    >>> import gpualgo as ga
    >>> ga.copy(ga.lazy.arange(10, 0, -3))
    array([10,  7,  4,  1])
    >>> int(ga.reduce(ga.lazy.arange(1_000_001)))
    500000500000
    """
    return construction.arange_of(start, stop, step, dtype, device)


def full(
    shape: Any, fill_value: Any, *, dtype: Any = None, device: ty.Device | None = None
) -> LazyArray:
    """Return an array filled with one number.

    Parameters
    ----------
    shape : int or tuple of ints
        The shape of the result.
    fill_value : number
        A Python or NumPy number. Changing it does not recompile.
    dtype : dtype, optional
        By default the dtype that the number has in a NumPy array.
    device : str, optional
        As for `arange`.

    Returns
    -------
    LazyArray
        With the given shape.

    Raises
    ------
    TypeError, ValueError, NoDeviceError
        As for `arange`; also if a length in `shape` is not an int or is negative.

    >>> ga.copy(ga.lazy.full((2, 3), 7, dtype=np.int16))
    array([[7, 7, 7],
           [7, 7, 7]], dtype=int16)
    """
    return construction.full_of(shape, fill_value, dtype, device)


def take(
    x: ty.Argument, indices: Any, *, axis: int | None = None, mode: ty.TakeMode = "wrap"
) -> LazyArray:
    """Return the elements of an array at indices, as `numpy.take` does.

    Parameters
    ----------
    x : array, lazy array, or tuple of arrays
        The source. Of a lazy array only the elements at the indices are computed.
    indices : array, lazy array, list or int
        Integers of any dtype and shape.
    axis : int, optional
        The axis to take along; None takes from all elements in C order.
    mode : {"wrap", "clip"}
        What to do with an index that is out of range: "wrap" takes it modulo the length, "clip"
        replaces it by the nearest valid index. Nothing outside `x` is read.

    Returns
    -------
    LazyArray
        With the shape of `indices`; with `axis`, the shape of `x` in which `indices` replace that
        axis.

    Raises
    ------
    TypeError
        `indices` are not integers, or arrays are of different libraries.
    ValueError
        `mode` is invalid, or `x` is empty.

    Notes
    -----
    Costs neither memory nor a launch; `x` and `indices` are read when the result is.

    >>> prices = np.array([0.5, 2.0, 1.25])
    >>> float(np.sum(ga.lazy.take(prices, [0, 0, 2, -1])))
    3.5
    """
    return combining.gathered(x, indices, axis, mode, "lazy.take")


def random(
    shape: Any, *, seed: int, dtype: Any = np.float64, device: ty.Device | None = None
) -> LazyArray:
    """Return random numbers in [0, 1): those of NumPy's ``Generator(Philox(seed)).random``.

    Parameters
    ----------
    shape : int or tuple of ints
        The shape of the result.
    seed : int
        Any non-negative int.
    dtype : {float64, float32}
        float32 takes two numbers from each 64-bit word, as NumPy does.
    device : str, optional
        As for `arange`.

    Returns
    -------
    LazyArray
        Bit-identical to ``numpy.random.Generator(numpy.random.Philox(seed)).random(shape, dtype)``
        on every device and in any order of reads. Equal seeds give equal arrays.

    Raises
    ------
    TypeError, ValueError, NoDeviceError
        As for `full`; also for an invalid seed or dtype.

    Notes
    -----
    Element i is computed from i, without reading memory; ten rounds give a block of four words. Not
    for cryptography. The generator is Philox4x64-10 (J. Salmon, M. Moraes, R. Dror and D. Shaw, SC
    2011, doi:10.1145/2063384.2063405).

    See https://github.com/gpualgo/gpualgo/blob/main/docs/lazy.md.

    >>> drawn = np.random.Generator(np.random.Philox(42)).random(1_000)
    >>> bool(np.all(ga.lazy.random(1_000, seed=42) == drawn))
    True
    """
    return construction.random_of(construction.RANDOM, shape, seed, dtype, device, "lazy.random")


def random_bits(
    shape: Any, *, seed: int, dtype: Any = np.uint64, device: ty.Device | None = None
) -> LazyArray:
    """Return uniformly random integers: the words of NumPy's ``Philox(seed)``.

    Parameters
    ----------
    shape, seed, device
        As for `random`.
    dtype : {uint64, uint32}
        uint32 takes two numbers from each 64-bit word, the low half first.

    Returns
    -------
    LazyArray
        For uint64 equal to ``numpy.random.Philox(seed).random_raw(n)``.

    Raises
    ------
    TypeError, ValueError, NoDeviceError
        As for `random`.

    >>> bool(np.all(ga.lazy.random_bits(99, seed=42) == np.random.Philox(42).random_raw(99)))
    True
    """
    return construction.random_of(
        construction.RANDOM_BITS, shape, seed, dtype, device, "lazy.random_bits"
    )


_show_signatures(*(globals()[name] for name in __all__))
