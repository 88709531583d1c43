"""NumPy's functions on lazy arrays, beside the same calls on real ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import COMPLEX, DTYPES, Backend, a_few, random_array, sampled

import gpualgo as ga
from gpualgo.lazy import functions, reductions
from gpualgo.numpy import _folds, _products

SHAPE = (7, 30)
NUMPYS = [dtype for dtype in DTYPES if dtype.isbuiltin == 1]
RTOL = {"float16": 2e-3, "float32": 2e-6, "complex64": 2e-6}


def sample(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return small values, products of which do not overflow."""
    x = np.random.default_rng(1).integers(-2, 3, SHAPE) / 2 + 1.125
    return x.astype(dtype)


def assert_close(got: Any, want: Any, dtype: np.dtype[Any]) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    least = 6e-8 if got.dtype == np.float16 else 1e-30  # between two of its smallest numbers
    np.testing.assert_allclose(got, want, rtol=RTOL.get(str(dtype), 1e-12), atol=least)


# Each dtype is compiled anew for each function: all of them in an exhaustive walk.
EACH = sampled(NUMPYS, ["bool", "float16", "float32", "complex64"])
REDUCTIONS = ["sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "cumsum", "cumprod",
              "argmin", "argmax", "sort", "argsort"]  # fmt: skip
OF_ORDER = ("min", "max", "argmin", "argmax", "sort", "argsort")
CALLS = [(name, str(dtype)) for name in REDUCTIONS for dtype in NUMPYS
         if name not in OF_ORDER or dtype not in COMPLEX]  # fmt: skip
# Of each function float32; each of the other kinds where it is computed in a way of its own.
OFTEN = [(name, "float32") for name in REDUCTIONS]
OFTEN += [(name, "bool") for name in ("sum", "var", "min", "cumsum", "argsort")]
OFTEN += [(name, "float16") for name in ("sum", "mean", "std", "cumprod", "argmax", "sort")]
OFTEN += [(name, "complex64") for name in ("prod", "var", "any", "cumsum")]


@pytest.mark.parametrize("call", sampled(CALLS, OFTEN), ids="-".join)
def test_reductions_scans_and_sorts(call: tuple[str, str]) -> None:
    name, dtype = call[0], np.dtype(call[1])
    fn, x = getattr(np, name), sample(dtype)
    if dtype == np.float16 and name == "cumprod":
        x = np.clip(x, 0.5, 1.0)
    made = ga.lazy.asarray(x)
    more = {"kind": "stable"} if "sort" in name else {}
    with np.errstate(all="ignore"):
        for axis in a_few((None, 0, -1), 2):
            assert_close(fn(made, axis=axis, **more), fn(x, axis=axis, **more), dtype)


def test_one_reduction(backend: Backend, monkeypatch: Any) -> None:
    """Of one lazy array, and nothing else is called."""
    calls: list[Any] = []

    def counted(x: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(x)
        return ga.reduce(x, *args, **kwargs)

    def none(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("there is a second call")

    x, y = random_array((2, 1000), np.dtype("float64"))
    for module in (reductions, _folds, _products):
        monkeypatch.setattr(module, "reduce", counted)
    monkeypatch.setattr(_folds, "transform", none)
    monkeypatch.setattr(functions, "copy", none)
    made = np.exp(ga.lazy.asarray(backend.to_device(x)) / 8) * backend.to_device(y)
    got = backend.to_host(np.sum(made))
    np.testing.assert_allclose(got, np.sum(np.exp(x / 8) * y), rtol=1e-12)
    assert [type(x) for x in calls] == [ga.lazy.LazyArray]
    np.dot(ga.lazy.asarray(backend.to_device(x)), backend.to_device(y))
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["dot", "inner", "vdot"])
@pytest.mark.parametrize("dtype", EACH, ids=str)
def test_products(name: str, dtype: np.dtype[Any]) -> None:
    fn = getattr(np, name)
    x, y = sample(dtype)[0], sample(dtype)[1]
    for a, b in ((ga.lazy.asarray(x), y), (x, ga.lazy.asarray(y))):
        assert_close(fn(a, b), fn(x, y), dtype)


def test_the_table_is_of_functions_that_numpy_has() -> None:
    assert all(math.prod(np.shape(getattr(np, name, 0))) == 1 for name in functions.FUNCTIONS)
    assert {name for name in functions.FUNCTIONS if not hasattr(np, name)} <= {"astype"}
