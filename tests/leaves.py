"""Elements that are records: arrays of their numbers in every layout, operators, references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support import BFLOAT16, LAYOUTS, assert_same, summable

from gpualgo._base import records

Arrays = list[np.ndarray[Any, Any]]
Op = Callable[[Any, Any], Any]


def record(*names: str, paths: Sequence[str] | None = None) -> np.dtype[Any]:
    """Return the record of numbers of these dtypes; of a plain tuple, unless paths are given."""
    fields = [BFLOAT16 if name == "bfloat16" else np.dtype(name) for name in names]
    return records.record(paths or [str(i) for i in range(len(names))], fields)


PAIR = record("uint32", "uint32")
RECORDS = [
    PAIR,
    record("float32"),
    record("int8", "float64", "bool"),
    record("float16", "complex64"),
    record("bfloat16", "int64"),
    record(*["float64"] * 3),
    record(*["float32"] * 8),
    record("int16", "uint8", "int64", "float16"),
    record(*["complex128"] * 8),
]


def compose(a: Any, b: Any) -> Any:
    """Apply x -> a[0] x + a[1], then b's: exact on unsigned integers, and does not commute."""
    return a[0] * b[0], a[1] * b[0] + b[1]


def make(shape: int | Sequence[int], dtype: np.dtype[Any], layout: str = "contiguous") -> Arrays:
    """Return arrays of the numbers of random elements, whose sums are exact."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    made = [summable(shape, leaf, seed) for seed, leaf in enumerate(records.field_dtypes(dtype))]
    if np.issubdtype(made[0].dtype, np.unsignedinteger):
        made[0] |= made[0].dtype.type(1)  # odd slopes: of no element `compose` forgets anything
    return [arranged(array, layout, k) for k, array in enumerate(made)]


def arranged(array: np.ndarray[Any, Any], layout: str, place: int = 0) -> np.ndarray[Any, Any]:
    """Return the same values in another layout: one of support's, or one of leaves alone."""
    if layout == "misaligned":
        memory = np.empty(array.nbytes + 1, np.uint8)
        view = memory[1:].view(array.dtype).reshape(array.shape)
    elif layout == "apart":  # each leaf has a layout of its own
        kinds = list(LAYOUTS)
        view = LAYOUTS[kinds[place % len(kinds)]](lambda s: np.empty(s, array.dtype), array.shape)
    else:
        view = LAYOUTS[layout](lambda s: np.empty(s, array.dtype), array.shape)
    view[...] = array
    return view


def structured(leaves: Arrays, dtype: np.dtype[Any]) -> Arrays:
    """Return the fields of a structured array of the same elements."""
    whole = np.empty(leaves[0].shape, dtype)
    for name, leaf in zip(dtype.names or (), leaves, strict=True):
        whole[name] = leaf
    return [whole[name] for name in dtype.names or ()]


def cast(leaves: Arrays, dtype: np.dtype[Any]) -> Arrays:
    """Return the numbers in the types of another record."""
    kinds = records.field_dtypes(dtype)
    return [np.asarray(leaf).astype(kind) for leaf, kind in zip(leaves, kinds, strict=True)]


def applied(op: Op, a: Arrays, b: Arrays, dtype: np.dtype[Any]) -> Arrays:
    """Return op of elements, in the types of dtype."""
    with np.errstate(all="ignore"):
        return cast(list(op(tuple(a), tuple(b))), dtype)


def fold(op: Op, leaves: Arrays, dtype: np.dtype[Any], axes: Sequence[int]) -> Arrays:
    """Fold over axes in C order, by halving: exact for an associative op, all lines abreast."""
    folded = sorted(axes)
    kept = [axis for axis in range(leaves[0].ndim) if axis not in folded]
    shape = [leaves[0].shape[axis] for axis in kept]
    rows = [x.transpose(kept + folded).reshape(*shape, -1) for x in cast(leaves, dtype)]
    while (count := rows[0].shape[-1]) > 1:
        pairs = count // 2 * 2
        firsts, seconds = ([row[..., i:pairs:2] for row in rows] for i in (0, 1))
        halved = applied(op, firsts, seconds, dtype)
        rows = [
            np.concatenate([half, row[..., pairs:]], -1)
            for half, row in zip(halved, rows, strict=True)
        ]
    return [np.asarray(row[..., 0]) for row in rows]


def scanned(
    op: Op, leaves: Arrays, dtype: np.dtype[Any], axis: int | None = 0, init: Any = None,
    exclusive: bool = False, reverse: bool = False,
) -> Arrays:  # fmt: skip
    """Scan by doubling, all lines abreast: exact for an associative op."""
    rows = cast(leaves, dtype)
    rows = (
        [x.reshape(-1) for x in rows] if axis is None else [np.moveaxis(x, axis, 0) for x in rows]
    )
    rows = [x[::-1] for x in rows] if reverse else rows
    if init is not None:
        pairs = zip(init.dtype.names, rows, strict=True)
        rows = [np.concatenate([np.full_like(x[:1], init[name]), x]) for name, x in pairs]
    outs, step = [x.copy() for x in rows], 1
    while step < len(outs[0]):
        done = applied(op, [x[:-step] for x in outs], [x[step:] for x in outs], dtype)
        for out, numbers in zip(outs, done, strict=True):
            out[step:] = numbers
        step *= 2
    if init is not None:
        outs = [x[:-1] if exclusive else x[1:] for x in outs]
    outs = [x[::-1] for x in outs] if reverse else outs
    return outs if axis is None else [np.moveaxis(x, 0, axis) for x in outs]


def sums(count: int) -> Op:
    """Return the operator that adds the numbers of two elements, one by one."""
    made: list[Op] = [
        lambda a, b: (a[0] + b[0],),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2]),
        lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]),
    ]
    if count == 8:
        return lambda a, b: (
            a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3],
            a[4] + b[4], a[5] + b[5], a[6] + b[6], a[7] + b[7],
        )  # fmt: skip
    return made[count - 1]


def assert_each(got: Arrays, want: Arrays) -> None:
    """Assert equal dtypes, shapes and values, number by number."""
    for result, expected in zip(got, want, strict=True):
        assert_same(result, expected)


def start_of(values: Sequence[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a record to start from."""
    return np.array(tuple(values), dtype)
