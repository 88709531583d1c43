"""Weighted histograms on a GPU: exact sums, rounded to the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.histogram import joint_parameters, joint_policy
from gpualgo._algorithms.histogram.cuda_case import Case
from gpualgo._algorithms.histogram.sums import Sum, sum_of
from gpualgo._arrays.view import View
from gpualgo._base import dtypes
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.pieces import TICKETS, Piece
from gpualgo._cuda.plan import Plan
from gpualgo._cuda.templates import START
from gpualgo._driver import workspace

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint_problem import JointHistogram
    from gpualgo._algorithms.histogram.problem import Histogram

_HEAD_BYTES = 256  # of SumsHead, with padding that aligns the sums


def plan_of(case: Case, views: Sequence[View], bins: dict[str, Any], table: Any) -> Plan:
    """Return the plan of sums: two launches per group of kept indices that fits."""
    sums, size = sum_of(case.problem.dtype), place_bytes(case.problem)
    channels = case.channels(joint_policy.slot_words(sums))
    group = max(1, joint_policy.SUMS_BYTES // (size * channels)) * channels
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
    cut = joint_policy.cut_sums(
        case.machine, case.bins, sums, channels, num_rows, case.num_samples, case.items
    )
    weight = dtypes.cpp_name(views[-1].dtype) if case.problem.has_array else "gpualgo::NoWeight"
    spec = case.spec(
        "weighted.cuh", "histogram_weighted_kernel", cut.policy.cpp(case.machine.capability),
        (weight, dtypes.cpp_name(sums.dtype), case.bins.cpp, case.access.cpp),
        joint_parameters.weighted(
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
    tile, num_bins = joint_policy.ROUND, case.problem.num_bins
    types = f"{tile.cpp(case.machine.capability)}, {dtypes.cpp_name(sums.dtype)}"
    spec = build.Spec(
        "histogram/weighted.cuh", f"gpualgo::histogram_round_kernel<{types}>",
        joint_parameters.ROUND,
    )  # fmt: skip
    packed = spec.parameters.pack(
        num_slots=count * num_bins, num_bins=num_bins, first_place=first,
        number_bytes=sums.number.itemsize, bins_per_place=num_bins, places=case.places,
        cells=case.cells,
    )  # fmt: skip
    blocks = min(
        -(-count * num_bins // tile.block_threads),
        case.machine.num_sms * joint_policy.ROUND_BLOCKS,
    )
    piece = case.at.piece(0)
    return Launch(
        build.kernel(spec, case.device), blocks, tile.block_threads, packed, case.device,
        {"sums": (piece, _HEAD_BYTES), "head": piece, "output": case.at.target(0)},
    )  # fmt: skip
