"""NumPy's own loops on host arrays: ufuncs, and BLAS for vectors; large calls use all cores.

A single ufunc is limited by memory, so NumPy's loops are as fast as any. Their vectorised exp, sin,
power etc. are 2 to 50 times as fast as a scalar math library. So a ufunc that is not fused runs in
NumPy, in blocks on several threads if it is large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._base import strides as extents
from gpualgo._base import threads
from gpualgo._operators.numpy_rules import table

# (Elements in a block, least elements worth several blocks), for expensive ufuncs and for those
# that memory limits, where one core reaches most of the bandwidth of two.
DEAR, CHEAP = (1 << 15, 1 << 17), (1 << 18, 1 << 22)
ROW = 1 << 13  # products that one call of BLAS sums
_DEAR = {*table.LIBM, "floor_divide", "remainder", "fmod", "divmod", "gcd", "lcm"}
_DEAR |= {"heaviside", "nextafter"}

Array = np.ndarray[Any, Any]


def run(
    ufunc: np.ufunc, given: Sequence[Any], size: int, outs: tuple[Any, ...] = (None,),
    where: Any = True, dtype: Any = None, casting: Any = "same_kind",
) -> Any:  # fmt: skip
    """Return a ufunc's result for host arrays of so many elements in total, and numbers."""
    options: dict[str, Any] = {}
    if dtype is not None or casting != "same_kind":
        options = {"dtype": dtype, "casting": casting}
    block, worth = sizes_of(ufunc)
    # With a mask NumPy holds the GIL. With casting="equiv" NumPy 2.4 crashes on Python numbers when
    # it resolves dtypes.
    if size >= worth and where is True and casting != "equiv" and threads.num_threads() > 1:
        arrays = [x for x in (*given, where, *outs) if isinstance(x, np.ndarray)]
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        is_large = shape and np.prod(shape, dtype=np.int64) >= worth
        if is_large and all(o is None or _may_reorder(o, shape, given, outs) for o in outs):
            return _in_blocks(ufunc, given, shape, outs, options, block)
    if where is not True:
        if any(o is None for o in outs):
            return _masked(ufunc, given, outs, where, options)
        options["where"] = where
    if any(o is not None for o in outs):
        options["out"] = outs
    return ufunc(*given, **options)


def _masked(
    ufunc: np.ufunc, given: Sequence[Any], outs: tuple[Any, ...], where: Any, options: Any
) -> Any:
    """Return a ufunc's result with a mask; where this is false, elements of new results are 0."""
    samples = [np.empty(0, x.dtype) if hasattr(x, "dtype") else x for x in given]
    with np.errstate(all="ignore"):
        kinds = ufunc(*samples, **options)
    shape = np.broadcast_shapes(*[np.shape(x) for x in (*given, where, *outs) if x is not None])
    targets = list(outs)
    for i, sample in enumerate(kinds if ufunc.nout > 1 else (kinds,)):
        if outs[i] is None:
            targets[i] = _new_output(given, shape, np.asarray(sample).dtype)
            targets[i].fill(0)
    ufunc(*given, out=tuple(targets), where=where, **options)
    pairs = zip(outs, targets, strict=True)
    results = tuple([x[()] if out is None and not x.ndim else x for out, x in pairs])
    return results if ufunc.nout > 1 else results[0]


def sizes_of(ufunc: np.ufunc) -> tuple[int, int]:
    """Return the elements in a block, and the least elements worth several blocks."""
    return DEAR if ufunc.__name__ in _DEAR else CHEAP


def dotted(x: Array, y: Array) -> Any:
    """Return the dot product of two vectors, with x conjugated.

    BLAS multiplies rows of a fixed length, so the bits do not depend on the number of cores. The
    rows' sums are added pairwise.
    """
    rows = len(x) // ROW
    sums = np.empty(rows + 1, x.dtype)
    left, right = (vector[: rows * ROW].reshape(rows, ROW) for vector in (x, y))

    def body(begin: int, end: int) -> None:
        with np.errstate(all="ignore"):
            np.vecdot(left[begin:end], right[begin:end], out=sums[begin:end])

    threads.run(body, rows, 2 * x.dtype.itemsize * rows * ROW)
    with np.errstate(all="ignore"):
        sums[rows] = np.vecdot(x[rows * ROW :], y[rows * ROW :])
        return np.add.reduce(sums)


