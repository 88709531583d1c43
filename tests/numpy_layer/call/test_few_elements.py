"""What NumPy answers for few elements: as many elements would be answered."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import a_few

import gpualgo.numpy as gnp
from gpualgo.numpy import _call, _loops

pytestmark = pytest.mark.few

NARROW = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
FEW, MANY = 5000, 1 << 18  # elements; sums of ones stop at 2048 and 256 in 16-bit floats

# Each adds ones, which it takes with other arguments; the last element of a result is the sum.
SUMS: dict[str, Callable[..., Any]] = {
    "sum": gnp.sum,
    "nansum": gnp.nansum,
    "add.reduce": gnp.add.reduce,
    "cumsum": gnp.cumsum,
    "nancumsum": gnp.nancumsum,
    "cumulative_sum": gnp.cumulative_sum,
    "add.accumulate": gnp.add.accumulate,
    "add.reduceat": lambda x, **options: gnp.add.reduceat(x, [0], **options),
}
MEANS: dict[str, Callable[..., Any]] = {"mean": gnp.mean, "nanmean": gnp.nanmean}
SPREADS: dict[str, Callable[..., Any]] = {
    name: getattr(gnp, name) for name in ("var", "std", "nanvar", "nanstd")
}


@pytest.mark.parametrize("narrow", NARROW, ids=str)
@pytest.mark.parametrize("name", [*SUMS, *MEANS, *SPREADS])
def test_nothing_is_added_in_16_bits(name: str, narrow: Any) -> None:
    """Not elements, nor as dtype= or out= ask, along any axis."""
    function = (SUMS | MEANS | SPREADS)[name]
    want = FEW if name in SUMS else int(name in MEANS)
    for own in (narrow, *a_few(("f4", "f8", "i2", "i8", "?"))):
        ones = np.ones(FEW, own)
        columns = np.ones((FEW, 3), own)
        for options in ({"dtype": narrow}, {} if own == narrow else {"dtype": narrow, "axis": 0}):
            found = np.asarray(function(ones, **options))
            assert found.dtype == narrow
            assert abs(float(found.flat[-1]) - want) <= want * 2**-8
            if name != "cumulative_sum":
                found = function(columns, **{"axis": 0, **options})
                assert abs(float(found.flat[-1]) - want) <= want * 2**-8
        if not function(ones[:1]).ndim and name != "add.reduceat":
            out = np.zeros((3,), narrow)
            if np.can_cast(own, narrow, "same_kind") or own == narrow:
                function(columns, axis=0, out=out)
                assert abs(float(out[0]) - want) <= want * 2**-8


def test_a_mask_by_its_place() -> None:
    x, mask = np.ones((25_000, 4), "f4"), np.ones((25_000, 4), bool)
    assert gnp.sum(x, 0, np.float16, None, False, 0, mask)[0] == np.float16(25_000)


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logaddexp2"])
def test_ufuncs_of_bytes_that_compute_in_float16(name: str) -> None:
    few, many = (getattr(gnp, name).reduce(np.ones(n, "i1")) for n in (FEW, FEW + (1 << 17)))
    wide = [getattr(np, name).reduce(np.ones(n)) for n in (FEW, FEW + (1 << 17))]
    np.testing.assert_allclose([few, many], wide, rtol=2**-10)


@pytest.mark.parametrize("narrow", NARROW, ids=str)
def test_medians_and_areas_of_16_bit_floats(narrow: Any) -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(narrow)
    assert gnp.median(x) == np.sort(x.astype("f8"))[499:501].mean().astype(narrow)
    x[333] = np.nan
    assert np.isnan(gnp.median(x))
    holes = np.where(np.arange(1000).reshape(100, 10) % 7, 1, np.nan).astype(narrow)
    assert (gnp.nanmedian(holes, axis=0) == 1).all()
    areas = gnp.trapezoid(np.ones((FEW, 2), narrow), axis=0)
    assert areas.dtype == narrow
    assert (areas == narrow.type(FEW - 1)).all()


def _outcome(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = np.array(call(*args, **options))
        except (TypeError, ValueError) as error:
            return isinstance(error, TypeError)
    return result, {one.category for one in told} - {RuntimeWarning}


KINDS = "?bBhHiIlLefdFD"
UFUNCS = "add", "multiply", "maximum", "fmin", "bitwise_or", "gcd", "lcm", "hypot", "logaddexp"


@pytest.mark.parametrize("name", UFUNCS)
def test_reductions_into_every_dtype(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``initial=``, which NumPy casts to out's dtype; by our own reductions."""
    monkeypatch.setattr(_call, "is_few", lambda size, few: False)
    for own, wanted in a_few(list(itertools.product(KINDS, KINDS)), 40):
        x = (np.arange(40) % 7).astype(own)
        for initial in (_call.UNSET, 3, 2.5):
            options = {"out": np.zeros((), wanted), "initial": initial}
            want = _outcome(getattr(np, name).reduce, x, **options)
            found = _outcome(getattr(gnp, name).reduce, x, **options)
            told = f"{own} {wanted} {initial}: {found}, not {want}"
            if not isinstance(want, tuple) or not isinstance(found, tuple):
                assert want == found, told
            elif not (name == "logaddexp" and wanted in "BHIL" and initial is _call.UNSET):
                # An exception: NumPy begins with -inf, which no unsigned integer is.
                np.testing.assert_allclose(found[0], want[0], rtol=2**-8, err_msg=told)
                assert found[1] == want[1], told


