"""Products of vectors beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpys_own import arrays, assert_same, check_same, examples
from support import Backend

import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(40, emulated=6),
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
DOTTED = [np.dtype(n) for n in ("bool", "int8", "uint64", "float16", "float32", "complex64")]


@pytest.mark.parametrize("name", ["dot", "inner", "vdot"])
@SMALL
@given(st.data())
def test_products(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(DOTTED, max_dims=1))
    same = data.draw(st.integers(0, 4))
    y = data.draw(arrays(DOTTED, max_dims=1, shape=x.shape if same else None))
    if "c" in (
        x.dtype.kind,
        y.dtype.kind,
    ):  # of infinities BLAS has other products than np.multiply
        x, y = (np.where(np.isfinite(one), one, 1).astype(one.dtype) for one in (x, y))
    check_same(backend, name, x, y, ulps=64)


def test_products_of_other_shapes(backend: Backend) -> None:
    x = np.arange(6.0).reshape(2, 3)
    for name in ("dot", "inner"):
        with pytest.raises(gnp.NotTaken, match="axes"):
            getattr(gnp, name)(x, x.T)
        with pytest.raises(gnp.NotTaken, match="axes"):
            getattr(gnp, name)([[1]], [[1]])
    check_same(backend, "vdot", x, x * 1j)
    check_same(backend, "vdot", x, x.T.copy())
    check_same(backend, "vdot", x, x[0])
    check_same(backend, "dot", 2, 3)
    check_same(backend, "dot", x[0], 2)
    out = backend.to_device(np.zeros(()))
    found = gnp.dot(backend.to_device(x[0]), backend.to_device(x[0]), out=out)
    assert type(found) is np.float64 if backend.xp is np else found is out
    assert float(backend.to_host(out)) == 5
    for bad in (np.zeros(1), np.zeros((), np.float32)):
        with pytest.raises(ValueError, match="out"):
            gnp.dot(backend.to_device(x[0]), backend.to_device(x[0]), out=backend.to_device(bad))


def test_dot_of_float16_is_rounded_once(backend: Backend) -> None:
    x = np.full(3000, 1.001, np.float16)
    found = gnp.dot(backend.to_device(x), backend.to_device(x))
    want = np.sum(x.astype(np.float64) ** 2).astype(np.float16)
    assert_same(backend, found, want, 0, "float16")


@pytest.mark.few
@pytest.mark.parametrize("kind", ["f4", "f8", "c8", "c16"])
def test_many_products(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of BLAS: the bits are those of one core, the sums as near as NumPy's."""
    rng = np.random.default_rng(2)
    for n in (4096, 8191, 8193, 100_000, 1 << 19):
        x, y = ((rng.random(n) - 0.5).astype(kind) for _ in range(2))
        if kind[0] == "c":
            x, y = x + x[::-1] * x.dtype.type(1j), y - x * y.dtype.type(1j)
        for name in ("dot", "inner", "vdot"):
            wide = np.dtype(np.complex128 if kind[0] == "c" else np.float64)
            want = getattr(np, name)(x.astype(wide), y.astype(wide))
            got = getattr(gnp, name)(x, y)
            assert got.dtype == x.dtype
            scale = np.sum(abs(x.astype(wide)) * abs(y.astype(wide)))
            assert abs(got - want) <= 8 * np.finfo(x.dtype).eps * scale  # both are rounded
            with monkeypatch.context() as patch:
                patch.setenv("GPUALGO_NUM_THREADS", "1")
                assert getattr(gnp, name)(x, y) == got
    x[5] = np.inf
    y[5] = 0
    assert np.isnan(gnp.vdot(x, y))
    assert gnp.dot(x[::-2], y[::-2]).dtype == x.dtype
