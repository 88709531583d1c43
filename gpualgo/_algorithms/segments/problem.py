"""Checked arguments of the algorithms on segments of an array between offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms import materialized
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, view_of
from gpualgo._base import dtypes, log, recording, records
from gpualgo._driver.default_device import CPU
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Call, Problem, Result

# --- Argument table of the kernels of segments on the CPU, and sizes.

TASK = 1 << 16  # elements plus segment ends per task
FAN = 8  # independent chains of a fold
CHAIN = 128  # maximum of elements per chain

# Offsets as int64, number of segments; whether there is an init, its address, and its step in
# elements (0: one for all segments); for each task its part of the segment continued from the
# previous task (head) and of the one continued in the next (tail), and whether it has them (a byte
# each); number of tasks.
(OFFSETS, NUM_SEGMENTS, IS_START, START, START_STEP, HEADS, TAILS, HAS_HEAD, HAS_TAIL, NUM_TASKS,
 X) = range(11)  # fmt: skip
# Followed by the addresses of the element's fields and of the results' fields.


# --- Offsets of segments: checks of their dtype, shape and, if the host has them, values.


def view(x: Any, where: str, stream: Any = None, beside: tuple[Any, ...] = ()) -> View:
    """Return the view of offsets; lazy ones are computed on the device of `beside`."""
    (x,) = materialized({"offsets": x}, beside, where, stream)
    return view_of(x, f"{where}: offsets")


def check(offsets: View, where: str) -> None:
    """Raise unless offsets are integers in one dimension, at least one."""
    if offsets.dtype.kind not in "iu":
        raise TypeError(f"{where}: offsets has dtype {offsets.dtype}; pass integers")
    dtypes.check(offsets.dtype, f"{where}: offsets")  # integers may have another byte order
    if len(offsets.shape) != 1 or offsets.shape[0] == 0:
        raise ValueError(
            f"{where}: offsets has shape {offsets.shape}; pass a one-dimensional array, one "
            "longer than the number of segments"
        )


def check_values(
    offsets: View, num_items: int, where: str, stream: Any = None, of: str = "x"
) -> None:
    """Raise ValueError for host offsets that fall or are out of range.

    Those on a GPU are checked with GPUALGO_CHECK=1. Skipped while calls are recorded, because their
    arrays may stand for others. `of` is the name of the array that offsets index.
    """
    if recording.active and recording.current() is not None:
        return
    if offsets.device == CPU:
        from gpualgo._pipeline import host_whole

        values = host_whole.host_values(offsets, where, stream, "the host reads the offsets")
    elif log.checks_device_values():
        values = checks.device_values(offsets, where, stream)
    else:
        return
    if int(values[0]) < 0 or int(values[-1]) > num_items:
        # The others are between these, unless they fall.
        end = values[0] if values[0] < 0 else values[-1]
        raise ValueError(
            f"{where}: offsets has {end}, and {of} has {num_items} elements; pass offsets within it"
        )
    falls = values[1:] < values[:-1]
    if falls.any():
        i = int(np.argmax(falls))
        raise ValueError(
            f"{where}: offsets falls from {values[i]} to {values[i + 1]} at index {i + 1}; "
            "pass non-decreasing offsets"
        )


Forms = tuple[Form | None, ...]


class Segmented(Problem):
    """Arguments that equal calls share. Inputs: arrays of x, then the offsets."""

    needs_associativity = True
    reads_data = True  # the host checks offsets
    is_start: bool  # whether elements follow an initial value that all segments share
    acc: np.dtype[Any]

    def __init__(self, call: Call) -> None:
        device, views, op, init, params, where = call
        dtype, form, _ = params
        self.num_own = len(views)  # without those of init
        *of_x, offsets = views
        names, self.forms = arguments_of(tuple(of_x), form)
        self.inputs = (*names, "offsets")
        super().__init__(call)
        checks.same_place(list(views), where)
        self.source, self.form, value_views = elements_of(op, tuple(of_x), form, device, where)
        if form is not None and self.forms:
            self.forms = (*self.forms, None)
        self.acc = checks.element_accumulator(value_views, self.form, init, dtype, where)
        checks.check_operator(op, self.acc, where)
        if len(of_x[0].shape) != 1:
            raise ValueError(
                f"{where}: x has {len(of_x[0].shape)} dimensions; pass a one-dimensional array, "
                "such as x.reshape(-1)"
            )
        check(offsets, where)
        self.num_items, self.num_segments = of_x[0].shape[0], offsets.shape[0] - 1
        self.row_shape = (self.num_segments,)

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "one pass", views[:1]

    def for_data(self, views: Views, stream: Any) -> Problem:
        offsets = views[self.num_own - 1]
        check_values(offsets, self.num_items, self.where, stream)
        return self

    def parse_arrays(self, arguments: tuple[Any, ...]) -> tuple[Views, Forms] | None:
        if len(arguments) != 2:
            return None
        views, form = inputs.spread(arguments[0], f"{self.where}: x")
        return (*views, view(arguments[1], self.where)), (form, None)


class SegmentedReduction(Segmented):
    """Arguments that equal calls of `segmented_reduce` share."""

    def __init__(self, call: Call) -> None:
        op, init = call.op, call.init
        super().__init__(call)
        leaves = records.field_dtypes(self.acc)
        self.results = tuple(Result((self.num_segments,), leaf) for leaf in leaves)
        self.is_start, self.is_empty = init is not None, self.num_items == 0
        if init is None:
            self.default_start = self.identity(op, "a segment may be empty and op has no identity")

    def of_empty(self, op: Any, init: Any) -> Array:
        start = self.encode(init)
        assert start is not None
        return start


class SegmentedScan(Segmented):
    """Arguments that equal calls of `segmented_inclusive_scan` share."""

    is_exclusive = False

    def __init__(self, call: Call) -> None:
        views, op, init = call.views, call.op, call.init
        super().__init__(call)
        all_inputs = tuple(range(len(views) - 1))  # each element is computed from all of them
        is_computed = isinstance(self.source, records.Computed)
        self.results = tuple(
            Result((self.num_items,), leaf, all_inputs if is_computed else (i,))
            for i, leaf in enumerate(records.field_dtypes(self.acc))
        )
        self.is_start = init is not None or self.is_exclusive
        if self.is_exclusive and init is None:
            reason = "op has no known identity for the first result of a segment"
            self.default_start = self.identity(op, reason)


class SegmentedExclusiveScan(SegmentedScan):
    """Arguments that equal calls of `segmented_exclusive_scan` share."""

    is_exclusive = True
