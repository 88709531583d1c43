"""Elementwise functions that are no ufuncs beside NumPy's; and vectorize."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpys_own import DTYPES, arrays, assert_same, check_same, examples
from support import Backend, a_few, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(30, emulated=6), deadline=None, database=None, derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)  # fmt: skip
SOME = [np.dtype(n) for n in ("bool", "int8", "uint64", "float16", "float32", "complex64")]
REAL = SOME[:-1]


@since_numpy("2.1")
@SMALL
@given(st.data())
def test_clip(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(REAL))
    limits = st.one_of(
        st.sampled_from([None, 0, 1, -3, 300, 2.5, np.float32(1), np.nan]),
        arrays(REAL, shape=x.shape[-1:]),
    )
    check_same(backend, "clip", x, data.draw(limits), data.draw(limits))


@pytest.mark.parametrize("name", ["round", "around"])
@SMALL
@given(st.data())
def test_round(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(SOME))
    decimals = data.draw(st.integers(-2, 3))
    if x.dtype == np.uint64 and decimals < 0:
        x = x % 1000  # others are by way of float64, beyond what it holds
    check_same(backend, name, x, decimals, ulps=1)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_rounded_tens_in_floats_do_not_wrap(backend: Backend, dtype: str) -> None:
    """Integers are rounded as float64, which ``out=`` gets: 260 is no uint8."""
    x = np.array([255 if dtype == "uint8" else 127, 4, 15], dtype)
    out = backend.to_device(np.zeros(3, np.float32))
    assert gnp.round(backend.to_device(x), -1, out=out) is out
    want = np.round(x, -1, out=np.zeros(3, np.float32))
    assert_same(backend, out, want, 0, dtype)
    with pytest.raises(TypeError, match="float64"):
        gnp.round(backend.to_device(x), -1, out=backend.to_device(np.zeros(3, dtype)))


@pytest.mark.parametrize(
    "name",
    [
        "fix", "isposinf", "isneginf", "real", "imag", "angle",
        pytest.param("sinc", marks=since_numpy("2.4")),
    ],
)  # fmt: skip
@SMALL
@given(st.data())
def test_unary(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(REAL if name == "fix" else SOME))
    if name == "sinc" and x.dtype.kind == "c":
        x = np.where(np.isfinite(x) & (abs(x) < 8), x, 1).astype(x.dtype)
    kwargs = {"deg": data.draw(st.booleans())} if name == "angle" else {}
    check_same(backend, name, x, ulps=16, **kwargs)


@SMALL
@given(st.data())
def test_nan_to_num(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(DTYPES))
    kwargs = {}
    for name in ("nan", "posinf", "neginf"):
        if data.draw(st.booleans()):
            kwargs[name] = data.draw(st.sampled_from([0, 2.5, -1, np.float32(7)]))
    check_same(backend, "nan_to_num", x, **kwargs)


def test_nan_to_num_in_place(backend: Backend) -> None:
    for kind in a_few((np.float32, np.complex64)):
        x = np.array([np.nan, 1, np.inf], kind)
        there = backend.to_device(x)
        assert gnp.nan_to_num(there, copy=False) is there
        assert_same(backend, there, np.nan_to_num(x), 0, "in place")
    x = np.array([np.nan, np.inf, -np.inf])
    ends = np.array([1.0, 2.0, 3.0])
    check_same(backend, "nan_to_num", x, nan=ends, posinf=ends, neginf=ends)
    check_same(backend, "nan_to_num", [1.0], copy=False)
    check_same(backend, "nan_to_num", x, nan=1j)


@SMALL
@given(st.data())
def test_isclose(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(SOME))
    y = data.draw(st.one_of(arrays(SOME, shape=x.shape), st.sampled_from([1, 2.0, np.nan])))
    kwargs: dict[str, Any] = {"equal_nan": data.draw(st.booleans())}
    if data.draw(st.booleans()):
        kwargs["rtol"], kwargs["atol"] = data.draw(st.sampled_from([(0, 0), (0.5, 1e-3), (1, 2)]))
    check_same(backend, "isclose", x, y, **kwargs)


def test_isclose_corners(backend: Backend) -> None:
    least = np.array([np.iinfo(np.int64).min])
    check_same(backend, "isclose", least, -least - 1)
    check_same(backend, "isclose", np.arange(3), 5, rtol=np.array([1.0, 2.0, 3.0]))
    check_same(backend, "isclose", [1.0], [1.0, 2.0, 3.0])
    check_same(backend, "isclose", 1, 1 + 1e-9)
    z = np.array([complex(np.inf, 0), complex(1, np.inf), complex(np.inf, np.nan), 1])
    check_same(backend, "isclose", z, z.copy())
    check_same(backend, "isclose", z, complex(np.inf, 0))
    with pytest.warns(RuntimeWarning, match="rtol or atol"):
        gnp.isclose(np.ones(3), 1, rtol=np.inf)


def _step(a: Any, b: Any) -> Any:
    return a - b if a > b else a + b


def test_vectorize(backend: Backend) -> None:
    x, y = np.arange(6).reshape(2, 3), np.array([1, 2, 3])
    there = backend.to_device(x), backend.to_device(y)
    assert_same(backend, gnp.vectorize(_step)(*there), np.vectorize(_step)(x, y), 0, "broadcast")
    found = gnp.vectorize(_step, otypes="f")(*there)
    assert_same(backend, found, np.vectorize(_step, otypes="f")(x, y), 0, "otypes")
    found = gnp.vectorize(lambda a: (a // 2, a * 0.5))(there[0])
    assert_same(backend, found, np.vectorize(lambda a: (a // 2, a * 0.5))(x), 0, "two results")
    made = gnp.vectorize(lambda a: (a // 2, a * 0.5), otypes=[np.float32, int])
    want = np.vectorize(lambda a: (a // 2, a * 0.5), otypes=[np.float32, int])(x)
    assert_same(backend, made(there[0]), want, 0, "two results of types")
    assert isinstance(gnp.vectorize(_step)(ga.lazy.asarray(there[0]), 1), ga.lazy.LazyArray)
    assert int(gnp.vectorize(_step)(5, 2)) == 3


def test_vectorize_as_decorator() -> None:
    @gnp.vectorize(otypes=[float], doc="Halve it.")
    def halved(a: Any) -> Any:
        return a / 2

    assert halved.__doc__ == "Halve it."
    assert halved.__name__ == "halved"
    np.testing.assert_array_equal(halved([1, 2]), [0.5, 1.0])
    k = 2
    scaled_by = gnp.vectorize(lambda a: a * k)
    np.testing.assert_array_equal(scaled_by([1, 2]), [2, 4])
    k = 5
    np.testing.assert_array_equal(scaled_by([1, 2]), [5, 10])
    for kwargs in ({"signature": "(n)->()"}, {"excluded": {0}}, {"cache": True}):
        with pytest.raises(gnp.NotTaken):
            gnp.vectorize(_step, **kwargs)
    with pytest.raises(gnp.NotTaken, match="by keyword"):
        gnp.vectorize(_step)(1, b=2)
    with pytest.raises(gnp.NotTaken):
        gnp.vectorize(lambda a: str(a))([1, 2])
    with pytest.raises(ValueError, match="otypes"):
        gnp.vectorize(_step, otypes="ff")([1, 2], 1)
    with pytest.raises(TypeError, match="keyword"):
        gnp.vectorize([1])


def test_vectorize_makes_tuples_of_lazy_arrays(backend: Backend) -> None:
    x = np.arange(4)
    lazy = ga.lazy.asarray(backend.to_device(x))
    half, third = gnp.vectorize(lambda a: (a // 2, a / 3))(lazy)
    assert_same(backend, gnp.sum(half), np.sum(x // 2), 0, "half")
    assert_same(backend, ga.copy(third), x / 3, 0, "third")


def test_vectorize_refuses() -> None:
    """What NumPy calls and a kernel cannot is told as such, whatever is wrong with it."""

    class Scale:
        by = 2

        def __call__(self, a: Any) -> Any:
            return a * self.by

    one = Scale()
    for fn in (one, one.__call__, lambda a: a * one.by, lambda a: None, lambda a: "x"):
        with pytest.raises(gnp.NotTaken):
            gnp.vectorize(fn)([1, 2])
    for otypes in ("O", [str], [np.longdouble]):
        with pytest.raises(gnp.NotTaken, match="otypes"):
            gnp.vectorize(one, otypes=otypes)
    with pytest.raises(ValueError, match="typecode"):
        gnp.vectorize(one, otypes="float32")
