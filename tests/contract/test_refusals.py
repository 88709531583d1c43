"""What every function refuses: what no kernel takes, operators and starts that do not fit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contract.case import Call, Case, hosts, outputs_like, used
from contract.cases import cases_of, each_case, each_function
from support import Backend
from test_bad_input import BAD_DTYPES, NOT_ARRAYS, ONE_OR_THREE, refused

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS

KEYS, OFFSETS = np.array([1, 1, 2, 3, 3, 3]), np.array([0, 2, 2, 6])
COMBINING = [f for f in ALGORITHMS if "op" in inspect.signature(f).parameters]
FOLDS = [f for f in COMBINING if f not in (ga.transform, ga.adjacent_difference)]


def each(functions: list[Callable[..., Any]]) -> Any:
    return pytest.mark.parametrize("f", functions, ids=lambda f: f.__name__)


def first_name(f: Callable[..., Any]) -> str:
    """Return what an array that is no array is called in the message."""
    names = [name for name in inspect.signature(f).parameters if name != "op"]
    return "(an )?argument" if f is ga.transform else names[0]


@each_function
def test_no_arrays(backend: Backend, function: Callable[..., Any]) -> None:
    call = cases_of(function)[0].on(backend)
    arrays, name = cases_of(function)[0].arrays(backend), first_name(function)
    for bad in [*NOT_ARRAYS, np.float32(3)]:
        if function is ga.transform and isinstance(bad, (bool, int, float, tuple, np.generic)):
            continue  # numbers and tuples are arguments
        kind = f"{type(bad).__name__}|{re.escape(repr(bad))}|numbers only"
        if isinstance(bad, type):
            kind = f"the class {bad.__name__}|a function"
        told = rf"({name}.*({kind})|all arguments are numbers)"
        with refused(backend, TypeError, rf"^{function.__name__}: {told}"):
            call(bad, *arrays[1:])
    masked = np.ma.masked_array(cases_of(function)[0].samples()[0], True)
    with refused(backend, TypeError, rf"^{function.__name__}: {name}.*masked.*filled"):
        call(masked, *cases_of(function)[0].samples()[1:])


@each_function
@pytest.mark.parametrize(("x", "message"), BAD_DTYPES, ids=[str(x.dtype) for x, _ in BAD_DTYPES])
def test_dtypes_without_kernels(
    backend: Backend, function: Callable[..., Any], x: Any, message: str
) -> None:
    case = cases_of(function)[0]
    host = Backend(backend.name, np)
    call, (first, *rest) = case.on(host), case.samples()
    name = "v" if function is ga.searchsorted else first_name(function)
    bad = [np.zeros(first.shape, x.dtype), *rest]
    if function in (ga.merge, ga.searchsorted):  # of two arrays of one dtype
        bad = [np.zeros(each.shape, x.dtype) for each in (first, *rest)]
    with refused(backend, TypeError, f"^{case.name}: {name}.*({message})"):
        call(*bad)
    want = hosts(host, call(first, *rest))
    outs = [np.zeros(one.shape, x.dtype) for one in want]
    is_sort = "sort" in case.name and case.name != "argsort" and function is not ga.searchsorted
    message = "has .*dtype|plain bytes" if is_sort or function is ga.merge else message
    with refused(backend, TypeError, f"^({case.name}: .*)?out.*({message})"):
        call(first, *rest, out=tuple(outs) if len(outs) > 1 else outs[0])
    if "dtype" in inspect.signature(function).parameters:
        with refused(backend, TypeError, f"^{case.name}: .*dtype"):
            call(first, *rest, dtype=x.dtype)


@each_function
def test_streams_are_not_for_host_arrays(function: Callable[..., Any]) -> None:
    host = Backend("cpu", np)
    for case in cases_of(function):
        message = f"^{case.name}: stream= needs a GPU"
        with ga.default_device("cpu"), pytest.raises(ValueError, match=message):
            case.on(host)(*case.samples(), stream=0)


# --- operators ----------------------------------------------------------------------------------


def with_operator(backend: Backend, f: Any, op: Any, about: str = "an operator") -> Any:
    """Return a call with another operator, and its arrays."""
    case = next(c for c in cases_of(f) if c.about == about)
    call = Call(case, backend.to_device(np.zeros(8, np.int32)))
    arrays = case.arrays(backend)
    want = hosts(backend, call(*arrays))
    call.op = op
    return call, arrays, outputs_like(want, used(backend))


def check(backend: Backend, f: Any, op: Any, kind: Any, message: str, **how: Any) -> None:
    """Assert that an operator is refused, and that no output is written."""
    call, arrays, out = with_operator(backend, f, op, **how)
    before = [x.tobytes() for x in hosts(backend, out)]
    with refused(backend, kind, rf"^{f.__name__}: {message}"):
        call(*arrays)
    with refused(backend, kind, message):
        call(*arrays, out=out)
    assert [x.tobytes() for x in hosts(backend, out)] == before


def _unsupported(a: Any, b: Any) -> Any:
    return a.no_such_attribute + b


@each(COMBINING)
def test_operators_that_are_not_callable(backend: Backend, f: Any) -> None:
    for op in (3, "add", [max], np.ones(2)):
        check(backend, f, op, TypeError, f"op .*{type(op).__name__}")


@each([f for f in COMBINING if f is not ga.transform])
def test_operators_of_another_kind(backend: Backend, f: Any) -> None:
    table = [1, 2]
    for op in ONE_OR_THREE:
        for wrapped in (op, ga.Operator(op)):
            check(backend, f, wrapped, TypeError, "op (takes|has) .*(two|by position)")
    line = _unsupported.__code__.co_firstlineno
    check(backend, f, _unsupported, ga.CompileError, f"op .*{line}: def _unsupported")
    check(backend, f, _unsupported, ga.CompileError, "op .*no_such_attribute")
    for bad in (lambda a, b: None, lambda a, b: "text"):
        check(backend, f, bad, TypeError, "op returns")
    check(backend, f, lambda a, b: a + table[b], TypeError, r"op.*captures .*list")


@each(FOLDS)
def test_operators_whose_results_do_not_fit(backend: Backend, f: Any) -> None:
    check(backend, f, lambda a, b: (a, b), TypeError, "op returns")
    check(backend, f, lambda a, b: (a + b) * 1.0, TypeError, "op.* returns float64.*int32.*dtype=")
    several = {"about": "several tiles"}
    check(backend, f, np.bitwise_and, TypeError, ".*bitwise_and.*float32", **several)


# --- initial values -----------------------------------------------------------------------------

STARTED: dict[str, Callable[..., Any]] = {
    "reduce": ga.reduce,
    "inclusive_scan": ga.inclusive_scan,
    "exclusive_scan": ga.exclusive_scan,
    **{
        f.__name__: lambda x, init, f=f, **more: f(x, OFFSETS * bool(len(x)), init, **more)
        for f in (
            ga.segmented_reduce, ga.segmented_inclusive_scan, ga.segmented_exclusive_scan,
        )
    },
    **{
        f.__name__: lambda x, init, f=f, **more: f(
            KEYS[: len(x)], x, init, consecutive=True, **more
        )
        for f in (ga.reduce_by_key, ga.inclusive_scan_by_key, ga.exclusive_scan_by_key)
    },
    "reduce_by_index": lambda x, init, **more: ga.reduce_by_index(
        KEYS[: len(x)], x, 9, init, **more
    ),
}  # fmt: skip
STARTS: list[tuple[str, Any, type[Exception], str]] = [
    ("int32", 0.0, TypeError, "0.0.*int32"),
    ("bool", 0, TypeError, "0.*bool"),
    ("bool", 0.0, TypeError, "0.0.*bool"),
    ("float32", 1j, TypeError, "1j.*float32"),
    ("int8", 128, ValueError, "128.*int8"),
    ("uint8", -1, ValueError, "-1.*uint8"),
    ("uint64", 2**64, ValueError, "18446744073709551616.*uint64"),
    ("float16", 1e6, ValueError, "1000000.*float16"),
    ("float32", np.zeros(2, "f4"), ValueError, "one value.*2"),
    ("float32", np.zeros(0, "f4"), ValueError, "one value.*0"),
    ("float32", "0", TypeError, "str"),
    ("float32", [0.0], TypeError, "list"),
    ("float32", (0.0,), TypeError, "tuple"),
    ("float32", np.int32(0), TypeError, "float32.*int32"),  # x does not fit the accumulator
    ("complex64", np.float64(0), TypeError, "complex64.*float64"),
    ("float32", np.array(None), TypeError, "object"),
]


@pytest.mark.parametrize("name", STARTED)
@pytest.mark.parametrize(("dtype", "init", "kind", "message"), STARTS)
def test_starts_that_do_not_fit(
    backend: Backend, name: str, dtype: str, init: Any, kind: type[Exception], message: str
) -> None:
    for n in (6, 0):
        with refused(backend, kind, f"^{name}: .*({message})"):
            STARTED[name](np.zeros(n, dtype), init)
    if name in ("reduce", "inclusive_scan", "exclusive_scan"):
        with refused(backend, kind, f"^{name}: .*({message})"):
            STARTED[name](backend.to_device(np.zeros((2, 3), dtype)), init, axis=0)


@pytest.mark.parametrize("name", STARTED)
def test_starts_that_do_not_fit_dtype(backend: Backend, name: str) -> None:
    for dtype, init, wanted, kind, message in (
        ("int32", np.float64(0), "int32", TypeError, "init .*float64.*int32"),
        ("int8", 300, "int8", ValueError, "init .*300.*int8"),
        ("float32", None, "int32", TypeError, ".*float32.*int32"),
    ):
        with refused(backend, kind, f"^{name}: {message}"):
            STARTED[name](np.zeros(6, dtype), init, dtype=wanted)


@pytest.mark.parametrize("name", STARTED)
def test_no_operator(backend: Backend, name: str) -> None:
    for n in (6, 0):
        with refused(backend, TypeError, f"^{name}: op .*NoneType"):
            STARTED[name](np.zeros(n), 1.0, op=None)


# --- memory -------------------------------------------------------------------------------------

LARGE: dict[str, Callable[[Any], Any]] = {
    "transform": lambda x: ga.transform(lambda a: a, x),
    "reduce": lambda x: ga.reduce(x.reshape(1 << 56, 2), axis=1),
    "inclusive_scan": ga.inclusive_scan,
    "exclusive_scan": ga.exclusive_scan,
    "radix_sort": ga.radix_sort,
    "argsort": ga.argsort,
    "histogram": lambda x: ga.histogram(x.reshape(1 << 56, 2), 4, (0, 1), axis=1),
}


@pytest.mark.parametrize("name", LARGE)
def test_out_of_memory(backend: Backend, name: str) -> None:
    one = backend.to_device(np.zeros(1, np.uint8))
    for _ in range(2):  # and the library still works after it
        with pytest.raises(MemoryError):
            LARGE[name](backend.xp.broadcast_to(one, (1 << 57,)))
        assert float(ga.inclusive_scan(backend.to_device(np.ones(1000)), 1.0)[-1]) == 1001


@each_case
def test_arrays_of_both_sides(cuda: Backend, case: Case) -> None:
    """No array of the host is read next to arrays on a GPU."""
    call, arrays, samples = case.on(cuda), case.arrays(cuda), case.samples()
    for i in range(1, len(arrays)):
        for given in ([*arrays[:i], samples[i], *arrays[i + 1 :]],
                      [*samples[:i], arrays[i], *samples[i + 1 :]]):  # fmt: skip
            with refused(cuda, TypeError, rf"^({case.name}|lazy.*): .*(mix|host|CPU|[Nn]um[Pp]y)"):
                call(*given)
