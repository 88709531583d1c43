"""Warm calls on the CPU into out=: as a new result would be, the short way; all else right."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gpualgo as ga


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with ga.default_device("cpu"):
        yield


CALLS_INTO: dict[str, Callable[..., Any]] = {
    "reduce": lambda x, **o: ga.reduce(x, 0.0, op=lambda a, b: a + b, axis=0, **o),
    "scan": lambda x, **o: ga.inclusive_scan(x, None, lambda a, b: a + b, axis=1, **o),
    "transform": lambda x, **o: ga.transform(lambda a: a * 2 + 1, x, **o),
    "sort": lambda x, **o: ga.radix_sort(x, **o),
    "histogram": lambda x, **o: ga.histogram(x, 5, (0, 30), **o),
}


@pytest.mark.parametrize("name", CALLS_INTO)
def test_outputs_of_warm_calls(name: str) -> None:
    """Into an output as a new one would be, and into others: each time the same."""
    call, x = CALLS_INTO[name], np.random.default_rng(0).integers(0, 30, (6, 8)).astype(float)
    want = np.asarray(call(x))
    fresh = np.zeros_like(want)
    for _ in range(3):
        fresh[...] = 0
        assert call(x, out=fresh) is fresh
        np.testing.assert_array_equal(fresh, want)
    whole = np.full((*want.shape, 2), -7, want.dtype)
    misaligned = np.zeros(want.nbytes + 1, np.uint8)[1:].view(want.dtype).reshape(want.shape)
    for out in (whole[..., 1], np.asfortranarray(np.zeros_like(want)), misaligned):
        assert call(x, out=out) is out
        np.testing.assert_array_equal(out, want)
    assert (whole[..., 0] == -7).all()
    fixed = np.zeros_like(want)
    fixed.flags.writeable = False
    for out in (fixed, np.zeros((*want.shape[:-1], want.shape[-1] + 1), want.dtype)):
        with pytest.raises(ValueError, match="out"):
            call(x, out=out)
    again = x.copy()
    shared = again.reshape(-1)[: want.size].view(want.dtype).reshape(want.shape)
    if name in ("transform", "sort", "scan"):  # which may be in place
        assert call(again, out=shared) is shared
        np.testing.assert_array_equal(again, want)
    else:
        with pytest.raises(ValueError, match="overlaps"):
            call(again, out=shared)
        np.testing.assert_array_equal(again, x)


def test_an_output_that_the_first_call_was_given_is_let_go() -> None:
    x, out = np.arange(10.0), np.zeros(10)
    ga.transform(lambda a: a + 3.25, x, out=out)
    other = np.zeros(10)
    gone = weakref.ref(out)
    ga.transform(lambda a: a + 3.25, x, out=other)
    del out
    assert gone() is None
    np.testing.assert_array_equal(other, x + 3.25)
