"""Scans of records on a GPU: every kernel, size and layout of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from record_plans import KINDS, Host, Kind, Leaves, check, scanned
from support import Array, Backend, a_few

import gpualgo as ga
from gpualgo._algorithms.scan import tuning
from gpualgo._algorithms.scan.problem import ExclusiveScan, Scan

Make = Callable[..., Array]
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

SIZES = (1, 2, 31, 33, 257, 1023, 1024, 1025, 2048, 5001)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cut what is small as what is large, into small tiles."""
    monkeypatch.setattr(tuning, "WAVES", {})
    monkeypatch.setattr(tuning, "WAVE_BYTES", 0)
    monkeypatch.setattr(tuning, "STAGE_BYTES", 12 << 10)
    for name in ("LARGE", "LARGE_WIDE"):
        monkeypatch.setattr(tuning, name, tuning.Policy(64, 3, 2))
    _forget()
    yield
    _forget()


def _forget() -> None:
    for problem in (Scan, ExclusiveScan):
        problem.problems.clear()


def run(
    kind: Kind, x: tuple[Any, ...], axis: int | None, init: Host | None, *, exclusive: bool = False,
    reverse: bool = False, out: Any = None,
) -> Any:  # fmt: skip
    function = ga.exclusive_scan if exclusive else ga.inclusive_scan
    start = None if init is None else tuple(init.item())
    dtype = None if kind.acc == kind.dtype else kind.acc_leaves
    return function(x, start, kind.fn, axis=axis, reverse=reverse, dtype=dtype, out=out)


def both(
    cuda: Backend,
    guarded: Make,
    kind: Kind,
    x: Leaves,
    axis: int | None,
    layout: str = "contiguous",
) -> None:
    for exclusive, reverse, given in (
        (False, False, False),
        (True, True, True),
        (False, True, True),
    ):
        init = kind.start() if given else None
        want = scanned(kind, x, axis, init, exclusive=exclusive, reverse=reverse)
        out = tuple(guarded(leaf.shape, leaf.dtype, layout) for leaf in want)
        sources = tuple(map(cuda.to_device, x))
        got = run(kind, sources, axis, init, exclusive=exclusive, reverse=reverse, out=out)
        check(cuda, got, want)


@pytest.mark.parametrize("name", KINDS)
def test_every_size(cuda: Backend, guarded: Make, name: str) -> None:
    kind = KINDS[name]
    for n in SIZES if kind.acc.itemsize <= 16 else SIZES[:-2]:  # more would be capped
        both(cuda, guarded, kind, kind.random(n, n), 0)


@pytest.mark.parametrize("name", KINDS)
def test_every_size_in_tiles(cuda: Backend, guarded: Make, small_tiles: None, name: str) -> None:
    kind = KINDS[name]
    cut = tuning.policy_of(1 << 30, kind.dtype, kind.acc)
    tile = cut.tile_items(max(kind.dtype.itemsize, kind.acc.itemsize))
    for n in (1, 33, tile - 1, tile, tile + 1, 2 * tile, 5 * tile + 7):
        both(cuda, guarded, kind, kind.random(n, n), 0)


SHAPES = [
    ((90, 3), 1), ((41, 33), 1), ((9, 200), -1), ((3, 1100), 1),  # rows
    ((1100, 3), 0), ((300, 40), 0), ((40, 300), 0), ((13, 70), 0), ((700, 1), 0),  # columns
    ((4, 50, 6), 1), ((5, 6, 7), 0), ((5, 6, 7), None), ((2, 300, 5), -2),
]  # fmt: skip


@pytest.mark.parametrize("name", ["affine", "mixed", "doubles", "wide", "wider"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_axes(
    cuda: Backend, guarded: Make, name: str, shape: tuple[int, ...], axis: int | None
) -> None:
    both(cuda, guarded, KINDS[name], KINDS[name].random(shape, 3), axis)


@pytest.mark.parametrize("name", ["affine", "bytes", "narrower"])
def test_long_rows(
    cuda: Backend, guarded: Make, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tuning, "ROWS_PER_WARP", 2)
    _forget()
    both(cuda, guarded, KINDS[name], KINDS[name].random((3, 2600), 3), 1)
    _forget()


LEAVES: dict[str, Callable[[Backend, Leaves], tuple[Array, ...]]] = {
    "steps": lambda gpu, x: tuple(gpu.arrange("step", leaf) for leaf in x),
    "reversed": lambda gpu, x: tuple(gpu.arrange("reversed", leaf) for leaf in x),
    "one of them": lambda gpu, x: (gpu.to_device(x[0]), gpu.arrange("reversed_rows", x[1])),
    "misaligned": lambda gpu, x: (gpu.arrange("offset", x[0]), gpu.to_device(x[1])),
    "fortran": lambda gpu, x: tuple(gpu.arrange("fortran", leaf) for leaf in x),
    "crossed": lambda gpu, x: (gpu.to_device(x[0]), gpu.arrange("fortran", x[1])),
}


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("layout", LEAVES)
@pytest.mark.parametrize("out", ["contiguous", "step"])
def test_leaves_of_any_layout(
    cuda: Backend, guarded: Make, axis: int | None, layout: str, out: str
) -> None:
    kind = KINDS["affine"]
    x = kind.random((60, 44), 5)
    for reverse in a_few((False, True)):
        want = scanned(kind, x, axis, None, exclusive=False, reverse=reverse)
        outs = tuple(guarded(leaf.shape, leaf.dtype, out) for leaf in want)
        got = run(kind, LEAVES[layout](cuda, x), axis, None, reverse=reverse, out=outs)
        check(cuda, got, want)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_leaves_that_repeat(cuda: Backend, axis: int | None) -> None:
    kind = KINDS["affine"]
    x, same = kind.random((60, 44), 5), kind.random((1, 44), 9)[0]
    want = scanned(
        kind, (x[0], np.broadcast_to(same, (60, 44))), axis, None, exclusive=False, reverse=False
    )
    check(cuda, run(kind, (cuda.to_device(x[0]), cuda.to_device(same)), axis, None), want)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("reverse", [False, True])
def test_in_place(cuda: Backend, axis: int | None, reverse: bool) -> None:
    kind = KINDS["affine"]
    shape = (2300,) if axis is None else (70, 90)
    x = kind.random(shape, 5)
    given = tuple(map(cuda.to_device, x))
    want = scanned(kind, x, axis, kind.start(), exclusive=True, reverse=reverse)
    run(kind, given, axis, kind.start(), exclusive=True, reverse=reverse, out=given)
    check(cuda, given, want)


def test_bits_do_not_depend_on_layout(cuda: Backend) -> None:
    kind = Kind(KINDS["first"].dtype, lambda a, b: (a[0] + b[0], a[1] * b[1]), KINDS["first"].acc)
    rng = np.random.default_rng(7)
    for shape, axis in (((6001,), 0), ((30, 100), 1), ((300, 18), 0)):
        x = (rng.random(shape, np.float32), 1 + rng.random(shape, np.float32) / 1000)
        results = [
            tuple(cuda.to_host(y) for y in run(kind, leaves, axis, None))
            for leaves in (
                tuple(cuda.to_device(leaf) for leaf in x),
                (cuda.arrange("offset", x[0]), cuda.to_device(x[1])),
                tuple(cuda.arrange("step", leaf) for leaf in x),
            )
        ]
        for other in results[1:]:
            check(cuda, other, results[0])
