"""Warm calls on the CPU into out=: as a new result would be, the short way; all else right."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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


class Pair(NamedTuple):
    u: Any
    v: Any


def add_and_multiply(p: Any, q: Any) -> Any:
    return Pair(p.u + q.u, p.v * q.v)


def test_outputs_of_warm_calls_with_tuples() -> None:
    x = Pair(np.arange(8.0), np.full(8, 1.5, np.float32))
    want = ga.inclusive_scan(x, None, add_and_multiply)
    for _ in range(3):
        out = Pair(np.zeros(8), np.zeros(8, np.float32))
        assert ga.inclusive_scan(x, None, add_and_multiply, out=out) is out
        np.testing.assert_array_equal(out, want)
        same = Pair(x.u.copy(), x.v.copy())
        ga.inclusive_scan(same, None, add_and_multiply, out=same)
        np.testing.assert_array_equal(same, want)
    memory = np.zeros(12)
    y, outs = Pair(memory[:8], x.v), (memory[:8], memory[7:11].view(np.float32))
    with pytest.raises(ValueError, match="share memory"):
        ga.inclusive_scan(x, None, add_and_multiply, out=outs)
    with pytest.raises(ValueError, match="overlaps"):
        ga.inclusive_scan(y, None, add_and_multiply, out=(memory[1:9], out.v))
    with pytest.raises(TypeError, match="must be a tuple"):
        ga.inclusive_scan(x, None, add_and_multiply, out=out.u)


@pytest.mark.parametrize("alignment", ["packed", "aligned"])
def test_outputs_of_warm_calls_with_structured_arrays(alignment: str) -> None:
    dtype = np.dtype([("u", "i1"), ("v", "f8")], align=alignment == "aligned")
    x = np.ones(8, dtype)
    want = ga.inclusive_scan(x, None, add_and_multiply)
    misaligned = np.zeros(8 * dtype.itemsize + 1, np.uint8)[1:].view(dtype)
    for out in (np.zeros(8, dtype), np.zeros(16, dtype)[::2], misaligned, np.zeros(8, dtype), x):
        assert ga.inclusive_scan(x, None, add_and_multiply, out=out) is out
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("first", [np.record, np.void])
def test_results_are_records_if_the_call_reads_records(first: type) -> None:
    """Their dtypes are equal to those of other structured arrays."""
    fields = [("first", "f4"), (f"then_{first.__name__}", "i2")]
    plain = np.ones(3, fields)
    records = plain.view(np.dtype((np.record, fields)))
    pick = lambda p, q: p  # noqa: E731
    for x in (records, plain) if first is np.record else (plain, records):
        for _ in range(2):
            results = ga.inclusive_scan(x, None, pick), ga.select(x, np.ones(3, bool))
            assert {result.dtype.type for result in results} == {x.dtype.type}
            assert type(ga.reduce(x, None, pick)) is x.dtype.type
