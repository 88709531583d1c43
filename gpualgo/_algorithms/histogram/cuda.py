"""Plans of the histogram on a GPU: canonical layout, kernel, joint counters."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import cuda_case, parameters, tuning
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins, device_bins
from gpualgo._algorithms.histogram.cuda_case import Case
from gpualgo._algorithms.histogram.sums import Sum, sum_of
from gpualgo._arrays.view import NumPy, View
from gpualgo._base import dtypes
from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.plan import NONE, TICKETS, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import START
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, workspace
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint import JointHistogram
    from gpualgo._algorithms.histogram.problem import Histogram


_WRITE_ROWS, _JOIN_ROWS, _ADD_TO_ROWS = range(3)  # HistogramResult
_TICKETS_BYTES = 4 << 10  # of the stream's tickets; joint counters follow
_MAX_SLOTS = (1 << 31) - 1  # of a block, whose slot numbers have 32 bits
_COUNTER_BYTES = 8  # of joint counters other than the result
_SLOTS = ArgMap(1, 1)


def machine_of(device: int) -> tuning.Machine:
    """Return the device properties that determine the cut."""
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


def plan_of(problem: Histogram, view: View, target: View) -> Plan:
    """Return the plan of a histogram into a target of any strides."""
    device = view.device
    start, samples, kept = _canonical(problem, view, target.strides)
    machine = machine_of(device)
    bins = device_bins(problem.bins, machine.capability)
    if not kept and _flat_channels(samples, kept, view.dtype.itemsize):
        small = tuning.small_cut(
            machine, bins, problem.num_bins, problem.num_samples, view.dtype.itemsize
        )
        if small is not None:
            return _small(problem, view, target, start, bins, small)
    cut, spec, own_params = _cut(machine, bins, view.dtype, samples, kept)
    joint = _join(problem, cut, math.prod(extent for extent, _ in kept), target)
    kernel = build.kernel(spec, device)
    table = table_of(problem, bins.table)
    packed = spec.parameters.pack(
        common=_common(problem, bins, cut, joint, kept, target.strides), **own_params,
        bins=bins.values(0 if table is None else table.address),
    )  # fmt: skip
    common = {
        "input": (_SLOTS.source(0), start), "output": _SLOTS.target(0), "counters": joint.counters,
        "tickets": joint.tickets,
    }  # fmt: skip
    launch = Launch(
        kernel, cut.num_blocks, cut.policy.block_threads, packed, device,
        takes={"common": common}, shared_bytes=cut.shared_bytes(bins),
    )  # fmt: skip
    return Plan(device, [*joint.clears, launch], joint.pieces, table)


def _small(
    problem: Histogram, view: View, target: View, start: int, bins: DeviceBins,
    cut: tuning.SmallCut,
) -> Plan:  # fmt: skip
    """Return the plan of few dense samples."""
    device = view.device
    spec = tuning.small_spec(view.dtype, bins, cut)
    kernel = build.kernel(spec, device)
    table = table_of(problem, bins.table)
    packed = spec.parameters.pack(
        bin_stride=target.strides[-1], num_items=problem.num_samples, num_slots=cut.num_slots,
        num_bins=problem.num_bins, output_bytes=problem.dtype.itemsize,
        bins=bins.values(0 if table is None else table.address),
    )  # fmt: skip
    pieces: tuple[Piece, ...] = ()
    if cut.joint_bytes:
        pieces = (Piece(cut.joint_bytes, TICKETS, is_zeroed=True),)
    launch = Launch(
        kernel, cut.num_blocks, cut.policy.block_threads, packed, device,
        takes={"input": (_SLOTS.source(0), start), "output": _SLOTS.target(0),
               "words": _SLOTS.piece(0) if pieces else NONE},
        shared_bytes=cut.shared_bytes(bins),
    )  # fmt: skip
    return Plan(device, [launch], pieces, table)


def _cut(
    machine: tuning.Machine, bins: DeviceBins, dtype: np.dtype[Any], samples: Dims, kept: Dims
) -> tuple[tuning.Cut, build.Spec, dict[str, Any]]:
    """Return how blocks share the work, the kernel for that, and its own parameters."""
    num_places = math.prod(extent for extent, _ in kept)
    num_samples = math.prod(extent for extent, _ in samples)
    channels = _flat_channels(samples, kept, dtype.itemsize)
    if channels * bins.table_bins > _MAX_SLOTS:
        channels = 0
    if channels and num_samples < tuning.SHORT_ROW and num_places > 4 * machine.num_sms:
        channels = 0 if tuning.channels_of_block(machine, bins, num_places) > 1 else channels
    if channels:
        num_items = num_samples * channels
        cut = tuning.cut(machine, bins, channels, num_places // channels, num_items, dtype.itemsize)
        spec = tuning.flat_spec(machine, dtype, bins, cut)
        return cut, spec, {"num_items": num_items}
    group = 1
    if _is_side_by_side(samples, kept) or num_samples < tuning.SHORT_ROW:
        group = tuning.channels_of_block(machine, bins, num_places)
    cut = tuning.cut(machine, bins, group, -(-num_places // group), num_samples * group)
    spec = tuning.strided_spec(machine, dtype, bins, cut)
    return cut, spec, {
        "num_items": num_samples, "num_places": num_places, "channels": group, "samples": samples,
    }  # fmt: skip


def _join(problem: Histogram, cut: tuning.Cut, num_places: int, target: View) -> _Joint:
    """Decide how blocks combine counts: in the stream's tickets, the result, or temporary storage.

    Never in a strided result, nor in one on the host, where atomics are slow.
    """
    if cut.parts == 1 and cut.table == tuning.REPLICATED:
        return _Joint(_WRITE_ROWS, (NONE, 0), NONE)
    num_counters = num_places * problem.num_bins
    size, num_bytes = problem.dtype.itemsize, num_counters * _COUNTER_BYTES
    fits = num_bytes <= workspace.TICKET_BYTES - _TICKETS_BYTES
    fits = fits and cut.num_rows * 4 <= _TICKETS_BYTES
    is_dense = target.strides == problem.strides and target.library is not NumPy
    if is_dense and size >= 4 and not fits:
        slot = _SLOTS.target(0)
        clears = (Clear(slot, num_counters * size),)
        return _Joint(_ADD_TO_ROWS, (slot, 0), NONE, clears=clears)
    tickets = _TICKETS_BYTES if fits else workspace.aligned(cut.num_rows * 4)
    piece = Piece(tickets + num_bytes, TICKETS if fits else None, is_zeroed=True)
    slot = _SLOTS.piece(0)
    return _Joint(_JOIN_ROWS, (slot, tickets), slot, pieces=(piece,))


def _common(
    problem: Histogram, bins: DeviceBins, cut: tuning.Cut, joint: _Joint, kept: Dims,
    out_strides: tuple[int, ...],
) -> dict[str, Any]:  # fmt: skip
    """Return HistogramCommon without the addresses."""
    size = problem.dtype.itemsize
    counter_bytes = size if joint.result == _ADD_TO_ROWS else _COUNTER_BYTES
    slots = cut.channels * bins.table_bins
    return {
        "counter_bytes": counter_bytes, "result": joint.result, "num_bins": problem.num_bins,
        "output_bytes": size, "bin_stride": out_strides[-1],
        "table": {"num_slots": slots, "replicas": cut.replicas, "words": cut.words},
        "blocks_per_row": cut.parts, "kept": kept,
    }  # fmt: skip


def table_of(problem: Histogram | JointHistogram, data: bytes) -> Table | None:
    """Return the table that all plans of a problem read; None if they read none."""
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


def _canonical(
    problem: Histogram, view: View, out_strides: tuple[int, ...]
) -> tuple[int, Dims, Dims]:
    """Return the byte offset of the first sample, and the dimensions counted over and kept.

    The order of samples does not matter: strides are made positive and sorted.
    """
    start = 0
    counted = []
    for axis in problem.axes:
        extent, stride = view.shape[axis], view.strides[axis]
        if stride < 0:
            start += (extent - 1) * stride
            stride = -stride
        counted.append((extent, (stride,)))
    counted.sort(key=lambda dim: -dim[1][0])
    axes = [i for i in range(len(view.shape)) if i not in problem.axes]
    kept = [
        (view.shape[i], (view.strides[i], out))
        for i, out in zip(axes, out_strides[:-1], strict=True)
    ]
    return start, merge(counted), merge(kept)


def _flat_channels(samples: Dims, kept: Dims, size: int) -> int:
    """Return how many histograms interleave their samples in dense rows; 0 if rows have gaps."""
    if len(samples) > 1:
        return 0
    if not samples or samples[0][1][0] == size:
        return 1
    if kept and kept[-1][1][0] == size:
        channels = kept[-1][0]
        if channels <= tuning.MAX_CHANNELS and samples[0][1][0] == channels * size:
            return channels
    return 0


def _is_side_by_side(samples: Dims, kept: Dims) -> bool:
    """Return whether samples of neighbouring histograms are closer than those of one."""
    return bool(kept and samples) and abs(kept[-1][1][0]) < samples[-1][1][0]


# --- Weighted histograms on a GPU: exact sums, rounded to the result.

_HEAD_BYTES = 256  # of SumsHead, with padding that aligns the sums


def weighted_plan(case: Case, views: Sequence[View], bins: dict[str, Any], table: Any) -> Plan:
    """Return the plan of sums: two launches per group of kept indices that fits."""
    sums, size = sum_of(case.problem.dtype), place_bytes(case.problem)
    channels = case.channels(tuning.slot_words(sums))
    group = max(1, tuning.SUMS_BYTES // (size * channels)) * channels
    group = min(group, case.num_places)
    piece_bytes = _HEAD_BYTES + group * size
    is_kept = piece_bytes <= workspace.TICKET_BYTES
    piece = Piece(piece_bytes, TICKETS if is_kept else None, is_zeroed=True)
    steps: list[Launch] = []
    for first in range(0, case.num_places, group):
        count = min(group, case.num_places - first)
        steps.append(_add_launch(case, sums, views, bins, channels, first, count))
        steps.append(_round_launch(case, sums, first, count))
    return Plan(case.device, steps, [piece], table)


def place_bytes(problem: Histogram | JointHistogram) -> int:
    """Return the size of the sums of a kept index."""
    sums = sum_of(problem.dtype)
    planes = sums.parts * (sums.digits // 2 + (sums.format is not None))
    return 8 * planes * problem.num_bins


def _add_launch(
    case: Case, sums: Sum, views: Sequence[View], bins: dict[str, Any], channels: int, first: int,
    count: int,
) -> Launch:  # fmt: skip
    """Return the launch that adds the weights of `count` kept indices."""
    num_rows, num_bins = -(-count // channels), case.problem.num_bins
    cut = tuning.cut_sums(
        case.machine, case.bins, sums, channels, num_rows, case.num_samples, case.items
    )
    weight = dtypes.cpp_name(views[-1].dtype) if case.problem.has_array else "gpualgo::NoWeight"
    spec = case.spec(
        "weighted.cuh", "histogram_weighted_kernel", cut.policy.cpp(case.machine.capability),
        (weight, dtypes.cpp_name(sums.dtype), case.bins.cpp, case.access.cpp),
        parameters.weighted_params(
            len(views), sums.dtype.itemsize, case.bins.fields, case.access.fields
        ),
    )  # fmt: skip
    packed = spec.parameters.pack(
        num_bins=num_bins, num_digits=cut.digits, num_slots=count * num_bins,
        table={"num_slots": channels * num_bins, "replicas": cut.replicas, "words": cut.words},
        rows=case.rows(channels, cut.parts, first, count), bins=bins,
    )  # fmt: skip
    piece = case.at.piece(0)
    return Launch(
        build.kernel(spec, case.device), cut.parts * num_rows, cut.policy.block_threads, packed,
        case.device,
        {"weight": START, "input": case.inputs, "sums": (piece, _HEAD_BYTES), "head": piece},
        shared_bytes=cut.shared_bytes(case.bins),
    )  # fmt: skip


def _round_launch(case: Case, sums: Sum, first: int, count: int) -> Launch:
    """Return the launch that rounds and clears the sums of `count` kept indices."""
    tile, num_bins = tuning.JOINT_ROUND, case.problem.num_bins
    types = f"{tile.cpp(case.machine.capability)}, {dtypes.cpp_name(sums.dtype)}"
    spec = build.Spec(
        "histogram/weighted.cuh", f"gpualgo::histogram_round_kernel<{types}>",
        parameters.ROUND_PARAMS,
    )  # fmt: skip
    packed = spec.parameters.pack(
        num_slots=count * num_bins, num_bins=num_bins, first_place=first,
        number_bytes=sums.number.itemsize, bins_per_place=num_bins, places=case.places,
        cells=case.cells,
    )  # fmt: skip
    blocks = min(
        -(-count * num_bins // tile.block_threads),
        case.machine.num_sms * tuning.ROUND_BLOCKS,
    )
    piece = case.at.piece(0)
    return Launch(
        build.kernel(spec, case.device), blocks, tile.block_threads, packed, case.device,
        {"sums": (piece, _HEAD_BYTES), "head": piece, "output": case.at.target(0)},
    )  # fmt: skip


# --- Plans of joint and weighted histograms on a GPU: kernels, joint counters and sums.

# HistogramResult
# of the stream's tickets; joint counters follow
# of joint counters other than the result


def joint_plan(
    problem: JointHistogram, views: Sequence[View], op: Operator | None, target: View
) -> Plan:
    """Return the plan of a histogram into a target of any strides.

    If there is an op, its source computes the samples from the views.
    """
    device = views[0].device
    machine = machine_of(device)
    if op is not None and op.key.numbers:  # captured numbers take shared memory
        free_bytes = machine.shared_bytes - tuning.NUMBERS_BYTES
        machine = replace(machine, shared_bytes=free_bytes)
    bins = cuda_case.device_bins(problem, machine)
    case = cuda_case.case_of(problem, views, op, target, machine, bins)
    table = table_of(problem, bins.table)
    values = bins.values(0 if table is None else table.address)
    if problem.has_weights:
        return weighted_plan(case, views, values, table)
    return _counted(case, target, values, table)


def _counted(case: Case, target: View, bins: dict[str, Any], table: Any) -> Plan:
    problem, channels = case.problem, case.channels()
    num_rows = -(-case.num_places // channels)
    cut = tuning.cut_counts(
        case.machine, case.bins, channels, num_rows, case.num_samples, case.items
    )
    spec = case.spec(
        "joint_count.cuh", "histogram_joint_kernel", cut.policy.cpp(case.machine.capability),
        (case.bins.cpp, cut.table, case.access.cpp),
        parameters.counted_params(len(case.inputs), case.bins.fields, case.access.fields),
    )  # fmt: skip
    result, counters, tickets, clears, pieces = _join_tables(case, cut, target)
    size = problem.dtype.itemsize
    packed = spec.parameters.pack(
        counter_bytes=size if result == _ADD_TO_ROWS else _COUNTER_BYTES, result=result,
        num_bins=problem.num_bins, output_bytes=size,
        table={"num_slots": channels * problem.num_bins, "replicas": cut.replicas,
               "words": cut.words},
        places=case.places, cells=case.cells, bins=bins,
        rows=case.rows(channels, cut.parts, 0, case.num_places),
    )  # fmt: skip
    launch = Launch(
        build.kernel(spec, case.device), cut.num_blocks, cut.policy.block_threads, packed,
        case.device,
        {"input": case.inputs, "output": case.at.target(0), "counters": counters,
         "tickets": tickets},
        shared_bytes=cut.shared_bytes(case.bins),
    )  # fmt: skip
    return Plan(case.device, [*clears, launch], pieces, table)


def _join_tables(
    case: Case, cut: tuning.Cut, target: View
) -> tuple[int, Any, Any, tuple[Clear, ...], tuple[Piece, ...]]:
    """Decide how blocks combine counts, as for one dimension (`cuda._join`)."""
    if cut.parts == 1 and cut.table == tuning.REPLICATED:
        return _WRITE_ROWS, NONE, NONE, (), ()
    problem = case.problem
    num_counters = case.num_places * problem.num_bins
    size, num_bytes = problem.dtype.itemsize, num_counters * _COUNTER_BYTES
    fits = num_bytes <= workspace.TICKET_BYTES - _TICKETS_BYTES
    fits = fits and cut.num_rows * 4 <= _TICKETS_BYTES
    is_dense = target.strides == problem.strides and target.library is not NumPy
    if is_dense and size >= 4 and not fits:
        slot = case.at.target(0)
        return _ADD_TO_ROWS, slot, NONE, (Clear(slot, num_counters * size),), ()
    tickets = _TICKETS_BYTES if fits else workspace.aligned(cut.num_rows * 4)
    piece = Piece(tickets + num_bytes, TICKETS if fits else None, is_zeroed=True)
    slot = case.at.piece(0)
    return _JOIN_ROWS, (slot, tickets), slot, (), (piece,)
