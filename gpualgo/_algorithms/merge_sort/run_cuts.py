"""Cuts of several sorted runs on a GPU, with given numbers of elements before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.comparison import comparison_of, descending_of
from gpualgo._arrays.view import View, is_contiguous
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Problem, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan

WHERE = "run_cuts"


class RunCuts(Problem):
    """Specification shared by equal calls. Arrays: the dense 1-d fields of each run."""

    max_kept = 256  # few, because lengths and ranks are part of the key
    needs_alignment = False

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        ways, form, self.num_runs, self.ranks = rest
        self.num_keys = len(views) // self.num_runs
        self.inputs = [f"a run's array {i}" for i in range(len(views))]
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        names = list(self.inputs[: self.num_keys])
        self.order = comparison_of(views[: self.num_keys], names, form, op, ways, device, where)
        self.lengths = [view.shape[0] for view in views[:: self.num_keys]]
        self.results = (Result((len(self.ranks), self.num_runs), np.dtype(np.int64)),)

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._cuda import build
        from gpualgo._cuda.plan import ArgMap, Launch, Plan
        from gpualgo._driver import device as gpu

        props, slots = gpu.get(self.device), ArgMap(len(views), len(targets))
        spec = tuning.run_cuts(self.order, self.num_runs, props.may_overlap)
        unused = [0] * (tuning.MAX_RANKS - len(self.ranks))
        packed = spec.parameters.pack(lengths=self.lengths, ranks=[*self.ranks, *unused])
        sources = [slots.source(i) for i in range(len(views))]
        count = self.num_keys
        keys = [tuple(sources[i : i + count]) for i in range(0, len(sources), count)]
        (kernel,) = build.kernels([spec], self.device)
        launch = Launch(
            kernel, len(self.ranks), tuning.CUT_THREADS, packed, self.device,
            {"keys": keys, "cuts": slots.target(0)}, overlaps=props.may_overlap,
            shared_bytes=tuning.cut_bytes(self.order.element.itemsize),
        )  # fmt: skip
        return Plan(self.device, [launch])


def can_cut(runs: Sequence[Sequence[View]], num_ranks: int) -> bool:
    """Return whether a kernel can cut these runs, each given as its fields, at all ranks."""
    fits = tuning.can_cut(len(runs[0]), len(runs)) and num_ranks <= tuning.MAX_RANKS
    return fits and all(
        len(view.shape) == 1 and is_contiguous(view) for fields in runs for view in fields
    )


def run_cuts(
    runs: Sequence[Any], ranks: Sequence[int], descending: Any, *, out: Any = None,
    stream: Any = None,
) -> Any:  # fmt: skip
    """Return the cuts of sorted runs on one GPU: int64 of shape (ranks, runs), on that GPU.

    Parameters
    ----------
    runs : sequence of arrays, or of tuples of arrays
        At most 16, each sorted by value, as by `merge_sort`; any of them may be empty.
    ranks : sequence of int
        At most 64: how many elements of all runs come before the cuts.
    descending : bool, or tuple of bools
        As for the sort.
    out, stream
        As for `merge`.

    Notes
    -----
    ``result[i, k]`` elements of run k are among the first ``ranks[i]`` of all; equal elements are
    in the order of the runs. One kernel launch, and some thousand elements read for each rank.
    """
    parsed = [inputs.spread(run_views, f"{WHERE}: a run", False) for run_views in runs]
    views = tuple(view for run_views, _ in parsed for view in run_views)
    form = parsed[0][1]
    params = descending_of(descending, form, None, WHERE), form, len(runs), tuple(map(int, ranks))
    problem = problem_of(RunCuts, views, None, None, params, WHERE, 0)
    return run(problem, views, None, None, out, stream)
