"""Gradients of every function of operators, and of operators that compute as Python does."""

from __future__ import annotations

import cmath
from math import erf
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402
from derivatives import OPERATORS, by_number, refused_of_all  # noqa: E402

import gpualgo.jax as gj  # noqa: E402

REFUSED = {"not", "operator.not_", "np.nextafter", "math.nextafter"}  # JAX has no derivative


def _gradient(op: Any, *numbers: Any) -> Any:
    return jax.grad(lambda x: gj.reduce(x, None, op))(jnp.array(numbers))[-1]


@pytest.mark.usefixtures("wide")
@pytest.mark.slow
def test_every_function() -> None:
    refused = refused_of_all(_gradient)
    assert set(refused) <= REFUSED
    assert all("no gradient that jax can derive" in message for message in refused.values())


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(("op", "wanted"), OPERATORS)
def test_operators(op: Any, wanted: float) -> None:
    assert _gradient(op, 1.0, 2.0) == pytest.approx(wanted, rel=1e-15)


def test_numbers_of_operators_are_pythons() -> None:
    import math

    found = _gradient(lambda a, b: a + b * (math.exp(100) * 1e-43), 1.0, 2.0)
    assert found == pytest.approx(math.exp(100) * 1e-43, rel=1e-6)
    found = _gradient(lambda a, b: a + erf(b), 1.0, 0.5)
    assert found == pytest.approx(2 / math.sqrt(math.pi) * math.exp(-0.25), rel=1e-6)


def test_pairs() -> None:
    v, numbers = jnp.array([1.5, 2.5]), jnp.array([1 << 24, (1 << 24) + 1])
    found = jax.grad(lambda v: gj.inclusive_scan((v, numbers), None, by_number)[0][1])(v)
    assert found.tolist() == [1, 1]  # float32 does not hold the second number
    found = jax.grad(lambda v: gj.reduce(v, None, lambda a, b: 1.0))(v)
    assert found.tolist() == [0, 0]


@pytest.mark.parametrize("converted", [int, float, bool, np.int64, np.float32])
def test_conversions_have_no_gradient(converted: Any) -> None:
    with pytest.raises(TypeError, match="no gradient that jax can derive"):
        _gradient(lambda a, b: a + b * converted(b), 1.0, 2.0)


def test_complex_operators() -> None:
    magnitude = abs
    x = jnp.array([1 + 2j, 2 - 1j])
    with pytest.raises(TypeError, match="no holomorphic function"):
        jax.grad(lambda x: gj.reduce(x, None, lambda a, b: a + magnitude(b)).real)(x)
    numbers = jnp.arange(2)  # the first number of a pair does not decide
    pairs = lambda a, b: (b[0], a[1] + magnitude(b[1]))  # noqa: E731
    with pytest.raises(TypeError, match="no holomorphic function"):
        jax.grad(lambda x: gj.reduce((numbers, x), None, pairs)[1].real)(x)
    found = jax.grad(lambda x: gj.reduce(x, None, lambda a, b: a + np.exp(b)).real)(x)
    assert complex(found[1]) == pytest.approx(cmath.exp(2 - 1j), rel=1e-6)
