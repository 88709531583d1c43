"""Checked arguments of a reduction by index: accumulator dtype and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.by_index import tuning
from gpualgo._algorithms.by_key.problem import ByKey, ByKeyParams
from gpualgo._arrays.view import View
from gpualgo._base import log, recording, records
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Call, Problem, Result

# --- Argument table of the kernels of a reduction by index on the CPU, and sizes.

SHARE = 1 << 16  # minimum of elements per task; also eight for each index
# Sums of few results are more exact by more tables: that of 2^24 float32 0.1 in one result is wrong
# by 6e-4 of it, with 16 tables by 1e-2.
MOST_SHARES, MOST_SHARES_OF_FEW, FEW_RESULTS = 16, 256, 1 << 10
# With an init and at most this many tasks, one task folds elements into the results directly: 2^20
# float64 sums by 2^20 indices take 1.7 ms (8.9 with tables), by 2^16 1.3 (2.5 on two cores).
DIRECT_SHARES = 4
JOINED = 1 << 12  # indices of a task that joins tables

# Numbers of elements, of elements per task, of tasks and of results; whether there is an init, its
# address, and its step in elements (0: one for all results); addresses of indices, of tables and of
# their marks.
(NUM_ITEMS, SHARE_ITEMS, NUM_SHARES, SIZE, IS_START, START, START_STEP, INDICES, VALUES, MARKS,
 X) = range(11)  # fmt: skip
# Followed by the addresses of the element's fields and of the results' fields.


class ByIndex(ByKey):
    """Arguments that equal calls of `reduce_by_index` share. Inputs: indices, then arrays of x."""

    shape_attributes = ("shape",)
    reads_data = True  # the host checks indices
    keys_name = "indices"

    def __init__(self, call: Call) -> None:
        views, init, where, params = call.views, call.init, call.where, ByKeyParams(*call.params)
        self.num_own, self.size = len(views), params.size  # without those of init
        super().__init__(call._replace(params=params))
        if self.key_form is not None:
            raise TypeError(f"{where}: indices are tuples; pass one array of integers")
        self.index = self.key
        if self.index.kind not in "iu":
            raise TypeError(
                f"{where}: indices have dtype {self.index}; pass integers, such as "
                "indices.astype(np.int64)"
            )
        self.is_start, self.is_empty = init is not None, 0 in self.shape
        self.row_shape = (self.size,)
        if init is None:
            reason = "op has no known identity for an index without elements"
            self.default_start = self.identity(call.op, reason)

    def _set_results(self, num_views: int, is_computed: bool) -> None:
        self.form = self.x_form
        self.results = tuple(Result((self.size,), leaf) for leaf in records.field_dtypes(self.acc))

    @property
    def has_tables(self) -> bool:
        """Whether a table of all results fits into shared memory."""
        return tuning.table_of(self.size, self.acc).fits

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "one pass", views[:1]

    def of_empty(self, op: Any, init: Any) -> Array:
        start = self.encode(init)
        assert start is not None
        return start

    def for_data(self, views: Views, stream: Any) -> Problem:
        """Raise ValueError for host indices out of range, or for a GPU's with GPUALGO_CHECK=1.

        Skipped while calls are recorded, because their arrays may stand for others.
        """
        indices = views[0]
        if 0 in self.shape or (recording.active and recording.current() is not None):
            return self
        if isinstance(self.source, records.Computed):  # checked after they are computed
            if indices.device == CPU and not self.size:
                raise ValueError(f"{self.where}: there are indices, but size is 0")
            return self
        if indices.device == CPU:
            from gpualgo._pipeline import host_whole

            why = "the host reads the indices"
            values = host_whole.host_values(indices, self.where, stream, why)
        elif log.checks_device_values():
            values = checks.device_values(indices, self.where, stream)
        else:
            return self
        check_indices(values, self.size, self.where)
        return self

    def check_computed(self, indices: Any, views: Views, stream: Any) -> None:
        """Raise ValueError if a GPU would compute host indices that are out of range."""
        if not (self.views_on_host and self.device != CPU and self.size) or 0 in self.shape:
            return
        if recording.active and recording.current() is not None:
            return
        from gpualgo._lazy.combining import zipped
        from gpualgo._pipeline import host_whole

        why = "the host reads the indices"
        for view in views[: self.num_own]:
            if not records.is_position(view.dtype):
                host_whole.host_values(view, self.where, stream, why)
        with default_device.Fixed(CPU, why):
            check_indices(np.asarray(zipped(indices, self.where)), self.size, self.where)


def check_indices(values: Array, size: int, where: str) -> None:
    """Raise ValueError if any of the indices, at least one, is out of range."""
    low, high = int(values.min()), int(values.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        condition = f"not from 0 to {size - 1}" if size else "out of range: size is 0"
        raise ValueError(f"{where}: indices hold {wrong}, which is {condition}")