def _may_reorder(
    out: Array, shape: tuple[int, ...], given: Sequence[Any], outs: tuple[Any, ...]
) -> bool:
    """Return whether blocks may be written in any order: no block reads what another writes."""
    if out.shape != shape:
        return False  # NumPy raises the error
    for x in (*given, *(other for other in outs if other is not out)):
        if isinstance(x, np.ndarray) and np.may_share_memory(out, x):
            is_same = x.ctypes.data == out.ctypes.data and x.strides == out.strides
            if not (is_same and x.shape == shape and x.dtype == out.dtype):
                return False
    return True


def _in_blocks(
    ufunc: np.ufunc, given: Sequence[Any], shape: tuple[int, ...], outs: tuple[Any, ...],
    kwargs: dict[str, Any], block: int,
) -> Any:  # fmt: skip
    kinds = [type(x) if type(x) in (int, float, complex) else np.asarray(x).dtype for x in given]
    options: dict[str, Any] = {"casting": kwargs["casting"]} if kwargs else {}
    if kwargs.get("dtype") is not None:
        options["signature"] = (*(None,) * ufunc.nin, *(np.dtype(kwargs["dtype"]),) * ufunc.nout)
    result_dtypes = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), **options)[ufunc.nin :]
    outs = outs if len(outs) == ufunc.nout else (None,) * ufunc.nout
    pairs = zip(outs, result_dtypes, strict=True)
    targets = tuple([_new_output(given, shape, kind) if o is None else o for o, kind in pairs])
    arrays = [
        np.broadcast_to(x, shape) if _has_axes(x) and x.shape != shape else x
        for x in (*given, *targets)
    ]
    rows, row = _rows(arrays, shape, targets[0])
    step = max(1, block // row)
    tasks = -(-len(rows[-1]) // step)
    handling, nin, last = np.geterr(), ufunc.nin, len(rows[-1])
    num_bytes = sum(x.dtype.itemsize for x in arrays if isinstance(x, np.ndarray)) * last * row

    def body(begin: int, end: int) -> None:
        with np.errstate(**handling):  # threads do not inherit it
            for task in range(begin, end):
                part = slice(task * step, min(last, task * step + step))
                operands = [x[part] if _has_axes(x) else x for x in rows]
                ufunc(*operands[:nin], out=tuple(operands[nin:]), **kwargs)

    threads.run(body, tasks, num_bytes)
    return targets if len(targets) > 1 else targets[0]


def _new_output(given: Sequence[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """Return a new array: in the memory order shared by all arrays of this shape, else C order."""
    strides = [x.strides for x in given if isinstance(x, np.ndarray) and x.shape == shape]
    order = extents.order_of(shape, strides)
    array: Array = np.empty(extents.ordered(shape, order), kind)
    return array.transpose(extents.inverse(order)) if order else array


def _has_axes(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim > 0


def _rows(arrays: list[Any], shape: tuple[int, ...], target: Array) -> tuple[list[Any], int]:
    """Return the operands with the axis to split first, and the number of elements in its rows."""
    operands, row = [x for x in arrays if _has_axes(x)], 1
    if all(x.flags.c_contiguous for x in operands):
        rows = [x.reshape(-1) for x in operands]
    elif all(x.flags.f_contiguous for x in operands):
        rows = [x.T.reshape(-1) for x in operands]
    else:
        axis = max(range(len(shape)), key=lambda i: (shape[i] > 1, abs(target.strides[i])))
        rows = [np.moveaxis(x, axis, 0) for x in operands]
        row = int(np.prod(shape, dtype=np.int64)) // shape[axis]
    each = iter(rows)
    return [next(each) if _has_axes(x) else x for x in arrays], row
