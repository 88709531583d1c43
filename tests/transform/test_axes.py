"""transform of arrays whose axes lie in different orders, are repeated, or have gaps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array, sampled, scaled

import gpualgo as ga

Host = np.ndarray[Any, Any]

# Around the sides of tiles, and too narrow for one.
SIDES = [1, 3, 31, 32, 33, 63, 64, 65, 127, 130]
SIZES = [np.dtype(name) for name in ("int8", "int16", "float32", "float64", "complex128")]


def _in_order(backend: Backend, array: Host, order: tuple[int, ...]) -> Any:
    """Return the array with its axes laid out in an order, the last one's neighbours adjacent."""
    back = tuple(int(i) for i in np.argsort(order))
    return backend.to_device(np.ascontiguousarray(array.transpose(order))).transpose(back)


@pytest.mark.parametrize("dtype", sampled(SIZES, ["int8", "float32", "complex128"]), ids=str)
def test_turned(backend: Backend, guarded: Any, dtype: np.dtype[Any]) -> None:
    for rows, columns in itertools.product(SIDES[2:], scaled(SIDES, emulated=[3, 32, 65])):
        x, y = (random_array((rows, columns), dtype, seed) for seed in (0, 1))
        out = guarded((rows, columns), dtype)
        turned = _in_order(backend, y, (1, 0))
        assert ga.transform(lambda a, b: a - b, backend.to_device(x), turned, out=out) is out
        with np.errstate(all="ignore"):
            assert_same(backend.to_host(out), x - y)


@pytest.mark.parametrize(
    "orders", list(itertools.permutations(itertools.permutations(range(3)), 2))
)
def test_orders_of_three_axes(backend: Backend, guarded: Any, orders: Any) -> None:
    shape = (4, 66, 35)
    x, y = (random_array(shape, np.dtype("int32"), seed) for seed in (0, 1))
    first, second = (_in_order(backend, a, o) for a, o in zip((x, y), orders, strict=True))
    out = guarded(shape, "int32")
    assert_same(backend.to_host(ga.transform(lambda a, b: a - b, first, second, out=out)), x - y)


def test_several_turned(backend: Backend) -> None:
    shape = (70, 65)
    arrays = [random_array(shape, np.dtype(name), i) for i, name in enumerate(["i1", "f8"] * 4)]
    moved = [_in_order(backend, a, (1, 0) if i % 3 else (0, 1)) for i, a in enumerate(arrays)]
    got = ga.transform(
        lambda a, b, c, d, e, f, g, h: ((((((a + b) - c) + d) - e) + f) - g) + h, *moved,
        out=backend.xp.zeros(shape),
    )  # fmt: skip
    a, b, c, d, e, f, g, h = (x.astype(float) for x in arrays)
    assert_same(backend.to_host(got), ((((((a + b) - c) + d) - e) + f) - g) + h)


def test_several_results(backend: Backend, guarded: Any) -> None:
    x, y = (random_array((3, 40, 67), np.dtype("int32"), seed) for seed in (0, 1))
    outs = guarded(x.shape, "int32"), guarded(x.shape, "int64", "fortran")
    turned = _in_order(backend, y, (0, 2, 1))
    ga.transform(lambda a, b: (a - b, np.int64(a)), backend.to_device(x), turned, out=outs)
    assert_same(backend.to_host(outs[0]), x - y)
    assert_same(backend.to_host(outs[1]), x.astype(np.int64))


def test_numbers_that_are_captured(backend: Backend) -> None:
    x = random_array((40, 70), np.dtype("int32"))
    turned, straight = _in_order(backend, x, (1, 0)), backend.to_device(x)
    out = backend.xp.zeros(x.shape, "int32")
    for k in (np.int32(3), np.int32(5)):
        ga.transform(lambda a, b, k=k: a * k + b, turned, straight, out=out)
        assert_same(backend.to_host(out), x * k + x)


def test_in_place_beside_what_is_turned(backend: Backend) -> None:
    x, y = (random_array((65, 129), np.dtype("int32"), seed) for seed in (0, 1))
    out = backend.to_device(x.copy())
    ga.transform(lambda a, b: a - b, out, _in_order(backend, y, (1, 0)), out=out)
    assert_same(backend.to_host(out), x - y)


REPEATED = [(1, 1), (1, None), (None, 1), (None,), (1,), (1, None, None), (None, 1, None),
            (None, None, 1), (None, 1, 1), (1, None, 1), (1, 1, None)]  # fmt: skip


