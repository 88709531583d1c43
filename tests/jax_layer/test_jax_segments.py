"""gpualgo.jax: segments, indices and keys, compared with loops; their gradients."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402
from jax_folds import OFFSETS, OPERATOR, OPERATORS, close, has_gradients, sample, scanned  # noqa: E402

import gpualgo as ga  # noqa: E402
import gpualgo.jax as gj  # noqa: E402


@OPERATOR
@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("init", [None, 1.26])
def test_segments(name: str, offsets: list[int], init: Any, wide: None) -> None:
    x, op = sample(11), OPERATORS[name]
    given = ga.Operator(op, identity=1e-9)
    bounds = jnp.array(offsets, np.int32)
    segments = list(itertools.pairwise(offsets))
    for function in (gj.segmented_inclusive_scan, gj.segmented_exclusive_scan):
        is_exclusive = function is gj.segmented_exclusive_scan
        start = 1.26 if is_exclusive else init
        wanted = x.copy()
        for i, j in segments:
            wanted[i:j] = scanned(x[i:j], op, start, is_exclusive)
        scan = lambda x: function(x, bounds, start, op)  # noqa: B023, E731
        close(jax.jit(scan)(x), wanted)
        has_gradients(scan, x)
    fold = lambda x, bounds: gj.segmented_reduce(x, bounds, init, given)  # noqa: E731
    empty = 1e-9 if init is None else init
    if name in ("add", "multiply") and init is None:
        empty = {"add": 0, "multiply": 1}[name]
        given = op
    wanted = [scanned(x[i:j], op, init)[-1] if i < j else empty for i, j in segments]
    close(jax.jit(fold)(x, bounds), np.array(wanted, x.dtype))
    has_gradients(lambda x: fold(x, bounds), x)
    both = jax.vmap(fold)(np.stack([x, x]), jnp.stack([bounds, jnp.minimum(bounds, 4)]))
    close(both[0], np.array(wanted, x.dtype))


@OPERATOR
def test_indices_and_keys(name: str, wide: None) -> None:
    x, op = sample(12), OPERATORS[name]
    index = np.array([2, 0, 2, 2, 4, 0, 4, 1, 1, 2, 0, 4])
    fold = lambda x, index: gj.reduce_by_index(index, x, 6, 1.26, op)  # noqa: E731
    wanted = [scanned(x[index == k], op, 1.26)[-1] if k in index else 1.26 for k in range(6)]
    close(jax.jit(fold)(x, index), wanted)
    close(jax.vmap(fold, (None, 0))(x, np.stack([index, index])), [wanted, wanted])
    has_gradients(lambda x: fold(x, index), x)
    keys = np.sort(index) * 0.5
    keys[-2:] = np.nan
    for size in (0, 2, 5, 8):
        run = lambda x, keys: gj.reduce_by_key(keys, x, None, op, size=size)  # noqa: B023, E731
        found = jax.jit(run)(x, keys)
        wanted = ga.reduce_by_key(keys, x, None, op, consecutive=True)
        some = min(size, 5)
        assert found.count == 5
        close(found.aggregates, [*wanted.aggregates[:some], *[0.0] * (size - some)])
        close(found.keys, [*wanted.keys[:some], *[0.0] * (size - some)])
        has_gradients(lambda x: run(x, keys).aggregates, x)  # noqa: B023
    apart = lambda a, b: abs(a - b) < 0.75  # noqa: E731
    run = lambda x: gj.reduce_by_key(index, x, None, op, size=7, eq=apart).aggregates  # noqa: E731
    wanted = ga.reduce_by_key(index, x, None, op, consecutive=True, eq=apart).aggregates
    close(run(x)[: len(wanted)], wanted[:7])
    has_gradients(run, x)


def test_maxima_share_their_cotangent() -> None:
    x = jnp.array([2.0, 5.0, 5.0, 1.0])
    for f in (
        lambda x: gj.reduce(x, None, max),
        lambda x: gj.segmented_reduce(x, jnp.array([0, 4]), 0, max)[0],
        lambda x: gj.reduce_by_index(jnp.zeros(4, int), x, 2, 0, max)[0],
        lambda x: gj.reduce_by_key(jnp.zeros(4, int), x, None, max, size=2).aggregates[0],
    ):
        close(jax.grad(f)(x), [0, 0.5, 0.5, 0])
    assert not jax.grad(lambda x: gj.reduce(x, 9.0, max))(x).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_equal_maxima_of_half_precision(dtype: str) -> None:
    n, zeros = 1024, jnp.zeros(1024, int)
    for f in (
        lambda x: gj.reduce(x, None, max),
        lambda x: gj.segmented_reduce(x, jnp.array([0, n]), -1, max)[0],
        lambda x: gj.reduce_by_index(zeros, x, 2, -1, max)[0],
    ):
        close(jax.grad(f)(jnp.ones(n, dtype)).astype(np.float32), np.full(n, 1 / n))
    many = jnp.ones(100_000, dtype)  # more than float16 has
    assert jax.grad(lambda x: gj.reduce(x, None, max))(many).all()


def test_keys_have_no_gradient() -> None:
    x = jnp.array([3.0, 3.0, 2.0])
    f = lambda keys, x: gj.reduce_by_key(keys, x, None, operator.mul, size=3)  # noqa: E731
    assert not jax.grad(lambda keys: f(keys, x + 1).aggregates.sum())(x).any()
    assert not jax.grad(lambda keys: f(keys, jnp.arange(3)).keys.sum())(x).any()
    close(jax.grad(lambda x: f(x, x).aggregates.sum())(x), [3.0, 3.0, 1.0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32"])
def test_narrow_indices_have_gradients(dtype: str) -> None:
    x, bounds = jnp.ones(300), jnp.array([1, 100, 120], dtype)
    index = (jnp.arange(300) % 100).astype(dtype)
    for op in (operator.add, max, operator.mul):
        for f in (
            lambda x, i: gj.segmented_reduce(x, bounds.astype(i), 1, op),  # noqa: B023
            lambda x, i: gj.segmented_inclusive_scan(x, bounds.astype(i), 1, op),  # noqa: B023
            lambda x, i: gj.reduce_by_index(index.astype(i), x, 280, 1, op),  # noqa: B023
        ):
            found = [jax.grad(lambda x, f=f, i=i: f(x, i).sum())(x) for i in (dtype, int)]
            close(*found)


def test_initial_values_of_weak_dtypes() -> None:
    """A traced Python number has no dtype of its own."""
    for dtype in ("float32", "float16", "bfloat16", "uint8"):
        x = jnp.array([1.5, 2.5, 3.0]).astype(dtype)
        for init in (2, 2.0) if dtype != "uint8" else (2,):
            for function in (gj.reduce, gj.inclusive_scan, gj.exclusive_scan):
                found = jax.jit(function)(x, init)
                assert found.dtype == x.dtype
                close(found, function(x, init))
    x = np.float16([0.5, 0.5])
    assert gj.linear_recurrence(x, x, np.float32(1)).dtype == np.float16
