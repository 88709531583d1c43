"""What select and stable_partition refuse, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend, random_array

import gpualgo as ga
from gpualgo import lazy


@pytest.mark.parametrize("function", [ga.select, ga.stable_partition])
def test_bad_input(backend: Backend, function: Callable[..., Any]) -> None:
    x, y = (backend.to_device(random_array(100, np.dtype("int32"))) for _ in range(2))
    mask, name = backend.to_device(np.arange(100) % 3 == 0), function.__name__

    def refused(kind: type[Exception], message: str, *args: Any, **more: Any) -> None:
        with pytest.raises(kind, match=rf"^{name}: {message}") as caught:
            function(*args, **more)
        assert "\n" not in str(caught.value)

    refused(TypeError, "predicate returns int32 of int32, but must return bool", x, lambda a: a)
    refused(TypeError, "predicate takes 2 argument", x, lambda a, b: a > b)
    refused(TypeError, "predicate must be a function .* got list", x, [True] * 100)
    refused(TypeError, "predicate must be a function .* got NoneType", x, None)
    refused(TypeError, "predicate is an array of int32", x, y)
    refused(TypeError, "predicate is an array of int32", x, lazy.asarray(y))
    pairs = lazy.transform(lambda a: (a > 1, a > 2), y)
    refused(TypeError, r"predicate is an array of \(bool, bool\)", x, pairs)
    nested = (lazy.asarray(x), (x, y))
    refused(TypeError, "x has nested tuples", nested, mask)
    refused(ValueError, r"predicate has shape \(99,\) and x \(100,\)", x, mask[:99])
    refused(ValueError, r"predicate has shape \(99,\) and x \(100,\)", x, lazy.asarray(mask[:99]))
    refused(
        TypeError,
        "out_count is given without out",
        x,
        mask,
        out_count=backend.to_device(np.full((), -1, np.int64)),
    )
    out, count = backend.to_device(np.zeros(100, np.int32)), backend.to_device(np.zeros((), "i8"))
    refused(TypeError, "out_count has dtype int32", x, mask, out=out, out_count=out[:1])
    function(x, mask, out=out, out_count=count.reshape(1))  # one element, of one dimension
    refused(ValueError, "out_count has shape", x, mask, out=out,
            out_count=backend.to_device(np.zeros(2, "i8")))  # fmt: skip
    refused(TypeError, "x has elements of 8 numbers, at most 7", (x,) * 8, mask)
    if function is ga.select:
        shorter = (out, out[50:].copy())
        refused(ValueError, r"out\[0\] has shape \(100,\) and out\[1\]", (x, y), mask, out=shorter)
    if function is ga.stable_partition:
        refused(
            ValueError, r"out has shape \(50,\), the result has \(100,\)", x, mask, out=out[:50]
        )


def test_storage_that_holds_the_count(cuda: Backend) -> None:
    """A count would be written into what the kernel works with."""
    x = cuda.to_device(random_array(20_011, np.dtype("int32")))
    out = cuda.to_device(np.zeros(20_011, np.int32))
    plan = ga.prepare(ga.select, x, lambda a: a > 0)
    storage = cuda.to_device(np.zeros(plan.temp_storage_bytes, np.uint8))
    count = storage[:8].view(np.int64).reshape(())
    with pytest.raises(ValueError, match=r"^select: temp_storage shares memory"):
        plan(x, out=out, out_count=count, temp_storage=storage)


@pytest.mark.parametrize("function", [ga.select, ga.stable_partition])
def test_a_misaligned_count(cuda: Backend, function: Any) -> None:
    x = cuda.to_device(random_array(100, np.dtype("int32")))
    count = cuda.to_device(np.zeros(9, np.uint8))[1:].view(np.int64)
    message = rf"^{function.__name__}: out_count starts at address"
    with pytest.raises(ValueError, match=message):
        function(x, x > 0, out=cuda.to_device(np.zeros(100, np.int32)), out_count=count)
