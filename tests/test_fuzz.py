"""Reductions of random shapes, strides, axes, dtypes and operators, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from support import Backend, affine, assert_same, compose, examples, fold, summable

import gpualgo as ga

# Derandomized: every run tries the same examples, so a failure here is a failure everywhere.
FUZZ = settings(
    max_examples=examples(150, emulated=30),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Each pair of operator and dtype costs a compilation; shapes and strides are free.
Case = tuple[Any, Any, str]
CASES: list[Case] = [
    (compose, compose, "uint64"),
    (lambda a, b: a + b, np.add, "int8"),
    (lambda a, b: a + b, np.add, "float32"),
    (lambda a, b: b, lambda a, b: b + 0 * a, "int32"),
    (max, np.maximum, "int16"),
    (np.logical_xor, np.logical_xor, "bool"),
    (lambda a, b: a if a != 0 else b, lambda a, b: np.where(a != 0, a, b), "complex64"),
]


def _values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    return affine(shape, seed) if dtype == "uint64" else summable(shape, np.dtype(dtype), seed)


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
    """Draw an allocation's shape and the steps that lead from it to an array of `shape`."""
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in shape]
    margins = [draw(st.sampled_from([0, 0, 1, 5])) for _ in shape]
    full = tuple(n * abs(k) + m for n, k, m in zip(shape, steps, margins, strict=True))
    order = draw(st.permutations(range(len(shape))))

    def take(base: Any) -> Any:
        base = base.transpose([order.index(axis) for axis in range(len(order))])
        index = tuple(
            slice(m, m + n * abs(k), abs(k)) for n, k, m in zip(shape, steps, margins, strict=True)
        )
        turned = tuple(slice(None, None, 1 if k > 0 else -1) for k in steps)
        return base[(..., *index)][(..., *turned)]

    return tuple(full[axis] for axis in order), take


SHAPES = npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=40)


def _view(backend: Backend, view: Any, x: np.ndarray[Any, Any]) -> Any:
    full, take = view
    array = take(backend.xp.zeros(full, x.dtype))
    array[...] = backend.to_device(x)
    return array


@FUZZ
@given(data=st.data())
def test_reduce(backend: Backend, data: st.DataObject) -> None:
    op, reference, dtype = data.draw(st.sampled_from(CASES))
    shape = data.draw(SHAPES)
    axes = st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda a: a % len(shape))
    axis = data.draw(st.none() | axes.map(tuple) | st.integers(0, len(shape) - 1))
    init = data.draw(st.sampled_from([None, True if dtype == "bool" else 1]))
    x = _values(shape, dtype, data.draw(st.integers(0, 3)))
    device = _view(backend, data.draw(views(shape)), x)
    if axis == ():
        want = x if init is None else reference(x.dtype.type(init), x).astype(dtype)
    elif x.size == 0:
        kept = np.add.reduce(x, axis=axis, dtype=x.dtype)
        init, want = init or x.dtype.type(1), np.ones(kept.shape, dtype)
    else:
        want = fold(reference, x, axis, init)
    keepdims = data.draw(st.booleans())
    if keepdims:
        want = want.reshape(np.add.reduce(x, axis=axis, keepdims=True).shape)
    result = ga.reduce(device, init, op, axis=axis, keepdims=keepdims)
    assert_same(backend.to_host(result), want)
