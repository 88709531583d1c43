"""Messages name the function that was called, and none shows a function's address."""

from __future__ import annotations

import inspect
import re
import typing
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from contract.case import TABLE as CAPTURED
from contract.case import Call
from contract.cases import cases_of, each_function
from support import Backend
from test_spellings_of_dtypes import SAMPLE, X, arguments_of, on

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import _call
from gpualgo.numpy._call import TABLE, Entry

WRONG: list[tuple[str, Any]] = [
    ("axis", 7), ("axis", "x"), ("axis", (0, 0)), ("axis", 1.5), ("out", 3), ("out", (1, 2, 3)),
    ("out", np.zeros((3, 3, 3))), ("out", np.zeros((3, 3, 3), "S3")), ("dtype", "S3"),
    ("dtype", "nothing"), ("keepdims", "yes"), ("where", "x"), ("method", "x"), ("casting", None),
    ("casting", "x"), ("kind", "x"), ("weights", np.ones(17)), ("decimals", "x"), ("ddof", "x"),
    ("bins", -1), ("bins", "x"), ("range", (3, 1)), ("mode", "x"), ("side", "x"), ("order", "x"),
    ("minlength", -1), ("n", -1), ("k", 99), ("kth", 99), ("prepend", np.ones((7, 7))),
    ("nothing", 1),
]  # fmt: skip


def a_function(a: Any) -> Any:
    return a


class AFunction:
    """An object that is called."""

    def __call__(self, a: Any) -> Any:
        return a


def message_of(call: Callable[[], Any]) -> str:
    """Return the message of the error that a call raises; "" if it raises none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except (TypeError, ValueError, IndexError, OverflowError, RuntimeError) as error:
            return str(error)
    return ""


def check(text: str, name: str) -> None:
    """Assert that a message names no other function, no address and no module of ours."""
    for pattern in (" at 0x", "<function", "<built-in", "<lambda>", r"gpualgo\._"):
        assert not re.search(pattern, text), text
    teller, colon, _ = text.partition(": ")
    if colon and teller.rpartition(".")[2] in _call._function_names():
        assert teller == name, text
    assert "UFunc.__call__" not in text, text


def wrong_calls(entry: Entry, backend: Backend) -> list[Callable[[], Any]]:
    args = on(backend, arguments_of(entry))
    if isinstance(entry.native, np.ufunc):
        names = {"out", "dtype", "casting", "order", "where"}
    else:
        names = {*inspect.signature(entry.function).parameters, "nothing"}
        names -= {*list(inspect.signature(entry.function).parameters)[: len(args)]}
        if entry.name == "clip":
            names |= {"casting", "dtype"}
    found = [
        partial(entry.function, *args, **{option: on(backend, value)})
        for option, value in WRONG
        if option in names
    ]
    found += [
        partial(entry.function, *args, **{option: value})
        for option in names
        for value in (a_function, AFunction())
    ]
    for wrong in (np.array(["a"]), None, a_function):
        found += [partial(entry.function, wrong, *args[1:])]
    return found


ENTRIES = [
    entry
    for entry in TABLE.values()
    if entry.name in SAMPLE
    or not (isinstance(entry.native, np.ufunc) or entry.name in ("vectorize", "compress"))
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_called_function_is_named(backend: Backend, entry: Entry) -> None:
    texts = [message_of(call) for call in wrong_calls(entry, backend)]
    assert any(texts)
    name = entry.native.__name__ if isinstance(entry.native, np.ufunc) else entry.name
    for text in texts:
        check(text, name)


FUNCTIONS = [entry for entry in ENTRIES if not isinstance(entry.native, np.ufunc)]


@pytest.mark.parametrize("entry", FUNCTIONS, ids=lambda entry: entry.name)
def test_arguments_that_do_not_fit(entry: Entry) -> None:
    """Messages and annotations have the function's name and its own parameters alone."""
    native, own = getattr(entry.native, "__name__", ""), inspect.signature(entry.function)
    for args, options in (((), {}), ((X,), {"nothing": 1}), ((X,) * 20, {})):
        teller, says_call, _ = message_of(partial(entry.function, *args, **options)).partition("()")
        assert not says_call or teller in (entry.name, native)
    hints = typing.get_type_hints(entry.function)
    assert {*hints} <= {*own.parameters, "return"}


@pytest.mark.parametrize("name", ["average", "quantile", "nanpercentile"])
def test_weights_that_do_not_fit(name: str) -> None:
    q = () if name == "average" else (0.5,)
    options: Any = {"weights": np.ones(5)} | ({} if not q else {"method": "inverted_cdf"})
    for axis in (None, 0):
        text = message_of(partial(TABLE[name].function, np.ones((3, 4)), *q, axis=axis, **options))
        assert text.startswith(f"{name}: weights have shape (5,)")


@each_function
def test_functions_as_arguments_are_named(function: Callable[..., Any]) -> None:
    case = cases_of(function)[0]
    args, options = Call(case, CAPTURED).arguments(case.samples())
    signature = inspect.signature(function)
    given = signature.bind(*args, **options).arguments
    for one in signature.parameters.values():
        for wrong in (a_function, AFunction()):
            if one.kind is one.VAR_POSITIONAL:
                continue
            bound = inspect.BoundArguments(signature, {**given, one.name: wrong})  # type: ignore[arg-type]
            assert " at 0x" not in message_of(partial(function, *bound.args, **bound.kwargs))


def test_operators_are_named() -> None:
    x = np.arange(12.0)
    for fn in (np.round, round):
        for call in (
            partial(ga.transform, fn, x, x), partial(ga.reduce, x, 0.0, fn),
            partial(ga.transform, fn, x, 2.5), partial(gnp.vectorize(fn), x, x),
            partial(ga.prepare, fn, x), partial(ga.explain, fn, x),
        ):  # fmt: skip
            text = message_of(call)
            assert "round" in text
            assert not re.search(" at 0x|<function|<built-in", text), text


def test_operators_of_the_package_are_not_spoken_of() -> None:
    """Who calls a function of NumPy's has written no operator."""
    for call, name in (
        (partial(gnp.reciprocal, X), "reciprocal"), (partial(gnp.maximum, X + 0j, X), "maximum"),
        (partial(gnp.arccosh, X + 0j), "arccosh"),
    ):  # fmt: skip
        with pytest.raises(gnp.NotTaken, match=f"^{name}: there is no kernel for (int64|complex)"):
            call()
    with pytest.raises(gnp.NotTaken, match=r"^vectorize: pyfunc calls print"):
        gnp.vectorize(lambda a: print(a))(X)


def test_axes_that_are_not_there(backend: Backend) -> None:
    x = on(backend, X)
    with pytest.raises(np.exceptions.AxisError, match=r"^sum: axis 7 is out of bounds") as found:
        gnp.sum(x, axis=7)
    assert (found.value.axis, found.value.ndim) == (7, 2)
    with pytest.raises(np.exceptions.AxisError, match=r"^nanquantile: axis 7"):
        gnp.nanquantile(x, 0.5, axis=7)
