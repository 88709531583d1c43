"""Corners in which NumPy's and CuPy's own tests look: refusals, warnings, libraries of results."""

from __future__ import annotations

import types
import warnings
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, scaled

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import _ranks

X = np.array([[3.5, -1.0, 4.0], [1.5, -5.0, 9.0]])
FLAT = np.arange(12.0)


def warned(call: Any) -> tuple[Any, list[type[Warning]]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return result, [one.category for one in found]


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("weights", [None, "own", "host", "list"])
def test_weights_of_averages_lie_beside_them(backend: Backend, axis: Any, weights: Any) -> None:
    x, w = backend.to_device(X), X + 7
    given = {"own": backend.to_device(w), "host": w, "list": w.tolist()}.get(weights)
    found = gnp.average(x, axis, given, returned=True)
    want = np.average(X, axis, None if weights is None else w, returned=True)
    for got, expected in zip(found, want, strict=True):
        assert isinstance(got, (backend.xp.ndarray, np.generic) if backend.xp is np else type(x))
        np.testing.assert_allclose(backend.to_host(got), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "bins", [np.array([0, 3, 12]), [0, 3, 12], 4], ids=["array", "list", "int"]
)
def test_edges_are_in_the_library_of_the_data(backend: Backend, bins: Any) -> None:
    x = backend.to_device(FLAT)
    for name, args in (("histogram", (x, bins)), ("histogram", (x, bins, None, True)),
                       ("histogram_bin_edges", (x, bins))):  # fmt: skip
        found = getattr(gnp, name)(*args)
        want = getattr(np, name)(FLAT, *args[1:])
        pairs = zip(found, want, strict=True) if isinstance(found, tuple) else [(found, want)]
        for got, expected in pairs:
            assert type(got) is type(x)
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(backend.to_host(got), expected)


def test_edges_as_lists_of_several_dimensions(backend: Backend) -> None:
    x, edges = backend.to_device(X.T.copy()), [[-10, 0, 10], [-10, 5, 10]]
    counts, found = gnp.histogramdd(x, edges)
    want, _ = np.histogramdd(X.T, edges)
    np.testing.assert_array_equal(backend.to_host(counts), want)
    assert all(type(one) is type(x) for one in found)


def test_cupys_namespace_is_not_for_arrays_of_numpy() -> None:
    """It raises itself: numbers and lists are ours, and what lies on a GPU."""
    fake = types.ModuleType("cupy")

    def refusing(a: Any, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"Only cupy arrays, got {type(a)}")

    for name in ("cumsum", "cumprod", "sum", "add"):
        setattr(fake, name, refusing)
    xp = gnp.wrap(fake)
    for name in ("cumsum", "cumprod", "sum"):
        with pytest.raises(TypeError, match="Only cupy arrays"):
            getattr(xp, name)(FLAT)
        with pytest.raises(TypeError, match="Only cupy arrays"):
            getattr(xp, name)(FLAT, axis=0)
    with pytest.raises(TypeError, match="Only cupy arrays"):
        xp.add(FLAT, FLAT)
    assert gnp.wrap(np).cumsum(FLAT)[-1] == FLAT.sum()


def test_cupys_namespace_beside_arrays_of_a_gpu(cuda: Backend) -> None:
    x, xp = cuda.to_device(FLAT), gnp.wrap(cuda.xp)
    np.testing.assert_array_equal(cuda.to_host(xp.cumsum(x)), np.cumsum(FLAT))
    counts, edges = xp.histogram(x, np.array([0, 3, 12]))
    assert type(counts) is type(edges) is type(x)
    with pytest.raises(TypeError):
        xp.cumsum(FLAT)


def test_complex_numbers_in_real_ones_are_warned_of(backend: Backend) -> None:
    z = np.array([1 + 2j, 3 - 1j])
    x = backend.to_device(z)
    discarded = np.exceptions.ComplexWarning

    def out() -> Any:
        return backend.to_device(np.zeros(2))

    calls: list[tuple[Any, Any]] = [
        (lambda: gnp.add(x, x, out=out(), casting="unsafe"), (z + z).real),
        (lambda: gnp.add(x, x, dtype=float, casting="unsafe"), (z + z).real),
        (lambda: gnp.negative(x, out=out(), casting="unsafe"), -z.real),
        (lambda: gnp.cumsum(x, dtype=float), np.cumsum(z.real)),
        (lambda: gnp.sum(x, dtype=float), z.real.sum()),
    ]
    for call, want in a_few(calls, 3):
        found, categories = warned(call)
        np.testing.assert_array_equal(backend.to_host(found), want)
        assert categories
        assert set(categories) == {discarded}
    for call in (lambda: gnp.absolute(x, out=out(), casting="unsafe"), lambda: gnp.add(x, x)):
        assert warned(call)[1] == []


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_nothing_but_nan_is_warned_of_where_nothing_waits(backend: Backend, name: str) -> None:
    found, categories = warned(lambda: getattr(gnp, name)(backend.to_device(np.full(3, np.nan))))
    assert np.isnan(backend.to_host(found))
    assert categories == ([RuntimeWarning] if backend.xp is np else [])


@pytest.mark.parametrize("name", ["percentile", "quantile", "nanpercentile", "nanquantile"])
def test_outputs_with_more_axes_of_quantiles(backend: Backend, name: str) -> None:
    q = 0.5 if "quantile" in name else 50
    for axis, shape in ((None, (1,)), (None, (1, 1)), (0, (1, 3)), (0, (2, 3)), (None, (2,))):
        out = backend.to_device(np.zeros(shape))
        assert getattr(gnp, name)(backend.to_device(X), q, axis, out) is out
        want = getattr(np, name)(X, q, axis, np.zeros(shape))
        np.testing.assert_array_equal(backend.to_host(out), want)
    for given, shape in ((q, (4, 2)), ([q], (3,)), ([q, q], (2, 1))):
        with pytest.raises(ValueError, match="out has shape"):
            getattr(gnp, name)(backend.to_device(X), given, 0, backend.to_device(np.zeros(shape)))


def test_medians_have_outputs_of_their_shape(backend: Backend) -> None:
    with pytest.raises(ValueError, match="out has shape"):
        gnp.median(backend.to_device(FLAT), out=backend.to_device(np.zeros(1)))


def test_where_takes_its_arguments_by_place(backend: Backend) -> None:
    mask, x = backend.to_device(X > 0), backend.to_device(X)
    where: Any = gnp.where
    for args, kwargs in (((mask,), {"x": x, "y": x}), ((), {"condition": mask, "x": x, "y": x}),
                         ((), {"condition": mask})):  # fmt: skip
        with pytest.raises(TypeError, match="positional"):
            where(*args, **kwargs)
    np.testing.assert_array_equal(backend.to_host(where(mask, x, x)), X)


def test_no_differences_are_the_argument_itself(backend: Backend) -> None:
    for x in (backend.to_device(X), [1, 2], 3, ga.lazy.asarray(X)):
        assert gnp.diff(x, n=0) is x


DECIMALS = (1, 2, 8, 9, 16, 22, 23, 38, 45, 90, 308, 309, 400, 1 << 20,
            -1, -2, -5, -22, -23, -38, -90, -308, -309, -400, -(1 << 31))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("code", "efdFD")
def test_round_to_any_decimals(backend: Backend, code: str) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, 1e3, 40), rng.random(9) * 1e-3, [0, 2.5, np.inf, np.nan]])
    if code in "FD":
        x = x + 1j * x[::-1].copy()
    x = x.astype(code)
    for decimals in DECIMALS:
        with np.errstate(all="ignore"):
            want = np.round(x, decimals)
        found = gnp.round(backend.to_device(x), decimals)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(backend.to_host(found), want)