@pytest.mark.parametrize("kept", REPEATED, ids=str)
@pytest.mark.parametrize("columns", sampled([1, 3, 7, 8, 64, 1028], ["7", "64"]))
def test_repeated(
    backend: Backend, guarded: Any, kept: tuple[int | None, ...], columns: int
) -> None:
    shape = (5, 9, columns)
    part = tuple(
        n if keep is None else 1 for n, keep in zip(shape[-len(kept) :], kept, strict=True)
    )
    for dtype in map(np.dtype, ("int8", "float32", "complex128")):
        x, y = random_array(shape, dtype), random_array(part, dtype, 1)
        out = guarded(shape, dtype, "offset")
        with np.errstate(all="ignore"):
            ga.transform(lambda a, b: a - b, backend.to_device(x), backend.to_device(y), out=out)
            assert_same(backend.to_host(out), x - y)
            ga.transform(lambda a, b: a - b, backend.to_device(y), backend.to_device(x), out=out)
            assert_same(backend.to_host(out), y - x)


def test_outer_products(backend: Backend) -> None:
    for n, m in ((1, 5), (40, 3), (33, 64), (64, 1027)):
        x, y = random_array(n, np.dtype("int32")), random_array(m, np.dtype("int32"), 1)
        for left, right in ((x[:, None], y), (x, y[:, None])):
            got = ga.transform(
                lambda a, b: a - b, backend.to_device(left), backend.to_device(right)
            )
            assert_same(backend.to_host(got), left - right)


def test_places_that_are_turned(backend: Backend) -> None:
    x = random_array((40, 70), np.dtype("int64"))
    turned = ga.lazy.arange(40 * 70, device=backend.name).reshape(70, 40).T
    got = ga.transform(lambda a, b: a - b, _in_order(backend, x, (1, 0)), turned)
    assert_same(backend.to_host(got), x - np.arange(40 * 70).reshape(70, 40).T)


@pytest.mark.parametrize("seed", range(scaled(40, emulated=12)))
def test_any_layout(backend: Backend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 5, 17, 33, 66], rng.integers(1, 4)))

    def operand() -> tuple[Any, Host]:
        part = tuple(n if rng.random() < 0.8 else 1 for n in shape)
        steps = [int(rng.choice([1, 1, 1, 2, -1, -3])) for _ in part]
        order = tuple(int(i) for i in rng.permutation(len(part)))
        host = random_array([n * abs(s) for n, s in zip(part, steps, strict=True)],
                            np.dtype("int32"), int(rng.integers(1000)))  # fmt: skip
        cut = tuple(slice(None, None, step) for step in steps)
        return _in_order(backend, host, order)[cut], host[cut]

    (x, a), (y, b), (z, c) = operand(), operand(), operand()
    want = np.broadcast_to(a, shape) - b * np.int32(3) + c
    got = ga.transform(lambda p, q, r: p - q * np.int32(3) + r, x, y, z)
    shown = np.broadcast_shapes(a.shape, b.shape, c.shape)
    assert_same(backend.to_host(got), want.reshape(shape) if shown == shape else (a - b * 3 + c))


def _order(x: Any) -> list[int]:
    """Return the axes of an array, the outermost first."""
    return sorted(range(x.ndim), key=lambda axis: -x.strides[axis])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_new_results_lie_as_the_inputs(backend: Backend, order: tuple[int, ...]) -> None:
    x, y = (random_array((3, 4, 5), np.dtype("int32"), seed) for seed in (0, 1))
    first, second = _in_order(backend, x, order), _in_order(backend, y, order)
    column = backend.to_device(y[:, :1])
    for _ in range(2):  # the second call knows the first one's plan
        got = ga.transform(lambda a, b: a - b, first, second)
        assert _order(got) == list(order)
        assert_same(backend.to_host(got), x - y)
        got = ga.transform(lambda a, b: a - b, first, column)
        assert _order(got) == list(order)
        assert_same(backend.to_host(got), x - y[:, :1])
        got = ga.inclusive_scan(first, axis=1)
        assert _order(got) == list(order)
        assert_same(backend.to_host(got), np.cumsum(x, 1, dtype=np.int32))
        keys, values = ga.radix_sort(first, second, axis=2)
        assert _order(keys) == _order(values) == list(order)
        assert_same(backend.to_host(keys), np.sort(x, 2))
        places = ga.argsort(first, axis=0)
        assert _order(places) == list(order)
        assert_same(backend.to_host(places), np.argsort(x, 0, kind="stable"))


def test_new_results_lie_in_c_order_where_inputs_differ(backend: Backend) -> None:
    x = random_array((33, 40), np.dtype("int32"))
    turned, straight = _in_order(backend, x, (1, 0)), backend.to_device(x)
    for got in (
        ga.transform(lambda a, b: a + b, turned, straight),
        ga.transform(lambda a, b: a + b, straight[:, :1], straight[:1]),
        ga.transform(lambda a: a, straight[::-1, ::2]),
    ):
        assert _order(got) == [0, 1]
    # Elements that are repeated along an axis have no say.
    spread = backend.xp.broadcast_to(straight[:1], x.shape)
    got = ga.transform(lambda a, b: a + b, turned, spread)
    assert _order(got) == [1, 0]
    assert_same(backend.to_host(got), x + x[:1])
