"""NumPy's functions on lazy arrays, beside the same calls on real ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import COMPLEX, DTYPES, Backend, a_few, assert_same, random_array, sampled

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


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "min", "any"])
def test_options(name: str) -> None:
    fn, x = getattr(np, name), random_array((4, 5, 6), np.dtype("float32"))
    made = ga.lazy.asarray(x)
    for axis in a_few((None, 1, (0, 2), (-1, 0), ()), 2):
        for keepdims in (False, True):
            if axis == () and name in ("var", "std"):
                continue
            got, want = fn(made, axis=axis, keepdims=keepdims), fn(x, axis=axis, keepdims=keepdims)
            assert_close(got, want, np.dtype("float16"))
    out = np.empty((4, 6), bool if name == "any" else np.float32)
    assert fn(made, axis=1, out=out) is out
    assert_close(out, fn(x, axis=1), np.dtype("float16"))
    assert fn(made, where=True) == fn(made)
    if name not in ("min", "any"):
        assert_close(fn(made, where=x > 0), fn(x, where=x > 0), np.dtype("float16"))
    assert_close(getattr(made, name)(axis=0), fn(x, axis=0), np.dtype("float16"))


def test_variance_where_two_sums_would_cancel() -> None:
    x = 1e9 + np.arange(1000) % 3
    made = ga.lazy.asarray(x)
    np.testing.assert_allclose(np.var(made), np.var(x), rtol=1e-9)
    np.testing.assert_allclose(np.var(made, ddof=1), np.var(x, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(np.std(made, correction=2), np.std(x, ddof=2), rtol=1e-9)
    z = x + 1j * x[::-1]
    got = np.var(ga.lazy.asarray(z))
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, np.var(z), rtol=1e-9)
    single = np.var(ga.lazy.asarray(z.astype(np.complex64)))
    assert single.dtype == np.float32


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


# --- elementwise, and of the same elements ----------------------------------------------------


SAME_SHAPE: dict[str, Any] = {
    "clip": lambda x: np.clip(x, 1, 2), "clip above": lambda x: x.clip(None, 1),
    "clip by an array": lambda x: np.clip(x, np.ones(30, x.dtype), None), "round": np.round,
    "round to tenths": lambda x: x.round(1), "where": lambda x: np.where(x > 1, x, 0),
    "nan_to_num": lambda x: np.nan_to_num(x, nan=7.0, posinf=8.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_SHAPE)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_elements_of_the_same_shape(name: str, dtype: str) -> None:
    x = sample(np.dtype(dtype))
    if dtype != "int32":
        x[:2, 0] = np.nan, np.inf
    got = SAME_SHAPE[name](ga.lazy.asarray(x))
    assert type(got) is ga.lazy.LazyArray
    assert_same(ga.copy(got), SAME_SHAPE[name](x))


TURNS: list[tuple[Any, tuple[Any, ...]]] = [
    (np.transpose, ()), (np.transpose, ((1, 0, 2),)), (np.swapaxes, (0, 2)), (np.moveaxis, (0, -1)),
    (np.rollaxis, (2,)), (np.expand_dims, ((0, 2),)), (np.flip, ()), (np.flip, ((0, 1),)),
    (np.flipud, ()), (np.fliplr, ()), (np.rot90, ()), (np.broadcast_to, ((2, 4, 6, 5),)),
    (np.diagonal, ()), (np.reshape, ((5, -1),)), (np.ravel, ()), (np.real, ()), (np.imag, ()),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "args"), TURNS, ids=[f"{f.__name__}{a}" for f, a in TURNS])
def test_other_shapes(fn: Any, args: tuple[Any, ...]) -> None:
    x = random_array((4, 6, 5), np.dtype("int64"))
    made = fn(ga.lazy.asarray(x) + ga.lazy.arange(120).reshape(4, 6, 5), *args)
    assert type(made) is ga.lazy.LazyArray
    assert_same(ga.copy(made), fn(x + np.arange(120).reshape(4, 6, 5), *args))


def test_squeeze_take_and_what_asks_for_a_shape() -> None:
    x = random_array((1, 6, 1, 5), np.dtype("float64"))
    made = ga.lazy.asarray(x)
    assert_same(ga.copy(np.squeeze(made)), np.squeeze(x))
    assert_same(ga.copy(made.squeeze(2)), x.squeeze(2))
    with pytest.raises(ValueError, match="squeeze"):
        np.squeeze(made, 1)
    assert (np.shape(made), np.ndim(made), np.size(made), np.size(made, 1)) == (x.shape, 4, 30, 6)
    got = np.take(made, [[-1, 2]], axis=1, mode="clip")
    assert_same(ga.copy(got), np.take(x, [[-1, 2]], axis=1, mode="clip"))
    assert_same(np.copy(made), x)
    target = np.empty_like(x)
    np.copyto(target, made * 2)
    assert_same(target, x * 2)


@pytest.mark.parametrize("name", ["dot", "inner", "vdot"])
@pytest.mark.parametrize("dtype", EACH, ids=str)
def test_products(name: str, dtype: np.dtype[Any]) -> None:
    fn = getattr(np, name)
    x, y = sample(dtype)[0], sample(dtype)[1]
    for a, b in ((ga.lazy.asarray(x), y), (x, ga.lazy.asarray(y))):
        assert_close(fn(a, b), fn(x, y), dtype)


def test_count_nonzero() -> None:
    x = random_array((9, 8), np.dtype("int8")) % 3
    made = ga.lazy.asarray(x)
    assert np.count_nonzero(made) == np.count_nonzero(x)
    assert_same(np.count_nonzero(made, axis=0), np.count_nonzero(x, axis=0))
    got = np.count_nonzero(made, axis=1, keepdims=True)
    assert_same(got, np.count_nonzero(x, axis=1, keepdims=True))


REFUSED: list[tuple[Any, str]] = [
    (lambda x: np.where(x), r"np\.where: pass x and y"),
    (lambda x: np.kron(x, x), r"np\.kron: .*materialize it with gpualgo\.copy\(x\) or np\.asarray"),
    (lambda x: np.linalg.norm(x), r"np\.linalg\.norm: .*materialize it"),
    (lambda x: np.fft.fft(x), r"np\.fft\.fft: .*materialize it"),
    (lambda x: np.concatenate([x, x]), r"np\.concatenate: .*materialize it"),
    (lambda x: np.sum(x, out=x), r"sum: out is a lazy array"),
    (lambda x: np.sort(x, order="x"), r"sort: order='x' is not possible"),
    (lambda x: np.take(x, [0]), r"np\.take: .*mode='wrap'"),
    (lambda x: np.reshape(x, 3, order="F"), r"np\.reshape: lazy arrays have C order"),
    (lambda x: np.dot(x.reshape(1, 3), x), r"dot: the arrays have 2 and 1 axes"),
    (lambda x: np.copyto(x, 1), r"np\.copyto: out is a lazy array"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refused(act: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words) as caught:
        act(ga.lazy.arange(3))
    assert "\n" not in str(caught.value)


def test_the_table_is_of_functions_that_numpy_has() -> None:
    assert all(math.prod(np.shape(getattr(np, name, 0))) == 1 for name in functions.FUNCTIONS)
    assert {name for name in functions.FUNCTIONS if not hasattr(np, name)} <= {"astype"}
