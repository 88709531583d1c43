"""``ufunc.at`` and ``ufunc.reduceat`` beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpys_own import assert_same
from support import Backend, a_few

import gpualgo as ga
import gpualgo.numpy as gnp

CASES = [
    ("add", "i1"), ("add", "f4"), ("add", "f2"), ("multiply", "c8"), ("maximum", "f8"),
    ("fmin", "f4"), ("bitwise_xor", "u2"), ("logical_and", "i4"), ("logaddexp", "f8"),
]  # fmt: skip


def elements(dtype: str, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(3).integers(-4, 5, shape).astype(dtype)
    if values.dtype.kind == "f":
        values.flat[::7] = -0.0
        values.flat[::11] = np.nan
    return values


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("name", "dtype"), a_few(CASES))
@pytest.mark.parametrize(("shape", "axis"), [((90,), 0), ((5, 40), -1), ((40, 3), 0)])
def test_reduceat(
    backend: Backend, name: str, dtype: str, shape: tuple[int, ...], axis: int
) -> None:
    x = elements(dtype, shape)
    ours, native, device = getattr(gnp, name), getattr(np, name), backend.to_device(x)
    last = shape[axis] - 1
    for starts in ([0, 3, 3, 9], [5], [last, 0, 7, 7, 2], np.arange(4, 30, 2)):
        want = native.reduceat(x, starts, axis)
        assert_same(backend, ours.reduceat(device, starts, axis), want, 16, f"{name} {starts}")
        assert_same(backend, ours.reduceat(device[::-1], starts, axis),
                    native.reduceat(x[::-1], starts, axis), 16, "reversed")  # fmt: skip
    lazy = ga.lazy.asarray(device)
    assert_same(backend, ours.reduceat(lazy, [1, 8], axis), native.reduceat(x, [1, 8], axis), 16,
                "lazy")  # fmt: skip


def test_reduceat_of_misaligned_arrays() -> None:
    x = np.zeros(8 * 8000 + 1, np.uint8)[1:].view(np.float64)
    x[...] = np.arange(8000) % 100
    for starts in ([0, 9, 4000], [4000, 9, 4100]):
        np.testing.assert_array_equal(gnp.add.reduceat(x, starts), np.add.reduceat(x, starts))


@pytest.mark.few
def test_few_elements_by_indices_on_a_device(backend: Backend) -> None:
    starts = backend.to_device(np.array([0, 4]))
    assert gnp.add.reduceat(np.ones(9), starts).tolist() == [4, 5]


@pytest.mark.few
def test_few_elements_with_out_in_a_tuple() -> None:
    out = np.empty(2)
    assert gnp.add.reduceat(np.ones(9), [0, 4], out=(out,)) is out
    assert out.tolist() == [4, 5]


def test_reduceat_with_dtype_and_out(backend: Backend) -> None:
    x = np.arange(60, dtype=np.int16).reshape(3, 20)
    device = backend.to_device(x)
    want = np.add.reduceat(x, [0, 4, 4], 1, np.float32)
    assert_same(backend, gnp.add.reduceat(device, [0, 4, 4], 1, np.float32), want, 0, "")
    out = backend.to_device(np.full((3, 3), -1, np.float64))
    starts = backend.to_device(np.array([0, 4, 4]))
    assert gnp.add.reduceat(device, starts, 1, out=out) is out
    assert_same(backend, out, np.add.reduceat(x, [0, 4, 4], 1, out=np.empty((3, 3))), 0, "")
    assert gnp.add.reduceat(device, starts, 1, out=(out,)) is out
    assert gnp.add.reduceat(device, np.array([], int), 1).shape == (3, 0)
    with pytest.raises(IndexError, match="index 20 is out of bounds"):
        gnp.add.reduceat(device, [3, 20], 1)
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        gnp.add.reduceat(device, [-1], 1)
    with pytest.raises(TypeError, match="indices"):
        gnp.add.reduceat(device, [1.5], 1)
    for dtype in (np.uint64, np.float64):  # as NumPy: int64 does not hold all values
        with pytest.raises(TypeError, match="convert them to int64"):
            gnp.add.reduceat(device, np.array([], dtype), 1)
    with pytest.raises(ValueError, match="one dimension"):
        gnp.add.reduceat(device, [[0, 1]], 1)
    with pytest.raises(ValueError, match="out has shape"):
        gnp.add.reduceat(device, [0, 1], 1, out=out)
    with pytest.raises(gnp.NotTaken, match="associative"):
        gnp.subtract.reduceat(device, [0])


@pytest.mark.parametrize("name", ["bitwise_xor", "gcd", "add"])
def test_a_narrow_out_does_not_narrow_the_computation(backend: Backend, name: str) -> None:
    x = np.array([3, 5, 6, 0, 9] * 30, np.uint16)
    ours, native, device = getattr(gnp, name), getattr(np, name), backend.to_device(x)
    for method, args, size in (("accumulate", (), 150), ("reduceat", ([0, 3, 1, 90],), 4)):
        want, found = np.zeros(size, bool), backend.to_device(np.zeros(size, bool))
        getattr(native, method)(x, *args, out=want)
        getattr(ours, method)(device, *args, out=found)
        assert_same(backend, found, want, 0, f"{name}.{method}")


@pytest.mark.parametrize(
    ("name", "dtype", "values"),
    a_few([
        ("add", "f4", "f4"), ("add", "i4", "i1"), ("add", "u1", int), ("subtract", "i8", "i8"),
        ("subtract", "f8", float), ("maximum", "f4", "f4"), ("multiply", "f2", "f2"),
        ("bitwise_or", "u4", "u4"), ("logical_or", "?", "?"), ("subtract", "u2", "u2"),
    ]),
)  # fmt: skip
def test_at(backend: Backend, name: str, dtype: str, values: Any) -> None:
    rng = np.random.default_rng(5)
    for shape, indices in (
        ((30,), rng.integers(-30, 30, 100)), ((30,), (rng.integers(0, 30, (4, 25)),)),
        ((6, 5), (rng.integers(-6, 6, 100), rng.integers(0, 5, 100))), ((6, 5), [0, 3, 0]),
        ((6, 5), slice(1, 4)), ((6, 5), (slice(None), 2)), ((30,), np.arange(30) % 3 == 0),
        ((6, 5, 2), (np.array([[0], [1]]), np.array([2, 2, -1]))),
    ):  # fmt: skip
        a = elements("i1", shape).astype(dtype)
        picked = a[indices].shape
        b = 3 if values is int else 1.5 if values is float else elements("i1", picked)
        if not isinstance(b, (int, float)):
            b = b.astype(values)
        want, found = a.copy(), backend.to_device(a)
        getattr(np, name).at(want, indices, b)
        given = backend.to_device(b) if isinstance(b, np.ndarray) else b
        on_device = indices
        if isinstance(indices, np.ndarray) and indices.dtype != bool:
            on_device = backend.to_device(indices)
        assert getattr(gnp, name).at(found, on_device, given) is None
        assert_same(backend, found, want, 16, f"{name} {shape} {indices}")


@pytest.mark.parametrize(
    ("name", "dtype", "b"),
    [
        ("add", "i2", [1, 2]), ("multiply", "f4", np.array([1.5, 2])),
        ("subtract", "i8", np.int8(3)),
        ("logical_or", "?", np.bool_(True)), ("logical_xor", "?", True), ("add", "c8", 2j),
        ("maximum", "c16", np.array([2 - 1j, 1])), ("fmin", "c8", [1, 2]), ("fmax", "i4", [3, -9]),
    ],
)  # fmt: skip
def test_at_with_operands_of_other_dtypes(backend: Backend, name: str, dtype: str, b: Any) -> None:
    a = elements("i1", (5,)).astype(dtype)
    first = b if np.ndim(b) == 0 else b[0]
    for indices, operand in (([3, 3], b), (np.int64(1), first), ((-1,), first)):
        want, found = a.copy(), backend.to_device(a)
        getattr(np, name).at(want, indices, operand)
        getattr(gnp, name).at(found, indices, operand)
        assert_same(backend, found, want, 16, f"{name} {indices}")


@pytest.mark.parametrize("shape", [(), (4,), (3, 2), (2, 3, 4), (2, 0, 3), (2, 3, 1, 2)])
def test_at_of_whole_axes(backend: Backend, shape: tuple[int, ...]) -> None:
    a = elements("i4", shape)
    for indices in ((), ..., [], [[]], [1, 0, 1], np.array([[0, 1]]), (1,), 1, (0, [1, 1]), None):
        try:
            picked = a[indices].shape
        except IndexError:
            continue
        b = np.arange(np.prod(picked, dtype=int)).reshape(picked)
        want, found = a.copy(), backend.to_device(a)
        np.add.at(want, indices, b)
        gnp.add.at(found, indices, backend.to_device(b))
        assert_same(backend, found, want, 0, f"{shape} {indices}")


def test_at_of_a_strided_array_and_a_broadcast_operand(backend: Backend) -> None:
    base = np.arange(40.0)
    want, device = base.copy(), backend.to_device(base)
    np.add.at(want[::4], [1, 1, 2], 10)
    gnp.add.at(device[::4], [1, 1, 2], 10)
    assert_same(backend, device, want, 0, "")
    want, found = np.zeros((4, 3)), backend.to_device(np.zeros((4, 3)))
    np.add.at(want, [1, 1, 3], [1.0, 2.0, 4.0])
    gnp.add.at(found, [1, 1, 3], backend.to_device(np.array([1.0, 2.0, 4.0])))
    assert_same(backend, found, want, 0, "")


def test_at_leaves_the_array_after_an_error(backend: Backend) -> None:
    a = backend.to_device(np.arange(6))
    for error, call in (
        (IndexError, lambda: gnp.add.at(a, [0, 6], 1)),
        (ValueError, lambda: gnp.add.at(a, [0, 1], backend.to_device(np.arange(3)))),
        (TypeError, lambda: gnp.add.at(ga.lazy.asarray(a), [0], 1)),
        (IndexError, lambda: gnp.add.at(a, ([0], [0]), 1)),
    ):
        with pytest.raises(error):
            call()
    assert_same(backend, a, np.arange(6), 0, "")
    if backend.name != "cpu":
        for ufunc, operand in ((gnp.negative, None), (gnp.divide, 2), (gnp.add, 1.5)):
            with pytest.raises(gnp.NotTaken, match="associative"):
                ufunc.at(a, [0], operand)
        with pytest.raises(gnp.NotTaken, match="arrays of integers"):
            gnp.add.at(a, backend.to_device(np.ones(6, bool)), 1)


def test_at_with_indices_that_int64_does_not_hold(backend: Backend) -> None:
    """On a GPU they are ignored, as all that are out of range; on the host NumPy refuses them."""
    a = backend.to_device(np.zeros(4))
    indices = backend.to_device(np.array([1, 2**64 - 1, 2**63 + 3], np.uint64))
    if backend.name == "cpu":
        with pytest.raises((IndexError, TypeError)):
            gnp.add.at(a, indices, 1.0)
    else:
        gnp.add.at(a, indices, 1.0)
        assert_same(backend, a, np.array([0.0, 1, 0, 0]), 0, "")
