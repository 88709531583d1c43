"""Reductions of records on a GPU, from plan to result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from record_plans import KINDS, Host, Kind, Leaves, check, folded, queue, views_of
from support import Array, Backend

from gpualgo._algorithms.reduce import cuda as plans
from gpualgo._operators.operator import Operator

Make = Callable[..., Array]
SIZES = (1, 2, 31, 33, 257, 1023, 2048, 5001)


def run(
    cuda: Backend, guarded: Make, kind: Kind, x: list[Array], axes: tuple[int, ...],
    init: Host | None = None, layout: str = "contiguous", commutative: bool = False,
) -> list[Array]:  # fmt: skip
    op = Operator(kind.fn, commutative=commutative)
    shape = tuple(n for i, n in enumerate(x[0].shape) if i not in axes)
    made = [guarded(shape or (1,), leaf, layout) for leaf in kind.acc_leaves]
    outs = [y if shape else y.reshape(()) for y in made]
    sources, targets = views_of(x), views_of(outs)
    strides = [target.strides for target in targets]
    plan = plans.plan_of(sources, op, axes, kind.dtype, kind.acc, strides)
    queue(plan, op, sources, targets, init)
    return outs


def both(
    cuda: Backend, guarded: Make, kind: Kind, x: Leaves, axes: tuple[int, ...], **named: Any
) -> None:
    for init in (None, kind.start()):
        got = run(cuda, guarded, kind, list(map(cuda.to_device, x)), axes, init, **named)
        check(cuda, got, folded(kind, x, axes, init))


@pytest.mark.parametrize("name", KINDS)
def test_every_size(cuda: Backend, guarded: Make, name: str) -> None:
    kind = KINDS[name]
    for n in SIZES:
        both(cuda, guarded, kind, kind.random(n, n), (0,))


@pytest.mark.parametrize("name", ["affine", "floats", "wide", "wider"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((70, 3), (1,)), ((41, 33), (1,)), ((3, 1100), (1,)), ((2, 5001), (1,)),  # rows
        ((1100, 3), (0,)), ((300, 40), (0,)), ((5, 131), (0,)), ((700, 1), (0,)),  # columns
        ((4, 50, 6), (1,)), ((5, 6, 7), (0, 2)), ((5, 6, 7), (2,)), ((5, 6, 7), (0, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_axes(
    cuda: Backend, guarded: Make, name: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    both(cuda, guarded, KINDS[name], KINDS[name].random(shape, 3), axes)


@pytest.mark.parametrize("commutative", [False, True])
def test_commutative(cuda: Backend, guarded: Make, commutative: bool) -> None:
    kind = KINDS["complex"]
    summed = Kind(kind.dtype, lambda a, b: (a[0] + b[0], a[1] + b[1]), kind.acc)
    for shape, axes in (((9001,), (0,)), ((40, 30), (1,)), ((700, 12), (0,))):
        x = kind.random(shape, 1)
        x = (x[0] % np.float16(2), x[1])
        both(cuda, guarded, summed, x, axes, commutative=commutative)


LEAVES: dict[str, Callable[[Backend, Leaves], list[Array]]] = {
    "steps": lambda gpu, x: [gpu.arrange("step", leaf) for leaf in x],
    "reversed": lambda gpu, x: [gpu.arrange("reversed", leaf) for leaf in x],
    "one of them": lambda gpu, x: [gpu.to_device(x[0]), gpu.arrange("reversed_rows", x[1])],
    "misaligned": lambda gpu, x: [gpu.arrange("offset", x[0]), gpu.to_device(x[1])],
    "fortran": lambda gpu, x: [gpu.arrange("fortran", leaf) for leaf in x],
}


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("layout", LEAVES)
@pytest.mark.parametrize("out", ["contiguous", "step", "reversed"])
def test_leaves_of_any_layout(
    cuda: Backend, guarded: Make, axes: tuple[int, ...], layout: str, out: str
) -> None:
    kind = KINDS["affine"]
    x = kind.random((60, 44), 5)
    got = run(cuda, guarded, kind, LEAVES[layout](cuda, x), axes, layout=out)
    check(cuda, got, folded(kind, x, axes, None))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("where", [0, 1])
def test_leaves_that_repeat(
    cuda: Backend, guarded: Make, axes: tuple[int, ...], where: int
) -> None:
    kind = KINDS["affine"]
    x, (same, _) = kind.random((60, 44), 5), kind.random((60, 44), 9)
    row = cuda.to_device(np.ascontiguousarray(same[:1] if where == 0 else same[:, :1]))
    repeated = np.broadcast_to(cuda.to_host(row), (60, 44))
    sources = [cuda.to_device(x[0]), row]
    views = views_of(sources)
    strides = tuple(0 if i == where else s for i, s in enumerate(views[1].strides))
    views[1] = views[1]._replace(shape=(60, 44), strides=strides)
    shape = tuple(n for i, n in enumerate((60, 44)) if i not in axes)
    outs = [guarded(shape or (1,), leaf) for leaf in kind.acc_leaves]
    targets = views_of([y if shape else y.reshape(()) for y in outs])
    op = Operator(kind.fn)
    plan = plans.plan_of(views, op, axes, kind.dtype, kind.acc, [t.strides for t in targets])
    queue(plan, op, views, targets, None)
    want = folded(kind, (x[0], repeated), axes, None)
    check(cuda, [y if shape else y.reshape(()) for y in outs], want)


def test_bits_do_not_depend_on_layout(cuda: Backend, guarded: Make) -> None:
    kind = Kind(KINDS["first"].dtype, lambda a, b: (a[0] + b[0], a[1] * b[1]), KINDS["first"].acc)
    rng = np.random.default_rng(7)
    for shape, axes in (((6001,), (0,)), ((30, 100), (1,)), ((900, 8), (0,))):
        x = (rng.random(shape, np.float32), 1 + rng.random(shape, np.float32) / 1000)
        results = [
            [cuda.to_host(y) for y in run(cuda, guarded, kind, leaves, axes)]
            for leaves in (
                [cuda.to_device(leaf) for leaf in x],
                [cuda.arrange("offset", x[0]), cuda.to_device(x[1])],
                [cuda.arrange("step", leaf) for leaf in x],
            )
        ]
        for other in results[1:]:
            check(cuda, other, tuple(results[0]))


def test_blocks_join_in_order_again_and_again(cuda: Backend, guarded: Make) -> None:
    kind = KINDS["affine"]
    x = kind.random(14_001, 2)
    want = folded(kind, x, (0,), None)
    for _ in range(3):
        check(cuda, run(cuda, guarded, kind, list(map(cuda.to_device, x)), (0,)), want)