@pytest.mark.parametrize("size", [1000, MANY])
def test_extremes_of_large_numbers(size: int) -> None:
    x = np.arange(5, 5 + size, dtype=np.uint64)
    x[7] = 2**63 + 9
    for name in ("min", "minimum.reduce"):
        function = gnp.minimum.reduce if "." in name else gnp.min
        assert function(x, out=np.zeros((), np.int64), initial=3) == 3
        with pytest.raises(gnp.NotTaken, match=r"initial=-3 is no uint64"):
            function(x, out=np.zeros((), np.int64), initial=-3)


@pytest.mark.parametrize("size", [1000, 40_000])
def test_outputs_of_every_kind(size: int) -> None:
    """NumPy's scans write past the end of an output without axes; its `all` frees objects."""
    for scan in (gnp.cumsum, gnp.nancumprod, gnp.cumulative_sum, gnp.add.accumulate):
        with pytest.raises(ValueError, match=r"out has shape \(\), the result has"):
            scan(np.ones(size), out=np.zeros(()))
    for out in (np.zeros((), object), np.zeros((), "m8[s]")):
        with pytest.raises(TypeError, match="out"):
            gnp.all(np.ones(size), axis=0, out=out)
    out = np.zeros(())
    assert gnp.sum(np.ones(size), out=(out,)) is out
    assert out == size
    for scan in (gnp.cumsum, gnp.cumprod, gnp.cumulative_sum):
        with pytest.warns(np.exceptions.ComplexWarning):
            scan(np.full(size, 1j), out=np.zeros(size))
    assert gnp.cumulative_sum(np.ones((1, size)), axis=(0,)).shape == (1, size)


@pytest.mark.parametrize("code", "fdFD")
def test_products_do_not_depend_on_the_number_of_cores(code: str) -> None:
    """BLAS shares vectors of more than 10,000 elements among all cores."""
    numbers = np.random.default_rng(3).standard_normal((4, 70_000))
    x, y = (part.astype(code) + (1j * other if code in "FD" else 0) for part, other in (
        (numbers[0], numbers[1]), (numbers[2], numbers[3])
    ))  # fmt: skip
    x, y = x.astype(code), y.astype(code)
    for size in (9_000, 16_384, 70_000):
        a, b = x[:size], y[:size]
        for function, left in ((gnp.dot, a.conj()), (gnp.inner, a.conj()), (gnp.vdot, a)):
            want = _loops.dotted(left, b)
            assert function(a, b).tobytes() == want.tobytes()
        out = np.zeros((), code)
        assert gnp.dot(a, b, out) == out == _loops.dotted(a.conj(), b)
