"""Checked arguments of a scan: axis, direction, accumulator dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import order_of
from gpualgo._cpu.plan import LEAF
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Call, Dtype, Problem, Result

# --- Layout of the argument tables of the CPU's scan functions, and sizes.

COLUMNS = 256  # columns scanned together
ABREAST = 4  # strips scanned together to hide the latency of op; also tiles per link
SLOTS = 64  # bytes for the addresses of an element's fields

# Indices of a kernel's argument table; the functions' own table follows at CHAIN_TAIL. A task is a
# link of a chain; NEXT is the next one to take.
(AGGREGATE, FOLD, EMIT, NEXT, TASKS, CHAINS, LINKS, LINK_MAJOR) = range(8)
(FLAGS, AGGREGATES, AGGREGATE_BYTES, PREFIX_BYTES, SCRATCH_BYTES, MOST_POLLS) = range(8, 14)
CHAIN_TAIL = 14

# Indices of the functions' own tables, for strips and for columns.
(INIT, LENGTH, TILE, OUTER) = range(4)

# Strips: a link is SPAN of them, X_JUMP bytes apart. After the tail: lists with one word per field
# of an element, then the lengths of the outer dimensions, then their strides for each field of x
# and each of out.
(IS_CUT, STRIPS, SPAN, STRIPS_TAIL) = range(4, 8)
(X, OUT, X_STEP, OUT_STEP, X_JUMP, OUT_JUMP, LISTS) = range(7)

# Columns: after the tail: lengths of the outer dimensions, then for each field the entries of
# `layout.leaf`, where results go, and the strides of x and of out in the outer dimensions.
(WIDTH, COLUMNS_TAIL) = range(4, 6)
(OUT_AT, DOWN, OUT_DOWN, ACROSS, OUT_ACROSS, OUT_PACK, NUMBER) = range(LEAF, LEAF + 7)


INCLUSIVE, EXCLUSIVE = "inclusive_scan", "exclusive_scan"

# Kinds of steps: elements are read, converted or computed; copied; results are combined from two;
# elements are scanned as the call says; then buffers along their last axis, from each to the end,
# and from the start to each.
ELEMENTS, COPY, COMBINE, SCAN, SUFFIXES, PREFIXES = range(6)


class Step(NamedTuple):
    kind: int
    inputs: Sequence[Array]
    outs: Sequence[Array]


class Scan(Problem):
    shape_attributes: ClassVar[tuple[str, ...] | None] = ("shape", "results")
    needs_associativity = True
    is_exclusive = False
    spreads_tuples = True

    def __init__(self, call: Call) -> None:
        device, views, op, init, params, where = call
        axis, self.is_reverse, dtype, form, _ = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
        self.source, self.form, value_dtype = elements_of(op, views, form, device, where)
        view = views[0]
        on_device = type(init) is View
        given = init.dtype if on_device and dtype is None else dtype
        self.acc: np.dtype[Any] = checks.element_accumulator(
            value_dtype, self.form, init, given, where
        )
        if on_device and init.dtype != self.acc:
            raise TypeError(
                f"{where}: init on the device has dtype {init.dtype}, the accumulator {self.acc}; "
                "convert it first"
            )
        checks.check_operator(op, self.acc, where)
        self.shape = view.shape
        self.axis = checks.axis_of(axis, len(view.shape), where)  # None: x is flattened
        self.row_shape = tuple(n for i, n in enumerate(self.shape) if self.axis not in (None, i))
        shape = (math.prod(view.shape),) if self.axis is None else view.shape
        layouts = [] if self.axis is None else [view.strides for view in views]
        order = order_of(shape, layouts)
        # Elements are computed into the results' memory, so each result may overlap every input.
        all_inputs = tuple(range(len(views)))
        is_computed = isinstance(self.source, records.Computed)
        self.results = tuple(
            Result(shape, leaf, all_inputs if is_computed else (i,), order)
            for i, leaf in enumerate(records.field_dtypes(self.acc))
        )
        if self.is_exclusive and init is None:
            reason = "op has no known identity for the first result"
            self.default_start = self.identity(op, reason)

    @property
    def has_steps(self) -> bool:
        """Whether the call is several scans and transformations, see `steps`."""
        return self.row_init is not None

    @property
    def buffers(self) -> Sequence[Dtype]:
        """The dtypes of the buffers of `steps`, all of `buffer_shape`."""
        return records.field_dtypes(self.acc) if self.is_exclusive else ()

    @property
    def buffer_shape(self) -> tuple[int, ...]:
        return self.shape

    def steps(
        self, arrays: Sequence[Array], outs: Sequence[Array], buffers: Sequence[Array],
        on_cpu: bool = False,
    ) -> list[Step]:  # fmt: skip
        """Return the steps in order; all arrays are views of these ones.

        With an initial value for each row, results are op(init, s) of the inclusive scan s without
        it. An exclusive scan takes the s of the previous element; its first results are init.
        """
        axis, row_init, scanned = self.axis, self.row_init, buffers or outs
        assert axis is not None
        assert row_init is not None
        count, before = len(arrays) - row_init.num_arrays, (slice(None),) * axis
        inits = [np.broadcast_to(x[(*before, None)], self.shape) for x in arrays[count:]]
        first = Step(SCAN, arrays[:count], scanned)
        if not self.is_exclusive:
            return [first, Step(COMBINE, [*inits, *outs], outs)]

        def part(arrays: Sequence[Array], *bounds: int | None) -> list[Array]:
            index: Any = (*before, slice(*bounds))
            return [x[index] for x in arrays]

        head, tail = ((-1, None), (0, -1)) if self.is_reverse else ((0, 1), (1, None))
        others = (1, None) if self.is_reverse else (0, -1)
        return [
            first,
            Step(COMBINE, part(inits, *tail) + part(scanned, *others), part(outs, *tail)),
            Step(COPY, part(inits, *head), part(outs, *head)),
        ]


class ExclusiveScan(Scan):
    shape_attributes = "shape", "results"
    is_exclusive = True
