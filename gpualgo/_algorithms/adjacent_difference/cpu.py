"""Adjacent differences on CPU cores: a transformation of x and of x shifted by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.adjacent_difference.parts import Parts
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records
from gpualgo._cpu.operator import Applied, compile_operator
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.routines import Routine

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared

Array: TypeAlias = np.ndarray[Any, Any]


def difference(
    source: records.Source, result: np.dtype[Any], axis: int, arrays: Sequence[Array],
    outs: Sequence[Array], op: Operator,
) -> None:  # fmt: skip
    """Write outs[..][0] = x[0] and outs[..][i] = op(x[i], x[i - 1]) along an axis.

    `arrays` are those of the fields of source, `outs` those of op's result; all have one shape, any
    strides, and do not overlap. Computed elements are written to memory first.
    """
    if outs[0].size == 0:
        return
    element = records.register_dtype(source)
    if isinstance(source, records.Computed):
        compile_operator(op, (element, element), result)  # may fail, so it comes first
        computed = [np.empty(outs[0].shape, leaf) for leaf in records.field_dtypes(element)]
        numbers = tuple(map(records.operand_dtype, source.numbers))
        cpu.transform(Applied(op.source, numbers, element), arrays, computed)
        arrays = computed
    parts = Parts.along(axis)
    cpu.transform(_applied(op, element, result), *parts.cut(arrays, outs))
    parts.copy_first(arrays, outs)


def prepared(
    source: records.Source, result: np.dtype[Any], axis: int, arrays: Sequence[Array],
    outs: Sequence[Array], op: Operator,
) -> Prepared:  # fmt: skip
    """Return a call of `difference` for non-empty arrays of these layouts."""
    parts, has_steps = Parts.along(axis), outs[0].shape[axis] > 1
    applied = _applied(op, records.register_dtype(source), result)
    launch = cpu.prepared(applied, *parts.cut(arrays, outs)) if has_steps else None

    def run(arrays: Sequence[Array], outs: Sequence[Array], start: int) -> None:
        if launch is not None:
            launch(*parts.cut(arrays, outs), start)
        parts.copy_first(arrays, outs)

    return run


def _applied(op: Operator, element: np.dtype[Any], result: np.dtype[Any]) -> Applied:
    argument = records.Separate(element) if records.is_record(element) else element
    return Applied(op, (argument, argument), result)


def routine(items: int, work: int) -> Routine:
    """Return one of the transformations that `difference` would run, for `explain`."""
    return cpu.routine(items, work)
