"""What adjacent_difference refuses, before anything is written."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(
    ("op", "dtype", "text"),
    [
        (lambda a, b: (a, b), "float32", "y.0. is x.0., which has another structure"),
        (lambda a, b: abs(a - b), "complex64", "imaginary part"),
        (lambda a, b: a.real > b.real, "complex64", "imaginary part"),
        (lambda a: a, "float32", "argument"),
    ],
)
def test_op(backend: Backend, op: Any, dtype: str, text: str, n: int) -> None:
    with pytest.raises(TypeError, match=rf"adjacent_difference: .*{text}"):
        ga.adjacent_difference(backend.to_device(np.ones(n, dtype)), op)


def test_tuples_and_numbers(backend: Backend) -> None:
    x = backend.to_device(np.ones(5))
    with pytest.raises(TypeError, match="has another structure"):
        ga.adjacent_difference((x, x), lambda a, b: a[0] - b[0])
    with pytest.raises(TypeError, match="has another structure"):
        ga.adjacent_difference((x, x), lambda a, b: (a[0], a[1], b[0]))
    with pytest.raises(TypeError, match="op add takes numbers"):
        ga.adjacent_difference((x, x), operator.add)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_bools_as_of_transform(backend: Backend, n: int) -> None:
    x = backend.to_device(np.ones(n, bool))
    refusals = []
    for call in (
        lambda: ga.transform(operator.sub, x, x),
        lambda: ga.adjacent_difference(x),
    ):
        with pytest.raises(ga.CompileError) as caught:
            call()
        refusals.append(str(caught.value).partition(":")[2])
    assert refusals[0] == refusals[1]
