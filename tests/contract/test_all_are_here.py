"""Every registered algorithm has sample calls, in which each of its arguments occurs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from contract.case import OPERATORS, TABLE, Call
from contract.cases import CASES, cases_of, each_function
from support import Backend

from gpualgo._algorithms import ALGORITHMS

GIVEN_BY_TESTS = {"out", "out_count", "stream"}


def test_no_case_is_of_another_function() -> None:
    assert {case.function for case in CASES} == set(ALGORITHMS)


@each_function
def test_each_argument_occurs(function: Callable[..., Any]) -> None:
    signature = inspect.signature(function)
    seen = GIVEN_BY_TESTS & set(signature.parameters)
    for case in cases_of(function):
        args, options = Call(case, TABLE).arguments(case.samples())
        seen |= set(signature.bind(*args, **options).arguments)
    assert seen == set(signature.parameters)


@each_function
def test_sizes_and_shapes(function: Callable[..., Any]) -> None:
    """There is a call of several tiles, one of several axes, one of none and one of no elements."""
    shapes = [case.inputs[0][0] for case in cases_of(function)]
    assert max(np.prod(shape) for shape in shapes) >= 100_000
    # Others take arrays of no axes.
    dimensions = {"merge": {1}, "searchsorted": {1}, "adjacent_difference": {1, 2},
                  "rolling": {1, 2}}  # fmt: skip
    wanted = {1} if function.__name__.startswith("segmented") else {0, 1, 2}
    wanted = dimensions.get(function.__name__, wanted)
    assert {min(len(shape), 2) for shape in shapes} == wanted
    assert any(0 in shape for shape in shapes)
    assert 0 not in shapes[0]


@each_function
def test_operators_capture_arrays(function: Callable[..., Any]) -> None:
    has_operator = not OPERATORS.isdisjoint(inspect.signature(function).parameters)
    assert any(case.captures for case in cases_of(function)) == has_operator


def test_samples_differ(backend: Backend) -> None:
    for case in CASES:
        first, second = case.samples(0)[0], case.samples(1)[0]
        assert first.size < 2 or first.tobytes() != second.tobytes()
        assert [x.shape for x in case.arrays(backend)] == [shape for shape, _ in case.inputs]
