"""Running sums, differences and areas beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpys_own import DTYPES, arrays, assert_same, axes, check_same, examples, outcome
from support import BFLOAT16, Backend, a_few, scaled, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(40, emulated=6),
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
SUMMED = [np.dtype(n) for n in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64",
                                "complex64")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@SMALL
@given(st.data())
def test_running(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(SUMMED))
    kwargs: dict[str, Any] = {}
    if data.draw(st.booleans()):
        kwargs["axis"] = data.draw(axes(x.ndim, tuples=False))
    if data.draw(st.booleans()):
        kwargs["dtype"] = data.draw(st.sampled_from([np.dtype(np.float64), np.dtype(np.int32)]))
        if x.dtype.kind == "c" or (kwargs["dtype"].kind == "i" and x.dtype.kind == "f"):
            del kwargs["dtype"]
    check_running(backend, name, x, kwargs)


def check_running(backend: Backend, name: str, x: Any, kwargs: dict[str, Any]) -> None:
    """Compare with NumPy's, of float16 with what is computed in float32 and rounded once."""

    def rounded_once(a: Any, **options: Any) -> Any:
        with np.errstate(over="ignore"):
            found = getattr(np, name)(a.astype(np.float32), **options)
            return found.astype(np.float16) if "dtype" not in options else found

    if "prod" in name and x.dtype.kind == "c":  # of what overflows the grouping tells
        x = np.where(np.isfinite(x) & (abs(x) < 2), x, 1).astype(x.dtype)
    theirs = rounded_once if x.dtype == np.float16 else None
    check_same(backend, name, x, ulps=64, theirs=theirs, **kwargs)


def _ulps(x: np.ndarray[Any, Any]) -> int:
    """Return how far NumPy's may be: its sums of float16 are rounded one after another."""
    return 400 if x.dtype == np.float16 else 64


@pytest.mark.slow
@since_numpy("2.1")
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@SMALL
@given(st.data())
def test_cumulative(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(SUMMED, min_dims=1))
    kwargs: dict[str, Any] = {"include_initial": data.draw(st.booleans())}
    if data.draw(st.integers(0, 4)):
        kwargs["axis"] = data.draw(axes(x.ndim, tuples=False, none=False))
    if data.draw(st.booleans()) and x.dtype.kind != "c":
        kwargs["dtype"] = np.dtype(np.float64)
    check_running(backend, name, x, kwargs)


@SMALL
@given(st.data())
def test_out(backend: Backend, data: Any) -> None:
    x = data.draw(arrays([np.dtype("int8"), np.dtype("float32")], min_dims=1, min_side=1))
    axis = data.draw(axes(x.ndim, tuples=False))
    shape = (x.size,) if axis is None else x.shape
    if data.draw(st.integers(0, 5)) == 0:
        shape = (*shape[:-1], shape[-1] + 1)
    kind = np.dtype(data.draw(st.sampled_from(["int8", "int64", "float64", "float16"])))
    if kind.kind == "i" and x.dtype.kind == "f":
        kind = np.dtype("float32")
    ours, theirs = backend.to_device(np.zeros(shape, kind)), np.zeros(shape, kind)
    want, error = outcome(np.cumsum, (x, axis), {"out": theirs})
    got, found = outcome(gnp.cumsum, (backend.to_device(x), axis), {"out": ours})
    assert (error is None) == (found is None), (x, axis, kind, want, got)
    if error is None:
        assert got is ours
        assert_same(backend, ours, theirs, _ulps(theirs), f"{x!r}, {axis}, {kind}")


@since_numpy("2.1")
def test_out_of_itself(backend: Backend) -> None:
    x = backend.to_device(np.arange(100.0))
    gnp.cumsum(x, out=x)
    np.testing.assert_array_equal(backend.to_host(x), np.cumsum(np.arange(100.0)))
    x = backend.to_device(np.arange(100.0))
    gnp.cumsum(x[:-1], out=x[1:])
    np.testing.assert_array_equal(backend.to_host(x)[1:], np.cumsum(np.arange(99.0)))
    out = backend.to_device(np.zeros((2, 4), np.float32))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for axis, shape in ((1, (2, 4)), (0, (3, 3))):
        out = backend.to_device(np.zeros(shape, np.float32))
        made = gnp.cumulative_sum(backend.to_device(x), axis=axis, include_initial=True, out=out)
        assert made is out
        want = np.cumulative_sum(x, axis=axis, include_initial=True)
        np.testing.assert_array_equal(backend.to_host(out), want)
    with pytest.raises(ValueError, match="shape"):
        gnp.cumulative_sum(backend.to_device(x), axis=0, include_initial=True, out=out[:2])


