"""Several sorted runs merged on a GPU: every part of the result, stably, whatever the runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, sampled, scaled

import gpualgo as ga
from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.merge_runs import merge_runs
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


def check(
    cuda: Backend, parts: list[Any], descending: Any, moved: tuple[np.dtype[Any], ...] = ()
) -> None:
    """Merge runs, each given as its leaves, and compare several parts of the result."""
    total, count = sum(len(leaves[0]) for leaves in parts), len(parts)
    whole = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    with ga.default_device("cpu"):
        order = ga.argsort(whole if len(whole) > 1 else whole[0], descending=descending)
    ends = np.cumsum([len(leaves[0]) for leaves in parts])[:-1]
    numbers = [np.arange(total).astype(dtype) for dtype in moved]
    sent = [tuple(map(cuda.to_device, leaves)) for leaves in parts]
    runs = [leaves if len(leaves) > 1 else leaves[0] for leaves in sent]
    values = [
        [cuda.to_device(piece) for piece in pieces]
        for pieces in zip(*(np.split(x, ends) for x in numbers), strict=True)
    ] or [[]] * count  # fmt: skip
    for first, last in sorted({(0, total), (total // 3, total // 3 * 2), (total - 1, total)}):
        if first == last:
            continue
        want = [x[order[first:last]] for x in (*whole, *numbers)]
        outs = [cuda.to_device(np.zeros_like(x)) for x in want]
        out = tuple(outs) if len(outs) > 1 else outs[0]
        merge_runs(runs, values, (first, last), descending, out=out)
        for x, y in zip(outs, want, strict=True):
            assert cuda.to_host(x).tobytes() == y.tobytes(), (first, last)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("kind", scaled(KINDS, emulated=("zeros", "apart", "ties")))
@pytest.mark.parametrize("descending", [False, True])
def test_runs(cuda: Backend, lengths: tuple[int, ...], kind: str, descending: bool) -> None:
    rng = np.random.default_rng(len(lengths))
    parts = [
        (ga.radix_sort(keys_of(kind, n, rng, run), descending=descending),)
        for run, n in enumerate(lengths)
    ]
    check(cuda, parts, descending, (np.dtype(np.uint32),) if kind != "wide" else ())


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
    check(cuda, parts, descending, (np.dtype(np.complex128),))


def test_values_alone_and_wider(cuda: Backend) -> None:
    """As an argsort needs them: positions of 4 bytes, wanted as integers of 8."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 9, 1200).astype(np.float32)
    starts = (0, 500, 900)
    orders = [np.argsort(part, kind="stable") for part in np.split(x, starts[1:])]
    runs = [part[order] for part, order in zip(np.split(x, starts[1:]), orders, strict=True)]
    places = [
        (order + start).astype(np.uint32) for order, start in zip(orders, starts, strict=True)
    ]
    out = cuda.to_device(np.zeros(1200, np.int64))
    merge_runs(
        [cuda.to_device(run) for run in runs], [[cuda.to_device(part)] for part in places],
        (0, 1200), False, dtype=np.dtype(np.int64), wants_keys=False, out=out,
    )  # fmt: skip
    np.testing.assert_array_equal(cuda.to_host(out), np.argsort(x, kind="stable"))
