"""`histogram` of tuples, and with weights: argument checks, then the problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import arguments, sums
from gpualgo._algorithms.histogram.arguments import Edges, named, redetect_bins
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, as_view, view_of
from gpualgo._base import dtypes, records
from gpualgo._base.strides import dense_strides
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source, arguments_of, computed, parse_input
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Array, Problem, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.routines import Routine


# --- Specification of a histogram of several dimensions, or with weights.


class JointParams(NamedTuple):
    """The parameters of a call, without its arrays."""

    bins: tuple[Any, ...]  # of each dimension, see `arguments.bins_of`
    axis: Any
    dtype: Any
    form: Form | Source | None  # structure of a tuple; Source: samples are computed
    weights: Any  # View: an array, the last of the views; the dtype of a number; None


class JointHistogram(Problem):
    """Specification of a `histogram` call with tuples or weights, shared by equal calls.

    The views are the samples, one per dimension, or with an op the inputs of its source; then the
    weights. All have one shape. Weights that are one number are the `init` of the call.
    """

    table: Any = None  # of the bins, on a GPU
    max_kept = 256
    spreads_tuples = True
    broadcasts_arguments = True
    has_names = False  # there is no operator
    rest: JointParams

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "histogram", views[:1]

    def __init__(
        self,
        device: int,
        views: tuple[View, ...],
        op: Operator | None,
        init: Any,
        rest: JointParams,
        where: str,
    ) -> None:
        self.has_array = rest.weights is View
        samples = views[:-1] if self.has_array else views  # not stored: they hold the arrays
        self.inputs, self.forms = arguments_of(samples, rest.form)
        if self.has_array:
            self.inputs, self.forms = (*self.inputs, "weights"), (*self.forms, None)
        super().__init__(device, views, op, init, rest, where)
        if isinstance(rest.form, Source):
            assert op is not None
            source, form, samples = computed(op, samples, rest.form, device, where)
        else:
            form = rest.form
        self.is_tuple = form is not None
        self.has_weights = rest.weights is not None
        shape = views[0].shape
        self.axes = axes = checks.axes_of(rest.axis, len(shape), where)
        self.kept = tuple(n for i, n in enumerate(shape) if i not in axes)
        self.num_samples = math.prod(shape[i] for i in axes)  # of each histogram
        self.dtype = self._dtype(views)
        self.bins = [self._bins(i, view.dtype) for i, view in enumerate(samples)]
        numbers = [bins.sample_dtype for bins in self.bins]
        self.element: records.Element = records.record(map(str, range(len(numbers))), numbers)
        if isinstance(rest.form, Source):
            self.element = source._replace(result=records.with_leaves(source.result, numbers))
        self.num_bins = math.prod(bins.num_bins for bins in self.bins)
        shape = (*self.kept, *(bins.num_bins for bins in self.bins))
        self.results = (Result(shape, self.dtype),)
        self.strides = dense_strides(shape, self.dtype.itemsize)  # a new result's
        self.is_empty = self.num_samples == 0
        self.reads_data = not isinstance(rest.form, Source) and any(
            not isinstance(one, Edges) and one[-1] for one in rest.bins
        )  # ranges of computed samples are detected by the call
        self.hold(sum(bins.num_bytes for bins in self.bins))

    def _dtype(self, views: Sequence[View]) -> np.dtype[Any]:
        requested, where = self.rest.dtype, self.where
        if not self.has_weights:
            return arguments.counter_dtype(requested, self.num_samples)
        weights_dtype = views[-1].dtype if self.has_array else self.rest.weights
        dtypes.check(weights_dtype, f"{where}: weights")
        return sums.dtype_of(weights_dtype, requested, where)

    def _bins(self, i: int, dtype: np.dtype[Any]) -> Bins:
        bins = self.rest.bins[i]

        def make() -> Bins:
            if isinstance(bins, Edges):
                arguments.check_edges(bins.array)
                return Bins(dtype, bins.array.size - 1, bins.array, None, None)
            number, _, lo, _, hi, _ = bins
            return Bins(dtype, number, None, lo, hi)

        return named(i, make) if self.is_tuple else make()

    def encode(self, init: Any) -> Array | None:
        if init is None:
            return None
        return checks.init_value(init, self.dtype, self.where, "weights")

    def for_data(self, views: tuple[View, ...], stream: Any) -> Problem:
        bins = redetect_bins(self.rest.bins, views, self.inputs, stream)
        return self.like(views, None, None, self.rest._replace(bins=bins))

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.zeros((), self.dtype)

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.histogram import cuda

        return cuda.joint_plan(self, views, op, targets[0])

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.histogram.cpu_parameters import MOST
        from gpualgo._pipeline.routines import bytes_of, compiled

        work = bytes_of(arrays)
        return [compiled("histogram", arrays[0].size, MOST, work)] if arrays[0].size else []

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.histogram import cpu_joint

        if init is not None:  # weights that are one number
            arrays = [*arrays, np.broadcast_to(init, arrays[0].shape)]
        cpu_joint.histogram(arrays, results[0], self, op)

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        if op is not None:  # computed samples are not in memory
            return False
        from gpualgo._algorithms.histogram import blocks

        return blocks.histogram(self, arrays, results[0], init, stream, places)


_WHERE = "histogram"
_SAMPLES = builtin("no_operator")  # carries the function that computes samples


def histogram(
    x: Any, bins: Any, range: Any, weights: Any, axis: Any, dtype: Any, out: Any, stream: Any
) -> Any:
    """Count or sum samples of one dimension or more; see the public function."""
    weight_view = None if _is_number(weights) or is_lazy(weights) else _view_of_weights(weights)
    if is_lazy(x) or is_lazy(weights):
        from gpualgo._lazy.combining import place_lazy

        x, weights = place_lazy((x, weights), (out,), _WHERE)
    if is_lazy(x):
        x = _combined(x)
    views, op, form = parse_input(x, _SAMPLES, _WHERE, has_names=False)
    combined = None
    if isinstance(form, Source):
        combined = _combined(x)  # also for a tuple of arrays and numbers on a GPU
        samples, sample_form = _typed(combined, views[0])
    else:
        samples, sample_form = views, form
    if sample_form is not None and any(item is not None for item in sample_form.items):
        raise TypeError(
            f"{_WHERE}: x is a tuple of tuples, and each of its items is a dimension; "
            "pass a tuple of arrays"
        )
    names = inputs.names(samples, sample_form, "x")
    for view, name in zip(samples, names, strict=True):
        arguments.check_samples(view, name)
    if dtype is None and out is not None:
        target = as_view(out, f"{_WHERE}: out")
        dtype, out = target.dtype, target if target.owner is out else out
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axes(axis, _WHERE)
    if sample_form is None:
        parsed: tuple[Any, ...] = (arguments.bins_of(bins, range, samples[0], stream, combined),)
    else:
        parsed = arguments.bins_of_each(bins, range, samples, names, stream, combined)
    if is_lazy(weights):  # after all other checks
        weight_view = _view_of_weights(_materialized(weights, stream))
    number = weights if weight_view is None else None
    kind = View if weight_view is not None else None if number is None else np.asarray(number).dtype
    params = JointParams(parsed, axis, dtype, form, kind)
    views = views if weight_view is None else (*views, _broadcast(weight_view, views[0]))
    op = op if isinstance(form, Source) else None
    problem = problem_of(JointHistogram, views, op, number, params, _WHERE, 0 if op is None else 2)
    return run(problem, views, op, number, out, stream)


def _combined(x: Any) -> Any:
    """Return lazy samples as one array."""
    from gpualgo._lazy import combining

    if isinstance(x, tuple) and len(x) > records.MAX_FIELDS:
        raise TypeError(
            f"{_WHERE}: x has elements of {len(x)} numbers, at most {records.MAX_FIELDS} are "
            "possible"
        )
    return combining.zipped(x, f"{_WHERE}: x")


def _materialized(weights: Any, stream: Any) -> Any:
    """Return lazy weights materialized as an array."""
    from gpualgo._lazy.combining import zipped
    from gpualgo._lazy.construction import made

    where = f"{_WHERE}: weights"
    return made(zipped(weights, where), False, where, stream)


def _typed(combined: Any, like: View) -> tuple[tuple[View, ...], Form | None]:
    """Return a view per field of computed samples, as if it had an array, and their structure."""
    form = forms.form_of(combined.dtype.names) if combined.dtype.names else None
    return tuple(
        [like._replace(dtype=field) for field in records.field_dtypes(combined.dtype)]
    ), form


def _is_number(weights: Any) -> bool:
    """Return whether weights are one number for all samples, or None."""
    return weights is None or isinstance(weights, (bool, int, float, complex, np.generic))


def _view_of_weights(weights: Any) -> View:
    if forms.is_tuple(weights):
        raise TypeError(f"{_WHERE}: weights is a tuple; pass one array, or a number for all")
    view = view_of(weights, f"{_WHERE}: weights")
    checks.dimensions(view, "weights", _WHERE)
    checks.element(view, "weights", _WHERE)
    return view


def _broadcast(view: View, samples: View) -> View:
    """Return weights broadcast to the shape of the samples."""
    checks.same_place([samples, view], _WHERE)
    shape = samples.shape
    try:
        fits = np.broadcast_shapes(view.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{_WHERE}: weights has shape {view.shape} and x {shape}; "
            "pass weights that broadcast to the shape of x"
        )
    return inputs.broadcast_to(view, shape)
