"""gpualgo.jax: tuples of arrays, compared with loops; their gradients, with differences."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402
from jax_folds import close, has_gradients, sample  # noqa: E402

import gpualgo as ga  # noqa: E402
import gpualgo.jax as gj  # noqa: E402
from gpualgo.jax._gradients import recurrence  # noqa: E402


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


def test_functions_of_vjp_get_exact_integers() -> None:
    """A float32 does not tell these indices apart."""
    x, indices = jnp.array([3.0, 5.0]), jnp.array([1 << 24, (1 << 24) + 1])
    op = lambda a, b: b if b[1] > a[1] else a  # noqa: E731
    vjp = tuple(
        lambda a, b, is_left=is_left: (((b[1] <= a[1]) == is_left, 0), (0, 0))
        for is_left in (True, False)
    )
    assert jax.grad(lambda x: gj.reduce((x, indices), None, op, vjp=vjp)[0])(x).tolist() == [0, 1]


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
