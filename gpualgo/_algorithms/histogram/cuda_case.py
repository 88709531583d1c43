"""Kernel view of a joint or weighted histogram: bins, kept dimensions, samples, access."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.histogram import cuda_bins, parameters, tuning
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import templates
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import Parameters
from gpualgo._cuda.plan import ArgMap
from gpualgo._cuda.templates import VECTOR_BYTES, Access, functor
from gpualgo._operators.operator import Operator, builtin

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint import JointHistogram


_NONE = builtin("no_operator")


@dataclass(frozen=True)
class Case:
    """A problem as kernels see it: kept dimensions, samples, and how samples are read."""

    problem: JointHistogram
    op: Operator  # only its source is called, if samples are computed
    device: int
    machine: tuning.Machine
    at: ArgMap
    inputs: tuple[tuple[int, int], ...]  # slot of each array, and offset of its first sample
    samples: Dims
    kept: Dims
    places: Dims  # of the result, along `kept` dimensions
    cells: Dims  # of the result, along bins
    bins: DeviceBins
    element: records.Element  # of a sample
    access: Access
    items: int  # samples per load of dense rows; 0: rows have gaps

    @property
    def num_places(self) -> int:
        return math.prod(extent for extent, _ in self.kept)

    @property
    def num_samples(self) -> int:
        return math.prod(extent for extent, _ in self.samples)

    def channels(self, words: int = 1) -> int:
        """Return how many kept indices a block counts side by side, with `words` per slot."""
        if self.items or not self.kept:
            return 1
        strides = self.kept[-1][1][0], self.samples[-1][1][0] if self.samples else 0
        if self.num_samples >= tuning.SHORT_ROW and abs(strides[0]) >= abs(strides[1]):
            return 1
        max_channels = self.machine.small_words // (self.bins.table_bins * words)
        return max(1, min(self.num_places, max_channels, tuning.JOINT_STRIDED.block_threads))

    def rows(self, channels: int, parts: int, first: int, count: int) -> dict[str, Any]:
        """Return JointRows of `count` kept indices from `first` on."""
        return {
            "num_items": self.num_samples, "first": first, "end": first + count,
            "channels": channels,
            "blocks_per_row": parts, "kept": self.kept,
            "access": {} if self.items else {"items": self.samples},
        }  # fmt: skip

    def spec(
        self, header: str, name: str, policy: str, types: Sequence[str], fields: Parameters
    ) -> Spec:
        """Return a kernel that reads samples."""
        sample = records.register_dtype(self.element)
        op = functor(self.op, (sample, sample), sample)
        arguments = ", ".join((policy, op, records.cpp_name(self.element), *types))
        expression = f"gpualgo::{name}<{arguments}>"
        header = f"histogram/{header}"
        return templates.spec_of(header, expression, fields, self.op, sample, self.element)


def device_bins(problem: JointHistogram, machine: tuning.Machine) -> DeviceBins:
    """Return JointBins of the fastest exact kinds."""
    parts: list[DeviceBins] = []
    free_bytes = cuda_bins.SEARCH_SHARED_BYTES
    for bins in problem.bins:
        parts.append(cuda_bins.number_bins(bins, machine.capability, free_bytes))
        free_bytes -= parts[-1].shared_bytes
    words, tables = [0], [0]
    for part in parts:
        words.append(words[-1] + -(-part.shared_bytes // 16) * 4)
        tables.append(tables[-1] + -(-len(part.table) // 256) * 256)
    table = b"".join(part.table + bytes(-len(part.table) % 256) for part in parts)

    def values(address: int) -> dict[str, Any]:
        kinds = {
            f"v{i}": part.values(address + offset)
            for i, (part, offset) in enumerate(zip(parts, tables, strict=False))
        }
        return {
            "each": kinds, "num_bins": [bins.num_bins for bins in problem.bins],
            "shared_words": words[:-1],
        }  # fmt: skip

    kinds = ", ".join(part.cpp for part in parts)
    return DeviceBins(
        f"gpualgo::JointBins<gpualgo::Tuple<{kinds}>>",
        parameters.bins_params([part.fields for part in parts]), values, table, 4 * words[-1],
        problem.num_bins, any(part.is_search for part in parts),
    )  # fmt: skip


def case_of(
    problem: JointHistogram, views: Sequence[View], op: Operator | None, target: View,
    machine: tuning.Machine, bins: DeviceBins,
) -> Case:  # fmt: skip
    """Return the case of arrays; samples may be read in any order."""
    shape, slots = views[0].shape, ArgMap(len(views), 1)
    starts = [0] * len(views)
    counted: list[tuple[int, tuple[int, ...]]] = []
    for axis in problem.axes:
        extent, strides = shape[axis], tuple(view.strides[axis] for view in views)
        if extent > 1 and max(strides) <= 0:
            starts = [a + (extent - 1) * s for a, s in zip(starts, strides, strict=True)]
            strides = tuple(-s for s in strides)
        counted.append((extent, strides))
    counted.sort(key=lambda dim: -max(map(abs, dim[1])))
    samples, axes = merge(counted), [i for i in range(len(shape)) if i not in problem.axes]
    kept = merge([(shape[i], tuple(view.strides[i] for view in views)) for i in axes])
    outs = [*zip(target.shape, ((s,) for s in target.strides), strict=True)]
    element = problem.element
    numbers = records.field_dtypes(element)
    read_dtypes = [*numbers, *(view.dtype for view in views[len(numbers) :])]
    limit = 2 * VECTOR_BYTES // element.itemsize if isinstance(element, records.Computed) else None
    access, items = _access(views, read_dtypes, limit, starts, samples, kept)
    num_samples = math.prod(extent for extent, _ in samples)
    num_places = math.prod(extent for extent, _ in kept)
    if items and num_samples < tuning.SHORT_ROW and num_places > 4 * machine.num_sms:
        access, items = _strided(len(views)), 0
    return Case(
        problem, _NONE if op is None else op, views[0].device, machine, slots,
        tuple((slots.source(i), start) for i, start in enumerate(starts)), samples, kept,
        merge(outs[: len(axes)]), merge(outs[len(axes) :]), bins, element, access, items,
    )  # fmt: skip


def _access(
    views: Sequence[View], types: Sequence[np.dtype[Any]], limit: int | None, starts: Sequence[int],
    samples: Dims, kept: Dims,
) -> tuple[Access, int]:  # fmt: skip
    """Return the access to the samples of a row, and `items`, at most `limit`."""
    sizes = [*map(records.step_of, types)]  # one byte for each computed position
    strides = samples[-1][1] if samples else tuple(sizes)
    if len(samples) > 1 or any(s not in (0, size) for s, size in zip(strides, sizes, strict=True)):
        return _strided(len(views)), 0
    repeated = sum(1 << i for i, stride in enumerate(strides) if stride == 0)
    widest = max(sizes)
    items = 8 if widest < 2 else VECTOR_BYTES // widest
    while limit is not None and 1 < items > limit:
        items //= 2
    steps = [math.gcd(0, *(dim[1][i] for dim in kept)) for i in range(len(views))]
    is_aligned = all(
        repeated >> i & 1
        or dtype == records.POSITION  # computed for any start
        or math.gcd(view.ptr + start, step) % min(VECTOR_BYTES, items * size) == 0
        for i, (view, start, step, size, dtype) in enumerate(
            zip(views, starts, steps, sizes, types, strict=True)
        )
    )
    cpp = f"gpualgo::FlatItems<{str(is_aligned).lower()}, {repeated}>"
    return Access(cpp, parameters.FLAT_PARAMS), items


def _strided(leaves: int) -> Access:
    return Access(f"gpualgo::StridedItems<{leaves}>", parameters.joint_strided_params(leaves))
