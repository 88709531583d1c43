"""gpualgo.jax: sorts, selections, histograms and searches, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402

import gpualgo as ga  # noqa: E402
import gpualgo.jax as gj  # noqa: E402

RNG = np.random.default_rng(6)


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def sample(*shape: int) -> Any:
    return RNG.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_sorts(axis: Any, descending: bool) -> None:
    x, v = sample(5, 7), sample(5, 7)
    run = lambda x: gj.sort(x, descending=descending, axis=axis)  # noqa: E731
    wanted = -np.sort(-x, axis) if descending else np.sort(x, axis)
    same(run(x), wanted)
    same(jax.jit(run)(x), wanted)
    order = np.argsort(-x if descending else x, axis)
    same(gj.argsort(x, descending=descending, axis=axis), order)
    pairs = jax.jit(lambda x, v: gj.sort(x, v, descending=descending, axis=axis))(x, v)
    same(pairs[1], np.take_along_axis(v if axis is not None else v.ravel(), order, axis or 0)
         if axis != -1 else np.take_along_axis(v, order, -1))  # fmt: skip
    batched = jax.vmap(lambda x: gj.sort(x, descending=descending))(x)
    same(batched, -np.sort(-x) if descending else np.sort(x))
    weights = sample(*wanted.shape)
    grad = jax.grad(lambda x: (run(x) * weights).sum())(x)
    expected = np.zeros_like(x if axis is not None else x.ravel())
    np.put_along_axis(expected, order, weights, axis if axis is not None else 0)
    same(grad, expected.reshape(x.shape))
    by_value = jax.grad(
        lambda v: (gj.sort(x, v, descending=descending, axis=axis)[1] * weights).sum()
    )
    same(by_value(jnp.asarray(v)), grad)


def test_second_derivatives() -> None:
    """Indices have no gradient, and do not hinder that of values."""
    x, w = jnp.array([3.0, 1.0, 2.0]), jnp.arange(1.0, 4.0)
    for f, own in (
        (lambda x: gj.sort(x), jnp.sort),
        (lambda x: gj.top_k(x, 3, mode="smallest").values, jnp.sort),
        (lambda x: gj.sort(x, x)[1], jnp.sort),
        (lambda x: x[gj.argsort(x)], jnp.sort),
        (lambda x: x * gj.searchsorted(w, x), lambda x: x * jnp.searchsorted(w, x)),
        (lambda x: gj.select(x, lambda a: a > 1.5, size=3).values, lambda x: x[jnp.array([0, 2])]),
        (lambda x: gj.reduce_by_key(x, x, size=3, eq=lambda a, b: a == b).aggregates, lambda x: x),
    ):
        found, wanted = (
            jax.jacrev(jax.grad(lambda x, f=f: (f(x) ** 3 * w[: f(x).size]).sum()))(x)
            for f in (f, own)
        )
        same(found, wanted)


def test_sort_by_comparison() -> None:
    x = jnp.array([3.0, -1.0, 2.0, -5.0])
    less = lambda a, b: abs(a) < abs(b)  # noqa: E731
    same(gj.sort(x, less=less), [-1, 2, 3, -5])
    same(jax.grad(lambda x: gj.sort(x, less=less) @ jnp.arange(4.0))(x), [2, 0, 1, 3])
    keys = jnp.array([3, 1, 2])
    same(jax.grad(lambda v: gj.sort(keys, v)[1] @ jnp.arange(3.0))(x[:3]), [2, 0, 1])


@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_top_k(axis: Any, mode: str) -> None:
    x = sample(6, 5)
    found = jax.jit(lambda x: gj.top_k(x, 3, axis=axis, mode=mode))(x)
    wanted = ga.top_k(x, 3, axis=axis, mode=mode)
    same(found.values, wanted.values)
    same(found.indices, wanted.indices)
    assert found.indices.dtype == np.int32
    same(
        jax.vmap(lambda x: gj.top_k(x, 2, mode=mode).indices)(x), ga.top_k(x, 2, mode=mode).indices
    )
    grad = jax.grad(lambda x: gj.top_k(x, 3, axis=axis, mode=mode).values.sum())(x)
    assert grad.sum() == found.values.size
    same(x.ravel()[np.asarray(grad).ravel() == 1].sum(), found.values.sum())


@pytest.mark.parametrize("size", [0, 2, 4, 9])
def test_select(size: int) -> None:
    x = np.float32([3, -1, 4, -1, 5, 9])
    for predicate in (lambda a: a > 0, x > 0, jnp.asarray(x) > 0):
        run = lambda x: gj.select(x, predicate, size=size)  # noqa: B023, E731
        for found in (run(x), jax.jit(run)(x)):
            same(found.values, ([3, 4, 5, 9] + [0] * 5)[:size])
            same(found.count, 4)
        grad = jax.grad(lambda x: run(x).values @ jnp.arange(1.0, size + 1))(x)  # noqa: B023
        wanted = np.zeros(6)
        wanted[[0, 2, 4, 5][:size]] = np.arange(1, 1 + min(size, 4))
        same(grad, wanted)
    batched = jax.vmap(lambda x, m: gj.select(x, m, size=3))(
        np.stack([x, x]), np.stack([x > 0, x < 0])
    )
    same(batched.values, [[3, 4, 5], [-1, -1, 0]])
    same(batched.count, [4, 2])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("kind", ["even", "edges", "traced"])
def test_histogram(kind: str, dtype: str) -> None:
    x = jnp.asarray(RNG.integers(0, 40, 300) / (4 if "float" in dtype else 1)).astype(dtype)
    w = jnp.asarray(sample(300))
    edges = [0.0, 0.7, 2.5, 2.5, 8.0] if "float" in dtype else [0, 7, 25, 25, 30]
    bins: Any = {"even": 7, "edges": edges, "traced": jnp.array(edges).astype(dtype)}[kind]
    range_ = (0.3, 9.0) if kind == "even" else None
    plain = np.asarray(bins) if kind == "traced" else bins
    counts = jax.jit(lambda x: gj.histogram(x, bins, range_))(x)
    same(counts, ga.histogram(np.asarray(x), plain, range_))
    assert counts.dtype == np.int32
    run = lambda w: gj.histogram(x, bins, range_, weights=w)  # noqa: E731
    wanted = ga.histogram(np.asarray(x), plain, range_, weights=np.asarray(w))
    np.testing.assert_allclose(run(w), wanted, 1e-6)
    each = np.array([ga.histogram(np.asarray(x[i : i + 1]), plain, range_) for i in range(300)])
    cotangent = sample(len(wanted))
    same(jax.jit(jax.vjp(run, w)[1])(cotangent)[0], each @ cotangent)
    both = jax.vmap(lambda x, w: gj.histogram(x, bins, range_, weights=w))(
        jnp.stack([x, x]), jnp.stack([w, 2 * w])
    )
    np.testing.assert_allclose(both, [wanted, 2 * wanted], 1e-6)


@pytest.mark.parametrize("is_traced", [False, True])
def test_weights_of_great_integers_have_the_gradients_of_their_bins(is_traced: bool) -> None:
    """Integers are compared with edges exactly, by the gradient, too."""
    great, top = 2**24, 2**31 - 1
    x = jnp.array([great, great + 1, great + 2, top, -top - 1, 5], jnp.int32)
    w = jnp.ones(len(x), jnp.float32)
    for edges in (
        [0, great + 1, top], [5, 5], [0.5, great + 2.0, 2.0**31], [-np.inf, 5.5, np.inf],
        [0.0, 4.5], [0.0, 2.0**31, 2.0**32], [0.0, 2.0**32, 2.0**33, np.inf], [2.0**31, 2.0**32],
    ):  # fmt: skip
        bins = jnp.array(edges) if is_traced else edges
        found = jax.jacrev(lambda w, bins=bins: gj.histogram(x, bins, weights=w))(w)
        each = [ga.histogram(np.asarray(x[i : i + 1]), edges) for i in range(len(x))]
        assert np.array_equal(np.asarray(found).T, each)


def test_histogram_of_the_datas_range() -> None:
    x = jnp.array([1.0, 2.0, 4.0])
    same(gj.histogram(x, 3), [1, 1, 1])
    with pytest.raises(ValueError, match="range="):
        jax.grad(lambda w: gj.histogram(x, 3, weights=w).sum())(x)


def test_searchsorted() -> None:
    a, v = np.sort(sample(50)), sample(4, 5) * 3
    for side in ("left", "right"):
        same(jax.jit(lambda v: gj.searchsorted(a, v, side=side))(v), np.searchsorted(a, v, side))  # noqa: B023
        same(jax.vmap(lambda v: gj.searchsorted(a, v, side=side))(v), np.searchsorted(a, v, side))  # noqa: B023
    same(gj.searchsorted(a, jnp.float32(3)), np.searchsorted(a, 3))
    same(gj.searchsorted(-a, -v, less=lambda x, y: x > y, dtype=np.int16), np.searchsorted(a, v))


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize("last", [0.0, 1.5])
def test_an_element_at_the_last_edge_has_a_gradient(dtype: str, last: float) -> None:
    """The next number after 0 is subnormal, which XLA takes for 0."""
    x, weights = jnp.array([-0.5, last], dtype), jnp.ones(2)

    def counts(w: Any) -> Any:
        return gj.histogram(x, 2, (-1.0, last), weights=w)

    assert counts(weights).sum() == 2
    assert jax.grad(lambda w: counts(w).sum())(weights).tolist() == [1, 1]


def test_unsigned_samples_with_traced_edges_have_gradients() -> None:
    x, edges = jnp.array([1, 2], "uint32"), jnp.array([0, 1.5, 3])
    found = jax.grad(lambda w: gj.histogram(x, edges, weights=w)[1])(jnp.ones(2))
    assert found.tolist() == [0, 1]


def test_traced_edges_beyond_the_samples_dtype() -> None:
    x, edges = jnp.array([255, 100], "uint8"), jnp.array([0.0, 128.0, 256.0, 512.0])
    each = jax.jacrev(lambda w: gj.histogram(x, edges, weights=w))(jnp.ones(2))
    assert each.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_subnormal_numbers_are_kept() -> None:
    """XLA's threads take them for 0."""
    numbers = np.array([3e-45, 1e-45, 0, 2e-44, 1e-44], np.float32)
    x = jax.device_put(numbers)
    assert np.asarray(gj.sort(x)).tobytes() == np.sort(numbers).tobytes()
    assert gj.argsort(x).tolist() == [2, 1, 0, 4, 3]
    assert gj.select(x, lambda a: a > 0, size=5).count == 4