def test_round_compiles_nothing_for_other_decimals(backend: Backend) -> None:
    from gpualgo._cpu import kernels

    x = backend.to_device(FLAT)
    gnp.round(x, 3)
    gnp.round(x, 4)
    known = len(kernels._compiled)
    for decimals in range(5, 12):
        gnp.round(x, decimals)
    assert len(kernels._compiled) == known


QUANTILES: list[Any] = [
    0.0, 0.375, 1.0, [0.0, 0.25, 1.0], np.float16(0.375), np.array([0.25, 1.0], np.float16),
    np.float32(0.375),
]  # fmt: skip


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_of_more_than_float16_counts(name: str) -> None:
    """NumPy 2.4 gives NaN, or the last element."""
    x = np.random.default_rng(0).integers(0, 2000, 65_600).astype(np.float16)
    x[7] = np.nan if "nan" in name else 5
    scale = 100 if "percentile" in name else 1
    for q in QUANTILES:
        given = np.multiply(q, scale).astype(q.dtype)[()] if hasattr(q, "dtype") else q
        given = [one * scale for one in q] if isinstance(q, list) else given
        given = q * scale if type(q) is float else given
        want = getattr(np, name)(x.astype(float), np.asarray(given, float)[()])
        found = getattr(gnp, name)(x, given)
        np.testing.assert_allclose(np.asarray(found, float), want, rtol=2e-3, atol=0.6)
    if name == "quantile":
        for method in ("lower", "hazen", "inverted_cdf", "midpoint"):
            got = gnp.quantile(x.astype(np.int32), np.float16(0.5), method=method)
            assert abs(float(got) - np.median(x.astype(float))) <= 1


def test_quantiles_of_more_than_float16_counts_in_a_kernel(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ranks, "_MOST_IN_FLOAT16", 50)
    x = np.random.default_rng(0).integers(0, 2000, scaled(2003, emulated=203)).astype(np.float16)
    x[3] = np.nan
    q = backend.to_device(np.linspace(0, 1, 33).astype(np.float16))
    found = gnp.nanquantile(backend.to_device(x), q)
    want = np.nanquantile(x.astype(float), backend.to_host(q).astype(float))
    np.testing.assert_allclose(backend.to_host(found).astype(float), want, rtol=2e-3, atol=1.1)
