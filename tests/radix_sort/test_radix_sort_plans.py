"""Plans of sorts, made without a GPU: their steps, the addresses these take, temporary storage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import fake_driver
import numpy as np
import pytest

from gpualgo._algorithms.radix_sort import cuda
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base.strides import dense_strides
from gpualgo._cuda import build
from gpualgo._cuda import plan as storage
from gpualgo._cuda.plan import NONE, Clear, Piece, Plan
from gpualgo._driver import device as pools
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Call

Kind = str | tuple[str, ...]  # of an array, or of a tuple of arrays
OWN, KEPT = 1 << 56, 1 << 57  # where storage lies
STREAM = 7


class Library:
    """Of device arrays that are never touched."""

    has_producers = False

    @staticmethod
    def stream(device: int) -> int:
        return STREAM

    @staticmethod
    def pointer(x: Any) -> int:
        return 0


class Made(NamedTuple):
    plan: Plan
    pieces: Sequence[Piece]
    arrays: tuple[int, ...]  # addresses

    def lend(self) -> tuple[int, ...]:
        """Return where the pieces lie in a call."""
        return () if self.plan.storage is None else self.plan.storage.lend(STREAM).pieces


class Kernel:
    """A kernel by its name."""

    handle = None

    def __init__(self, name: str) -> None:
        self.name = name

    def allow_shared(self, num_bytes: int, device: int) -> None:
        assert num_bytes <= 227 << 10

    def wrapped(self, submit: Any) -> Any:
        return submit


def view_of(
    number: int, shape: tuple[int, ...], dtype: np.dtype[Any], step: int, shift: int
) -> View:
    strides = tuple(step * stride for stride in dense_strides(shape, dtype.itemsize))
    return View((number << 44) + shift, shape, strides, dtype, 0, Library, False, None)


class Machine:
    """A GPU for which plans are made, and whose storage is addresses alone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_kept = True
        self.allocated: list[int] = []
        self._made: list[Sequence[Piece]] = []
        fake_driver.install(patch)
        patch.setattr(build, "kernel", lambda spec, _: Kernel(spec.expression))
        patch.setattr(build, "kernels", lambda specs, _: [Kernel(s.expression) for s in specs])
        patch.setattr(fake_driver.gpu(0), "second_workspace", self._second_workspace)
        patch.setattr(fake_driver.gpu(0), "allocate", self._allocate)
        patch.setattr(storage, "clear", lambda *_: None)
        patch.setattr(cuda, "Plan", self._plan)

    @contextmanager
    def _second_workspace(self, stream: int) -> Iterator[int]:
        yield KEPT if self.is_kept else 0

    def _allocate(self, size: int, stream: int) -> int:
        self.allocated.append(size)
        return OWN

    def _plan(self, device: int, steps: Any, pieces: Sequence[Piece]) -> Plan:
        self._made.append(pieces)
        return Plan(device, steps, pieces)

    def sort(
        self, keys: Kind, shape: tuple[int, ...], values: Kind = (), axis: int | None = -1,
        index: str | None = None, step: int = 1, out_step: int = 1, shift: int = 0,
        in_place: bool = False,
    ) -> Made:  # fmt: skip
        """Plan a sort of arrays that lie far apart; `step`: how far their items are, in items.

        Keys are an array of a dtype, or a tuple of arrays, as values are.
        """
        parts = [part if isinstance(part, tuple) else (part,) for part in (keys, values)]
        dtypes = [np.dtype(name) for part in parts for name in part]
        views = [view_of(i + 1, shape, d, step, shift) for i, d in enumerate(dtypes)]
        where = "radix_sort" if index is None else "argsort"
        forms = tuple(
            Form(tuple, (None,) * len(part)) if isinstance(part, tuple) else None
            for part in (keys, values)
            if part
        )
        params = (False,) * len(parts[0]), 0, None, axis, index, forms
        problem = Sort(Call(0, tuple(views), None, None, params, where))
        targets = views
        if not in_place:
            targets = [
                view_of(i + 20, result.shape, result.dtype, out_step, 0)
                for i, result in enumerate(problem.results)
            ]
        plan = planners.cuda_plan(problem, views, None, targets)
        return Made(plan, self._made[-1], tuple(view.ptr for view in (*views, *targets)))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


# --- any plan -----------------------------------------------------------------------------------

