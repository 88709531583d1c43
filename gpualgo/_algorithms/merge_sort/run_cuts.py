"""Where several sorted runs on a GPU are cut, so that so many elements come before the cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.merge_sort import parameters, policy
from gpualgo._algorithms.merge_sort.comparison import comparison_of, plain_ways
from gpualgo._arrays.view import View, is_contiguous
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import Problem, problem_of
from gpualgo._pipeline.results import Result
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan

WHERE = "run_cuts"


class RunCuts(Problem):
    """What equal calls share. Its arrays: those of each run, of one dimension and without gaps."""

    max_kept = 256  # as lengths and ranks are the problem's
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
        from gpualgo._cuda.launch import Launch
        from gpualgo._cuda.plan import Places, Plan
        from gpualgo._driver import device as gpu

        found, at = gpu.get(self.device), Places(len(views), len(targets))
        spec = policy.run_cuts(self.order, self.num_runs, found.may_overlap)
        unused = [0] * (parameters.MAX_RANKS - len(self.ranks))
        packed = spec.parameters.pack(lengths=self.lengths, ranks=[*self.ranks, *unused])
        places = [at.source(i) for i in range(len(views))]
        count = self.num_keys
        keys = [tuple(places[i : i + count]) for i in range(0, len(places), count)]
        (kernel,) = build.kernels([spec], self.device)
        launch = Launch(
            kernel, len(self.ranks), policy.CUT_THREADS, packed, self.device,
            {"keys": keys, "cuts": at.target(0)}, overlaps=found.may_overlap,
            shared_bytes=policy.cut_bytes(self.order.element.itemsize),
        )  # fmt: skip
        return Plan(self.device, [launch])


def can_cut(runs: Sequence[Sequence[View]], num_ranks: int) -> bool:
    """Return whether a kernel cuts these runs, of each its arrays, at so many ranks."""
    fits = policy.can_cut(len(runs[0]), len(runs)) and num_ranks <= parameters.MAX_RANKS
    return fits and all(
        len(view.shape) == 1 and is_contiguous(view) for own in runs for view in own
    )


def run_cuts(
    runs: Sequence[Any], ranks: Sequence[int], descending: Any, *, out: Any = None,
    stream: Any = None,
) -> Any:  # fmt: skip
    """Return where sorted runs of one GPU are cut: int64 of shape (ranks, runs), on that GPU.

    Parameters
    ----------
    runs : sequence of arrays, or of tuples of arrays
        At most 16, each in order by value, as `merge_sort` leaves it; any of them may be empty.
    ranks : sequence of int
        At most 64: how many elements of all runs come before the cuts.
    descending : bool, or tuple of bools
        As of the sort.
    out, stream
        As of `merge`.

    Notes
    -----
    ``result[i, k]`` elements of run k are among the first ``ranks[i]`` of all, where equal elements
    are in the order of the runs. One kernel launch, and some thousand elements read for each rank.
    """
    found = [inputs.spread(own, f"{WHERE}: a run", False) for own in runs]
    views = tuple(view for own, _ in found for view in own)
    form = found[0][1]
    rest = plain_ways(descending, form, None, WHERE), form, len(runs), tuple(map(int, ranks))
    problem = problem_of(RunCuts, views, None, None, rest, WHERE, 0)
    return run(problem, views, None, None, out, stream)
