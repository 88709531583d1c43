"""What merge_sort and sort refuse, and what they say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga


def coarse(a: Any, b: Any) -> Any:
    return a // 10 < b // 10


def some_keys(shape: Any) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-99, 100, shape).astype(np.int32)


def refused(kind: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", [ga.merge_sort, ga.sort])
def test_functions_that_are_no_order(backend: Backend, function: Any) -> None:
    keys = backend.to_device(some_keys(7))
    name = function.__name__
    call = functools.partial(function, keys)
    refused(
        TypeError, f"^{name}: less returns int.*, and not a bool; return a comparison.*a - b",
        lambda: call(less=lambda a, b: a - b),
    )  # fmt: skip
    refused(TypeError, f"^{name}: less returns", lambda: call(less=max))
    refused(TypeError, f"^{name}: less takes 1 ", lambda: call(less=lambda a: a > 0))
    refused(TypeError, f"^{name}: less must be callable, got int", lambda: call(less=3))
    refused(
        ga.CompileError, f"^{name}: less could not be compiled",
        lambda: call(less=lambda a, b: a.nothing < b),
    )  # fmt: skip
    refused(
        TypeError, f"^{name}: descending must be True or False",
        lambda: call(less=coarse, descending=(True,)),
    )  # fmt: skip
    pair = (keys, keys)
    refused(ga.CompileError, f"^{name}: less", lambda: function(pair, less=np.less))
    refused(
        TypeError, f"^{name}: less returns .*, and not a bool",
        lambda: function(pair, less=lambda a, b: (a[0] < b[0], a[1] < b[1])),
    )  # fmt: skip


def test_arguments_that_do_not_fit(backend: Backend) -> None:
    keys, call = backend.to_device(some_keys((4, 7))), ga.merge_sort
    complex_keys = backend.to_device(np.ones(3, np.complex64))
    refused(TypeError, r"^merge_sort: keys has dtype complex64", lambda: call(complex_keys))
    refused(ValueError, r"^merge_sort: values has shape \(7,\)", lambda: call(keys, keys[0]))
    objects = np.array([None])
    refused(TypeError, r"^merge_sort: keys has dtype object", lambda: call(objects, less=coarse))
