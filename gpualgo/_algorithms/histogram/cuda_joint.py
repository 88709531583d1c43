"""Plans of joint and weighted histograms on a GPU: kernels, joint counters and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.histogram import (
    cuda,
    cuda_case,
    cuda_sums,
    joint_parameters,
    joint_policy,
    policy,
)
from gpualgo._algorithms.histogram.cuda_case import Case
from gpualgo._arrays.view import NumPy, View
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.pieces import TICKETS, Piece
from gpualgo._cuda.plan import NONE, Clear, Plan
from gpualgo._driver import workspace
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint_problem import JointHistogram

_WRITE_ROWS, _JOIN_ROWS, _ADD_TO_ROWS = range(3)  # HistogramResult
_TICKETS_BYTES = 4 << 10  # of the stream's tickets; joint counters follow
_COUNTER_BYTES = 8  # of joint counters other than the result


def plan_of(
    problem: JointHistogram, views: Sequence[View], op: Operator | None, target: View
) -> Plan:
    """Return the plan of a histogram into a target of any strides.

    If there is an op, its source computes the samples from the views.
    """
    device = views[0].device
    machine = cuda.machine_of(device)
    if op is not None and op.key.numbers:  # captured numbers take shared memory
        free_bytes = machine.shared_bytes - joint_policy.NUMBERS_BYTES
        machine = replace(machine, shared_bytes=free_bytes)
    bins = cuda_case.device_bins(problem, machine)
    case = cuda_case.case_of(problem, views, op, target, machine, bins)
    table = cuda.table_of(problem, bins.table)
    values = bins.values(0 if table is None else table.address)
    if problem.has_weights:
        return cuda_sums.plan_of(case, views, values, table)
    return _counted(case, target, values, table)


def _counted(case: Case, target: View, bins: dict[str, Any], table: Any) -> Plan:
    problem, channels = case.problem, case.channels()
    num_rows = -(-case.num_places // channels)
    cut = joint_policy.cut_counts(
        case.machine, case.bins, channels, num_rows, case.num_samples, case.items
    )
    spec = case.spec(
        "joint_count.cuh", "histogram_joint_kernel", cut.policy.cpp(case.machine.capability),
        (case.bins.cpp, cut.table, case.access.cpp),
        joint_parameters.counted(len(case.inputs), case.bins.fields, case.access.fields),
    )  # fmt: skip
    result, counters, tickets, clears, pieces = _join(case, cut, target)
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


def _join(
    case: Case, cut: policy.Cut, target: View
) -> tuple[int, Any, Any, tuple[Clear, ...], tuple[Piece, ...]]:
    """Decide how blocks combine counts, as for one dimension (`cuda._join`)."""
    if cut.parts == 1 and cut.table == policy.REPLICATED:
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
