"""What tests of folds in gpualgo.jax share: operators, samples, loops, gradients by differences."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

RNG = np.random.default_rng(5)
OPERATORS = {
    "add": operator.add,
    "multiply": operator.mul,
    "max": max,
    "min": np.minimum,
    "logaddexp": np.logaddexp,
    "affine": lambda a, b: a + b + 0.25 * a * b,
    "norm": lambda a, b: np.sqrt(a * a + b * b),
}
OPERATOR = pytest.mark.parametrize("name", OPERATORS)
OFFSETS = [0, 0, 3, 4, 4, 9], [2, 5, 8], [1, 1], [0, 11], [11]


def sample(*shape: int, dtype: Any = np.float64) -> Any:
    """Return numbers from 0.5 to 1.5, all different."""
    size = int(np.prod(shape))
    return (RNG.permutation(size).reshape(shape) / max(size, 1) + 0.5).astype(dtype)


def scanned(row: Any, op: Any, init: Any = None, is_exclusive: bool = False) -> Any:
    """Return a scan of one row, by a loop."""
    values = list(row) if init is None else [init, *row]
    found = list(itertools.accumulate(values, op))
    if init is not None:
        found = found[:-1] if is_exclusive else found[1:]
    return np.array(found, row.dtype)


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found, wanted.dtype), wanted, tolerance, tolerance)


def has_gradients(f: Callable[..., Any], *arrays: Any) -> None:
    """Compare first and second derivatives with differences; also within jit and vmap."""
    check_grads(f, arrays, order=2, modes=["rev"], atol=1e-4, rtol=1e-4)
    total = jax.grad(lambda *given: jnp.sin(f(*given)).sum(), range(len(arrays)))
    stacked = [jnp.stack([x, x * 0.75]) for x in arrays]
    found = jax.jit(jax.vmap(total))(*stacked)
    wanted = [total(*(x[i] for x in stacked)) for i in range(2)]
    for number, gx in enumerate(found):
        close(gx, jnp.stack([gradients[number] for gradients in wanted]))
