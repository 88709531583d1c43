"""Records of the host on a GPU: those that lie in one piece travel as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga
from gpualgo._driver import staging
from gpualgo._pipeline.host_whole import find_interleaved

PAIR = [("a", "i4"), ("b", "f4")]


def records(n: int, dtype: Any) -> Any:
    random = np.random.default_rng(0)
    x = np.zeros(n, dtype)
    for name in x.dtype.names or ():
        x[name] = random.integers(0, 100, n)
    return x


def op(a: Any, b: Any) -> Any:
    return (a[0] + b[0], max(a[1], b[1]))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The bytes and the itemsize of each array that goes up."""
    found: list[tuple[int, int]] = []
    copy_all = staging.copy_all

    def spied(arrays: Any, memory: int, device: int, stream: int, is_upload: bool) -> None:
        if is_upload:
            found.extend((array.nbytes, array.itemsize) for array in arrays)
        copy_all(arrays, memory, device, stream, is_upload)

    monkeypatch.setattr(staging, "copy_all", spied)
    return found


@pytest.mark.parametrize(
    ("dtype", "count"),
    [
        (PAIR, 1),
        (np.dtype([("a", "i4"), ("b", "i1")]), 2),  # packed: numbers lie across their alignment
        (np.dtype([("a", "i1"), ("b", "i4")], align=True), 1),
        (np.dtype([("a", "i4"), ("b", "i1")], align=True), 2),  # a gap behind the last
        ([("a", "u1"), ("b", "u1")], 1),
        ([("a", "f8"), ("b", "i8")], 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [1, 2, 5000])
def test_fields(cuda: Backend, sent: list[tuple[int, int]], dtype: Any, count: int, n: int) -> None:
    x = records(n, dtype)
    with ga.default_device("cuda"):
        got = ga.reduce(x, None, op)
        scans = ga.inclusive_scan(x, None, op)
    assert got["a"] == x["a"].sum(dtype=x["a"].dtype)
    assert got["b"] == x["b"].max()
    assert_same(scans["a"], np.cumsum(x["a"], dtype=x["a"].dtype))
    assert_same(scans["b"], np.maximum.accumulate(x["b"]))
    if n > 1:  # of one element nothing tells that fields lie together
        assert len(sent) == 2 * count


def test_columns_and_what_else_is_given(cuda: Backend, sent: list[tuple[int, int]]) -> None:
    x = np.random.default_rng(0).random((5000, 2)).astype("f4")
    w = np.arange(5000, dtype="f4")
    with ga.default_device("cuda"):
        got = ga.transform(lambda p, k: p[0] * p[1] + k, (x[:, 0], x[:, 1]), w)
    assert_same(got, x[:, 0] * x[:, 1] + w)
    assert [size for _, size in sent] == [8, 4]


def test_two_dimensions_and_a_part(cuda: Backend) -> None:
    x = records(6000, PAIR).reshape(60, 100)
    with ga.default_device("cuda"):
        for part in (x, x[10:], x[:, 1:], x[::-1], x.T):
            got = ga.reduce(part, None, op, axis=0)
            assert_same(got["a"], part["a"].sum(0, dtype="i4"))
            assert_same(got["b"], part["b"].max(0))


def test_into_one_of_its_own_fields(cuda: Backend) -> None:
    x = records(5000, PAIR)
    want = x["a"] + x["b"].astype("i4"), x["b"].copy()
    with ga.default_device("cuda"):
        ga.transform(lambda p: p[0] + np.int32(p[1]), x, out=x["a"])
    assert_same(x["a"], want[0])
    assert_same(x["b"], want[1])


def test_what_lies_together() -> None:
    x = records(8, PAIR)
    found = find_interleaved((x["a"], x["b"]))
    assert found is not None
    assert found.offsets == (0, 4)
    assert found.records.tobytes() == x.tobytes()
    y = np.zeros((8, 4), "f4")
    assert find_interleaved((y[:, 0], y[:, 1])) is None  # what else lies there is not read
    assert find_interleaved((y[:, 0], y[:, 3])) is not None
    assert find_interleaved((y[:1, 0], y[:1, 3])) is None  # of one element nothing tells
    assert find_interleaved((y[:, 0], y[::-1, 3])) is None
    assert find_interleaved((x["a"],)) is None
    assert find_interleaved((x["a"], x["b"][:4])) is None
