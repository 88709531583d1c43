"""Plans of histograms on a GPU: cases of arrays, kernels, joint counters."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import cuda_bins, tuning
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._algorithms.histogram.problem import Histogram, accumulator
from gpualgo._arrays.view import NumPy, View, placeholder
from gpualgo._base import records
from gpualgo._base.strides import Dims, dense_strides, merge, order_of
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import NONE, TICKETS, ArgMap, Clear, Launch, Piece, Plan, arg_map
from gpualgo._cuda.templates import START, VECTOR_BYTES, fold_of, kernel_spec, launch, launch_again
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import host_whole, planners

_WRITE_ROWS, _JOIN_ROWS, _ADD_TO_ROWS = range(3)  # HistogramResult
_TICKETS_BYTES = 4 << 10  # of the stream's tickets; joint counters follow
_MAX_SLOTS = (1 << 31) - 1  # of a block, whose slot numbers have 32 bits
_COUNTER_BYTES = 8  # of joint counters other than the result
WRITE_THREADS = 256
SUMS_SEARCH_BYTES = 8 << 10  # of the bins' own tables in shared memory, beside those of sums
COUNT = np.dtype(np.int64)
_NONE = builtin("no_operator")


def machine_of(device: int) -> tuning.Machine:
    return tuning.Machine(
        gpu.get(device).num_sms, gpu.get(device).shared_limit, gpu.get(device).capability
    )


class _Joint(NamedTuple):
    """How blocks combine counts: the kernel's mode, its counters and tickets."""

    result: int  # HistogramResult
    counters: tuple[int, int]  # an argument slot, and an offset in bytes
    tickets: int  # an argument slot
    clears: tuple[Clear, ...] = ()
    pieces: tuple[Piece, ...] = ()


# --- What kernels see: bins, kept dimensions, samples, access.


@dataclass(frozen=True)
class Case:
    """A problem as kernels see it: kept dimensions, samples, and how samples are read."""

    problem: Histogram
    op: Operator  # only its source is called, if samples are computed
    device: int
    machine: tuning.Machine
    at: ArgMap
    inputs: tuple[tuple[int, int], ...]  # slot of each array, and offset of its first sample
    samples: Dims
    kept: Dims  # with strides of the arrays, of samples of one number also of the result
    places: Dims  # of the result, along `kept` dimensions
    cells: Dims  # of the result, along bins
    bins: DeviceBins
    values: dict[str, Any]  # of the bins
    table: Table | None  # of the bins
    dtypes: tuple[np.dtype[Any], ...]  # of the arrays
    # Of samples that may be several numbers:
    element: records.Element
    access: Cpp
    items: int  # samples per load of dense rows; 0: rows have gaps

    @property
    def num_places(self) -> int:
        return math.prod(extent for extent, _ in self.kept)

    @property
    def num_samples(self) -> int:
        return math.prod(extent for extent, _ in self.samples)

    def channels(self) -> int:
        """Return how many kept indices a block counts side by side, if rows have gaps."""
        is_side_by_side = bool(self.kept and self.samples) and (
            abs(self.kept[-1][1][0]) < abs(self.samples[-1][1][0])
        )
        if self.num_samples >= tuning.SHORT_ROW and not is_side_by_side:
            return 1
        return tuning.channels_of_block(self.machine, self.bins, self.num_places)

    def flat_channels(self) -> int:
        """Return how many histograms interleave one number's samples; 0 if rows have gaps."""
        size, samples, kept = self.dtypes[0].itemsize, self.samples, self.kept
        if len(samples) > 1:
            return 0
        if not samples or samples[0][1][0] == size:
            return 1
        if kept and kept[-1][1][0] == size:
            channels = kept[-1][0]
            if channels <= tuning.MAX_CHANNELS and samples[0][1][0] == channels * size:
                return channels
        return 0

    def rows(self, channels: int, parts: int, first: int, count: int) -> dict[str, Any]:
        """Return JointRows of `count` kept indices from `first` on."""
        return {
            "num_items": self.num_samples, "first": first, "end": first + count,
            "channels": channels,
            "blocks_per_row": parts, "kept": self.kept,
            "access": {} if self.items else {"items": self.samples},
        }  # fmt: skip

    def spec(self, header: str, name: str, policy: Cpp, *types: Any) -> Spec:
        """Return a kernel that reads samples of several numbers."""
        sample = records.register_dtype(self.element)
        functions = fold_of(self.op, sample), self.element
        return kernel_spec(f"histogram/{header}", name, policy, *functions, *types)


