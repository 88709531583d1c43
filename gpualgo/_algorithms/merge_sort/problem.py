"""Specification of a sort by comparisons, and of values moved with the keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.merge_sort.comparison import comparison_of
from gpualgo._algorithms.radix_sort.tuple_problem import Forms, TupleSort, values_beside
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, check_items
from gpualgo._base.extents import order_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Problem
from gpualgo._pipeline.results import Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.routines import Routine


class MergeSort(Problem):
    """Specification of a `merge_sort` call, or of `sort` with a function, shared by equal calls."""

    op_name = "less"
    needs_alignment = False  # unaligned arrays are copied to dense, aligned rows
    copies_page_locked = True  # in place, each pass would cross the bus
    takes_any_items = True

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        ways, axis, self.num_keys, self.forms = rest
        keys, values = views[: self.num_keys], views[self.num_keys :]
        keys_form, values_form = (*self.forms, None)[:2]
        key_names = inputs.names(keys, keys_form, "keys")
        value_names = inputs.names(values, values_form, "values") if values else ()
        self.inputs = (*key_names, *value_names)
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        for view, name in zip(values, value_names, strict=True):
            check_items(view, f"{where}: {name}")
        self.order = comparison_of(keys, key_names, keys_form, op, ways, device, where)
        self.shape = shape = keys[0].shape
        self.axis = checks.axis_of(axis, len(shape), where)  # None: flattened
        if len(values) == 1 and values[0].shape != shape:
            raise ValueError(
                f"{where}: values has shape {values[0].shape} but keys has {shape}; "
                "pass one value for each key"
            )
        size = math.prod(shape)
        self.row_items = size if self.axis is None else shape[self.axis]
        out_shape = (size,) if self.axis is None else shape
        orders = [() if self.axis is None else order_of(shape, [view.strides]) for view in views]
        self.results = tuple(
            Result(out_shape, view.dtype, (i,), orders[i]) for i, view in enumerate(views)
        )
        self.form = keys_form
        if values and (keys_form is not None or values_form is not None):
            self.form = Form(tuple, (keys_form, values_form))
        self.by_value: TupleSort | None = None  # sorts by value on the CPU
        if op is None:
            forms = self.forms if values else self.forms[:1]
            self.by_value = TupleSort(
                device, views, None, None, (ways, 0, None, axis, None, forms), where
            )

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "merge sort", views[: rest[2]]

    def taken(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        if not 0 < len(arguments) < 3:
            return None
        try:
            return arguments_of(tuple(arguments), self.where, self.num_arguments > 0)
        except ValueError:  # no prepared shape matches; the caller reports it
            return None

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.merge_sort import cuda

        return cuda.plan_of(self, self.order.with_op(op), views, targets)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.merge_sort.cpu_parameters import block_items
        from gpualgo._pipeline.routines import bytes_of, compiled

        if self.by_value is not None:
            return self.by_value.routines(arrays, results, None, None)
        moved = bytes_of(results[self.num_keys :])
        value_bytes = 8 if moved else 0
        block = block_items(self.order.element, value_bytes)
        work = (bytes_of(arrays) + moved) * block.bit_length()
        return [compiled("merge_sort", results[0].size, block, work)]

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        if self.by_value is not None:
            self.by_value.cpu(arrays, results, None, None)
            return
        from gpualgo._algorithms.merge_sort import cpu

        cpu.sort(self, self.order.with_op(op), arrays, results)


def arguments_of(arguments: tuple[Any, ...], where: str, has_names: bool) -> tuple[Views, Forms]:
    """Return the views of keys, and of values if given, and the structure of each."""
    keys, form = inputs.spread(arguments[0], f"{where}: keys", has_names)
    if len(arguments) == 1:
        return keys, (form,)
    values, values_form = values_beside(arguments[1], keys[0].shape, where)
    return (*keys, *values), (form, values_form)
