"""Arrays of no elements, along every axis: what the results hold, or who refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contract.case import Case, assert_bits, hosts, outputs_like, used
from contract.cases import each_case
from support import Backend


def emptied(case: Case, axis: int) -> Case | None:
    """Return the case with no elements along an axis from the end; None: no input has it."""
    given = case.elements  # offsets are there in any case
    full = max(shape[axis] if len(shape) >= -axis else 0 for shape, _ in given)
    if not full:
        return None
    shapes = [
        tuple(
            0 if i == len(shape) + axis and (n == full or case.is_merged or case.is_searched) else n
            for i, n in enumerate(shape)
        )
        for shape, _ in given
    ]
    if case.offsets_at is not None:
        shapes.insert(case.offsets_at, case.inputs[case.offsets_at][0])
    inputs = tuple((shape, dtype) for shape, (_, dtype) in zip(shapes, case.inputs, strict=True))
    return replace(case, inputs=inputs)


def without_elements(case: Case, results: list[np.ndarray[Any, Any]], axis: int) -> Any:
    """Return what the emptied case gives: extents of the axis, or of all of them flattened, go."""
    if case.is_merged:
        return [np.empty(0, result.dtype) for result in results]
    if case.is_searched:  # in no elements, or for none
        empty = emptied(case, axis)
        return [np.zeros(empty.inputs[-1][0], result.dtype) for result in results if empty]
    shape = np.broadcast_shapes(*(shape for shape, _ in case.elements))
    gone = {shape[axis]} | ({math.prod(shape)} if len(shape) > 1 else set())
    if case.has_dynamic_length:  # of nothing nothing is kept
        return [np.zeros(0, result.dtype) for result in results]
    held = 0 if case.of_empty is None else case.of_empty
    each = held if isinstance(held, tuple) else (held,) * len(results)
    return [
        np.full([0 if n in gone else n for n in result.shape], value, result.dtype)
        for result, value in zip(results, each, strict=True)
    ]


@each_case
def test_every_axis(backend: Backend, case: Case) -> None:
    if "init" in case.last_are:
        pytest.skip("starts have another shape than elements; rows without any are tested there")
    results = hosts(backend, case.on(backend)(*case.arrays(backend)))
    for axis in range(-max(len(shape) for shape, _ in case.inputs), 0):
        empty = emptied(case, axis)
        if empty is None:
            continue
        want = without_elements(case, results, axis)
        call, arrays = empty.on(backend), empty.arrays(backend)
        out = outputs_like(want, used(backend))
        is_refused = case.of_empty is None and bool(want[0].size)
        if "window" in case.options:  # none fits into an axis of no elements
            is_refused = (case.options.get("axis", -1) - axis) % len(case.inputs[0][0]) == 0
        if is_refused:
            for options in ({}, {"out": out}):
                with pytest.raises(ValueError, match=rf"^{case.name}: .*(no .*identity| 0 elem)"):
                    call(*arrays, **options)
            assert all((x == 1).all() for x in hosts(backend, out))
            continue
        assert_bits(hosts(backend, call(*arrays)), want)
        assert call(*arrays, out=out) is out
        assert_bits(hosts(backend, out), want)
        plan = call.prepare(*arrays)
        assert plan.temp_storage_bytes == 0
        assert_bits(hosts(backend, plan(*arrays)), want)
        out = outputs_like(want, used(backend))
        assert plan(*arrays, out=out) is out
        assert_bits(hosts(backend, out), want)
