"""Arguments of a wrong kind are refused by name, also where an equal one passed before.

True == 1 == 1.0, so a call that looks its arguments up by ``==`` would let them through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from contract.case import Case
from contract.cases import CASES, each_function
from support import Backend

from gpualgo._algorithms import ALGORITHMS

VALUES = {"init"}  # what elements are combined with: any number

Sample = tuple[Case, str]


def samples(kind: Callable[[Any], bool]) -> Iterator[Sample]:
    """Yield a case for each function and keyword whose values in the cases are of a kind."""
    for function in ALGORITHMS:
        for keyword in inspect.signature(function).parameters:
            found = [
                case for case in CASES
                if case.function is function and keyword not in VALUES
                and kind(case.options.get(keyword))
            ]  # fmt: skip
            if found:
                yield found[0], keyword


def each(kind: Callable[[Any], bool]) -> Any:
    found = list(samples(kind))
    assert found
    ids = [f"{case.name}-{keyword}" for case, keyword in found]
    return pytest.mark.parametrize(("case", "keyword"), found, ids=ids)


def is_flag(value: Any) -> bool:
    return type(value) is bool


def is_number(value: Any) -> bool:
    return type(value) is int


def refused(backend: Backend, case: Case, keyword: str, bad: Any, **others: Any) -> None:
    given = {"out": np.ones(1), keyword: bad} if keyword == "out" else {keyword: bad}
    with pytest.raises(TypeError, match=rf"^{case.name}: .*{keyword}") as caught:
        case.on(backend)(*case.arrays(backend), **others, **given)
    assert "\n" not in str(caught.value)


def test_each_flag_is_tested() -> None:
    """Each argument that is True or False by default occurs as such in some case."""
    by_default = {
        (function, name)
        for function in ALGORITHMS
        for name, parameter in inspect.signature(function).parameters.items()
        if type(parameter.default) is bool
    }
    assert by_default == {(case.function, keyword) for case, keyword in samples(is_flag)}


@each(is_flag)
def test_flags(backend: Backend, case: Case, keyword: str) -> None:
    bad: Any
    for bad in ("no", None, 0, 1, 0.0, 1.0, [True], {}):
        refused(backend, case, keyword, bad)
    call, arrays = case.on(backend), case.arrays(backend)
    for good in (True, False, np.True_):
        call(*arrays, **{keyword: good})
    for bad in (1, 1.0, 0, 0.0, "yes", np.int8(1), np.float32(0)):
        refused(backend, case, keyword, bad)


@each(is_number)
def test_numbers(backend: Backend, case: Case, keyword: str) -> None:
    bad: Any
    for bad in (float(case.options[keyword]), "1", {}):
        if keyword != "axis":
            refused(backend, case, keyword, bad)
    has_default = {
        name
        for name, parameter in inspect.signature(case.function).parameters.items()
        if parameter.default is not parameter.empty
    }
    others = {k for k in has_default - {keyword} if is_number(case.options.get(k))}
    alone = {k: v for k, v in case.options.items() if k not in others}
    case = Case(case.function, case.about, case.inputs, alone, case.operator)
    call, arrays = case.on(backend), case.arrays(backend)
    least = case.options[keyword] if keyword == "size" else 1  # that indices have room for
    for good in (least, np.int64(least)):
        call(*arrays, **{keyword: good})
    for bad in (1.0, True, np.True_, np.float64(1), "1"):
        refused(backend, case, keyword, bad)


@each_function
def test_axes(backend: Backend, function: Callable[..., Any]) -> None:
    if "axis" not in inspect.signature(function).parameters:
        pytest.skip("it goes along no axis")
    case = next(c for c in CASES if c.function is function and c.options.get("axis") in (0, 1))
    call, arrays = case.on(backend), case.arrays(backend)
    takes_several = any(
        type(c.options.get("axis")) is tuple for c in CASES if c.function is function
    )
    for good in (0, 1, -1, np.int32(1), *([(1,), (0, 1)] if takes_several else [])):
        call(*arrays, axis=good)
    several: list[Any] = [(1.0,), (True,), (0, 1.0), ("0",), ([0],)]
    for bad in [
        1.0,
        True,
        "0",
        [0],
        {},
        slice(0, 1),
        *several,
        *([] if takes_several else [(1,), ()]),
    ]:
        refused(backend, case, "axis", bad)
    for bad in (2, -3, 2**40, *([(0, 2)] if takes_several else [])):
        with pytest.raises(np.exceptions.AxisError, match=r"axis.*out of bounds"):
            call(*arrays, axis=bad)
    for bad in [(0, 0), (1, -1)] if takes_several else []:
        with pytest.raises(ValueError, match=f"^{case.name}: axis .* twice"):
            call(*arrays, axis=bad)


@each_function
def test_dtypes(backend: Backend, function: Callable[..., Any]) -> None:
    if "dtype" not in inspect.signature(function).parameters:
        pytest.skip("it takes no dtype")
    case = next(c for c in CASES if c.function is function and "dtype" in c.options)
    bad: Any
    case.on(backend)(*case.arrays(backend))
    for bad in ("nope", "float31", 12, [1], {}, "f4,i4", object, "M8[s]", ">i8", "U3", 1.5, True):
        refused(backend, case, "dtype", bad)


@each_function
def test_what_has_no_hash(backend: Backend, function: Callable[..., Any]) -> None:
    """A dict is nothing that an argument may be; a list is edges at most."""
    case = next(c for c in CASES if c.function is function)
    bad: Any
    call, arrays = case.on(backend), case.arrays(backend)
    call(*arrays)  # which what follows shall not be taken for
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "op":
            call.op = {}  # type: ignore[assignment]
            with pytest.raises(TypeError, match=rf"^{case.name}: op"):
                call(*arrays)
            call = case.on(backend)
        elif parameter.kind is parameter.KEYWORD_ONLY or name in ("init", "bins", "range"):
            kinds = (TypeError, ValueError) if name == "stream" else TypeError
            for bad in ({}, [[0]], [0]):
                with pytest.raises((TypeError, ValueError) if bad else kinds, match=name):
                    call(*arrays, **{name: bad})
    for bad in ([0], {}, 3.0, None, "123", range(3), np.float32(3)):
        with pytest.raises(TypeError, match=rf"^{case.name}: "):
            call(bad, *arrays[1:])
    call(*arrays)