TUPLES = [("int8", "float32"), ("float64", "int64"), ("float32",) * 5, ("uint16",)]
KEYS: list[Kind] = [
    "bool", "int8", "uint16", "float16", "int32", "float32", "uint64", "float64", *TUPLES,
]  # fmt: skip
VALUES: list[Kind] = ["int8", "float32", "complex128", "V3", "V24"]
TUPLES_OF_VALUES: list[Kind] = [("int8",), ("V3",), ("float32", "int8"), ("complex128", "V3")]
SHAPES: list[tuple[int, ...]] = [(20,), (3000,), (100_000,), (1 << 23,), (1 << 28,),
          ((1 << 32) + 5,), (4, 70_000), (1029, 70_000), (70_000, 8)]  # fmt: skip
LAYOUTS: list[dict[str, Any]] = [{}, {"step": 2}, {"out_step": 3}, {"shift": 1},
           {"in_place": True}, {"axis": 0}, {"axis": None}]  # fmt: skip


def check(made: Made, machine: Machine) -> None:
    """Assert that launches get what their kernels take, from places that there are."""
    pieces, num_given = made.pieces, 5 + len(made.arrays)
    for step in made.plan.steps:
        if isinstance(step, Clear):
            assert step.num_bytes <= pieces[step.slot - num_given].num_bytes
            continue
        places = step.pick(range(num_given + len(pieces)))  # raises where there is no such place
        offsets = step.offsets or (0,) * len(places)
        assert len(places) == len(offsets) == step._head.size // 8
        assert set(places) <= {NONE, *range(4, num_given + len(pieces))}
        for place, offset in zip(places, offsets, strict=True):
            assert offset == 0 or place != NONE
            if place >= num_given:
                size = pieces[place - num_given].num_bytes
                assert 0 <= offset <= size or not size  # one pass alone reaches no sides
    assert (made.plan.storage is not None) == bool(pieces)
    for machine.is_kept in (True, False) if pieces else ():
        check_storage(made, machine)


def check_storage(made: Made, machine: Machine) -> None:
    """Assert that pieces lie apart, and within what they are lent."""
    machine.allocated.clear()
    places, pieces = made.lend(), made.pieces
    found = sorted(
        (a, a + piece.num_bytes) for a, piece in zip(places, pieces, strict=True) if piece.num_bytes
    )
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(found))
    assert all(place % pools.ALIGNMENT == 0 for place in places)
    for place, piece in zip(places, pieces, strict=True):
        if place >= KEPT:
            assert piece.workspace_offset is not None
            part = max(start for start in storage._ENDS if start <= piece.workspace_offset)
            assert place + piece.num_bytes <= KEPT + storage._ENDS[part]
        elif piece.num_bytes:
            (size,) = machine.allocated
            assert place >= OWN
            assert place + piece.num_bytes <= OWN + size
    if not machine.is_kept:
        assert machine.allocated == [made.plan.temp_storage_bytes]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_every_plan_is_sound(keys: Kind, layout: dict[str, Any], machine: Machine) -> None:
    for shape in SHAPES:
        for values in ((), *(TUPLES_OF_VALUES if isinstance(keys, tuple) else VALUES)):
            check(machine.sort(keys, shape, values, **layout), machine)
        if "in_place" not in layout:
            for index in ("int64", "uint32") if math.prod(shape) < 1 << 32 else ("int64",):
                check(machine.sort(keys, shape, index=index, **layout), machine)


def test_what_a_stream_keeps(machine: Machine) -> None:
    """Few keys take what is kept; more allocate a copy of them, and beside copies all of it."""
    machine.sort("float32", (30_000,)).lend()
    assert not machine.allocated
    machine.sort("float32", (1 << 20,)).lend()
    assert machine.allocated == [4 << 20]
    made = machine.sort("float32", (1 << 20,), out_step=2)
    made.lend()
    assert machine.allocated == [4 << 20, made.plan.temp_storage_bytes]


ONE, WIDE = (4 << 20,), ("float64", "int64")


def test_groups_use_the_same_storage(machine: Machine) -> None:
    """Beside the order and one group's keys: what the widest sort takes."""
    n = ONE[0]
    widest = machine.sort("float64", ONE, index="uint32").plan.temp_storage_bytes
    for keys in (WIDE, (*WIDE, "uint64"), ("int64",) * 8):
        bytes_taken = machine.sort(keys, ONE, index="uint32").plan.temp_storage_bytes
        assert bytes_taken <= widest + 8 * n + (1 << 20)
        cleared = machine.sort(keys, ONE, index="uint32").plan.steps
        assert sum(isinstance(step, Clear) for step in cleared) == 2 * (len(keys) - 1)
