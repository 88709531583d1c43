"""Complex logarithms are as precise near 1, where the size is rounded to 1, as elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

NEAR = np.array([0.0, 1e-3, -1e-3, 3e-5, -2e-7, 5e-9, 0.3, -0.4])
FAR = np.array([1e-30, -2.5, 7e15, -1e30, 0.6, 0.8])
INFINITE = [complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(-np.inf, 1.0), 0j, 1 + 0j]


@pytest.mark.parametrize("name", ["log", "log2", "log10"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_near_one(backend: Backend, name: str, dtype: str) -> None:
    function = getattr(np, name)
    grids: list[np.ndarray[Any, Any]] = [
        (around + part[:, None] + 1j * part).ravel()
        for around in (1, -1, 1j) for part in (NEAR,)
    ] + [(FAR[:, None] + 1j * FAR).ravel()]  # fmt: skip
    x = np.concatenate(grids).astype(dtype)
    x = x[x != 0]
    found = backend.to_host(ga.transform(function, backend.to_device(x)))
    assert found.dtype == x.dtype
    want = function(x.astype(np.complex128))
    np.testing.assert_array_less(
        abs(found - want), 4 * np.spacing(abs(want).astype(x.real.dtype)) + 1e-300
    )


def test_infinities_and_zero(backend: Backend) -> None:
    x = np.array(INFINITE)
    found = backend.to_host(ga.transform(np.log, backend.to_device(x)))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.log(x))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_roots_of_the_largest_and_least_numbers(backend: Backend, dtype: str) -> None:
    info = np.finfo(dtype)
    parts = np.array(
        [0, info.max, info.max / 2, info.max / 5, 1, info.tiny, info.smallest_subnormal * 2000],
        info.dtype,
    )
    z = (parts[:, None] + 1j * parts).reshape(-1).astype(dtype)
    z = np.concatenate([z, -z, z.conj()])
    got = backend.to_host(ga.transform(np.sqrt, backend.to_device(z)))
    wide = z.astype(np.clongdouble)
    scale = np.where(abs(wide.real) + abs(wide.imag) < 1, np.longdouble(2) ** 600, 1)
    want = np.sqrt(wide * scale) / np.sqrt(scale)
    assert (abs(got - want) <= 4 * info.eps * abs(want)).all()


def test_powers_near_one(backend: Backend) -> None:
    """The exact values are e^(1j) and e^(-1) (1 + 5e-9j), but for terms of higher order."""
    z = backend.to_device(np.array([1 + 1e-8j, 1 + 1e-8j]))
    exponents = backend.to_device(np.array([1e8, 1e8j]))
    got = backend.to_host(ga.transform(np.power, z, exponents))
    want = np.array(
        [0.5403023085696512 + 0.8414709890152514j, 0.36787944117144233 + 1.8393972058572117e-09j]
    )
    np.testing.assert_allclose(got.real, want.real, rtol=1e-14)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-14)
