"""Reductions compute in the dtype of a wider ``out=``, and look at axes, as NumPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, a_few

import gpualgo.numpy as gnp


@pytest.mark.parametrize("name", ["prod", "nanprod"])
def test_products_of_integers_in_floats_do_not_wrap(backend: Backend, name: str) -> None:
    x = np.arange(1, 41)
    out = backend.to_device(np.zeros((), np.float64))
    getattr(gnp, name)(backend.to_device(x), out=out)
    expected = np.prod(x, out=np.zeros(()))
    assert float(backend.to_host(out)) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("name", ["sum", "nansum", "mean", "nanmean"])
def test_short_floats_are_added_up_in_those_of_out(backend: Backend, name: str) -> None:
    x = (np.arange(500) % 7 + 1.1).astype(np.float32)
    out: Any = backend.to_device(np.zeros((), np.float64))
    getattr(gnp, name)(backend.to_device(x), out=out)
    expected = getattr(np, name)(x.astype(np.float64))
    assert float(backend.to_host(out)) == pytest.approx(float(expected), rel=1e-14)


def test_differences_fit_a_wider_out(backend: Backend) -> None:
    x = np.array([[-128, 127], [3, 5]], np.int8)
    out = backend.to_device(np.zeros(2, np.int64))
    gnp.ptp(backend.to_device(x), axis=1, out=out)
    assert backend.to_host(out).tolist() == [255, 2]
    one = backend.to_device(np.zeros((), np.int64))
    gnp.ptp(backend.to_device(x), out=one)
    assert int(backend.to_host(one)) == 255


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "average"])
def test_means_of_arrays_without_axes_take_none(backend: Backend, name: str) -> None:
    x = backend.to_device(np.array(2.0))
    for axis in a_few((0, -1)):
        with pytest.raises(np.exceptions.AxisError):
            getattr(gnp, name)(x, axis=axis)


def test_a_start_is_a_number_of_out(backend: Backend) -> None:
    x = np.array([1, 2], np.int64)
    for name in ("max", "min", "sum", "prod"):
        out, want = backend.to_device(np.zeros((), float)), np.zeros(())
        getattr(np, name)(x, initial=2.5, out=want)
        assert getattr(gnp, name)(backend.to_device(x), initial=2.5, out=out) is out
        np.testing.assert_array_equal(backend.to_host(out), want)


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_no_mean_is_a_bool(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(gnp, name)(np.ones(4), dtype=bool)
