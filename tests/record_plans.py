"""Records on a GPU: plans of leaves, queued as a call would, and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import leaves
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
        dtypes = records.field_dtypes(self.dtype)
        first, *others = (summable(shape, dtype, seed + i) for i, dtype in enumerate(dtypes))
        return (first | 1 if first.dtype.kind in "iu" else first, *others)

    def start(self) -> Host:
        """Return a value to start from."""
        return np.array(tuple(leaf.type(i + 2) for i, leaf in enumerate(self.acc_leaves)), self.acc)

    @property
    def acc_leaves(self) -> tuple[np.dtype[Any], ...]:
        return records.field_dtypes(self.acc)


def kind(fn: Callable[[Any, Any], Any], names: str, acc: str = "") -> Kind:
    return Kind(leaves.record(*names.split()), fn, leaves.record(*(acc or names).split()))


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


def folded(kind: Kind, x: Leaves, axes: tuple[int, ...], init: Host | None) -> Leaves:
    """Fold along axes in C order."""
    result = leaves.fold(kind.fn, list(x), kind.acc, axes)
    if init is not None:
        start = [np.full(y.shape, init[str(i)]) for i, y in enumerate(result)]
        result = leaves.applied(kind.fn, start, result, kind.acc)
    return tuple(result)


def scanned(kind: Kind, x: Leaves, axis: int | None, init: Host | None, **options: bool) -> Leaves:
    return tuple(leaves.scanned(kind.fn, list(x), kind.acc, axis, init, **options))


def check(cuda: Backend, got: Sequence[Array], want: Leaves) -> None:
    for x, y in zip(got, want, strict=True):
        assert_same(cuda.to_host(x), y)