def _joint_bins(problem: Histogram, machine: tuning.Machine) -> DeviceBins:
    """Return JointBins of the fastest exact kinds."""
    parts: list[DeviceBins] = []
    free_bytes = SUMS_SEARCH_BYTES if problem.has_array else cuda_bins.SEARCH_SHARED_BYTES
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

    return DeviceBins(
        cpp("JointBins", cpp("Tuple", *(part.type for part in parts))), values, table,
        4 * words[-1], problem.num_bins, any(part.is_search for part in parts),
    )  # fmt: skip


def _cut(target: View, num_kept: int) -> tuple[Dims, Dims]:
    """Return the dimensions of a result along the kept axes, and along bins."""
    outs = [*zip(target.shape, ((s,) for s in target.strides), strict=True)]
    return merge(outs[:num_kept]), merge(outs[num_kept:])


def case_of(problem: Histogram, views: Sequence[View], op: Operator | None, target: View) -> Case:
    """Return the case of arrays and a result of any strides; samples may be read in any order.

    If there is an op, its source computes the samples from the views.
    """
    shape, slots, device = views[0].shape, arg_map(len(views), 1), views[0].device
    machine = machine_of(device)
    if op is not None and op.key.numbers:  # captured numbers take shared memory
        free_bytes = machine.shared_bytes - tuning.NUMBERS_BYTES
        machine = replace(machine, shared_bytes=free_bytes)
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
    steps = [[view.strides[i] for i in axes] for view in views]
    if problem.is_joint:
        bins = _joint_bins(problem, machine)
    else:
        bins = cuda_bins.device_bins(problem.bins[0], machine.capability)
        steps.append([*target.strides[:-1]])
    kept = merge([(shape[i], tuple(step)) for i, *step in zip(axes, *steps, strict=True)])
    places, cells = _cut(target, len(axes))
    element = problem.element
    access, items = cpp("StridedItems", len(views)), 0
    if problem.is_joint:
        numbers = records.field_dtypes(element)
        read_dtypes = [*numbers, *(view.dtype for view in views[len(numbers) :])]
        limit = None
        if isinstance(element, records.Computed):
            limit = 2 * VECTOR_BYTES // element.itemsize
        num_samples = math.prod(extent for extent, _ in samples)
        num_places = math.prod(extent for extent, _ in kept)
        if num_samples >= tuning.SHORT_ROW or num_places <= 4 * machine.num_sms:
            access, items = _access(views, read_dtypes, limit, starts, samples, kept)
    table = table_of(problem, bins.table)
    return Case(
        problem, _NONE if op is None else op, device, machine, slots,
        tuple(zip(slots.sources, starts, strict=True)), samples, kept,
        places, cells, bins, bins.values(0 if table is None else table.address), table,
        tuple(view.dtype for view in views), element, access, items,
    )  # fmt: skip


def _access(
    views: Sequence[View], types: Sequence[np.dtype[Any]], limit: int | None, starts: Sequence[int],
    samples: Dims, kept: Dims,
) -> tuple[Cpp, int]:  # fmt: skip
    """Return the access to the samples of a row, and `items`, at most `limit`."""
    sizes = [*map(records.step_of, types)]  # one byte for each computed position
    strides = samples[-1][1] if samples else tuple(sizes)
    if len(samples) > 1 or any(s not in (0, size) for s, size in zip(strides, sizes, strict=True)):
        return cpp("StridedItems", len(views)), 0
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
    return cpp("FlatItems", is_aligned, repeated), items


