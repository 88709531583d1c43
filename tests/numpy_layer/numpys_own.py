"""NumPy's functions beside ours: the same arguments, the same value, dtype, shape or exception."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import support
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from support import LAYOUTS, Backend

import gpualgo as ga
import gpualgo.numpy as gnp

DTYPES = [np.dtype(name) for name in (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)]  # fmt: skip
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 3.0, 1e3, -7.25)


def examples(usual: int, *, emulated: int) -> int:
    """Return how many examples hypothesis takes; with --exhaustive ten times as many."""
    return support.examples(10 * usual if support.is_exhaustive else usual // 2, emulated=emulated)


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """Return values of a dtype: few different ones, so that they tie, and special floats."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = st.integers(max(info.min, -5), 5)
        return st.one_of(small, small, st.integers(int(info.min), int(info.max)))
    if dtype.kind == "c":
        return st.builds(complex, st.sampled_from(SPECIAL), st.sampled_from(SPECIAL))
    return st.sampled_from(SPECIAL)


@st.composite
def arrays(
    draw: st.DrawFn, dtypes: list[np.dtype[Any]] = DTYPES, min_dims: int = 0, max_dims: int = 3,
    min_side: int = 0, max_side: int = 7, shape: tuple[int, ...] | None = None,
) -> np.ndarray[Any, Any]:  # fmt: skip
    """Return an array of any of the dtypes, shape and layout."""
    dtype = draw(st.sampled_from(dtypes))
    if shape is None:
        shape = draw(nps.array_shapes(
            min_dims=max(min_dims, 1), max_dims=max_dims, min_side=min_side, max_side=max_side
        ) if min_dims or draw(st.integers(0, 9)) else st.just(()))  # fmt: skip
    values = draw(nps.arrays(dtype, shape, elements=elements(dtype)))
    layout = draw(st.sampled_from(sorted(LAYOUTS))) if shape else "contiguous"
    if not shape:
        return values
    view = LAYOUTS[layout](lambda full: np.zeros(full, dtype), shape)
    view[...] = values
    return view


@st.composite
def axes(draw: st.DrawFn, ndim: int, *, tuples: bool = True, none: bool = True) -> Any:
    """Return an axis, or axes, of an array of so many dimensions."""
    choices: list[Any] = list(range(-ndim, ndim))
    if none:
        choices.append(None)
    if tuples and ndim:
        choices += [(0,), tuple(range(ndim)), (-1, 0) if ndim > 1 else (-1,)]
    return draw(st.sampled_from(choices)) if choices else None


def outcome(fn: Any, args: Any, kwargs: Any) -> tuple[Any, type[BaseException] | None]:
    """Return what a function gives, or the exception that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn(*args, **kwargs), None
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            return error, type(error)


def check_same(
    backend: Backend, name: str, *args: Any, ulps: float = 0, theirs: Any = None,
    numbers: bool = True, is_lazy: bool = False, stays_lazy: bool = False, **kwargs: Any
) -> None:  # fmt: skip
    """Compare our function with NumPy's of the same name, on a backend.

    ``ulps``: how many units in the last place of the largest finite result floats may differ by.
    ``numbers``: whether arrays without axes stay NumPy's, as numbers beside a device's arrays.
    ``is_lazy``: arrays are given as lazy ones; ``stays_lazy``: and so is the result.
    """

    def there(x: Any) -> Any:
        if isinstance(x, np.ndarray) and (x.ndim or not numbers):
            return ga.lazy.asarray(backend.to_device(x)) if is_lazy else backend.to_device(x)
        if isinstance(x, (list, tuple)) and any(isinstance(one, np.ndarray) for one in x):
            return type(x)(map(there, x))
        return x

    ours_args = [there(x) for x in args]
    ours_kwargs = {key: there(x) for key, x in kwargs.items()}
    if isinstance(out := kwargs.get("out"), np.ndarray):
        ours_kwargs["out"] = backend.to_device(out.copy())
    want, want_error = outcome(theirs or getattr(np, name), args, kwargs)
    got, got_error = outcome(getattr(gnp, name), ours_args, ours_kwargs)
    told = f"{name}{args}, {kwargs}: NumPy {want!r}, ours {got!r}"
    if want_error is not None or got_error is not None:
        assert want_error is not None, told
        assert got_error is not None, told
        assert issubclass(got_error, _base(want_error)), told
        return
    assert "out" not in kwargs or got is ours_kwargs["out"], told
    assert isinstance(got, ga.lazy.LazyArray) == stays_lazy, told
    got = ga.copy(got) if stays_lazy else got
    assert_same(backend, got, want, ulps, told)


def _base(error: type[BaseException]) -> type[BaseException]:
    """Return what is promised of an exception: NumPy's AxisError, or Python's own above it."""
    if issubclass(error, np.exceptions.AxisError):
        return np.exceptions.AxisError
    return next(
        cls for cls in (TypeError, IndexError, ValueError, OverflowError) if issubclass(error, cls)
    )


def assert_same(backend: Backend, got: Any, want: Any, ulps: float, told: str) -> None:
    """Compare results: tuples item by item; dtype, shape and value."""
    if isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)), told
        assert len(got) == len(want), told
        for one, other in zip(got, want, strict=True):
            assert_same(backend, one, other, ulps, told)
        return
    host = (
        got
        if isinstance(got, (np.generic, np.ndarray, int, float, complex, bool))
        else backend.to_host(got)
    )
    if backend.xp is np:
        # Of some functions NumPy gives arrays without axes, of others numbers: ours are numbers.
        is_array = isinstance(want, np.ndarray) and (want.ndim or isinstance(got, np.ndarray))
        assert isinstance(got, np.ndarray) == bool(is_array), f"array? {told}"
    wanted = np.asarray(want)
    made = np.asarray(host)
    assert made.dtype == wanted.dtype, told
    assert made.shape == wanted.shape, told
    if not ulps or wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(made, wanted, err_msg=told)
        return
    assert_close(made, wanted, ulps, told)


def assert_close(made: Any, wanted: Any, ulps: float, told: str) -> None:
    """Compare floats within units in the last place of the largest finite result."""
    if wanted.dtype.kind == "c":
        assert_close(made.real, wanted.real, ulps, told)
        assert_close(made.imag, wanted.imag, ulps, told)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(
        np.where(finite, 0, made), np.where(finite, 0, wanted), err_msg=told
    )
    if finite.any():
        largest = np.abs(wanted[finite]).max(initial=0)
        unit = float(np.spacing(np.maximum(largest, np.finfo(wanted.dtype).tiny)))
        distance = np.abs(made[finite].astype(float) - wanted[finite].astype(float)).max()
        assert distance <= ulps * unit, told


@st.composite
def reduction_options(
    draw: st.DrawFn, x: np.ndarray[Any, Any], *, where: bool = True, tuples: bool = True
) -> dict[str, Any]:
    """Return some of the options that most reductions of an array have."""
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["axis"] = draw(axes(x.ndim, tuples=tuples))
    if draw(st.booleans()):
        options["keepdims"] = draw(st.booleans())
    if where and draw(st.integers(0, 2)) == 0:
        options["where"] = draw(arrays([np.dtype(bool)], shape=x.shape))
    return options