def test_float16_does_not_stop(backend: Backend) -> None:
    n = scaled(5000, emulated=2100)
    for kind in a_few((np.float16, BFLOAT16)):
        found = backend.to_host(gnp.cumsum(backend.to_device(np.ones(n, kind))))
        assert found.dtype == kind
        assert float(found[-1]) == float(np.float64(n).astype(kind))


@SMALL
@given(st.data())
def test_diff(backend: Backend, data: Any) -> None:
    x = data.draw(arrays([np.dtype(n) for n in ("bool", "int8", "uint64", "float32", "complex64")],
                         min_dims=1))  # fmt: skip
    n = data.draw(st.integers(0, 6))
    axis = data.draw(axes(x.ndim, tuples=False, none=False))
    check_same(backend, "diff", x, n=n, axis=axis)


@SMALL
@given(st.data())
def test_diff_with_ends(backend: Backend, data: Any) -> None:
    kinds = [np.dtype(n) for n in ("bool", "int8", "float32")]
    x = data.draw(arrays(kinds, min_dims=1, max_dims=2))
    axis = data.draw(axes(x.ndim, tuples=False, none=False))
    kwargs: dict[str, Any] = {"axis": axis, "n": data.draw(st.integers(1, 3))}
    for name in ("prepend", "append"):
        if data.draw(st.booleans()):
            shape = list(x.shape)
            shape[axis] = data.draw(st.integers(0, 3))
            ends = st.one_of(st.sampled_from([0, 1.5]), arrays(kinds, shape=tuple(shape)))
            kwargs[name] = data.draw(ends)
    check_same(backend, "diff", x, **kwargs)


def test_diff_of_lazy(backend: Backend) -> None:
    x = np.array([3, 1, 4, 1, 5])
    made = gnp.diff(ga.lazy.asarray(backend.to_device(x)) * 2, n=2)
    assert isinstance(made, ga.lazy.LazyArray)
    assert_same(backend, ga.copy(made), np.diff(x * 2, n=2), 0, "lazy")
    assert_same(backend, np.sum(made), np.sum(np.diff(x * 2, n=2)), 0, "lazy")


@SMALL
@given(st.data())
def test_ediff1d(backend: Backend, data: Any) -> None:
    kinds = [np.dtype(n) for n in ("int8", "float32", "bool")]
    x = data.draw(arrays(kinds))
    kwargs: dict[str, Any] = {}
    for name in ("to_end", "to_begin"):
        if data.draw(st.booleans()):
            kwargs[name] = data.draw(
                st.one_of(st.sampled_from([5, [1, 2], 1.5, np.int8(3)]), arrays(kinds, max_dims=2))
            )
    check_same(backend, "ediff1d", x, **kwargs)


@SMALL
@given(st.data())
def test_trapezoid(backend: Backend, data: Any) -> None:
    kinds = [np.dtype(n) for n in ("bool", "int8", "float16", "float32", "float64")]
    y = data.draw(arrays(kinds, min_dims=1))
    axis = data.draw(axes(y.ndim, tuples=False, none=False))
    kwargs: dict[str, Any] = {"axis": axis}
    way = data.draw(st.integers(0, 3))
    if way == 1:
        kwargs["dx"] = data.draw(st.sampled_from([2, 0.5, np.float32(3), np.array(2.0), True]))
    elif way == 2:
        kwargs["x"] = data.draw(arrays(kinds, shape=(y.shape[axis],)))
    elif way == 3:
        kwargs["x"] = data.draw(arrays(kinds, shape=y.shape))
    check_same(backend, "trapezoid", y, ulps=64, **kwargs)


@pytest.mark.few
@pytest.mark.parametrize("kind", DTYPES, ids=str)
def test_many(kind: np.dtype[Any]) -> None:
    """Many elements give what NumPy gives, by whatever way they go."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, 5000).astype(kind)
    for call in (
        lambda m: m.diff(x), lambda m: m.diff(x, prepend=x[7:9]), lambda m: m.cumsum(x),
        lambda m: m.dot(x, x),
    ):  # fmt: skip
        want, got = call(np), call(gnp)
        assert got.dtype == want.dtype
        if kind != np.float16:  # of which NumPy's stop
            np.testing.assert_array_equal(got, want)
