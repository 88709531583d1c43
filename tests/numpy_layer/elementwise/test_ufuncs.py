"""Ufuncs beside NumPy's: called with all that these take, by our kernels and by NumPy's loops.

One file of more than 300 lines: each test is of what all ufuncs have in common.
"""

from __future__ import annotations

import copy
import doctest
import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numpys_own import DTYPES, arrays, assert_same, axes, check_same, examples, outcome
from support import BFLOAT16, Backend, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._operators.numpy_rules import table
from gpualgo.lazy import reductions
from gpualgo.numpy import _loops
from gpualgo.numpy._call import TABLE
from gpualgo.numpy._ufuncs import UFUNCS, UFunc

SMALL = settings(
    max_examples=examples(60, emulated=10),
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
SOME = settings(SMALL, max_examples=examples(25, emulated=4))
FEW_DTYPES = [np.dtype(name) for name in ("bool", "int8", "float32", "complex64")]
NAMES = ("add", "divide", "less", "maximum", "negative", "bitwise_and", "logical_or", "isnan",
         "conjugate", "divmod", "sqrt", "floor")  # fmt: skip


def test_table() -> None:
    """Every ufunc that an operator may contain is there, and in the table."""
    known = {
        entry.name[3:]
        for entry in table.ENTRIES
        if entry.name.startswith("np.") and isinstance(getattr(np, entry.name[3:], None), np.ufunc)
    }
    assert set(UFUNCS) == known
    for name, one in UFUNCS.items():
        assert getattr(gnp, name) is one
        assert TABLE[name].native is getattr(np, name)
        assert name in gnp.__all__


@pytest.mark.parametrize("name", UFUNCS)
def test_attributes_and_docs(name: str) -> None:
    ours, theirs = UFUNCS[name], getattr(np, name)
    for attribute in ("nin", "nout", "nargs", "identity", "__name__", "signature"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.ntypes == len(ours.types) > 0
    assert set(ours.types) <= set(theirs.types)
    assert pickle.loads(pickle.dumps(ours)) is ours
    assert copy.copy(ours) is copy.deepcopy(ours) is ours
    names = list(inspect.signature(ours).parameters)
    assert names[ours.nin :] == ["out", "where", "casting", "order", "dtype", "subok", "signature"]
    text = ours.__doc__
    assert text is not None
    assert ">>>" in text
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def _arguments(data: Any, ufunc: UFunc, dtypes: list[np.dtype[Any]]) -> list[Any]:
    """Return arrays and numbers that broadcast together, an array first or second."""
    first = data.draw(arrays(dtypes))
    if ufunc.nin == 1:
        return [first]
    other = data.draw(
        st.one_of(
            arrays(dtypes, shape=first.shape),
            arrays(dtypes, shape=first.shape[-1:]),
            st.sampled_from([2, 1.5, True, np.float32(2), np.int8(3), 1j, 300, -1]),
        )
    )
    return [first, other] if data.draw(st.booleans()) else [other, first]


@pytest.mark.parametrize("name", NAMES)
@SOME
@given(st.data())
def test_calls(backend: Backend, name: str, data: Any) -> None:
    kinds = FEW_DTYPES[:3] if name == "maximum" else FEW_DTYPES  # kernels have no order of complex
    args = _arguments(data, UFUNCS[name], kinds)
    if name == "maximum":
        args = [1.5 if np.ndim(x) == 0 and x == 1j else x for x in args]
    check_same(backend, name, *args, ulps=16)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add", "less", "negative", "divmod"])
@SOME
@given(st.data())
def test_options(backend: Backend, name: str, data: Any) -> None:
    check_options(backend, name, data, FEW_DTYPES[1:])


@pytest.mark.slow
@pytest.mark.few
@pytest.mark.parametrize("name", ["add", "less", "exp", "divmod", "power", "isnan"])
@SMALL
@given(st.data())
def test_options_of_numpys_loops(backend: Backend, name: str, data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_loops, "sizes_of", lambda ufunc: (4, 1))
        check_options(backend, name, data, DTYPES)


def check_options(backend: Backend, name: str, data: Any, dtypes: list[np.dtype[Any]]) -> None:
    """Compare a call with out=, where=, dtype= and casting= with NumPy's."""
    ufunc = UFUNCS[name]
    args = _arguments(data, ufunc, dtypes)
    args = [3 if type(x) is int else x for x in args]  # out of bounds NumPy's where= crashes
    shape = np.broadcast_shapes(*map(np.shape, args))
    kwargs: dict[str, Any] = {}
    if data.draw(st.booleans()):
        kwargs["dtype"] = data.draw(st.sampled_from([*dtypes, np.dtype(bool)]))
    if data.draw(st.booleans()):
        kwargs["casting"] = data.draw(st.sampled_from(["no", "safe", "same_kind", "unsafe"]))
    outs: list[Any] = []
    if shape and data.draw(st.booleans()):
        whole = (2, *shape) if data.draw(st.booleans()) else shape
        for _ in range(ufunc.nout):
            outs.append(np.ones(whole, data.draw(st.sampled_from([*dtypes, np.dtype(bool)]))))
        if data.draw(st.booleans()):
            kwargs["where"] = data.draw(arrays([np.dtype(bool)], shape=shape))
    elif shape and data.draw(st.booleans()):
        mask = kwargs["where"] = data.draw(arrays([np.dtype(bool)], shape=shape))
    ours = [backend.to_device(x.copy()) for x in outs]
    theirs = [x.copy() for x in outs]
    want, error = outcome(getattr(np, name), args, {**kwargs, **_out(theirs)})
    given_ = [backend.to_device(x) if isinstance(x, np.ndarray) and x.ndim else x for x in args]
    if "where" in kwargs:
        kwargs["where"] = backend.to_device(kwargs["where"])
    got, found = outcome(getattr(gnp, name), given_, {**kwargs, **_out(ours)})
    told = f"{name}{args}, {kwargs}, {outs}: NumPy {want!r}, ours {got!r}"
    if backend.name != "cpu" and error is None:
        computed = [np.empty(0, kwargs["dtype"])] if "dtype" in kwargs else []
        assume(_is_told(name, args, [*_each(want), *outs, *computed]))
    assert (error is None) == (found is None), told
    if error is not None:
        assert found is not None
        assert issubclass(found, TypeError if issubclass(error, TypeError) else error), told
        return
    if outs:
        for x, y in zip(ours, theirs, strict=True):
            assert_same(backend, x, y, 4, told)
        result = got if isinstance(got, tuple) else (got,)
        assert all(x is y for x, y in zip(result, ours, strict=True)), told
    elif "where" in kwargs:
        for x, y in zip(_each(got), _each(want), strict=True):
            zeros = np.where(mask, y, 0).astype(y.dtype)
            assert_same(backend, x, zeros, 4, told)
    else:
        assert_same(backend, got, want, 4, told)


def _is_told(name: str, args: list[Any], results: list[Any]) -> bool:
    """Return whether a GPU has NumPy's values.

    It gives any for floats outside an integer's range, and for powers and exponentials of complex
    infinities and NaN.
    """
    numbers = [np.asarray(x) for x in [*args, *results]]
    kinds = {x.dtype.kind for x in numbers}
    if kinds & set("fc") and {np.asarray(x).dtype.kind for x in results} & set("iu"):
        return False
    if name not in ("exp", "power") or "c" not in kinds:
        return True
    return all(np.isfinite(x).all() for x in numbers)


def _out(outs: list[Any]) -> dict[str, Any]:
    return {"out": tuple(outs) if len(outs) > 1 else outs[0]} if outs else {}


def _each(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_and", "bitwise_or"])
@SOME
@given(st.data())
def test_reduce_and_accumulate(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(FEW_DTYPES, min_dims=1))
    if name == "multiply" and x.dtype.kind == "c":  # of infinities the order tells
        x = np.where(np.isfinite(x), x, 1).astype(x.dtype)
    axis = data.draw(axes(x.ndim, tuples=False, none=False))
    ours, theirs = getattr(gnp, name), getattr(np, name)
    for method, more in (("reduce", {"keepdims": True}), ("accumulate", {})):
        want, error = outcome(getattr(theirs, method), (x, axis), more)
        got, found = outcome(getattr(ours, method), (backend.to_device(x), axis), more)
        told = f"{name}.{method}({x!r}, {axis}): NumPy {want!r}, ours {got!r}"
        assert (error is None) == (found is None), told
        if error is None:
            assert_same(backend, got, want, 64, told)


@pytest.mark.parametrize("native", reductions.RULES, ids=lambda one: one.__name__)
def test_reduce_of_every_ufunc(backend: Backend, native: np.ufunc) -> None:
    x = np.arange(1, 7, dtype=np.int16).reshape(2, 3)
    ours = getattr(gnp, native.__name__)
    mask = np.array([[True, False, True], [False, True, True]])
    for kwargs in ({}, {"axis": None}, {"axis": 1, "where": mask, "initial": 1}, {"where": mask}):
        want, error = outcome(native.reduce, (x,), kwargs)
        if "where" in kwargs and "initial" not in kwargs and native.identity is None:
            continue
        there = {k: backend.to_device(v) if k == "where" else v for k, v in kwargs.items()}
        got, found = outcome(ours.reduce, (backend.to_device(x),), there)
        if error is not None:  # which NumPy does not take as it may be reordered; it may
            assert native is np.lcm
            continue
        assert found is None, (native, kwargs, got)
        assert_same(backend, got, want, 8, f"{native}.reduce {kwargs}")
    want = native.accumulate(x, 1)
    assert_same(backend, ours.accumulate(backend.to_device(x), 1), want, 8, f"{native}.accumulate")


def test_what_is_refused() -> None:
    x = np.arange(5000.0)
    for call in (
        lambda: gnp.add(x, 1, signature="dd->d"), lambda: gnp.add(x, 1, order="F"),
        lambda: gnp.subtract.reduce(x), lambda: gnp.subtract.accumulate([1, 2]),
        lambda: gnp.subtract.reduceat(x, [0, 2]),
        lambda: gnp.add(["a"], ["b"]), lambda: gnp.add(None, 1),
        lambda: gnp.add(x.astype(np.longdouble), 1),
    ):  # fmt: skip
        with pytest.raises(gnp.NotTaken):
            call()
    with pytest.raises(ValueError, match="order"):
        gnp.add(x, 1, order="Q")
    with pytest.raises(ValueError, match="casting"):
        gnp.add(x, 1, casting="Q")
    for method in (gnp.exp.reduce, gnp.exp.accumulate, gnp.divmod.reduce):
        with pytest.raises(ValueError, match=r"two arguments|single value"):
            method(x)
    with pytest.raises(TypeError, match="positional"):
        gnp.add(x)
    with pytest.raises(TypeError, match="out"):
        gnp.add(x, 1, x, out=x)


def test_places_of_out(backend: Backend) -> None:
    """Reads what it overwrites, whatever overlaps."""
    for shift in (0, 1):
        x = backend.to_device(np.arange(100.0))
        y = np.arange(100.0)
        gnp.add(x[shift:], x[: 100 - shift], out=x[shift:])
        np.add(y[shift:], y[: 100 - shift], out=y[shift:])
        np.testing.assert_array_equal(backend.to_host(x), y)
    x, y = backend.to_device(np.arange(9)), backend.to_device(np.arange(9) + 1)
    gnp.divmod(x, y, out=(y, x))
    want = np.divmod(np.arange(9), np.arange(9) + 1)
    np.testing.assert_array_equal(backend.to_host(y), want[0])
    np.testing.assert_array_equal(backend.to_host(x), want[1])


@pytest.mark.few
def test_comparison_out_of_bounds_where() -> None:
    """Compares with what no int8 is, where NumPy 2.4 crashes."""
    x, mask = np.array([1, 2, 3], np.int8), np.array([True, False, True])
    for _ in range(100):
        out = np.zeros(3, bool)
        assert gnp.less(x, 300, where=mask, out=out) is out
        np.testing.assert_array_equal(out, mask)


@pytest.mark.few
@pytest.mark.parametrize(("name", "kind"), [("exp", "f8"), ("log", "f4"), ("tanh", "c16"),
                                            ("sqrt", "c8"), ("divmod", "f8")])  # fmt: skip
def test_few_elements_where_are_numpys(name: str, kind: str) -> None:
    """To the bit, as without a mask; what is left out is zero."""
    native, ours = getattr(np, name), getattr(gnp, name)
    x = (np.random.default_rng(0).random((50, 40)) * (1 + 1j if kind[0] == "c" else 1)).astype(kind)
    args = (x.T, 0.3) if native.nin == 2 else (x.T,)
    mask = np.arange(50) % 3 > 0
    for y, found in zip(_each(native(*args)), _each(ours(*args, where=mask)), strict=True):
        np.testing.assert_array_equal(found, np.where(mask, y, 0))
        assert found.dtype == y.dtype
        assert found.flags.f_contiguous
    assert type(gnp.exp(0.0, where=False)) is np.float64
    out = np.zeros((40, 50))
    assert gnp.divmod(np.ones(50), 2, out=(None, out), where=mask)[1] is out


@pytest.mark.few
def test_many_elements_where_without_a_kernel() -> None:
    x, mask = np.arange(1, 20_001, dtype="i4"), np.arange(20_000) % 2 == 0
    want = np.reciprocal(x, where=mask, out=np.zeros_like(x))
    np.testing.assert_array_equal(gnp.reciprocal(x, where=mask, out=np.zeros_like(x)), want)
    np.testing.assert_array_equal(gnp.reciprocal(x, where=mask), want)


@pytest.mark.few
def test_blocks_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loops, "sizes_of", lambda ufunc: (4, 1))
    for step in (slice(1, None), slice(None, None, -1), slice(None, -1)):
        x, y = np.arange(50.0), np.arange(50.0)
        n = len(x[step])
        gnp.add(x[:n], x[step], out=x[:n])
        np.add(y[:n], y[step], out=y[:n])
        np.testing.assert_array_equal(x, y)


@pytest.mark.few
def test_warnings_and_errors_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(1 << 19)
    with np.errstate(divide="ignore"):
        gnp.log(x)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        gnp.log(x)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        gnp.log(x)
    with pytest.raises(ValueError, match="negative integer powers"):
        gnp.power(np.full(1 << 18, 2), np.full(1 << 18, -1))


def test_outer(backend: Backend) -> None:
    x, y = np.arange(6).reshape(2, 3), np.array([1.5, 2.5])
    found = gnp.subtract.outer(backend.to_device(x), backend.to_device(y))
    assert_same(backend, found, np.subtract.outer(x, y), 0, "outer")
    assert_same(backend, gnp.add.outer(2, [1, 2]), np.add.outer(2, [1, 2]), 0, "outer")
    for array, number in ((np.full(3, 100, "i1"), 3), (np.ones(3, "i1"), 300), (y, True),
                          (np.ones(3, "f4"), 2.5)):  # fmt: skip
        there = backend.to_device(array)
        want = np.multiply.outer(array, number)
        assert_same(backend, gnp.multiply.outer(there, number), want, 0, "a number behind")
        assert_same(backend, gnp.multiply.outer(number, there), want, 0, "a number in front")
    found = gnp.less.outer(ga.lazy.asarray(x), y)
    assert isinstance(found, ga.lazy.LazyArray)
    assert_same(backend, ga.copy(found), np.less.outer(x, y), 0, "outer")


def test_lazy(backend: Backend) -> None:
    x = np.array([1.0, -2.0, np.nan])
    lazy = ga.lazy.asarray(backend.to_device(x))
    made = gnp.add(gnp.exp(lazy), gnp.multiply(2, lazy))
    assert isinstance(made, ga.lazy.LazyArray)
    assert len(made.leaves) == 1
    assert_same(backend, ga.copy(made), np.exp(x) + 2 * x, 8, "lazy")
    out = backend.to_device(np.zeros(3, np.float32))
    assert gnp.negative(lazy, out=out, casting="same_kind") is out
    assert_same(backend, out, -x.astype(np.float32), 0, "lazy")
    with pytest.raises(TypeError, match="lazy"):
        gnp.add(x, 1, out=ga.lazy.asarray(x.copy()))
    assert isinstance(gnp.divmod(lazy, 2)[1], ga.lazy.LazyArray)
    for name, given_ in (("invert", (lazy,)), ("bitwise_xor", (lazy, 1)), ("gcd", (lazy, lazy)),
                        ("degrees", (lazy * 1j,)), ("positive", (lazy > 0,))):  # fmt: skip
        if name in ("degrees", "positive"):
            assert given_[0].dtype.kind in "cb"  # known from now on
        for namespace in (gnp, np):
            with pytest.raises(TypeError, match=name):
                getattr(namespace, name)(*given_)


def test_numbers_and_kinds(backend: Backend) -> None:
    assert type(gnp.add(1, 2)) is np.int64
    assert type(gnp.add(np.float32(1), 2)) is np.float32
    assert type(gnp.add(np.array(1.0), np.array(2))) is np.float64
    assert gnp.add(np.array(1.5), backend.to_device(np.ones(2, np.float32))).dtype is not None
    assert gnp.add(np.arange(3).astype(">i4"), 1).dtype == np.int32
    x = np.array([1.5, 2.5], BFLOAT16)
    assert_same(backend, gnp.exp2(backend.to_device(x)), np.exp2(x), 4, "bfloat16")
    assert gnp.abs is gnp.absolute
    with pytest.raises(OverflowError, match="300"):
        gnp.add(backend.to_device(np.zeros(3, np.int8)), 300)
    with pytest.raises(ValueError, match="negative integer powers"):
        gnp.power(backend.to_device(np.arange(3)), -1)
    with pytest.raises(ValueError, match="broadcast"):
        gnp.add(backend.to_device(np.zeros(3)), backend.to_device(np.zeros(4)))


def test_where_takes_lists_of_numbers() -> None:
    out = np.zeros(2)
    gnp.add([1.0, 2.0], 1, out=out, where=[1, 0])
    assert out.tolist() == [2, 0]
    with pytest.raises(TypeError):
        gnp.add([1.0, 2.0], 1, out=out, where=np.array([1, 0]))


@since_numpy("2.1")
@pytest.mark.few
def test_numbers_by_equivalent_casting() -> None:
    """NumPy's resolve_dtypes crashes of these: in a process of its own."""
    text = (
        "import numpy as np, gpualgo.numpy as gnp, gpualgo.numpy._loops as loops\n"
        "loops.DEAR = loops.CHEAP = (8, 16)\n"
        "told = 0\n"
        "for _ in range(200):\n"
        "    try: gnp.add(np.ones(64, 'i1'), 1, casting='equiv')\n"
        "    except TypeError: told += 1\n"
        "assert told == 200\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
