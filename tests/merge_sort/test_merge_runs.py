"""Several sorted runs merged on a GPU: every part of the result, stably, whatever the runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, sampled, scaled

import gpualgo as ga
from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.cuda import Runs, can_merge
from gpualgo._arrays.view import view_of
from gpualgo._base import dtypes

LENGTHS: list[tuple[int, ...]] = scaled(
    [(0, 1), (5, 7), (3000, 1, 0, 2047), (70_000, 70_001), (9, 0, 40_000, 1, 3, 8),
     (9000, 9000, 8999, 9001), (300_000, 200_000, 250_000, 1, 300_000), tuple(range(900, 916))],
    emulated=[(0, 1), (5, 7), (1500, 1, 0, 1047), (400, 401, 399, 300, 402)],
)  # fmt: skip
KEYS = [name for name in dtypes.NAMES if not name.startswith("complex")]
KINDS = ("wide", "ties", "equal", "zeros", "apart")


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few elements be several pieces of several chunks, and several steps of a block."""
    monkeypatch.setattr(tuning, "MERGE_THREADS", 64)
    monkeypatch.setattr(tuning, "CUT_SAMPLES", 128)
    monkeypatch.setattr(tuning, "CUT_THREADS", 64)
    monkeypatch.setattr(tuning, "CUT_GROUPS", 64)


def keys_of(kind: str, n: int, rng: np.random.Generator, run: int) -> np.ndarray[Any, Any]:
    if kind == "zeros":
        return np.where(rng.random(n) < 0.3, np.nan, rng.integers(-2, 2, n) * 0.5)
    if kind == "wide":
        return rng.integers(0, 1 << 63, n, dtype=np.uint64)
    if kind == "apart":  # the runs follow each other in the merged row, the last one first
        return rng.integers(0, 999, n).astype(np.int32) - 1000 * np.int32(run)
    return rng.integers(0, 4 if kind == "ties" else 1, n).astype(np.int8)


def merged(
    cuda: Backend, runs: list[Any], num_keys: int, ways: tuple[bool, ...], part: tuple[int, int],
    index: np.dtype[Any] | None = None,
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """Return a part of merged runs, each given as its fields, keys first."""
    dtypes_ = [x.dtype for x in runs[0]]
    sizes = tuple(dtype.itemsize for dtype in dtypes_[num_keys:])
    lengths = tuple(len(fields[0]) for fields in runs)
    sent = [[cuda.to_device(x) for x in fields] for fields in runs]
    wanted = dtypes_ if index is None else [index]
    outs = [cuda.to_device(np.zeros(part[1] - part[0], dtype)) for dtype in wanted]
    views = [[view_of(x, "a run") for x in fields] for fields in sent]
    assert can_merge(views, num_keys)
    addresses = [view.ptr for fields in views for view in fields]
    addresses += [view_of(x, "a part").ptr for x in outs]
    merge = Runs(tuple(dtypes_[:num_keys]), sizes, ways, lengths, index.itemsize if index else 0)
    first = views[0][0]
    stream = int(first.library.stream(first.device))
    merge.merge(*part, first.device, stream, addresses)
    return [cuda.to_host(x) for x in outs]


def check(
    cuda: Backend, parts: list[Any], ways: tuple[bool, ...], moved: tuple[np.dtype[Any], ...] = ()
) -> None:
    """Merge runs, each given as its keys, and compare several parts of the result."""
    total = sum(len(leaves[0]) for leaves in parts)
    whole = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    with ga.default_device("cpu"):
        order = ga.argsort(whole, descending=ways)
    ends = np.cumsum([len(leaves[0]) for leaves in parts])[:-1]
    numbers = [np.arange(total).astype(dtype) for dtype in moved]
    values = [np.split(x, ends) for x in numbers]
    runs = [[*leaves, *(x[i] for x in values)] for i, leaves in enumerate(parts)]
    for first, last in sorted({(0, total), (total // 3, total // 3 * 2), (total - 1, total)}):
        if first == last:
            continue
        found = merged(cuda, runs, len(parts[0]), ways, (first, last))
        for x, y in zip(found, (*whole, *numbers), strict=True):
            assert x.tobytes() == y[order[first:last]].tobytes(), (first, last)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("kind", scaled(KINDS, emulated=("zeros", "apart", "ties")))
@pytest.mark.parametrize("descending", [False, True])
def test_runs(cuda: Backend, lengths: tuple[int, ...], kind: str, descending: bool) -> None:
    rng = np.random.default_rng(len(lengths))
    parts = [
        (ga.radix_sort(keys_of(kind, n, rng, run), descending=descending),)
        for run, n in enumerate(lengths)
    ]
    check(cuda, parts, (descending,), (np.dtype(np.uint32),) if kind != "wide" else ())


def test_tuples_in_several_ways(cuda: Backend) -> None:
    rng, parts = np.random.default_rng(4), []
    for n in (900, 0, 1500):
        pair = rng.integers(0, 3, n).astype(np.int16), rng.integers(0, 9, n).astype(np.float32)
        parts.append(ga.radix_sort(pair, descending=(True, False)))
    check(cuda, parts, (True, False), (np.dtype(np.uint8), np.dtype(np.float64)))


@pytest.mark.parametrize("name", sampled(KEYS, ["bool", "float16", "bfloat16"]))
@pytest.mark.parametrize("descending", [False, True])
def test_every_dtype(cuda: Backend, name: str, descending: bool) -> None:
    rng, dtype = np.random.default_rng(6), dtypes.as_dtype(name, "a key")
    few = rng.integers(0, 200, 1500)
    whole = (few % 2 if name == "bool" else few).astype(np.float32).astype(dtype)
    if name.startswith(("float", "bfloat")):
        whole[::7], whole[::11] = np.nan, -0.0
    ends = ((0, 700), (700, 701), (701, 1500))
    parts = [(ga.radix_sort(whole[slice(*end)], descending=descending),) for end in ends]
    check(cuda, parts, (descending,), (np.dtype(np.complex128),))


@pytest.mark.parametrize("index", ["int64", "int32"])
def test_positions_in_runs_become_those_in_all(cuda: Backend, index: str) -> None:
    x = np.random.default_rng(7).integers(0, 9, 1200).astype(np.float32)
    runs = []
    for part in np.split(x, (500, 900)):
        order = np.argsort(part, kind="stable")
        runs.append([part[order], order.astype(np.uint32)])
    (found,) = merged(cuda, runs, 1, (False,), (0, 1200), np.dtype(index))
    np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
