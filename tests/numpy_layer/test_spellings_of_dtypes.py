"""Whatever a dtype is called, calls are those of its kind and size: np.longlong is int64, too."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numpys_own import outcome
from support import Backend, other_spelling

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._base import dtypes
from gpualgo.numpy._call import TABLE, Entry

X = np.array([[3, -1, 4, 1], [-5, 9, 2, 6]])
Y = np.array([[2, 7, 1, 8], [2, 8, 1, 8]])
FLAT, RISING, COUNTS = np.array([3, 1, 4, 1, 5]), np.array([0, 2, 3, 5]), np.array([1, 0, 2, 2, 7])
MASK = X > 2
PAIR, SETS, QUANTILES = (FLAT, COUNTS), (FLAT, COUNTS), (X, np.array([0, 1]))
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "histogram": (FLAT, RISING), "histogram_bin_edges": (FLAT, RISING), "bincount": (COUNTS,),
    "histogramdd": (X.T, (RISING, RISING)), "histogram2d": (*PAIR, (RISING, RISING)),
    "clip": (X, np.array(0), np.array(5)), "isclose": (X, Y), "dot": PAIR, "inner": PAIR,
    "vdot": PAIR, "quantile": QUANTILES, "nanquantile": QUANTILES, "percentile": QUANTILES,
    "nanpercentile": QUANTILES, "average": (X, None, Y), "ediff1d": (FLAT, FLAT, COUNTS),
    "trapezoid": (FLAT, COUNTS), "cumulative_sum": (FLAT,), "cumulative_prod": (FLAT,),
    "extract": (MASK, X), "compress": (MASK[0], X, 1), "where": (MASK, X, Y), "isin": SETS,
    "union1d": SETS, "intersect1d": SETS, "setdiff1d": SETS, "setxor1d": SETS,
    "searchsorted": (RISING, FLAT), "digitize": (FLAT, RISING), "lexsort": (PAIR,),
    "partition": (FLAT, 2), "argpartition": (FLAT, 2), "top_k": (FLAT, 2), "left_shift": (Y, Y),
    "right_shift": (Y, Y), "bitwise_left_shift": (Y, Y), "bitwise_right_shift": (Y, Y),
    "power": (Y, Y), "pow": (Y, Y),
}  # fmt: skip
# Values of options that are dtypes, arrays and starts; of which functions take some.
OPTIONS: list[dict[str, Any]] = [
    {}, {"dtype": np.dtype(np.int64)}, {"initial": np.int64(2)}, {"out": None},
    {"weights": COUNTS}, {"casting": "unsafe", "dtype": np.dtype(np.int64)},
]  # fmt: skip


def arguments_of(entry: Entry) -> tuple[Any, ...]:
    if entry.name in ARGUMENTS:
        return ARGUMENTS[entry.name]
    native = entry.native
    return (X, Y) if isinstance(native, np.ufunc) and native.nin == 2 else (X,)


def spelled(value: Any) -> Any:
    """Return a value whose int64 are np.longlong, or what is the other one on this platform."""
    if isinstance(value, np.dtype):
        return other_spelling(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.astype(other_spelling(value.dtype))
    return tuple(map(spelled, value)) if isinstance(value, tuple) else value


def on(backend: Backend, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(on(backend, one) for one in value)
    if not isinstance(value, np.ndarray) or not value.ndim or value.dtype.kind in "SUO":
        return value  # which no GPU has
    return backend.to_device(value)


def host(backend: Backend, found: Any) -> Any:
    """Return results as arrays of the host."""
    if isinstance(found, (tuple, list)):
        return [host(backend, one) for one in found]
    if isinstance(found, (np.ndarray, np.generic)) or np.isscalar(found):
        return np.asarray(found)
    return found if isinstance(found, Exception) else backend.to_host(found)


def called(backend: Backend, entry: Entry, spell: Any, options: dict[str, Any]) -> Any:
    args = on(backend, spell(arguments_of(entry)))
    kwargs = {name: on(backend, spell(value)) for name, value in options.items()}
    if "out" in options:
        made, _ = outcome(entry.function, args, {})
        outs = [
            on(backend, spell(np.zeros(x.shape, np.int64)))
            for x in (made if isinstance(made, tuple) else (made,))
        ]
        kwargs["out"] = outs[0] if len(outs) == 1 else tuple(outs)
    return host(backend, outcome(entry.function, args, kwargs)[0])


def applies(entry: Entry, options: dict[str, Any]) -> bool:
    if isinstance(entry.native, np.ufunc):
        return {*options} <= {"out", "dtype", "casting"}
    return {*options} <= {*inspect.signature(entry.function).parameters}


def check_same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert len(got) == len(want)
        for mine, other in zip(got, want, strict=True):
            check_same(mine, other)
    elif isinstance(want, Exception):
        assert (type(got), str(got)) == (type(want), str(want))
    else:
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got, want)


# Functions that few others are like; all ufuncs go one way, and functions that differ in NaN alone.
SAMPLE = ("add", "divmod", "sqrt", "left_shift", "isnan", "abs", "nansum", "nanmax")
ALIKE = ("nan", "am", "cumulative_", "around", "percentile", "unique_", "set", "histogram_")
ENTRIES = sorted(
    [entry for entry in TABLE.values() if entry.name not in ("vectorize", "reciprocal")],
    key=lambda entry: isinstance(entry.native, np.ufunc) or entry.name.startswith(ALIKE),
)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_function_and_option(backend: Backend, entry: Entry) -> None:
    for options in OPTIONS:
        if applies(entry, options):
            want = called(backend, entry, lambda value: value, options)
            assert options or not isinstance(want, Exception), want
            check_same(called(backend, entry, spelled, options), want)


def test_methods_of_ufuncs(backend: Backend) -> None:
    kind = other_spelling(np.dtype(np.int64))
    x = on(backend, spelled(X))
    found = gnp.add.reduce(x, axis=1, dtype=kind, initial=kind.type(2))
    assert host(backend, found).tolist() == [9, 14]
    found = gnp.add.accumulate(x, axis=1, dtype=kind)
    assert host(backend, found).tolist() == np.cumsum(X, 1).tolist()
    assert host(backend, gnp.add.outer(x[0], x[1])).tolist() == np.add.outer(*X).tolist()


SPELLINGS = [
    *np.typecodes["AllInteger"], *"?efdFD", "<i8", "=i8", "|i1", "<f4", "=c16", "long", "int",
    "uint", "longlong", "ulonglong", "intp", "uintp", "intc", "uintc", "short", "byte",
    np.long, np.ulong, np.longlong, np.ulonglong, np.intc, np.uintc, np.intp, np.uintp, np.short,
    np.ushort, np.byte, np.ubyte, np.half, np.single, np.double, np.csingle, np.cdouble, int,
    float, complex,
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_every_spelling_names_the_same_dtype(spelling: Any) -> None:
    want = np.dtype(spelling)
    found = dtypes.as_dtype(spelling, "test")
    assert found == want
    assert found.type is np.dtype(want.name).type
    x = ga.lazy.full(3, 1, dtype=spelling)
    assert x.dtype == x.astype(spelling).dtype == ga.lazy.asarray(FLAT).astype(spelling).dtype
    assert x.dtype == want


@pytest.mark.parametrize("kind", ["longlong", "ulonglong"])
def test_floats_become_integers_of_every_name(backend: Backend, kind: str) -> None:
    x, dtype = on(backend, FLAT * 1.5), getattr(np, kind)
    for name in ("sum", "cumsum", "nancumsum"):
        found = host(backend, getattr(gnp, name)(x, dtype=dtype))
        np.testing.assert_array_equal(found, getattr(np, name.removeprefix("nan"))(
            (FLAT * 1.5).astype(dtype)))  # fmt: skip
    large = np.arange(5000, dtype=dtype)
    found = host(backend, gnp.round(on(backend, large), -2))
    np.testing.assert_array_equal(found, np.round(large, -2))
    lazy = ga.copy(ga.lazy.asarray(x).astype(np.dtype(dtype).char))
    np.testing.assert_array_equal(host(backend, lazy), (FLAT * 1.5).astype(dtype))


def _of_eight_bytes(a: Any) -> Any:
    return (
        np.longlong(a), np.ulonglong(a), np.long(a), np.ulong(a), np.intp(a), np.uintp(a),
        np.double(a), np.csingle(a),
    )  # fmt: skip


def _of_fewer(a: Any) -> Any:
    return (
        np.intc(a), np.uintc(a), np.short(a), np.ushort(a), np.byte(a), np.ubyte(a), np.half(a),
        np.single(a),
    )  # fmt: skip


@pytest.mark.parametrize("converted", [_of_eight_bytes, _of_fewer])
def test_operators_call_every_name(backend: Backend, converted: Any) -> None:
    x = np.array([0.25, 3.75, 100.0])
    found = ga.transform(converted, on(backend, x))
    for one, number in zip(found, converted(1.0), strict=True):
        want = x.astype(type(number))
        assert backend.to_host(one).dtype == want.dtype
        np.testing.assert_array_equal(backend.to_host(one), want)


def test_an_operator_is_any_name(backend: Backend) -> None:
    x = np.array([0.25, 3.75, 100.0])
    found = backend.to_host(ga.transform(np.longlong, on(backend, x)))
    np.testing.assert_array_equal(found, x.astype(np.longlong))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ga.reduce(x, None, max),
        lambda x: ga.reduce(x.astype(np.uint8), x.dtype.type(3)),
        lambda x: ga.inclusive_scan(x),
        lambda x: ga.radix_sort(x.reshape(4, -1)),
        lambda x: ga.radix_sort(x, x)[1],
        lambda x: ga.merge_sort(x, less=lambda a, b: a < b),
        lambda x: ga.select(x, lambda a: a > 1),
        lambda x: ga.reduce_by_key(x, x, consecutive=True)[0],
        lambda x: ga.transform(lambda a: (a, a * 2), x)[1],
    ],
)
def test_a_first_call_decides_on_no_name(call: Any) -> None:
    """Scalars of np.longlong are no np.int64: a call with that name is not to give later ones."""
    x = np.arange(40)
    with ga.default_device("cpu"):
        for kind in (np.longlong, np.int64, np.ulonglong, np.uint64):
            found = np.asarray(call(x.astype(kind)))
            assert found.dtype == kind
            if kind in (np.int64, np.uint64):
                assert found.dtype.num == np.dtype(kind).num
