"""The GPU's formula of complex powers, on the CPU: beside NumPy's, and beside a longer double."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.extending import intrinsic
from walk import same
from walk_cases import Array, grid

from gpualgo._operators.numpy_rules import table
from gpualgo._operators.numpy_rules.complexes import by_logarithm
from gpualgo._operators.numpy_rules.storage import Code
from gpualgo._operators.numpy_rules.values import wrapped

DTYPES = [np.dtype("complex64"), np.dtype("complex128")]


@intrinsic  # type: ignore[untyped-decorator]
def _raised(typing: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        code = Code(context, builder)
        return by_logarithm(*(wrapped(code, "complex", value) for value in values)).raw

    return a(a, b), generate


@njit  # type: ignore[untyped-decorator]
def _each(bases: Any, exponents: Any, out: Any) -> None:
    for i in range(len(out)):
        out[i] = _raised(bases[i], exponents[i])


def _powers(bases: Array, exponents: Array) -> Array:
    out = np.empty_like(bases)
    _each(bases, exponents, out)
    return out


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_edge_values(dtype: np.dtype[Any]) -> None:
    bases, exponents = grid(dtype, dtype)
    kept = np.isfinite(bases) & np.isfinite(exponents) & (bases != 0)
    bases, exponents = bases[kept], exponents[kept]
    got = _powers(bases, exponents)
    with np.errstate(all="ignore"):
        want = bases**exponents
        size = 1 + abs(exponents.astype(complex) * np.log(bases.astype(complex)))
    fine = same(got, want, table.LIBM_ULP * size, True) | (size > 1000)
    assert fine.all(), [*zip(bases[~fine], exponents[~fine], got[~fine], want[~fine], strict=True)]
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_imaginary_bases_and_exponents(dtype: np.dtype[Any]) -> None:
    bases, exponents = (
        np.array([1j, 1j, 1j, 1j, -1j, 2j], dtype),
        np.array([1j, -1j, 0.5j, -3j, 1j, 1j], dtype),
    )
    np.testing.assert_allclose(
        _powers(bases, exponents), bases**exponents, rtol=8 * np.finfo(dtype).eps
    )


@pytest.mark.parametrize("where", ["moderate", "near one", "subnormal", "large"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_precision(dtype: np.dtype[Any], where: str) -> None:
    info, rng, count = np.finfo(dtype), np.random.default_rng(1), 20_000
    sizes = {
        "moderate": np.exp(rng.uniform(-5, 5, count)),
        "near one": rng.uniform(0.999, 1.001, count),
        "subnormal": float(info.smallest_subnormal) * rng.integers(1, 1000, count),
        "large": float(info.max) * rng.uniform(0.3, 0.9, count),
    }[where]
    bases = (sizes * np.exp(1j * rng.uniform(-np.pi, np.pi, count))).astype(dtype)
    bases[bases == 0] = info.smallest_subnormal
    reach = 50 if where == "near one" else 0.9
    parts = rng.uniform(-reach, reach, (2, count))
    exponents = (parts[0] + 1j * parts[1]).astype(dtype)
    logs = exponents.astype(np.clongdouble) * np.log(bases.astype(np.clongdouble))
    want = np.exp(logs)
    kept = (abs(want) > 10 * info.tiny) & (abs(want) < info.max / 4)
    assert kept.mean() > 0.2
    apart = abs(_powers(bases, exponents) - want) / (abs(want) * info.eps)
    allowed = 1 if dtype == np.complex64 else 4 * (1 + abs(logs))
    assert (apart <= allowed)[kept].all()
    assert np.isfinite(apart[kept]).all()


def test_infinities_have_real_powers() -> None:
    bases = np.array([np.inf, 1, np.nan], complex)
    got = _powers(bases, np.array([2.5, np.nan, 2.5], complex))
    assert got[0] == np.inf
    assert np.isnan(got[1:]).all()