# --- Plans.


@planners.for_cuda.register(Histogram)
def _(
    problem: Histogram, views: Sequence[View], op: Operator | None, targets: Sequence[View]
) -> Plan:
    (target,) = targets
    case = case_of(problem, views, op, target)
    if not problem.is_joint:
        return _small(case, target) or _counted(case, target)
    if not problem.has_weights:
        return _counted(case, target)
    # Counts into the first piece, which are multiplied by the weight.
    counts = placeholder(target.shape, COUNT, case.device)
    places, cells = _cut(counts, len(target.shape) - len(problem.bins))
    at = case.at._replace(targets=[case.at.piece(0)], first_piece=case.at.piece(1))
    apart = replace(case, at=at, places=places, cells=cells)
    plan = _counted(apart, counts)
    write = write_launch(case, COUNT, case.at.piece(0), are_counts=True)
    pieces = [Piece(COUNT.itemsize * math.prod(target.shape)), *plan.pieces]
    return Plan(case.device, [*plan.steps, write], pieces, case.table)


def _small(case: Case, target: View) -> Plan | None:
    """Return the plan for few samples of one histogram; None if there are more."""
    problem, device, bins = case.problem, case.device, case.bins
    (dtype,) = case.dtypes
    tiling = None
    if not case.kept and case.flat_channels():
        tiling = tuning.small_tiling(
            case.machine, bins, problem.num_bins, problem.num_samples, dtype.itemsize
        )
    if tiling is None:
        return None
    pieces: tuple[Piece, ...] = ()
    if tiling.joint_bytes:
        pieces = (Piece(tiling.joint_bytes, TICKETS, is_zeroed=True),)
    key = tiling.policy, tiling.words, bins.type, case.inputs, bool(pieces)
    step = launch_again(
        problem.launches, key, lambda: tuning.small_spec(dtype, bins, tiling), device,
        tiling.num_blocks, tiling.policy.block_threads,
        {"input": case.inputs[0], "output": case.at.targets[0],
         "words": case.at.piece(0) if pieces else NONE},
        shared_bytes=tiling.shared_bytes(bins),
        bin_stride=target.strides[-1], num_items=problem.num_samples, num_slots=tiling.num_slots,
        num_bins=problem.num_bins, output_bytes=problem.dtype.itemsize, bins=case.values,
    )  # fmt: skip
    return Plan(device, [step], pieces, case.table)


def _counted(case: Case, target: View) -> Plan:
    problem, bins = case.problem, case.bins
    tiling, spec, own = (_joint_tiling if problem.is_joint else _tiling)(case)
    joint = _join(problem, tiling, case.num_places, target, case.at)
    size = target.dtype.itemsize
    common: dict[str, Any] = {
        "counter_bytes": size if joint.result == _ADD_TO_ROWS else _COUNTER_BYTES,
        "result": joint.result, "num_bins": problem.num_bins, "output_bytes": size,
        "table": {"num_slots": tiling.channels * bins.table_bins, "replicas": tiling.replicas,
                  "words": tiling.words},
    }  # fmt: skip
    takes: dict[str, Any] = {
        "input": case.inputs, "output": case.at.targets[0], "counters": joint.counters,
        "tickets": joint.tickets,
    }  # fmt: skip
    if not problem.is_joint:
        common |= {
            "bin_stride": target.strides[-1], "blocks_per_row": tiling.parts, "kept": case.kept,
        }  # fmt: skip
        common = {"common": common}
        takes = {"common": {**takes, "input": case.inputs[0]}}
    step = launch(
        spec, case.device, tiling.num_blocks, tiling.policy.block_threads, takes,
        shared_bytes=tiling.shared_bytes(bins), bins=case.values, **common, **own,
    )  # fmt: skip
    return Plan(case.device, [*joint.clears, step], joint.pieces, case.table)


