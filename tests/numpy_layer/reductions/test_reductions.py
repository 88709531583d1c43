"""Sums, products, any, all and counts beside NumPy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples, reduction_options
from support import Backend, a_few

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import _call

SMALL = settings(
    max_examples=examples(60, emulated=3), deadline=None, database=None, derandomize=True
)


@pytest.mark.parametrize("name", ["sum", "prod"])
@SMALL
@given(st.data())
def test_sums(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    if name.endswith("prod") and x.dtype.kind == "c":  # with infinities the order shows
        x = np.where(np.isinf(x), x.dtype.type(2), x)
    kwargs = data.draw(reduction_options(x))
    if data.draw(st.booleans()):
        kwargs["initial"] = data.draw(st.sampled_from([0, 2]))
    check_same(backend, name, x, ulps=64, **kwargs)


@pytest.mark.parametrize("name", ["any", "all"])
@SMALL
@given(st.data())
def test_truth(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, name, x, **data.draw(reduction_options(x)))


@SMALL
@given(st.data())
def test_counts(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    kwargs = data.draw(reduction_options(x, where=False))
    check_same(backend, "count_nonzero", x, **kwargs)


def test_sums_of_minus_zero() -> None:
    z = np.array([-0.0, -0.0])
    for x in (z, z.astype(np.float16), ga.lazy.asarray(z)):
        assert not np.signbit(gnp.sum(x))
        assert not np.signbit(np.sum(ga.lazy.asarray(z)))
    assert not np.signbit(gnp.sum(z, where=[True, False]))
    assert not np.signbit(gnp.sum(z[:0]))
    assert np.signbit(gnp.sum(z, initial=-0.0))
    assert np.signbit(gnp.sum(z, initial=None))


def test_sums_wrap() -> None:
    x = np.full(5, np.iinfo(np.int64).max)
    with np.errstate(all="ignore"):
        assert gnp.sum(x) == np.sum(x)
    assert gnp.sum(x.astype(np.uint8), dtype=np.uint8) == np.uint8(251)


def test_sums_of_16_bits_are_rounded_once() -> None:
    x = np.ones(5000, np.float16)
    assert gnp.sum(x) == np.float16(5000)
    assert gnp.sum(x.astype(ml_dtypes.bfloat16)) == ml_dtypes.bfloat16(5000)


def test_out_that_is_read() -> None:
    x = np.arange(6.0).reshape(2, 3)
    gnp.sum(x, axis=0, out=x[1])
    np.testing.assert_array_equal(x[1], [3, 5, 7])
    big = np.empty(3, ">f8")
    np.testing.assert_array_equal(gnp.sum(x, axis=0, out=big), np.sum(x, axis=0))


def test_complex_into_real_is_warned_of() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        assert gnp.sum(np.array([1 + 2j, 3]), out=np.empty(())) == 4


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3)])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_no_elements_need_a_start(backend: Backend, shape: Any, axis: Any) -> None:
    """Even where there is nothing that would be of none."""
    x = np.zeros(shape)
    for name in ("max", "sum"):
        for kwargs in ({}, {"initial": None}, {"initial": 2}):
            check_same(backend, name, x, axis, **kwargs)


@pytest.mark.parametrize("size", [3, 9000])
def test_a_mask_needs_a_start(backend: Backend, size: int) -> None:
    """None is no start, whatever the identity; without a mask it is that of the elements."""
    x = np.arange(size)
    for ufunc in (np.add, np.multiply, np.bitwise_or, np.logical_and, np.maximum):
        ours = getattr(gnp, ufunc.__name__)
        with pytest.raises(ValueError, match="initial"):
            ours.reduce(backend.to_device(x), initial=None, where=backend.to_device(x > 1))
        want = ufunc.reduce(x, initial=None)
        assert backend.to_host(ours.reduce(backend.to_device(x), initial=None)) == want


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_of_nan_and_zeros(name: str) -> None:
    for values in ([np.nan], [-0.0], [], [0.0, np.nan], [np.nan, 1.0], [5e-324, -0.0]):
        for dtype in a_few((np.float64, np.float16, ml_dtypes.bfloat16, np.complex64), 2):
            x = np.array(values, dtype)
            assert getattr(gnp, name)(x) == getattr(np, name)(x.astype(bool))


EXACT = ("any", "all", "max", "min", "amax", "amin", "nanmax", "nanmin", "ptp", "argmax", "argmin")


@pytest.mark.few
@pytest.mark.parametrize("name", EXACT)
def test_long_rows_are_numpys_where_nothing_is_rounded(name: str) -> None:
    fn = getattr(gnp, name)
    x = np.arange(1, 153_601).reshape(2400, 64) % 7 + 1
    cases: list[tuple[Any, dict[str, Any], bool]] = [
        (x, {}, True), (x, {"axis": 0}, True), (x, {"axis": -1, "keepdims": True}, True),
        (x.astype(np.float32), {}, True), (x.reshape(3072, 50), {"axis": 0}, False),
        (x.T, {"axis": 0}, False), (x[:, ::-1], {}, False), (x.astype(np.float16), {}, False),
        (x, {"axis": None, "keepdims": np.True_}, False), (x.astype(complex), {}, False),
        (np.ones((1 << 12, 64), x.dtype), {}, False),
    ]  # fmt: skip
    with ga.default_device("cpu"):
        for given, options, is_numpys in cases:
            assert _call.is_exact([given], options, _call.EXACT) == is_numpys, options
            plain = {k: bool(v) if k == "keepdims" else v for k, v in options.items()}
            got, want = fn(given, **options), getattr(np, name)(given, **plain)
            assert type(got) is type(want)
            np.testing.assert_array_equal(got, want)
    with pytest.raises(TypeError, match="required positional argument"):
        fn()


@pytest.mark.few
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_zeros_and_nan_are_the_first(name: str) -> None:
    """Of many elements, though NumPy returns any of them."""
    rng = np.random.default_rng(0)
    zeros = np.where(rng.random(160_000) < 0.5, -0.0, 0.0)
    rows = np.where(rng.random((5, 32_000)) < 0.001, 1.0, zeros.reshape(5, -1)) - 0.0
    payloads = np.full(160_000, np.nan)
    payloads.view(np.uint64)[:] += np.arange(160_000, dtype=np.uint64) % 50
    with ga.default_device("cpu"):
        for x in (zeros, -zeros, zeros.astype(np.float32), rows, -rows, payloads):
            if x is payloads and name.startswith("nan"):
                continue
            kernel = getattr(
                np, {"max": "maximum", "min": "minimum", "nanmax": "fmax"}.get(name, "fmin")
            )
            for axis in (None, x.ndim - 1, 0):
                found = getattr(gnp, name)(x, axis=axis)
                assert (
                    np.asarray(found).tobytes() == ga.reduce(x, None, kernel, axis=axis).tobytes()
                )


@pytest.mark.few
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("size", [300, 3000, 30_000])
def test_sums_of_16_bit_floats_are_in_float32(dtype: Any, size: int) -> None:
    """NumPy's are in bfloat16, where 256 + 1 is 256, and its squares in float16 overflow."""
    x = np.ones(size, dtype)
    for name in ("mean", "nanmean"):
        assert float(getattr(gnp, name)(x)) == 1
    for found in (gnp.sum(x), gnp.nansum(x), gnp.add.reduce(x), gnp.dot(x, x), gnp.cumsum(x)[-1]):
        assert found.dtype == dtype
        assert abs(float(found) - size) <= size * 2**-8
    assert float(gnp.var(x * 2)) == float(gnp.std(x * 2)) == 0
    numbers = np.random.default_rng(1).normal(size=size).astype(dtype)
    wide = numbers.astype(np.float64)
    for name in ("var", "nanvar", "std"):
        assert abs(float(getattr(gnp, name)(numbers)) - getattr(np, name)(wide)) < 0.01
