"""Adjacent differences on the CPU's cores: a transformation of x and of x one step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.transform import cpu
from gpualgo._base import records
from gpualgo._cpu.operator import Applied, compile_operator
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared

Array: TypeAlias = np.ndarray[Any, Any]


def difference(
    source: records.Source, result: np.dtype[Any], axis: int, arrays: Sequence[Array],
    outs: Sequence[Array], op: Operator,
) -> None:  # fmt: skip
    """Write outs[..][0] = x[0] and outs[..][i] = op(x[i], x[i - 1]) along an axis.

    Arrays are those of the numbers of source, outs those of op's result; all have one shape, any
    strides, and no memory in common. Elements that are computed are put into memory first.
    """
    if outs[0].size == 0:
        return
    element = records.held(source)
    if isinstance(source, records.Computed):
        compile_operator(op, (element, element), result)  # which may fail: before it is written
        made = [np.empty(outs[0].shape, leaf) for leaf in records.leaves(element)]
        numbers = tuple(map(records.number_of, source.numbers))
        cpu.transform(Applied(op.source, numbers, element), arrays, made)
        arrays = made
    operands, targets = _cut(axis, arrays, outs)
    cpu.transform(_applied(op, element, result), operands, targets)
    _copy_first(axis, arrays, outs)


def prepared(
    source: records.Source, result: np.dtype[Any], axis: int, arrays: Sequence[Array],
    outs: Sequence[Array], op: Operator,
) -> Prepared:  # fmt: skip
    """Return what `difference` does for arrays of these layouts, of at least one element."""
    has_steps = outs[0].shape[axis] > 1
    applied = _applied(op, records.held(source), result)
    launch = cpu.prepared(applied, *_cut(axis, arrays, outs)) if has_steps else None

    def run(arrays: Sequence[Array], outs: Sequence[Array], start: int) -> None:
        if launch is not None:
            launch(*_cut(axis, arrays, outs), start)
        _copy_first(axis, arrays, outs)

    return run


def _applied(op: Operator, element: np.dtype[Any], result: np.dtype[Any]) -> Applied:
    argument = records.Apart(element) if records.is_record(element) else element
    return Applied(op, (argument, argument), result)


def _cut(
    axis: int, arrays: Sequence[Array], outs: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """Return what op takes, later elements before earlier ones, and where its results belong."""
    lead = (slice(None),) * axis
    later, earlier = (*lead, slice(1, None)), (*lead, slice(None, -1))
    operands = [array[part] for part in (later, earlier) for array in arrays]
    return operands, [out[later] for out in outs]


def _copy_first(axis: int, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
    first = (*(slice(None),) * axis, slice(0, 1))
    for array, out in zip(arrays, outs, strict=True):
        if array.dtype == out.dtype:
            out[first] = array[first]
            continue
        with np.errstate(all="ignore"):  # kernels warn of nothing
            np.copyto(out[first], array[first], casting="unsafe")
