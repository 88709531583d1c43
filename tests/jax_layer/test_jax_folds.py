"""gpualgo.jax: reductions and scans, compared with loops; their gradients, with differences."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import gpualgo as ga  # noqa: E402
import gpualgo.jax as gj  # noqa: E402
from gpualgo.jax._gradients import recurrence  # noqa: E402

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


def softmax_sum(a: Any, b: Any) -> Any:
    largest = np.maximum(a[0], b[0])
    return largest, a[1] * np.exp(a[0] - largest) + b[1] * np.exp(b[0] - largest)


PAIRS = {
    "affine": lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]),
    "products": lambda a, b: (a[0] + b[0], a[1] + b[1] + a[0] * b[0]),
    "softmax": softmax_sum,
}


def scanned_pairs(xs: Any, op: Any, init: Any, is_exclusive: bool = False) -> Any:
    values = [*([] if init is None else [init]), *zip(*xs, strict=True)]
    found = list(itertools.accumulate(values, op))
    if init is not None:
        found = found[:-1] if is_exclusive else found[1:]
    return [np.array(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("init", [None, (1.26, 0.5)])
def test_pairs(name: str, init: Any, wide: None) -> None:
    """Elements of two numbers: tuples of arrays."""
    x, y, op = sample(6), sample(6), PAIRS[name]
    bounds, ends = jnp.array([1, 3, 3, 5]), [(1, 3), (3, 3), (3, 5)]
    identity = (1.25, 0.75)
    given = ga.Operator(op, identity=identity)
    scans: dict[Any, Any] = {
        gj.inclusive_scan: scanned_pairs((x, y), op, init),
        gj.exclusive_scan: scanned_pairs((x, y), op, init or identity, True),
    }
    for function, wanted in scans.items():
        run = functools.partial(function, init=init, op=given)
        for found in (run((x, y)), jax.jit(run)((x, y))):
            assert isinstance(found, tuple)
            [close(a, b) for a, b in zip(found, wanted, strict=True)]
        turned = function((x[::-1], y[::-1]), init, given, reverse=True)
        [close(a[::-1], b) for a, b in zip(turned, wanted, strict=True)]
    for function in (gj.segmented_inclusive_scan, gj.segmented_exclusive_scan):
        is_exclusive = function is gj.segmented_exclusive_scan
        start = init or identity if is_exclusive else init
        wanted = [x.copy(), y.copy()]
        for i, j in ends:
            for column, part in zip(wanted, scanned_pairs((x[i:j], y[i:j]), op, start, is_exclusive)
                                    if i < j else (), strict=False):  # fmt: skip
                column[i:j] = part
        [close(a, b) for a, b in zip(function((x, y), bounds, init, given), wanted, strict=True)]
        has_gradients(lambda x, y: jnp.stack(function((x, y), bounds, init, given)), x, y)  # noqa: B023
    parts = [scanned_pairs((x[i:j], y[i:j]), op, init) if i < j else [[init or identity][0]]
             for i, j in ends]  # fmt: skip
    found = gj.segmented_reduce((x, y), bounds, init, given)
    close(found[0], [part[0][-1] if len(part) > 1 else part[0][0] for part in parts])
    close(found[1], [part[1][-1] if len(part) > 1 else part[0][1] for part in parts])
    rows = gj.reduce((x.reshape(2, 3), y.reshape(2, 3)), init, op, axis=1, keepdims=True)
    wanted = [scanned_pairs((x[i : i + 3], y[i : i + 3]), op, init) for i in (0, 3)]
    for k in (0, 1):
        close(rows[k], [[row[k][-1]] for row in wanted])
    for f in (
        lambda x, y: gj.inclusive_scan((x, y), init, given, reverse=True),
        lambda x, y: gj.exclusive_scan((x, y), init, given),
        lambda x, y: gj.reduce((x, y), init, given),
        lambda x, y: gj.segmented_reduce((x, y), bounds, init, given),
        lambda x, y: gj.inclusive_scan((x, y), (x[0], 0.5), op),
        lambda x, y: gj.reduce((x, y), (0.5, y[1]), op),
    ):
        has_gradients(lambda x, y, f=f: jnp.stack(f(x, y)), x, y)


def test_numbers_of_pairs_that_are_integers() -> None:
    x = jnp.array([2.0, 3.0, 4.0])
    f = lambda x: gj.reduce((x, jnp.arange(3)), None, lambda a, b: (a[0] * b[0], a[1] + b[1]))  # noqa: E731
    total, count = f(x)
    assert (total, count, count.dtype) == (24, 3, np.int32)
    close(jax.grad(lambda x: f(x)[0])(x), [12.0, 8.0, 6.0])
    d_left = lambda a, b: ((b[0], 0), (0, 1))  # noqa: E731
    d_right = lambda a, b: ((a[0], 0), (0, 1))  # noqa: E731
    given = lambda x: gj.reduce(  # noqa: E731
        (x, x), None, lambda a, b: (a[0] * b[0], a[1] + b[1]), vjp=(d_left, d_right)
    )
    close(jax.grad(lambda x: sum(given(x)))(x), [13.0, 9.0, 7.0])


@pytest.mark.parametrize("n", [1, 2000])  # of one step, and of blocks
def test_matrices_of_zeros_begin_anew(n: int) -> None:
    """Products that overflow before a matrix of zeros have no effect behind it."""
    a, b = np.float32([3e38, 3e38, 0, 1, 1]), np.float32([1, 1, 1, 2, 3])
    a, b = jnp.asarray(np.tile(a, n)), jnp.asarray(np.tile(b, n))
    zeros = jnp.zeros_like(a)
    for h in recurrence([a, zeros, zeros, a], [b, b], -1, False):
        assert h.reshape(n, 5)[:, 2:].tolist() == [[1, 3, 6]] * n


def test_errors_of_tuples() -> None:
    x, op = jnp.ones(3), PAIRS["affine"]
    three = lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2])  # noqa: E731
    assert gj.reduce((x, x, x), None, three) == (3, 3, 3)
    with pytest.raises(TypeError, match="only those of one or two"):
        jax.grad(lambda x: gj.reduce((x, x, x), None, three)[0])(x)
    for mistake, message in (
        (lambda: gj.reduce((x, x[1:]), None, op), "of one shape"),
        (lambda: gj.reduce((x,), None, op), "two or more"),
        (lambda: gj.reduce((x, x), None, op, dtype=float), "no dtype="),
        (lambda: gj.reduce((x, x), 1.0, op), "tuple of 2"),
        (lambda: gj.segmented_reduce((x, x), jnp.arange(2), (x[0], 1.0), op), "must be a number"),
        (
            lambda: jax.grad(lambda x: gj.reduce((x, x), None, op, vjp=(lambda a, b: 1.0,) * 2)[0])(
                x
            ),
            "rows",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            mistake()


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
    with pytest.raises(TypeError, match=r"cannot be differentiated by jax .* pass\s+vjp="):
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
