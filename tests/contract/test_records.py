"""Reductions and scans of records: every size, axis and layout of leaves, every kernel of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from record_plans import KINDS, Host, Kind, Leaves, check, folded, scanned
from support import Array, Backend, a_few, scaled

import gpualgo as ga
from gpualgo._algorithms.scan import tuning

Make = Callable[..., Array]
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


class Way(NamedTuple):
    """A reduction, or one of the scans; with or without a value to start from."""

    is_scan: bool
    exclusive: bool = False
    reverse: bool = False
    has_init: bool = False

    def __call__(self, kind: Kind, x: Any, axes: Any, *, op: Any = None, out: Any = None) -> Any:
        start = tuple(kind.start().item()) if self.has_init else None
        more = {"dtype": None if kind.acc == kind.dtype else kind.acc_leaves, "out": out}
        if not self.is_scan:
            return ga.reduce(x, start, op or kind.fn, axis=axes, **more)
        function = ga.exclusive_scan if self.exclusive else ga.inclusive_scan
        return function(x, start, op or kind.fn, axis=axes, reverse=self.reverse, **more)

    def wanted(self, kind: Kind, x: Leaves, axes: Any) -> Leaves:
        init: Host | None = kind.start() if self.has_init else None
        if not self.is_scan:
            axes = tuple(range(x[0].ndim)) if axes is None else axes
            return folded(kind, x, axes if isinstance(axes, tuple) else (axes % x[0].ndim,), init)
        return scanned(kind, x, axes, init, exclusive=self.exclusive, reverse=self.reverse)


REDUCTIONS = [Way(is_scan=False), Way(is_scan=False, has_init=True)]
SCANS = [Way(True), Way(True, True, True, True), Way(True, False, True, True)]
either = pytest.mark.parametrize("ways", [REDUCTIONS, SCANS], ids=["reduce", "scan"])


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut what is small as what is large, into small tiles."""
    monkeypatch.setattr(tuning, "WAVES", {})
    monkeypatch.setattr(tuning, "WAVE_BYTES", 0)
    monkeypatch.setattr(tuning, "STAGE_BYTES", 12 << 10)
    for name in ("LARGE", "LARGE_WIDE"):
        monkeypatch.setattr(tuning, name, tuning.Policy(64, 3, 2))


def made(guarded: Make, want: Leaves, layout: str = "contiguous") -> tuple[Array, ...]:
    """Return outputs like these amid guard bytes."""
    outs = (guarded(y.shape or (1,), y.dtype, layout) for y in want)
    return tuple(out.reshape(y.shape) if not y.ndim else out
                 for out, y in zip(outs, want, strict=True))  # fmt: skip


def each(
    backend: Backend, guarded: Make, kind: Kind, x: Leaves, axes: Any, ways: list[Way], **named: Any
) -> None:
    for way in a_few(ways, scaled(1, emulated=len(ways))):
        want = way.wanted(kind, x, axes)
        sources = tuple(map(backend.to_device, x))
        check(backend, way(kind, sources, axes, out=made(guarded, want), **named), want)


@either
@pytest.mark.parametrize("name", KINDS)
def test_every_size(backend: Backend, guarded: Make, name: str, ways: list[Way]) -> None:
    kind, sizes = KINDS[name], [1, 2, 31, 33, 257, 1023, 1024, 1025]
    if not ways[0].is_scan or kind.acc.itemsize <= 16:  # more would be capped
        sizes += [2048, 5001]
    for n in sizes:
        each(backend, guarded, kind, kind.random(n, n), 0, ways)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("name", KINDS)
def test_every_size_in_tiles(cuda: Backend, guarded: Make, name: str) -> None:
    kind = KINDS[name]
    cut = tuning.policy_of(1 << 30, kind.dtype, kind.acc)
    tile = cut.tile_items(max(kind.dtype.itemsize, kind.acc.itemsize))
    for n in (1, 33, tile - 1, tile, tile + 1, 2 * tile, 5 * tile + 7):
        each(cuda, guarded, kind, kind.random(n, n), 0, SCANS)


SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((90, 3), 1), ((41, 33), 1), ((9, 200), -1), ((3, 1100), 1),  # rows
    ((1100, 3), 0), ((300, 40), 0), ((40, 300), 0), ((13, 70), 0), ((700, 1), 0),  # columns
    ((4, 50, 6), 1), ((5, 6, 7), 0), ((5, 6, 7), None), ((2, 300, 5), -2),
]  # fmt: skip
SHAPES_OF_REDUCTIONS = [
    ((70, 3), 1), ((41, 33), 1), ((3, 1100), 1), ((2, 5001), 1),  # rows
    ((1100, 3), 0), ((300, 40), 0), ((5, 131), 0), ((700, 1), 0),  # columns
    ((4, 50, 6), 1), ((5, 6, 7), (0, 2)), ((5, 6, 7), 2), ((5, 6, 7), (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize("name", ["affine", "mixed", "floats", "doubles", "wide", "wider"])
@pytest.mark.parametrize(
    ("shape", "axes", "ways"),
    [*[(*one, SCANS) for one in SHAPES], *[(*one, REDUCTIONS) for one in SHAPES_OF_REDUCTIONS]],
    ids=str,
)
def test_axes(
    backend: Backend, guarded: Make, name: str, shape: tuple[int, ...], axes: Any, ways: list[Way]
) -> None:
    each(backend, guarded, KINDS[name], KINDS[name].random(shape, 3), axes, ways)


@pytest.mark.parametrize("name", ["affine", "bytes", "narrower"])
def test_long_rows(
    cuda: Backend, guarded: Make, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tuning, "ROWS_PER_WARP", 2)
    each(cuda, guarded, KINDS[name], KINDS[name].random((3, 2600), 3), 1, SCANS)


@pytest.mark.parametrize("commutative", [False, True])
def test_commutative(backend: Backend, guarded: Make, commutative: bool) -> None:
    kind = KINDS["complex"]
    summed = Kind(kind.dtype, lambda a, b: (a[0] + b[0], a[1] + b[1]), kind.acc)
    op = ga.Operator(summed.fn, commutative=commutative)
    for shape, axis in (((9001,), 0), ((40, 30), 1), ((700, 12), 0)):
        x = kind.random(shape, 1)
        x = (x[0] % np.float16(2), x[1])
        each(backend, guarded, summed, x, axis, REDUCTIONS, op=op)


LEAVES: dict[str, Callable[[Backend, Leaves], tuple[Array, ...]]] = {
    "steps": lambda backend, x: tuple(backend.arrange("step", leaf) for leaf in x),
    "reversed": lambda backend, x: tuple(backend.arrange("reversed", leaf) for leaf in x),
    "one of them": lambda backend, x: (
        backend.to_device(x[0]),
        backend.arrange("reversed_rows", x[1]),
    ),
    "misaligned": lambda backend, x: (backend.arrange("offset", x[0]), backend.to_device(x[1])),
    "fortran": lambda backend, x: tuple(backend.arrange("fortran", leaf) for leaf in x),
    "crossed": lambda backend, x: (backend.to_device(x[0]), backend.arrange("fortran", x[1])),
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("layout", LEAVES)
@pytest.mark.parametrize("out", ["contiguous", "step", "reversed"])
def test_leaves_of_any_layout(
    backend: Backend, guarded: Make, axis: int | None, layout: str, out: str
) -> None:
    kind = KINDS["affine"]
    x = kind.random((60, 44), 5)
    for way in (REDUCTIONS[0], *a_few([SCANS[0], Way(True, reverse=True)])):
        want = way.wanted(kind, x, axis)
        got = way(kind, LEAVES[layout](backend, x), axis, out=made(guarded, want, out))
        check(backend, got, want)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("part", [np.s_[:1], np.s_[:, :1]], ids=["row", "column"])
def test_leaves_that_repeat(backend: Backend, axis: int | None, part: Any) -> None:
    kind = KINDS["affine"]
    x, same = kind.random((60, 44), 5), kind.random((60, 44), 9)[0][part]
    for way in (REDUCTIONS[0], SCANS[0]):
        want = way.wanted(kind, (x[0], np.broadcast_to(same, (60, 44))), axis)
        sources = backend.to_device(x[0]), backend.to_device(np.ascontiguousarray(same))
        check(backend, way(kind, sources, axis), want)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("reverse", [False, True])
def test_in_place(backend: Backend, axis: int | None, reverse: bool) -> None:
    kind, way = KINDS["affine"], Way(True, True, reverse, True)
    x = kind.random((2300,) if axis is None else (70, 90), 5)
    want, given = way.wanted(kind, x, axis), tuple(map(backend.to_device, x))
    way(kind, given, axis, out=given)
    check(backend, given, want)


@either
def test_bits_do_not_depend_on_layout(backend: Backend, ways: list[Way]) -> None:
    kind = Kind(KINDS["first"].dtype, lambda a, b: (a[0] + b[0], a[1] * b[1]), KINDS["first"].acc)
    rng = np.random.default_rng(7)
    for shape, axis in (((6001,), 0), ((30, 100), 1), ((300, 18), 0), ((900, 8), 0)):
        x = (rng.random(shape, np.float32), 1 + rng.random(shape, np.float32) / 1000)
        first, *others = [
            tuple(backend.to_host(y) for y in ways[0](kind, leaves, axis))
            for leaves in (
                tuple(backend.to_device(leaf) for leaf in x),
                (backend.arrange("offset", x[0]), backend.to_device(x[1])),
                tuple(backend.arrange("step", leaf) for leaf in x),
            )
        ]
        for other in others:
            check(backend, other, first)


def test_blocks_join_in_order_again_and_again(backend: Backend) -> None:
    kind, way = KINDS["affine"], REDUCTIONS[0]
    x = kind.random(14_001, 2)
    for _ in range(3):
        check(backend, way(kind, tuple(map(backend.to_device, x)), 0), way.wanted(kind, x, 0))
