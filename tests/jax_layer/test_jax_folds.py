"""gpualgo.jax: reductions and scans, compared with loops; their gradients, with differences."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402
from jax_folds import OPERATOR, OPERATORS, RNG, close, has_gradients, sample, scanned  # noqa: E402

import gpualgo as ga  # noqa: E402
import gpualgo.jax as gj  # noqa: E402


@OPERATOR
@pytest.mark.parametrize("init", [None, 1.26])
def test_reduce(name: str, init: Any, wide: None) -> None:
    x, op = sample(3, 4, 5), OPERATORS[name]
    wanted = functools.reduce(op, [*([] if init is None else [init]), *x.ravel()])
    close(gj.reduce(x, init, op), wanted)
    rows = np.array([[scanned(row, op, init)[-1] for row in part.T] for part in x])
    close(jax.jit(lambda x: gj.reduce(x, init, op, axis=1))(x), rows)
    close(gj.reduce(x, init, op, axis=1, keepdims=True), rows[:, None])
    close(jax.vmap(lambda x: gj.reduce(x, init, op, axis=0))(x), rows)
    close(jax.vmap(lambda x: gj.reduce(x, init, op), in_axes=1)(x),
          [gj.reduce(x[:, i], init, op) for i in range(4)])  # fmt: skip
    has_gradients(lambda x: gj.reduce(x, init, op, axis=(0, 2)), x)


@OPERATOR
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("kind", "init"), [("in", None), ("in", 1.26), ("ex", 1.26)])
def test_scans(name: str, kind: str, init: Any, reverse: bool, wide: None) -> None:
    x, op = sample(3, 6), OPERATORS[name]
    function = gj.inclusive_scan if kind == "in" else gj.exclusive_scan
    turn = slice(None, None, -1 if reverse else 1)
    wanted = np.array([scanned(row[turn], op, init, kind == "ex")[turn] for row in x])
    scan = lambda x: function(x, init, op, axis=-1, reverse=reverse)  # noqa: E731
    close(scan(x), wanted)
    close(jax.jit(scan)(x), wanted)
    close(jax.vmap(scan)(x), wanted)
    close(function(x.T, init, op, axis=0, reverse=reverse), wanted.T)
    has_gradients(scan, x)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("function", [gj.reduce, gj.inclusive_scan, gj.exclusive_scan])
def test_traced_initial_values(function: Any, reverse: bool, wide: None) -> None:
    x, init, op = sample(4, 3), sample(3), OPERATORS["affine"]
    options = {} if function is gj.reduce else {"reverse": reverse}
    fold = lambda x, init: function(x, init, op, axis=0, **options)  # noqa: E731
    wanted = [function(x[:, i], float(init[i]), op, **options) for i in range(3)]
    close(jax.jit(fold)(x, jnp.asarray(init)), np.array(wanted).T)
    has_gradients(lambda x, init: fold(x, jnp.asarray(init)), x, init)
    assert fold(x, jnp.float64(0.5)).dtype == np.float64


def test_as_jaxs_own_functions() -> None:
    x = sample(1000, dtype=np.float32)
    for op, own in ((operator.add, jnp.add), (max, jnp.maximum), (operator.mul, jnp.multiply)):
        close(gj.inclusive_scan(x, None, op), jax.lax.associative_scan(own, x), 1e-4)
    index = RNG.integers(0, 7, 1000)
    close(gj.reduce_by_index(index, x, 7), jax.ops.segment_sum(x, index, 7), 1e-4)
    close(gj.reduce_by_index(index, x, 7, 0, max), jax.ops.segment_max(x, index, 7))
    grads = [
        jax.grad(lambda x, f=f: f(x))(jnp.array([1.0, 2.0, 2.0]))
        for f in (jnp.max, lambda x: gj.reduce(x, None, max))
    ]
    close(grads[1], grads[0])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_linear_recurrence(axis: Any, reverse: bool, wide: None) -> None:
    a, b = sample(4, 3) - 0.9, sample(4, 3)
    init = sample(*(() if axis is None else (3,) if axis == 0 else (4,)))

    def loop(a: Any, b: Any, h: Any) -> Any:
        if axis is None:
            a, b = a.reshape(-1), b.reshape(-1)
        a, b = (jnp.moveaxis(x, axis or 0, 0) for x in (a, b))
        found = []
        for i in range(len(a))[:: -1 if reverse else 1]:
            h = a[i] * h + b[i]
            found.append(h)
        return jnp.moveaxis(jnp.stack(found[:: -1 if reverse else 1]), 0, axis or 0)

    run = lambda a, b, h: gj.linear_recurrence(a, b, h, axis=axis, reverse=reverse)  # noqa: E731
    close(run(a, b, None), loop(a, b, 0.0))
    close(jax.jit(run)(a, b, init), loop(a, b, init))
    has_gradients(run, a, b, init)
    z = a + 0.5j * b
    close(run(z, b, None), loop(z, b, 0.0))
    weigh = lambda f: lambda z: (f(z, b, 0.0) * jnp.exp(1j)).imag.sum()  # noqa: E731
    close(jax.grad(weigh(run))(jnp.asarray(z)), jax.grad(weigh(loop))(jnp.asarray(z)))
    if axis == 1:  # b has a batch, a has none
        batched = jax.vmap(run, (None, 0, None))(a, np.stack([b, -b]), None)
        close(batched, [run(a, b, None), run(a, -b, None)])


def test_logaddexp_of_masked_numbers() -> None:
    for row in ([-np.inf, -np.inf, 1.0, 2.0], [1.0, -np.inf, -np.inf, 1.0]):
        x = jnp.array(row)
        wanted = jax.grad(jax.nn.logsumexp)(x)
        close(jax.grad(lambda x: gj.reduce(x, None, np.logaddexp))(x), wanted)
        close(jax.grad(lambda x: gj.inclusive_scan(x, None, np.logaddexp)[-1])(x), wanted)


def test_complex_operators_without_a_gradient() -> None:
    for op in (lambda a, b: abs(a) + abs(b), lambda a, b: a.real + b.real):
        with pytest.raises(TypeError, match="holomorphic"):
            jax.grad(lambda x, op=op: abs(gj.reduce(x, None, op)))(jnp.array([1 + 2j, 3 - 1j]))


def test_derivatives_of_the_caller(wide: None) -> None:
    larger = lambda a, b: a if abs(a) > abs(b) else b  # noqa: E731
    vjp = (lambda a, b: 1.0 * (abs(a) > abs(b)), lambda a, b: 1.0 * (abs(a) <= abs(b)))
    x = sample(3, 5) * np.array([-1, 1, -1, 1, 1])
    with pytest.raises(TypeError, match=r"no gradient that jax can derive .* pass\s+vjp="):
        jax.grad(lambda x: gj.inclusive_scan(x, None, larger).sum())(x)
    has_gradients(lambda x: gj.inclusive_scan(x, None, larger, axis=1, vjp=vjp), x)
    has_gradients(lambda x: gj.reduce(x, None, larger, axis=0, vjp=vjp), x)
    straight = (lambda a, b: jnp.ones_like(a),) * 2
    for op in (max, operator.add, operator.mul):
        for f in (
            lambda x: gj.reduce(x, None, op, vjp=straight),  # noqa: B023
            lambda x: gj.inclusive_scan(x, None, op, vjp=straight)[-1],  # noqa: B023
            lambda x: gj.segmented_reduce(x, jnp.array([0, 5]), 0, op, vjp=straight)[0],  # noqa: B023
            lambda x: gj.reduce_by_index(jnp.zeros(5, int), x, 1, 0, op, vjp=straight)[0],  # noqa: B023
        ):
            close(jax.grad(f)(x[0]), np.ones(5))
    with pytest.raises(TypeError, match="vjp must be a tuple"):
        gj.reduce(x, None, larger, vjp=vjp[0])


@pytest.mark.parametrize("name", ["maximum", "logaddexp", "multiply"])
def test_a_ufunc_of_jax_is_the_operator_of_numpys(name: str) -> None:
    x = jnp.array([1.0, 3.0, 2.0])
    for f in (jax.grad, lambda f: f):
        found, expected = (
            f(lambda x: gj.reduce(x, None, getattr(m, name)))(x)  # noqa: B023
            for m in (jnp, np)
        )
        close(found, expected)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "bool", "float16", "bfloat16", "complex64"]
)
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray(RNG.integers(0, 3, 40)).astype(dtype)
    op = operator.or_ if dtype == "bool" else operator.add
    for function in (gj.reduce, gj.inclusive_scan):
        found = function(x, None, op)
        assert found.dtype == x.dtype
        close(
            found.astype(np.complex64),
            np.asarray(getattr(ga, function.__name__)(np.asarray(x), None, op), np.complex64),
        )
    if dtype != "complex64":
        assert gj.reduce(x, None, dtype=np.float64).dtype == np.float32
        assert gj.reduce(x, np.float32(1)).dtype == np.float32
    if dtype in ("float16", "bfloat16"):
        x = x[:8] + 1
        grad = jax.grad(lambda x: gj.reduce(x, None, operator.mul, axis=0))(x)
        assert grad.dtype == x.dtype
        close(grad.astype(np.float32), np.prod(np.float32(x)) / np.float32(x), 0.05)


def test_64_bits(wide: None) -> None:
    assert gj.reduce(np.arange(5)).dtype == np.int64
    assert gj.reduce(np.float32([1]), np.float64(0)).dtype == np.float64
    assert gj.argsort(np.arange(5)).dtype == np.int64


def test_empty() -> None:
    none = jnp.zeros((0, 3))
    close(gj.reduce(none, 2.0), 2.0)
    close(gj.reduce(none, axis=0), np.zeros(3))
    close(gj.reduce(jnp.zeros((3, 0)), 1.5, max, axis=1), np.full(3, 1.5))
    assert gj.inclusive_scan(none, axis=0).shape == (0, 3)
    assert gj.linear_recurrence(none, none, 1.0, axis=0).shape == (0, 3)
    assert jax.grad(lambda x: gj.inclusive_scan(x, None, max).sum())(none).shape == (0, 3)
    assert jax.grad(lambda x: gj.reduce(x, 1.0, operator.mul))(none).shape == (0, 3)
    assert jax.grad(lambda a: gj.linear_recurrence(a, none, axis=0).sum())(none).shape == (0, 3)
    close(gj.reduce_by_index(jnp.zeros(0, int), jnp.zeros(0), 2), np.zeros(2))
    close(gj.reduce_by_key(jnp.zeros(0, int), jnp.zeros(0), size=2).aggregates, np.zeros(2))
    assert jax.vmap(gj.reduce)(none).shape == (0,)
    close(gj.reduce(jnp.float32(3)), 3.0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="identity"):
        jax.block_until_ready(gj.reduce(none, None, max))


FLAGS: list[tuple[str, Any]] = [
    ("keepdims", lambda x, flag: gj.reduce(x, keepdims=flag)),
    ("reverse", lambda x, flag: gj.inclusive_scan(x, reverse=flag)),
    ("reverse", lambda x, flag: gj.exclusive_scan(x, 0, reverse=flag)),
    ("reverse", lambda x, flag: gj.linear_recurrence(x, x, reverse=flag)),
    ("descending", lambda x, flag: gj.sort(x, descending=flag)),
    ("descending", lambda x, flag: gj.argsort(x, descending=flag)),
    ("descending", lambda x, flag: gj.searchsorted(x, x, descending=flag)),
]


@pytest.mark.parametrize(("name", "call"), FLAGS)
def test_flags_are_bools(name: str, call: Any) -> None:
    x = jnp.arange(3.0)
    for flag in (1, "yes", None):
        with pytest.raises(TypeError, match=f"{name} must be True or False, got"):
            call(x, flag)
    call(x, np.bool_(True))
