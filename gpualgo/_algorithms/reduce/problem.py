"""Checked arguments of a reduction: axes and accumulator dtype."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.plan import LEAF
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Call, Problem, Result

# --- Argument tables of the two reduction kernels on the CPU, and sizes.

ROWS = 512  # rows folded into one row of partials
BATCH = 4  # rows folded at once while that many remain
CHUNK = 512  # elements that are computed before they are combined; a multiple of 4 * LANES
LANES = 64  # distance of elements that are combined if order does not matter
SLOTS = 64  # bytes for the addresses of an element's fields

# Indices of a kernel's argument table. After TAIL: the lengths of the kept, then of the reduced
# dimensions, then for each field the entries of `layout.leaf`, where results go, the strides of x
# and of out in the kept dimensions, and those of x in the reduced ones. COMPUTE: address of the
# function that computes elements; COMPUTED: its buffer.
(INIT, LENGTH, WIDTH, COUNT, TILES, TILE_MAJOR, KEPT, REDUCED, ROW_BYTES, INPUTS, COMPUTE,
 COMPUTED) = range(12)  # fmt: skip
TAIL = 12
(OUT, TILE_STRIDE, X_STRIDE, OUT_STRIDE, OUT_PACK, NUMBER) = range(LEAF, LEAF + 6)


def tile_of(acc: np.dtype[Any]) -> int:
    """Return the number of elements in a tile; its buffers stay in L1/L2."""
    return 4096 if acc.itemsize <= 16 else (1 << 16) // acc.itemsize // 64 * 64


def columns_of(acc: np.dtype[Any]) -> int:
    return 2048 if acc.itemsize <= 16 else (1 << 15) // acc.itemsize // 64 * 64


def level_of(acc: np.dtype[Any]) -> int:
    return tile_of(acc) // 2 + 16


def scratch_bytes(acc: np.dtype[Any], column: bool) -> int:
    """Return a kernel's scratch bytes without those for packing and conversion."""
    size = sum(number.itemsize for number in records.field_dtypes(acc))
    if column:
        return SLOTS * BATCH + columns_of(acc) * size
    return SLOTS * 5 + 2 * level_of(acc) * size


class Reduction(Problem):
    shape_attributes: ClassVar[tuple[str, ...] | None] = ()
    takes_any_ndim = True
    needs_associativity = True
    returns_scalars = True
    spreads_tuples = True

    def __init__(self, call: Call) -> None:
        device, views, op, init, params, where = call
        axis, keepdims, dtype, form, _ = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
        self.source, self.form, value_dtype = elements_of(op, views, form, device, where)
        view = views[0]
        self.acc: np.dtype[Any] = checks.element_accumulator(
            value_dtype, self.form, init, dtype, where
        )
        checks.check_operator(op, self.acc, where)
        self.axes = axes = checks.axes_of(axis, len(view.shape), where)
        self.shape = self.row_shape = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        kept_shape = tuple(1 if i in axes else n for i, n in enumerate(view.shape))
        shape = kept_shape if keepdims else self.shape
        self.results = tuple(Result(shape, leaf) for leaf in records.field_dtypes(self.acc))
        self.is_empty = 0 in view.shape
        self.has_init = init is not None

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        return super().of_shape(shape) if len(self.axes) == len(shape) else None

    def of_empty(self, op: Any, init: Any) -> Array:
        if (start := self.encode(init)) is not None:
            return start
        reason = "x has no elements along the reduced axes and op has no known identity"
        return self.identity(as_operator(op, self.where, 2), reason)
