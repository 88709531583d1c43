"""NumPy's own loops on host arrays: of ufuncs, and BLAS of vectors; of much work on all cores.

What reads and writes memory once and fuses with nothing is as fast in NumPy as anywhere, and its
loops of exp, sin, power and their like, which go by vectors, are 2 to 50 times faster than those
of a mathematical library that goes number by number. So a ufunc alone is left to them, in blocks
where that is worth several calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._base import extents, threads
from gpualgo._operators.numpy_rules import table

# Elements a call and elements that are worth several: where each takes long, and where memory
# alone takes time, of which one core reads the most of what two could.
DEAR, CHEAP = (1 << 15, 1 << 17), (1 << 18, 1 << 22)
ROW = 1 << 13  # products that BLAS adds up at once, on one core
_DEAR = frozenset(
    (
        *table.LIBM,
        "floor_divide",
        "remainder",
        "fmod",
        "divmod",
        "gcd",
        "lcm",
        "heaviside",
        "nextafter",
    )
)

Array = np.ndarray[Any, Any]


def run(
    ufunc: np.ufunc, given: Sequence[Any], size: int, outs: tuple[Any, ...] = (None,),
    where: Any = True, dtype: Any = None, casting: Any = "same_kind",
) -> Any:  # fmt: skip
    """Return what a ufunc makes of host arrays of so many elements in all, and of numbers."""
    more: dict[str, Any] = {}
    if dtype is not None or casting != "same_kind":
        more = {"dtype": dtype, "casting": casting}
    block, worth = sizes_of(ufunc)
    # With a mask NumPy holds the interpreter's lock; asked for the dtypes of Python's numbers by
    # "equiv" NumPy 2.4 crashes.
    if size >= worth and where is True and casting != "equiv":
        arrays = [x for x in (*given, where, *outs) if isinstance(x, np.ndarray)]
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        is_large = shape and np.prod(shape, dtype=np.int64) >= worth
        if is_large and all(o is None or _is_apart(o, shape, given, outs) for o in outs):
            return _in_blocks(ufunc, given, shape, outs, more, block)
    if any(o is not None for o in outs):
        more["out"] = outs
    return ufunc(*given, **more) if where is True else ufunc(*given, where=where, **more)


def sizes_of(ufunc: np.ufunc) -> tuple[int, int]:
    """Return how many elements go in a call, and how many are worth several calls."""
    return DEAR if ufunc.__name__ in _DEAR else CHEAP


def dotted(x: Array, y: Array) -> Any:
    """Return the sum of the products of two vectors, of complex ones with x's conjugates.

    BLAS multiplies rows of one length, whatever the number of cores, so that bits repeat; the rows'
    sums are added up pairwise.
    """
    rows = len(x) // ROW
    sums = np.empty(rows + 1, x.dtype)
    left, right = (one[: rows * ROW].reshape(rows, ROW) for one in (x, y))

    def body(begin: int, end: int) -> None:
        with np.errstate(all="ignore"):
            np.vecdot(left[begin:end], right[begin:end], out=sums[begin:end])

    threads.run(body, rows, 2 * x.dtype.itemsize * rows * ROW)
    with np.errstate(all="ignore"):
        sums[rows] = np.vecdot(x[rows * ROW :], y[rows * ROW :])
        return np.add.reduce(sums)


def _is_apart(
    out: Array, shape: tuple[int, ...], given: Sequence[Any], outs: tuple[Any, ...]
) -> bool:
    """Return whether blocks may be written in any order: what is read of others lies elsewhere."""
    if out.shape != shape:
        return False  # of which NumPy tells
    for x in (*given, *(one for one in outs if one is not out)):
        if isinstance(x, np.ndarray) and np.may_share_memory(out, x):
            is_same = x.ctypes.data == out.ctypes.data and x.strides == out.strides
            if not (is_same and x.shape == shape and x.dtype == out.dtype):
                return False
    return True


def _in_blocks(
    ufunc: np.ufunc, given: Sequence[Any], shape: tuple[int, ...], outs: tuple[Any, ...],
    more: dict[str, Any], block: int,
) -> Any:  # fmt: skip
    kinds = [type(x) if type(x) in (int, float, complex) else np.asarray(x).dtype for x in given]
    asked: dict[str, Any] = {"casting": more["casting"]} if more else {}
    if more.get("dtype") is not None:
        asked["signature"] = (*(None,) * ufunc.nin, *(np.dtype(more["dtype"]),) * ufunc.nout)
    found = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), **asked)[ufunc.nin :]
    pairs = zip(_each(outs, ufunc), found, strict=True)
    targets = tuple([_made(given, shape, kind) if o is None else o for o, kind in pairs])
    arrays = [_spread(x, shape) for x in (*given, *targets)]
    rows, row = _rows(arrays, shape, targets[0])
    step = max(1, block // row)
    tasks = -(-len(rows[-1]) // step)
    handling, nin, last = np.geterr(), ufunc.nin, len(rows[-1])
    moved = sum(x.dtype.itemsize for x in arrays if isinstance(x, np.ndarray)) * last * row

    def body(begin: int, end: int) -> None:
        with np.errstate(**handling):  # which threads do not inherit
            for task in range(begin, end):
                part = slice(task * step, min(last, task * step + step))
                cut = [x[part] if isinstance(x, np.ndarray) and x.ndim else x for x in rows]
                ufunc(*cut[:nin], out=tuple(cut[nin:]), **more)

    threads.run(body, tasks, moved)
    return targets if len(targets) > 1 else targets[0]


def _each(outs: tuple[Any, ...], ufunc: np.ufunc) -> tuple[Any, ...]:
    return outs if len(outs) == ufunc.nout else (None,) * ufunc.nout


def _made(given: Sequence[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """Return new memory, in the order that all arrays of the shape have, else in C order."""
    strides = [x.strides for x in given if isinstance(x, np.ndarray) and x.shape == shape]
    order = extents.order_of(shape, strides)
    made: Array = np.empty(extents.ordered(shape, order), kind)
    return made.transpose(extents.inverse(order)) if order else made


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an operand in the shape of all; numbers as they are."""
    if not isinstance(x, np.ndarray) or not x.ndim or x.shape == shape:
        return x
    return np.broadcast_to(x, shape)


def _rows(arrays: list[Any], shape: tuple[int, ...], target: Array) -> tuple[list[Any], int]:
    """Return the operands with the axis first along which they are cut, and a row's elements."""
    whole = [x for x in arrays if isinstance(x, np.ndarray) and x.ndim]
    if all(x.flags.c_contiguous for x in whole):
        return [x.reshape(-1) if isinstance(x, np.ndarray) and x.ndim else x for x in arrays], 1
    if all(x.flags.f_contiguous for x in whole):
        return [x.T.reshape(-1) if isinstance(x, np.ndarray) and x.ndim else x for x in arrays], 1
    axis = max(range(len(shape)), key=lambda i: (shape[i] > 1, abs(target.strides[i])))
    turned = [
        np.moveaxis(x, axis, 0) if isinstance(x, np.ndarray) and x.ndim else x for x in arrays
    ]
    return turned, int(np.prod(shape, dtype=np.int64)) // shape[axis]
