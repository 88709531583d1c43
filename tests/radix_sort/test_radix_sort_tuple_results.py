"""Sorts of elements of several numbers: the kinds of tuples, outputs, in place, plans."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lexical import Host, assert_leaves, lexical_order, some
from support import LAYOUTS, Array, Backend, a_few
from test_radix_sort import assert_bits

import gpualgo as ga

Make = Callable[..., Array]
Point = namedtuple("Point", "x y")
N = 1201
# One word; two groups, of which the first is a word; two groups of one number.
DTYPES = [("int16", "float32"), ("uint8", "float16", "float64"), ("float64", "int64")]


def keys_of(dtypes: tuple[str, ...], shape: Any = N) -> tuple[Host, ...]:
    return tuple(some(shape, dtype, seed) for seed, dtype in enumerate(dtypes))


# --- kinds of tuples ----------------------------------------------------------------------------


def test_namedtuples_and_nested_ones(backend: Backend) -> None:
    a, b, c = keys_of(("int8", "float32", "uint8"))
    order = lexical_order((a, b, c), (True, False, True))
    device = tuple(map(backend.to_device, (a, b, c)))
    keys = Point(device[0], (device[1], device[2]))
    for descending in a_few(((True, (False, True)), Point(True, (False, True)))):
        got = ga.radix_sort(keys, descending=descending)
        assert type(got) is Point
        assert type(got.y) is tuple
        assert_leaves(backend, got, [x[order] for x in (a, b, c)])
        assert_bits(backend.to_host(ga.argsort(keys, descending=descending)), order)
    plain, values = ga.radix_sort(device[0], Point(device[1], device[2]))
    order = np.argsort(a, kind="stable")
    assert type(values) is Point
    assert_bits(backend.to_host(plain), a[order])
    assert_leaves(backend, values, [b[order], c[order]])
    (one,), (moved,) = ga.radix_sort((device[0],), (device[2],), descending=(False,))
    assert_bits(backend.to_host(one), a[order])
    assert_bits(backend.to_host(moved), c[order])


def test_numbers_beside_arrays() -> None:
    a = some(99, "int16")
    got, constant = ga.radix_sort((a, 2.5))
    assert_bits(got, np.sort(a))
    assert_bits(constant, np.full(99, 2.5))
    _, (moved, flag) = ga.radix_sort(a, (np.arange(99), True))
    assert_bits(moved, np.argsort(a, kind="stable"))
    assert_bits(flag, np.ones(99, bool))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_structured_arrays(align: bool, axis: int | None) -> None:
    dtype = np.dtype([("a", "u1"), ("b", "f4"), ("c", "i2"), ("d", "f8")], align=align)
    x = np.zeros((37, 29), dtype)
    for seed, name in enumerate(dtype.names or ()):
        x[name] = some(x.shape, dtype[name], seed)
    for names in (["a", "b"], ["a", "b", "c", "d"]):
        part = np.zeros(x.shape, [(n, dtype[n]) for n in names]) if len(names) < 4 else x
        for name in names:
            part[name] = x[name]
        ways = tuple(name == "b" for name in names)
        rows = part if axis is not None else part.reshape(-1)
        along = -1 if axis is None else axis
        order = lexical_order([rows[name] for name in names], ways, along)
        want = np.take_along_axis(rows, order, along)
        got = ga.radix_sort(part, axis=axis, descending=ways)
        assert got.dtype == part.dtype
        for name in names:
            assert_bits(got[name], want[name])
        assert_bits(ga.argsort(part, axis=axis, descending=ways), order)
        got, values = ga.radix_sort(part, x, axis=axis, descending=ways)
        assert_bits(values["d"], np.take_along_axis(x.reshape(rows.shape), order, along)["d"])
        if axis is not None:
            out = np.zeros_like(part)
            assert ga.radix_sort(part, axis=axis, descending=ways, out=out) is out
            assert out.tobytes() == got.tobytes() or align
            for name in names:
                assert_bits(out[name], want[name])
            assert ga.radix_sort(part, axis=axis, descending=ways, out=part) is part
            for name in names:
                assert_bits(part[name], want[name])


# --- outputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
def test_outputs(backend: Backend, guarded: Make, dtypes: tuple[str, ...], layout: str) -> None:
    shape = (5, 241)
    keys, values = keys_of(dtypes, shape), keys_of(("float32", "complex128"), shape)
    device, moved = (tuple(map(backend.to_device, x)) for x in (keys, values))
    order = lexical_order(keys)
    wanted = [np.take_along_axis(x, order, -1) for x in (*keys, *values)]
    out = tuple(guarded(shape, dtype, layout) for dtype in dtypes)
    assert ga.radix_sort(device, out=out) is out
    assert_leaves(backend, out, wanted[: len(keys)])
    both = (
        tuple(guarded(shape, d, layout) for d in dtypes),
        Point(guarded(shape, "float32", layout), guarded(shape, "complex128", layout)),
    )
    assert ga.radix_sort(device, Point(*moved), out=both) is both
    assert_leaves(backend, both, wanted)
    packed = guarded(shape, "float32", layout), guarded(shape, "int32", layout)
    numbers = np.arange(1205, dtype=np.int32).reshape(shape)
    given = moved[0], backend.to_device(numbers)
    _, got = ga.radix_sort(device, given, out=(out, packed))
    assert_leaves(backend, got, [wanted[-2], np.take_along_axis(numbers, order, -1)])


@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
def test_in_place(backend: Backend, dtypes: tuple[str, ...]) -> None:
    keys, values = keys_of(dtypes), keys_of(("float32", "int16", "complex128"))
    order = lexical_order(keys)
    wanted = [x[order] for x in (*keys, *values)]
    for step in (1, 2):
        for some_in_place in ((True,) * 6, (True, False) * 3, (False, True) * 3):
            device = [backend.to_device(np.repeat(x, step))[::step] for x in (*keys, *values)]
            outs = [
                x if way else backend.xp.zeros_like(x)
                for x, way in zip(device, some_in_place, strict=False)
            ]
            count = len(keys)
            given, moved = tuple(device[:count]), tuple(device[count:])
            out = tuple(outs[:count]), tuple(outs[count:])
            assert ga.radix_sort(given, moved, out=out) is out
            assert_leaves(backend, out, wanted)


# --- plans, graphs, host arrays -----------------------------------------------------------------


@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
def test_plans(backend: Backend, dtypes: tuple[str, ...]) -> None:
    keys, values = keys_of(dtypes), keys_of(("float32", "int16"))
    device, moved = (tuple(map(backend.to_device, x)) for x in (keys, values))
    plan = ga.prepare(ga.radix_sort, device, moved, descending=True)
    order = lexical_order(keys, True)
    wanted = [x[order] for x in (*keys, *values)]
    assert_leaves(backend, plan(device, moved), wanted)
    out = tuple(backend.xp.zeros_like(x) for x in device), tuple(map(backend.xp.zeros_like, moved))
    assert plan(device, moved, out=out) is out
    assert_leaves(backend, out, wanted)
    with pytest.raises(TypeError, match=r"^radix_sort: "):
        plan(device[0], moved)
    with pytest.raises(TypeError, match=r"^radix_sort: the plan takes \d array\(s\), got 0"):
        plan()
    with pytest.raises(TypeError, match=r"another tuple structure|takes"):
        plan((*device[:-1], (device[-1],)), moved)
    with pytest.raises(TypeError, match="takes"):
        plan(device)
    order_plan = ga.prepare(ga.argsort, device)
    assert_bits(backend.to_host(order_plan(device)), lexical_order(keys))
    if backend.xp is np:
        return
    size = ga.temp_storage_bytes(ga.radix_sort, device, moved)
    assert size == plan.temp_storage_bytes > 0
    storage = backend.xp.full(size, 0xA5, np.uint8)
    for _ in range(2):
        got = plan(device, moved, temp_storage=storage)
        assert_leaves(backend, got, wanted)
    assert plan(device, moved, out=out, temp_storage=storage) is out