def _joint_tiling(case: Case) -> tuple[tuning.Tiling, Spec, dict[str, Any]]:
    channels = 1 if case.items else case.channels()
    tiling = tuning.tile_counts(
        case.machine, case.bins, channels, -(-case.num_places // channels), case.num_samples,
        case.items,
    )  # fmt: skip
    spec = case.spec(
        "joint_count.cuh", "histogram_joint_kernel", tiling.policy.cpp(case.machine.capability),
        case.bins.type, tiling.table, case.access,
    )  # fmt: skip
    rows = case.rows(channels, tiling.parts, 0, case.num_places)
    return tiling, spec, {"places": case.places, "cells": case.cells, "rows": rows}


def _tiling(case: Case) -> tuple[tuning.Tiling, Spec, dict[str, Any]]:
    """Return how blocks share the work, the kernel for that, and its own parameters."""
    machine, bins, (dtype,) = case.machine, case.bins, case.dtypes
    num_places, num_samples = case.num_places, case.num_samples
    channels = case.flat_channels()
    if channels * bins.table_bins > _MAX_SLOTS:
        channels = 0
    if channels and num_samples < tuning.SHORT_ROW and num_places > 4 * machine.num_sms:
        channels = 0 if tuning.channels_of_block(machine, bins, num_places) > 1 else channels
    if channels:
        num_items = num_samples * channels
        tiling = tuning.tiling(
            machine, bins, channels, num_places // channels, num_items, dtype.itemsize
        )
        spec = tuning.spec_of("flat", machine, dtype, bins, tiling, channels)
        return tiling, spec, {"num_items": num_items}
    group = case.channels()
    tiling = tuning.tiling(machine, bins, group, -(-num_places // group), num_samples * group)
    return tiling, tuning.spec_of("strided", machine, dtype, bins, tiling), {
        "num_items": num_samples, "num_places": num_places, "channels": group,
        "samples": case.samples,
    }  # fmt: skip


def _join(
    problem: Histogram, tiling: tuning.Tiling, num_places: int, target: View, args: ArgMap
) -> _Joint:
    """Decide how blocks combine counts: in the stream's tickets, the result, or temporary storage.

    Never in a strided result, nor in one on the host, where atomics are slow.
    """
    if tiling.parts == 1 and tiling.table == tuning.REPLICATED:
        return _Joint(_WRITE_ROWS, (NONE, 0), NONE)
    num_counters = num_places * problem.num_bins
    size, num_bytes = target.dtype.itemsize, num_counters * _COUNTER_BYTES
    fits = num_bytes <= gpu.TICKET_BYTES - _TICKETS_BYTES
    fits = fits and tiling.num_rows * 4 <= _TICKETS_BYTES
    is_dense = target.strides == dense_strides(target.shape, size) and target.library is not NumPy
    if is_dense and size >= 4 and not fits:
        slot = args.targets[0]
        clears = (Clear(slot, num_counters * size),)
        return _Joint(_ADD_TO_ROWS, (slot, 0), NONE, clears=clears)
    tickets = _TICKETS_BYTES if fits else gpu.aligned(tiling.num_rows * 4)
    piece = Piece(tickets + num_bytes, TICKETS if fits else None, is_zeroed=True)
    slot = args.piece(0)
    return _Joint(_JOIN_ROWS, (slot, tickets), slot, pieces=(piece,))


def write_launch(case: Case, source: np.dtype[Any], sums: int, are_counts: bool = False) -> Launch:
    """Return the launch that converts sums to the result, or multiplies counts by the weight."""
    problem, num_slots = case.problem, case.problem.num_bins * case.num_places
    types = WRITE_THREADS, are_counts, source, problem.dtype
    return launch(
        kernel_spec("histogram/sums.cuh", "histogram_write_kernel", *types), case.device,
        -(-num_slots // WRITE_THREADS), WRITE_THREADS,
        {"weight": START, "sums": sums, "output": case.at.targets[0]},
        num_slots=num_slots, num_bins=problem.num_bins, bins_per_place=problem.num_bins,
        places=case.places, cells=case.cells,
    )  # fmt: skip


def table_of(problem: Histogram, data: bytes) -> Table | None:
    if data and problem.table is None:
        problem.table = Table(data, problem.device)
        problem.hold(len(data))
    table: Table | None = problem.table
    return table


class Table:
    """A copy of data on a device that every stream may read, freed with this object."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, data: bytes, device: int) -> None:
        self.address = 0
        if gpu.get(device).stand_in is not None:
            return
        self.address = _upload(data, device)
        weakref.finalize(self, _discard, self.address, device).atexit = False


def _upload(data: bytes, device: int) -> int:
    api = driver.api()
    with gpu.get(device).outside_capture():
        address = int(driver.check(api.cuMemAlloc(len(data)), f"allocating {len(data)} bytes"))
        try:
            driver.write(address, data)
        except BaseException:
            api.cuMemFree(address)
            raise
    return address


def _discard(address: int, device: int) -> None:
    """Free a table once no kernel reads it."""
    with contextlib.suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        driver.api().cuMemFree(address)


# --- Histograms of large pageable arrays in blocks, so that they may exceed the GPU's memory.
#
# Counts and sums of blocks are added on the host, in the order of blocks, which depend on the
# arrays' sizes and strides only.

BLOCK_BYTES = 256 << 20  # smaller arrays are copied to the GPU as a whole
RESULT_BYTES = 1 << 30  # of counters per pass over the samples


@planners.for_blocks.register(Histogram)
def _(problem: Histogram, call: planners.HostCall) -> bool:
    arrays, (result,), places = call.arrays, call.results, call.device_views
    if call.op is not None:  # computed samples are not in memory
        return False
    if None not in places[: len(arrays)] or sum(x.nbytes for x in arrays) <= BLOCK_BYTES:
        return False
    if len(problem.axes) == arrays[0].ndim:  # order does not matter: use that of memory
        order = order_of(arrays[0].shape, [x.strides for x in arrays])
        arrays = [x.transpose(order) for x in arrays] if order else arrays
    shape, counts = arrays[0].shape, np.empty(result.shape, result.dtype)
    kept = [i for i in range(len(shape)) if i not in problem.axes]
    size = sum(x.dtype.itemsize for x in arrays)
    limit = min(RESULT_BYTES // (result.itemsize * problem.num_bins), BLOCK_BYTES // size)
    for group in host_whole.indices(shape, kept, 1, max(1, limit)):  # counted together
        place = tuple(group[i] for i in kept)
        total = np.zeros_like(counts[place], accumulator(result.dtype))
        group_bytes = size * math.prod(each.stop - each.start for each in place)
        for block in host_whole.indices(shape, problem.axes, group_bytes, BLOCK_BYTES):
            index = tuple(group[i] if i in kept else block[i] for i in range(len(shape)))
            part = _counts_of(problem, call, [x[index] for x in arrays], counts[place])
            with np.errstate(all="ignore"):
                total += part
        counts[place] = total
    result[...] = counts
    return True


def _counts_of(problem: Histogram, call: planners.HostCall, parts: list[Any], like: Any) -> Any:
    views = host_whole.placeholder_host_views([x.dtype for x in parts], parts[0].shape)
    of_block, counts = problem.of_same_kind(views, None, None, problem.params), np.empty_like(like)
    with host_whole.on_device(
        problem.device, call.stream, parts, [counts], problem.where
    ) as (handle, sources, targets):  # fmt: skip
        host_whole.queue(of_block, handle, sources, targets, None, call.init)
    return counts
