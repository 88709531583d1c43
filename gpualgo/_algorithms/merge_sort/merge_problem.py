"""Specification of a merge of two sorted arrays, and of values moved with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.merge_sort.comparison import comparison_of
from gpualgo._algorithms.radix_sort.tuple_problem import Forms, values_beside
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, check_items
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Problem
from gpualgo._pipeline.results import Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.routines import Routine


class Merge(Problem):
    """Specification of a `merge` call, shared by equal calls. Arrays: a, b, a_values, b_values."""

    op_name = "less"
    needs_alignment = False  # unaligned arrays are copied to dense, aligned ones
    copies_page_locked = True  # binary searches would cross the bus
    takes_any_items = True

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        ways, self.num_keys, self.forms = rest
        count = self.num_keys
        a, b, values = views[:count], views[count : 2 * count], views[2 * count :]
        self.num_values = len(values) // 2
        a_values, b_values = values[: self.num_values], values[self.num_values :]
        form, values_form = self.forms[0], (self.forms[2] if values else None)
        names = [*inputs.names(a, form, "a"), *inputs.names(b, form, "b")]
        value_names: list[str] = []
        if values:
            value_names += inputs.names(a_values, values_form, "a_values")
            value_names += inputs.names(b_values, values_form, "b_values")
        self.inputs = (*names, *value_names)
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        for x, y, name, other in zip(a, b, names[:count], names[count:], strict=True):
            _check_alike(x, y, name, other, where)
        for view, name in zip((a[0], b[0]), names[::count], strict=False):
            if len(view.shape) != 1:
                raise ValueError(
                    f"{where}: {name} has {len(view.shape)} dimensions; pass one-dimensional arrays"
                )
        for view, name in zip(values, value_names, strict=True):
            check_items(view, f"{where}: {name}")
        pairs = zip(a_values, b_values, value_names, value_names[self.num_values :], strict=False)
        for x, y, name, other in pairs:
            _check_alike(x, y, name, other, where)
            for view, key, label in ((x, a[0], name), (y, b[0], other)):
                if view.shape != key.shape:
                    raise ValueError(
                        f"{where}: {label} has shape {view.shape} but its keys have {key.shape}; "
                        "pass one value for each key"
                    )
        self.order = comparison_of(a, names[:count], form, op, ways, device, where)
        self.lengths = a[0].shape[0], b[0].shape[0]
        self.results = tuple(Result((sum(self.lengths),), view.dtype) for view in (*a, *a_values))
        self.form = form
        if values and (form is not None or values_form is not None):
            self.form = Form(tuple, (form, values_form))

    def taken(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        if len(arguments) not in (2, 4):
            return None
        try:
            return arguments_of(tuple(arguments), self.where, self.num_arguments > 0)
        except ValueError:  # no prepared shape matches; the caller reports it
            return None

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.merge_sort import cuda_merge

        return cuda_merge.plan_of(self, self.order.with_op(op), views, targets)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.merge_sort.cpu_parameters import PIECE_ITEMS
        from gpualgo._pipeline.routines import bytes_of, compiled

        work = 4 * bytes_of(arrays)
        return [compiled("merge_sort", results[0].size, PIECE_ITEMS, work)]

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.merge_sort import cpu_merge

        cpu_merge.merge(self, self.order.with_op(op), arrays, results)


def _check_alike(x: View, y: View, name: str, other: str, where: str) -> None:
    if x.dtype != y.dtype:
        raise TypeError(
            f"{where}: {name} has dtype {x.dtype} and {other} has {y.dtype}; pass equal dtypes"
        )


def arguments_of(arguments: tuple[Any, ...], where: str, has_names: bool) -> tuple[Views, Forms]:
    """Return the views of a and b, and of their values if given, and the structure of each."""
    names = ("a", "b", "a_values", "b_values")
    a, form = inputs.spread(arguments[0], f"{where}: a", has_names)
    b, other = inputs.spread(arguments[1], f"{where}: b", has_names)
    _check_form(form, other, names[:2], where)
    if len(arguments) == 2:
        return (*a, *b), (form, other)
    values = [
        values_beside(value, keys[0].shape, where, name, owner)
        for value, keys, name, owner in zip(arguments[2:], (a, b), names[2:], names, strict=False)
    ]
    (first, values_form), (second, other_form) = values
    _check_form(values_form, other_form, names[2:], where)
    return (*a, *b, *first, *second), (form, other, values_form, other_form)


def _check_form(form: Form | None, other: Form | None, names: Sequence[str], where: str) -> None:
    if form != other:
        raise TypeError(
            f"{where}: {names[1]} has another structure than {names[0]}; pass two arrays, or two "
            "tuples with the same fields"
        )
