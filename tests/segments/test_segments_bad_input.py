"""What segmented functions refuse, and what they say; and what device offsets mean that fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import support
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from segments.test_segments import ALL, EXCLUSIVE, INCLUSIVE, REDUCE, SCANS, START, expected
from support import Backend, affine, assert_same, compose

import gpualgo as ga
from gpualgo._algorithms.segments import cuda as tuning

each = pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)


def refused(f: Any, kind: type[Exception], message: str, *args: Any, **more: Any) -> None:
    with pytest.raises(kind, match=rf"^{f.__name__}: {message}") as caught:
        f(*args, **more)
    assert "\n" not in str(caught.value)


BAD = [
    ([0, 5, 3, 9], "offsets falls from 5 to 3 at index 2"),
    ([-1, 5, 9], "offsets has -1, and x has 30 elements"),
    ([0, 5, 31], "offsets has 31, and x has 30 elements"),
    ([0, 40, 9], "offsets falls from 40 to 9 at index 2"),
    ([31], "offsets has 31"),
]


@each
@pytest.mark.parametrize(("offsets", "message"), BAD, ids=lambda v: str(v)[:12])
def test_host_offsets(f: Any, offsets: list[int], message: str) -> None:
    x = np.arange(30)
    out = np.full(len(offsets) - 1 if f is REDUCE else 30, 7)
    refused(f, ValueError, message, x, np.array(offsets), out=out)
    assert (out == 7).all()
    plan = ga.prepare(f, x, np.zeros(len(offsets), np.int64))
    with pytest.raises(ValueError, match=message):
        plan(x, np.array(offsets))


def by_heads(f: Any, x: Any, offsets: Any, init: Any, op: Any) -> Any:
    """Return a scan that begins anew at each offset, between the first and the last."""
    ends = [min(max(int(o), 0), len(x)) for o in offsets]
    found = x.copy()
    total = init
    for i in range(ends[0], ends[-1]):
        if i in ends:
            total = init
        if f is EXCLUSIVE:
            found[i] = total
        total = op(total, x[i])
        if f is INCLUSIVE:
            found[i] = total
    return found


def check_any(backend: Backend, x: Any, offsets: Any) -> None:
    """Compare all functions for offsets of any values, on a device."""
    init = np.uint64(START)
    given = backend.to_device(x), backend.to_device(offsets)
    want = expected(REDUCE, x, offsets, init, compose)
    assert_same(backend.to_host(REDUCE(*given, init, compose)), want)
    for f in SCANS:
        want = by_heads(f, x, offsets, init, compose)
        assert_same(backend.to_host(f(*given, init, compose)), want)


DEVICE = [*[offsets for offsets, _ in BAD], [5, 2, 9], [70, -4, 20, 3, 90], [-(2**62), 2**62]]


@pytest.mark.parametrize("offsets", DEVICE, ids=str)
def test_device_offsets(cuda: Backend, offsets: list[int]) -> None:
    """They are clamped, and a pair that falls is empty, as slices are."""
    check_any(cuda, affine((30,)), np.array(offsets))


@pytest.mark.parametrize("index", ["uint64", "int8"])
def test_extreme_offsets(cuda: Backend, index: str) -> None:
    info = np.iinfo(index)
    check_any(cuda, affine((300,)), np.array([info.max, 3, info.min, info.max, 7], index))


def test_many_that_overlap(cuda: Backend) -> None:
    """More chunks than segments apart can have."""
    n = 9001
    offsets = np.array([0, n] * 20 + [5])
    check_any(cuda, affine((n,)), offsets)
    cut = tuning.tiling_of(n, len(offsets) - 1)
    assert 20 * (n >> cut.chunk_bits) > cut.capacity


def test_many_chunks(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of more chunks than a warp joins, beside others of a few and of one."""
    for name, value in (("CHUNK_BITS", 5), ("LEAST_LONG", 32), ("LONG_PER_WARP", 32)):
        monkeypatch.setattr(tuning, name, value)
    n = 32 * 1024 * 2 + 77
    x, offsets = affine((n,)), np.array([0, 33, 40, 240, 32 * 1025 + 250, n - 1, n])
    got = REDUCE(cuda.to_device(x), cuda.to_device(offsets), np.uint64(START), compose)
    assert_same(cuda.to_host(got), expected(REDUCE, x, offsets, np.uint64(START), compose))


@settings(
    max_examples=support.examples(25), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    st.integers(0, 1500), st.lists(st.integers(-5, 1600), min_size=1, max_size=70), st.booleans()
)
def test_any_offsets(backend: Backend, n: int, offsets: list[int], rises: bool) -> None:
    x = affine((n,), seed=len(offsets))
    if rises or backend.xp is np:
        offsets = np.sort(np.clip(offsets, 0, n)).tolist()
    check_any(backend, x, np.array(offsets))


def test_checks_asked_for(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """With GPUALGO_CHECK=1 the values of device offsets are looked at."""
    x, good = cuda.to_device(np.arange(30)), np.array([0, 3, 9])
    monkeypatch.setenv("GPUALGO_CHECK", "1")
    for f in ALL:
        for offsets, message in BAD:
            given = cuda.arrange("reversed", np.array(offsets))
            refused(f, ValueError, message, x, given)
        assert_same(cuda.to_host(f(x, cuda.to_device(good))), expected(f, np.arange(30), good))
    plan = ga.prepare(REDUCE, x, cuda.to_device(good))
    with pytest.raises(ValueError, match="falls from 9 to 3"):
        plan(x, cuda.to_device(good[::-1].copy()))
    monkeypatch.setenv("GPUALGO_CHECK", "0")
    REDUCE(x, cuda.to_device(np.array([9, 3])))
