"""out= that shares memory with init: a value of the host is read first, others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

N, KEYS, OFFSETS = 300, np.arange(300) // 7, np.arange(0, 301, 10)
ROWS, X = np.ones((30, 10)), np.ones(N)


def by_key(consecutive: bool) -> Callable[..., Any]:
    def call(x: Any, init: Any, out: Any = None) -> Any:
        count = int(KEYS[-1]) + 1
        outs = None if out is None else (np.zeros(count, KEYS.dtype), out)
        return ga.reduce_by_key(KEYS, x, init, consecutive=consecutive, out=outs)[1]

    return call


CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "reduce": (ga.reduce, X),
    "keepdims": (lambda x, init, **out: ga.reduce(x, init, keepdims=True, **out), X),
    "rows": (lambda x, init, **out: ga.reduce(x, init, axis=1, **out), ROWS),
    "columns": (lambda x, init, **out: ga.reduce(x, init, axis=0, **out), ROWS),
    "inclusive": (ga.inclusive_scan, X),
    "exclusive": (ga.exclusive_scan, X),
    "along rows": (lambda x, init, **out: ga.inclusive_scan(x, init, axis=1, **out), ROWS),
    "down columns": (lambda x, init, **out: ga.exclusive_scan(x, init, axis=0, **out), ROWS),
    "by key": (lambda x, init, **out: ga.inclusive_scan_by_key(KEYS, x, init, **out), X),
    "consecutive": (
        lambda x, init, **out: ga.exclusive_scan_by_key(KEYS, x, init, consecutive=True, **out), X,
    ),
    "sums by key": (by_key(False), X),
    "sums of runs": (by_key(True), X),
    "by index": (lambda x, init, **out: ga.reduce_by_index(KEYS, x, 50, init, **out), X),
    "segments": (lambda x, init, **out: ga.segmented_reduce(x, OFFSETS, init, **out), X),
    "within segments": (
        lambda x, init, **out: ga.segmented_inclusive_scan(x, OFFSETS, init, **out), X,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("place", [0, -1])
def test_a_value_of_the_host_is_read_first(backend: Backend, name: str, place: int) -> None:
    call, x = CALLS[name]
    with ga.default_device(backend.name):
        want = np.asarray(call(x, np.float64(5.0)))
        for _ in range(2):  # the second call finds what the first has decided
            out = np.full(want.shape, 5.0)
            init = out.reshape(-1)[place:][:1].reshape(())
            found = call(x, init, out=out)
            assert np.array_equal(np.asarray(found), want)
            assert np.array_equal(out, want)


@pytest.mark.parametrize("name", ["inclusive", "exclusive", "along rows", "down columns"])
def test_a_value_on_a_device_is_refused(cuda: Backend, name: str) -> None:
    call, x = CALLS[name]
    out = cuda.to_device(np.full(x.shape, 5.0))
    with pytest.raises(ValueError, match="out shares memory with init; pass a separate array"):
        call(cuda.to_device(x), out.reshape(-1)[:1], out=out)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_start_for_each_row_is_refused(backend: Backend, axis: int) -> None:
    x = backend.to_device(ROWS)
    starts = backend.to_device(np.zeros(ROWS.shape[1 - axis]))
    with (
        ga.default_device(backend.name),
        pytest.raises(ValueError, match="out overlaps init; pass a separate array"),
    ):
        ga.reduce(x, starts, axis=axis, out=starts)
