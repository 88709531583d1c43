"""The public function `run_length_encode`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from gpualgo._algorithms.select.problem import COUNT, HEADS, NO_OPERATOR, Selecting, check_bool
from gpualgo._arrays.forms import Form
from gpualgo._base import records
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source, arguments_of, elements_of, input_of, parse_input
from gpualgo._pipeline import checks, counted, inputs
from gpualgo._pipeline.problem import Call, Result, problem_of

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


# --- Checked arguments of an algorithm on runs of equal neighbouring elements.


class RunLengthEncoded(NamedTuple):
    """Result of `run_length_encode`: the first element and the length of each run."""

    values: Any
    lengths: Any


class RunsParams(NamedTuple):
    form: Form | Source | None
    gives_lengths: bool


class Runs(Selecting):
    """Arguments that equal calls share that find the first elements of runs."""

    shape_attributes = "shape", "results"
    criterion = HEADS
    op_name = "eq"

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        form, self.gives_lengths = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
        checks.same_place(list(views), where)
        self.shape = views[0].shape
        self.source, element_form, _ = elements_of(op, views, form, device, where)
        if op is not None and op.name != NO_OPERATOR.name:
            check_bool(self, op, records.register_dtype(self.source), "eq", 2)
        size = math.prod(self.shape)
        kinds = [*self.written, *([COUNT] if self.gives_lengths else [])]
        outs = tuple(Result((size,), kind, is_upper_bound=True) for kind in kinds)
        self.results = (*outs, Result((), COUNT))
        self.form = element_form
        if self.gives_lengths:
            self.form = Form(RunLengthEncoded, (element_form, None))
        names_of_outs = ["out"] if self.form is None else [f"out{p}" for p in self.form.subscripts]
        self.output_names = (*names_of_outs, "out_count")


__all__ = ["RunLengthEncoded", "run_length_encode"]


def run_length_encode(
    x: ty.AnyArray | ty.Arrays, *, eq: ty.BinaryPredicate | None = None,
    out: ty.OutPair | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> RunLengthEncoded:  # fmt: skip
    """Return the first element of each run of equal elements, and the lengths of the runs.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `select`; flattened in C order.
    eq : callable, optional
        ``eq(a, b)`` returns a bool: whether an element b belongs to the run of the previous element
        a. By default elements are equal if their values are; -0.0 equals 0.0, and all NaN are
        equal.
    out : tuple of two arrays, optional
        Arrays for values (a tuple if `x` is one) and lengths (int64): one-dimensional, of the same
        length, on the device of `x`. Elements after the last result are not written.
    out_count : array, optional
        Array for the number of runs, as for `select`.

    Returns
    -------
    RunLengthEncoded
        A namedtuple of one-dimensional arrays: ``values`` of the dtype of `x` (a tuple if `x`
        is one), ``lengths`` int64. The call waits for their length in the same cases as `select`.
        With `out` and `out_count` both, `out` is returned as given.

    Raises
    ------
    TypeError
        `x` is not an array, `eq` does not return a bool, or `out` has a wrong dtype or structure.
    ValueError
        `out` is too short and `out_count` is not given, or `out` shares memory with `x`.

    Notes
    -----
    Reads each element once and writes each run, in one kernel launch. Temporary storage: 16 bytes
    for each few thousand elements. A GPU copies large unevenly strided arrays first.

    >>> ga.run_length_encode(np.array([5, 5, 7, 7, 7, 5]))
    RunLengthEncoded(values=array([5, 7, 5]), lengths=array([2, 3, 1]))
    """
    result: RunLengthEncoded = solve(x, eq, True, "run_length_encode", out, out_count, stream)
    return result


def solve(
    x: Any, eq: Any, gives_lengths: bool, where: str, out: Any, out_count: Any, stream: Any
) -> Any:
    """Return the first elements of runs, and their lengths if wanted."""
    op: Any
    form: Any
    outs = (out, out_count)
    try:
        if eq is not None:
            views, op, form = parse_input(x, eq, where, beside=outs)
        elif is_lazy(x):
            views, op, form = input_of(x, NO_OPERATOR, where, beside=outs)
        else:
            op = None
            try:
                views, form = inputs.spread(x, f"{where}: x")
            except inputs.NumberOnGPU:
                views, op, form = input_of(x, NO_OPERATOR, where)
    except Elsewhere as elsewhere:
        return elsewhere.call(where, out_count if out is None else out, stream, x, eq=eq)
    num_arguments = 0 if op is None else 2
    problem = problem_of(
        Runs, views, op, None, RunsParams(form, gives_lengths), where, num_arguments
    )
    return counted.solve(problem, views, op, None, out, stream, out_count)
