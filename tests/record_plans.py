"""Records on a GPU: plans of leaves, queued as a call would, and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import Array, Backend, assert_same, summable

from gpualgo._base import records

Host = np.ndarray[Any, Any]
Leaves = tuple[Host, ...]


@dataclass(frozen=True)
class Kind:
    """Elements, and an operator on them that is exact: also on tuples of NumPy's arrays."""

    dtype: np.dtype[Any]
    fn: Callable[[Any, Any], Any]
    acc: np.dtype[Any]

    def random(self, shape: Any, seed: int = 0) -> Leaves:
        """Return leaves of a shape; what is multiplied is odd, so that none is forgotten."""
        leaves = records.field_dtypes(self.dtype)
        first, *others = (summable(shape, leaf, seed + i) for i, leaf in enumerate(leaves))
        return (first | 1 if first.dtype.kind in "iu" else first, *others)

    def start(self) -> Host:
        """Return a value to start from."""
        return np.array(tuple(leaf.type(i + 2) for i, leaf in enumerate(self.acc_leaves)), self.acc)

    @property
    def acc_leaves(self) -> tuple[np.dtype[Any], ...]:
        return records.field_dtypes(self.acc)

    def converted(self, leaves: Sequence[Host]) -> Leaves:
        """Return what is accumulated."""
        return tuple(x.astype(to) for x, to in zip(leaves, self.acc_leaves, strict=True))


def record_of(names: str) -> np.dtype[Any]:
    fields = [np.dtype(name) for name in names.split()]
    return records.record([str(i) for i in range(len(fields))], fields)


def kind(fn: Callable[[Any, Any], Any], names: str, acc: str = "") -> Kind:
    return Kind(record_of(names), fn, record_of(acc or names))


def _sums(a: Any, b: Any) -> Any:
    return (
        a[0] + b[0], a[1], b[2], a[3] + b[3], b[4], a[5], a[6] + b[6], a[7] + b[7],
    )  # fmt: skip


KINDS = {
    "affine": kind(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), "int32 int32"),
    "first": kind(lambda a, b: a, "float32 float32"),
    "last": kind(lambda a, b: b, "float32 float32"),
    "one": kind(lambda a, b: (a[0] * b[0],), "uint16"),
    "bytes": kind(lambda a, b: (b[0], a[1] + b[1], a[2]), "int8 uint8 int8"),
    "mixed": kind(lambda a, b: (a[0] + b[0], b[1], a[2] | b[2]), "int8 float64 bool"),
    "complex": kind(lambda a, b: (b[0], a[1] + b[1]), "float16 complex64"),
    "doubles": kind(lambda a, b: (a[0] + b[0], a[1], b[2]), "float64 float64 float64"),
    "floats": kind(_sums, " ".join(["float32"] * 8)),
    "wide": kind(_sums, " ".join(["complex128"] * 8)),
    "wider": kind(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), "int8 int32", "int64 int64"),
    "narrower": kind(lambda a, b: (b[0], a[1] + b[1]), "float64 float64", "float32 float64"),
}


def folded(kind: Kind, leaves: Leaves, axes: tuple[int, ...], init: Host | None) -> Leaves:
    """Fold along axes in C order, by halving."""
    kept = [i for i in range(leaves[0].ndim) if i not in axes]
    rows = tuple(
        x.transpose(*kept, *axes).reshape(*(x.shape[i] for i in kept), -1)
        for x in kind.converted(leaves)
    )
    while (length := rows[0].shape[-1]) > 1:
        pairs = length // 2 * 2
        left, right = (tuple(x[..., i:pairs:2] for x in rows) for i in range(2))
        halved = kind.converted(kind.fn(left, right))
        rows = tuple(
            np.concatenate([x, y[..., pairs:]], -1) for x, y in zip(halved, rows, strict=True)
        )
    result = tuple(x[..., 0] for x in rows)
    if init is None:
        return result
    start = tuple(np.full(x.shape, init[str(i)]) for i, x in enumerate(result))
    return kind.converted(kind.fn(start, result))


def scanned(
    kind: Kind, x: Leaves, axis: int | None, init: Host | None, *, exclusive: bool, reverse: bool
) -> Leaves:
    """Scan by doubling."""
    leaves = kind.converted(x)
    if axis is None:
        leaves, axis = tuple(leaf.reshape(-1) for leaf in leaves), 0
    lines = [np.moveaxis(leaf, axis, 0)[:: -1 if reverse else 1].copy() for leaf in leaves]
    if init is not None:
        firsts = [np.full_like(leaf[:1], init[str(i)]) for i, leaf in enumerate(lines)]
        lines = [np.concatenate(pair) for pair in zip(firsts, lines, strict=True)]
    step = 1
    while step < len(lines[0]):
        left, right = (
            tuple(leaf[part] for leaf in lines) for part in (np.s_[:-step], np.s_[step:])
        )
        for leaf, done in zip(lines, kind.converted(kind.fn(left, right)), strict=True):
            leaf[step:] = done
        step *= 2
    if init is not None:
        lines = [leaf[:-1] if exclusive else leaf[1:] for leaf in lines]
    return tuple(np.moveaxis(leaf[:: -1 if reverse else 1], 0, axis) for leaf in lines)


def check(cuda: Backend, got: Sequence[Array], want: Leaves) -> None:
    for x, y in zip(got, want, strict=True):
        assert_same(cuda.to_host(x), y)
