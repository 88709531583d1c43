"""Merge of several sorted runs, of which some may lie on other GPUs, to a part of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.comparison import comparison_of, descending_of
from gpualgo._arrays.view import View, is_contiguous, view_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Problem, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan

WHERE = "merge_runs"


class MergeRuns(Problem):
    """Specification shared by equal calls. Arrays: the dense fields of each run, keys first."""

    max_kept = 256  # few, because lengths and ranks are part of the key
    needs_alignment = False
    takes_any_items = True

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        ways, form, self.num_runs, self.num_keys, self.ranks, wants_keys, dtype = rest
        self.inputs = [f"a run's array {i}" for i in range(len(views))]
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        self.num_fields = len(views) // self.num_runs
        keys, values = views[: self.num_keys], views[self.num_keys : self.num_fields]
        self.order = comparison_of(
            keys, self.inputs[: self.num_keys], form, op, ways, device, where
        )
        self.lengths = [view.shape[0] for view in views[:: self.num_fields]]
        self.value_sizes = [view.dtype.itemsize for view in values]
        dtypes = [view.dtype for view in keys] if wants_keys else []
        dtypes += [view.dtype if dtype is None else dtype for view in values]
        self.is_widened = dtype is not None and [dtype.itemsize] != self.value_sizes
        first, last = self.ranks
        self.results = tuple(Result((last - first,), dtype) for dtype in dtypes)
        self.wants_keys = wants_keys

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._cuda import build
        from gpualgo._cuda.plan import KEPT, NONE, ArgMap, Launch, Piece, Plan
        from gpualgo._driver import device as gpu

        props, slots = gpu.get(self.device), ArgMap(len(views), len(targets))
        key_bytes, sizes, runs = self.order.element.itemsize, self.value_sizes, self.num_runs
        pieces = tuning.run_pieces(key_bytes, sizes, runs, props.shared_limit)
        specs = tuning.merge_runs(
            self.order, sizes, self.is_widened, runs, pieces, props.may_overlap,
            props.capability >= (8, 0),
        )  # fmt: skip
        first, last = self.ranks
        shift = pieces.shift(last - first)
        packed = specs[0].parameters.pack(lengths=self.lengths, first=first, last=last, shift=shift)
        sources = [
            [slots.source(i) for i in range(begin, begin + self.num_fields)]
            for begin in range(0, len(views), self.num_fields)
        ]
        outs, num_keys = [slots.target(i) for i in range(len(targets))], self.num_keys
        key_outs = tuple(outs[:num_keys]) if self.wants_keys else (NONE,) * num_keys
        arguments = {
            "keys": [tuple(fields[:num_keys]) for fields in sources],
            "values": [tuple(fields[num_keys:]) or (NONE,) for fields in sources],
            "output_keys": key_outs,
            "output_values": tuple(outs[num_keys * self.wants_keys :]) or (NONE,),
            "cuts": slots.piece(0),
        }
        chunks = -(-(last - first) // (pieces.samples << shift))
        num_pieces = chunks * pieces.pieces_per_chunk
        grids = chunks + 1, chunks, num_pieces
        threads = tuning.CUT_THREADS, tuning.CUT_THREADS, pieces.policy.block_threads
        cut_bytes = tuning.cut_bytes(key_bytes)
        shared = cut_bytes, cut_bytes, pieces.shared_bytes
        launches = [
            Launch(
                kernel, grid, block, packed, self.device, arguments, shared_bytes=shared_bytes,
                overlaps=props.may_overlap,
            )
            for kernel, grid, block, shared_bytes in zip(
                build.kernels(specs, self.device), grids, threads, shared, strict=True
            )
        ]  # fmt: skip
        return Plan(self.device, launches, [Piece(8 * runs * (num_pieces + 1), KEPT)])


def can_merge(runs: Sequence[Sequence[View]], num_keys: int) -> bool:
    """Return whether a kernel can merge these runs, each given as its fields, keys first."""
    sizes = [view.dtype.itemsize for view in runs[0][num_keys:]]
    return tuning.can_merge(len(runs[0]), len(runs), sizes) and all(
        len(view.shape) == 1 and is_contiguous(view) for fields in runs for view in fields
    )


def merge_runs(
    keys: Sequence[Any], values: Sequence[Sequence[Any]], ranks: tuple[int, int],
    descending: Any, *, dtype: Any = None, wants_keys: bool = True, out: Any, stream: Any = None,
) -> Any:  # fmt: skip
    """Merge sorted runs on one GPU and write a part of the result.

    Parameters
    ----------
    keys : sequence of arrays, or of tuples of arrays
        2 to 16 runs, each sorted by value, as by `merge_sort`; any of them may be empty.
    values : sequence of sequences of arrays
        For each run the arrays moved with it; none, or as `can_merge` allows.
    ranks : pair of int
        Which elements of the merged row are wanted: from the first up to the second.
    descending : bool, or tuple of bools
        As for the sort.
    dtype : dtype, optional
        Of the values in `out`: theirs, or integers of 8 bytes for unsigned ones of 4 bytes.
    wants_keys : bool
        Whether `out` has arrays for keys.
    out : array, or tuple of arrays
        Fields of keys, then of values.
    stream
        As for `merge`.

    Notes
    -----
    Three kernel launches; each element is read once, and written once. The host does not wait.
    """
    parsed = [inputs.spread(run_keys, f"{WHERE}: a run", False) for run_keys in keys]
    pairs = list(zip(parsed, values, strict=True))
    views = tuple(
        view
        for (key_views, _), run_values in pairs
        for view in (*key_views, *(view_of(x, f"{WHERE}: a value") for x in run_values))
    )
    form = parsed[0][1]
    params = (
        descending_of(descending, form, None, WHERE), form, len(keys), len(parsed[0][0]),
        tuple(map(int, ranks)), wants_keys, dtype,
    )  # fmt: skip
    problem = problem_of(MergeRuns, views, None, None, params, WHERE, 0)
    return run(problem, views, None, None, out, stream)
