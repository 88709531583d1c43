"""Cuts of several sorted runs on a GPU: all elements before them are the first ones, stably."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, sampled, scaled

import gpualgo as ga
from gpualgo._algorithms.merge_sort.run_cuts import run_cuts
from gpualgo._base import dtypes

LENGTHS: list[tuple[int, ...]] = scaled(
    [(0, 0), (1, 0), (0, 1), (5, 7), (3000, 1, 0, 2047), (70_000, 70_001), (9, 0, 40_000, 1, 3, 8),
     tuple(range(900, 916))],
    emulated=[(0, 0), (5, 7), (3000, 1, 0, 2047)],
)  # fmt: skip
KEYS = [name for name in dtypes.NAMES if not name.startswith("complex")]
KINDS = ("wide", "ties", "equal", "zeros")


def keys_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    if kind == "zeros":
        return np.where(rng.random(n) < 0.3, np.nan, rng.integers(-2, 2, n) * 0.5)
    if kind == "wide":
        return rng.integers(0, 1 << 63, n, dtype=np.uint64)
    return rng.integers(0, 4 if kind == "ties" else 1, n).astype(np.int8)


def wanted(parts: list[Any], ranks: list[int], descending: Any) -> np.ndarray[Any, Any]:
    """Return how many of each run are among the first of all in the stable order."""
    numbers = np.repeat(np.arange(len(parts)), [len(leaves[0]) for leaves in parts])
    whole = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    with ga.default_device("cpu"):
        order = ga.argsort(whole if len(whole) > 1 else whole[0], descending=descending)
    return np.array(
        [np.bincount(numbers[order[:rank]], minlength=len(parts)) for rank in ranks], np.int64
    )


def check(cuda: Backend, parts: list[Any], descending: Any) -> None:
    total = sum(len(leaves[0]) for leaves in parts)
    count = len(parts)
    ranks = sorted({0, total, *(total * i // count for i in range(1, count - 2))})[: count - 1]
    sent = [tuple(map(cuda.to_device, leaves)) for leaves in parts]
    runs = [leaves if len(leaves) > 1 else leaves[0] for leaves in sent]
    found = cuda.to_host(run_cuts(runs, ranks, descending))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, wanted(parts, ranks, descending))


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("kind", scaled(KINDS, emulated=("zeros", "ties")))
@pytest.mark.parametrize("descending", [False, True])
def test_cuts(cuda: Backend, lengths: tuple[int, ...], kind: str, descending: bool) -> None:
    rng = np.random.default_rng(len(lengths))
    parts = [(ga.radix_sort(keys_of(kind, n, rng), descending=descending),) for n in lengths]
    check(cuda, parts, descending)


def test_each_rank(cuda: Backend) -> None:
    """Cuts at every place, of runs that are longer than the samples of a round."""
    rng = np.random.default_rng(3)
    parts = [np.sort(rng.integers(0, 50, n).astype(np.uint8)) for n in (2500, 700, 800)]
    runs = [cuda.to_device(part) for part in parts]
    every = scaled(7, emulated=600)
    for low in range(0, 4001 - every, every):
        found = cuda.to_host(run_cuts(runs, [low, low + every], False))
        one = [(part,) for part in parts]
        np.testing.assert_array_equal(found, wanted(one, [low, low + every], False))


def test_tuples_in_several_ways(cuda: Backend) -> None:
    rng, parts = np.random.default_rng(4), []
    for n in (900, 0, 2500):
        pair = rng.integers(0, 3, n).astype(np.int16), rng.integers(0, 9, n).astype(np.float32)
        parts.append(ga.radix_sort(pair, descending=(True, False)))
    check(cuda, parts, (True, False))


@pytest.mark.parametrize("name", sampled(KEYS, ["bool", "float16", "bfloat16"]))
@pytest.mark.parametrize("descending", [False, True])
def test_every_dtype(cuda: Backend, name: str, descending: bool) -> None:
    rng, dtype = np.random.default_rng(6), dtypes.as_dtype(name, "a key")
    few = rng.integers(0, 200, 3000)
    whole = (few % 2 if name == "bool" else few).astype(np.float32).astype(dtype)
    if name.startswith(("float", "bfloat")):
        whole[::7], whole[::11] = np.nan, -0.0
    ends = ((0, 1200), (1200, 1201), (1201, 3000))
    parts = [(ga.radix_sort(whole[slice(*end)], descending=descending),) for end in ends]
    check(cuda, parts, descending)
