"""Gradients of every function of operators, and of operators that compute as Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from derivatives import (  # noqa: E402
    OPERATORS,
    by_number,
    many,
    refused_of_all,
    until_one,
)

import gpualgo.torch as gt  # noqa: E402

# PyTorch has no derivative of these, or no such function; of nextafter since 2.13.
REFUSED = {"not", "operator.not_", "math.gamma", "math.nextafter", "np.nextafter"}


def _gradient(op: Any, *numbers: Any) -> Any:
    x = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    gt.reduce(x, None, op).backward()
    return x.grad[-1].item()


@pytest.mark.slow
def test_every_function() -> None:
    refused = refused_of_all(_gradient)
    assert set(refused) <= REFUSED
    assert all("has no gradient" in message for message in refused.values())


@pytest.mark.parametrize(("op", "wanted"), OPERATORS)
def test_operators(op: Any, wanted: float) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    gt.reduce(x, None, op).backward()
    assert x.grad[1].item() == pytest.approx(wanted, rel=1e-15)
    y = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    gt.inclusive_scan(y, None, op)[1].backward()
    assert y.grad[1].item() == pytest.approx(wanted, rel=1e-15)


def test_integers_of_any_size() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    gt.reduce(x, None, lambda a, b: a + b * float(many)).backward()
    assert x.grad[1].item() == 1e20
    y = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    gt.reduce(y, None, lambda a, b: a + b * 10**20).backward()
    assert y.grad[1].item() == 1e20


def test_pairs() -> None:
    flags, v = torch.tensor([0.0, 1.0, 0.0]), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    gt.inclusive_scan((flags, v), None, until_one)[1][2].backward()
    assert v.grad.tolist() == [0, 1, 1]
    v, numbers = (
        torch.tensor([1.5, 2.5], requires_grad=True),
        torch.tensor([1 << 24, (1 << 24) + 1]),
    )
    gt.inclusive_scan((v, numbers), None, by_number)[0][1].backward()
    assert v.grad.tolist() == [1, 1]  # float32 does not hold the second number


@pytest.mark.parametrize("converted", [int, float, bool, np.int64, np.float32])
def test_conversions_have_no_gradient(converted: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(TypeError, match="op has no gradient that PyTorch can derive"):
        gt.reduce(x, None, lambda a, b: a + b * converted(b)).backward()


def test_complex_operators() -> None:
    magnitude = abs
    x = torch.tensor([1 + 2j, 2 - 1j], requires_grad=True)
    with pytest.raises(TypeError, match="no holomorphic function"):
        torch.view_as_real(gt.reduce(x, None, lambda a, b: a + magnitude(b)))[0].backward()
    torch.view_as_real(gt.reduce(x, None, lambda a, b: a + np.exp(b)))[0].backward()
    assert torch.allclose(x.grad[1], torch.exp(torch.tensor(2 - 1j)).conj())
