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
from gpualgo._algorithms.radix_sort.cuda_passes import Job, Layout
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

    def run(self) -> list[tuple[str, Any]]:
        """Return each step's kernel with the addresses it gets, or ("clear", (address, bytes))."""
        addresses = (b"", 0, 0, 0, b"", *self.arrays, *self.lend())
        steps: list[tuple[str, Any]] = []
        for step in self.plan.steps:
            if isinstance(step, Clear):
                steps.append(("clear", (addresses[step.slot], step.num_bytes)))
                continue
            taken = step.pick(addresses)
            offsets = step.offsets or (0,) * len(taken)
            numbers = tuple(a + o for a, o in zip(taken, offsets, strict=True))
            steps.append((step.kernel.name.partition("_kernel")[0].split("::")[1], numbers))
        return steps

    def names(self) -> list[str]:
        return [name for name, _ in self.run()]


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
        rest: tuple[Any, ...] = (False, 0, None, axis, index)
        if isinstance(keys, tuple):
            forms = [Form(tuple, (None,) * len(part)) for part in parts if part]
            rest = ((False,) * len(keys), *rest[1:], tuple(forms))
        problem = Sort(Call(0, tuple(views), None, None, rest, where))
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


# --- which steps --------------------------------------------------------------------------------

PASSES = ["radix_histogram", *["radix_pass"] * 4]


def test_steps_in_their_order(machine: Machine) -> None:
    n = (1 << 22,)
    assert machine.sort("float32", n).names() == PASSES
    assert machine.sort("float32", (20,)).names() == ["sort_small_rows"]
    assert machine.sort("float32", (99, 3000)).names() == ["sort_rows"]
    assert machine.sort("int8", n).names() == ["counting_sort_count", "counting_sort_fill"]
    counted = ["clear", "counting_sort_count", "counting_sort_fill"]
    assert machine.sort("uint16", n).names() == counted
    assert machine.sort("float32", n, step=2).names() == ["copy", *PASSES]
    assert machine.sort("float32", n, step=2, out_step=2).names() == ["copy", *PASSES, "copy"]
    pairs = machine.sort("float32", n, "int64", step=2, out_step=2)
    assert pairs.names() == ["copy", "copy", *PASSES, "copy", "copy"]
    assert machine.sort("float32", n, "V24").names() == [*PASSES, "gather"]
    items = machine.sort("float32", n, "V24", step=2, out_step=2)
    assert items.names() == ["copy", *PASSES, "copy", "gather", "copy", "copy"]
    assert machine.sort("float32", n, index="int64", shift=2).names() == ["copy", *PASSES]
    assert machine.sort("bool", (100_000,), in_place=True).names() == PASSES[:3]


def test_what_a_stream_keeps(machine: Machine) -> None:
    """Few keys take what is kept; more allocate a copy of them, and beside copies all of it."""
    machine.sort("float32", (30_000,)).run()
    assert not machine.allocated
    machine.sort("float32", (1 << 20,)).run()
    assert machine.allocated == [4 << 20]
    made = machine.sort("float32", (1 << 20,), out_step=2)
    made.run()
    assert machine.allocated == [4 << 20, made.plan.temp_storage_bytes]


# --- addresses ----------------------------------------------------------------------------------


def test_rows_in_batches(machine: Machine) -> None:
    """1029 rows are sorted 512 at a time, all in the same storage."""
    row = 70_000
    made = machine.sort("uint32", (1029, row), "float64")
    steps = made.run()
    assert [name for name, _ in steps] == [*PASSES * 2, "clear", "clear", *PASSES]
    keys, values, out_keys, out_values = made.arrays
    control, states, tables, sides = made.lend()
    assert min(control, states) == OWN  # nothing is kept
    for first, rows, batch in ((0, 512, steps[:5]), (512, 512, steps[5:10]), (1024, 5, steps[12:])):
        job = Job(0, np.dtype("u4"), 1029, row, False, 0, 32, value_bytes=8, result_bytes=8)
        layout = Layout(job, rows, 4, 2048)
        needed = (layout.control_bytes, 0, layout.table_bytes, layout.side_bytes)
        assert all(p.num_bytes >= n for p, n in zip(made.pieces, needed, strict=True))
        small, wide = 4 * row * first, 8 * row * first
        described = (control, control + layout.counts, tables, tables + layout.schedule)
        (_, counted), *moved = batch
        assert counted == (keys + small, *described)
        for _, addresses in moved:
            assert addresses == (
                keys + small, values + wide, out_keys + small, out_values + wide, sides,
                sides + layout.first_values, out_keys + small, out_values + wide, states,
                *described,
            )  # fmt: skip
        if rows == 5:
            assert steps[10][1] == (control, layout.control_bytes)
    cleared, num_bytes = steps[11][1]
    assert cleared == states
    assert 0 < num_bytes < made.pieces[1].num_bytes == 256 + 8 * 256 * 2048


def test_indices_lend_room_to_keys(machine: Machine) -> None:
    """Where sorted keys are not wanted, their second place is within the output or the sides."""
    n = 1 << 22
    wide = machine.sort("uint32", (n,), index="int64")
    *_, (_, addresses) = wide.run()
    keys, out = wide.arrays
    assert addresses[:4] == (keys, 0, 0, out)
    assert addresses[6:8] == (out + 4 * n, out)
    narrow = machine.sort("float64", (n,), index="int32")
    *_, (_, addresses) = narrow.run()
    assert addresses[6:8] == (addresses[4] + (8 + 4) * n, narrow.arrays[1])


def test_a_launch_reads_what_copies_wrote(machine: Machine) -> None:
    made = machine.sort("float32", (1 << 22,), step=2, out_step=2)
    (_, (source, rows)), (_, counted), *_, (_, (done, target)) = made.run()
    assert (source, target) == made.arrays
    assert rows == counted[0] == done


# --- tuples -------------------------------------------------------------------------------------

ONE, WIDE, BOTH = (4 << 20,), ("float64", "int64"), ("int32", "float32")
EIGHT = ["radix_histogram", *["radix_pass"] * 8]
CLEARED = ["clear", "clear"]


def test_one_word(machine: Machine) -> None:
    sort = machine.sort
    assert sort(BOTH, ONE).names() == ["pack_words", *EIGHT, "unpack_words"]
    assert sort(BOTH, (20,)).names() == ["pack_words", "sort_small_rows", "unpack_words"]
    assert sort(BOTH, ONE, ("V3",)).names() == ["pack_words", *EIGHT, "gather", "unpack_words"]
    assert sort(BOTH, ONE, BOTH).names() == [
        "pack_words", "pack_words", *EIGHT, "unpack_words", "unpack_words",
    ]  # fmt: skip
    assert sort(BOTH, ONE, index="int64").names() == ["pack_words", *EIGHT]
    assert sort(("float32",), ONE, BOTH).names() == ["pack_words", *PASSES, "unpack_words"]
    moved = sort(BOTH, ONE, ("V8",), step=2, out_step=2)
    assert moved.names() == ["pack_words", "copy", *EIGHT, "copy", "unpack_words"]
    assert sort(BOTH, ONE, shift=1).names() == [
        "copy", "copy", "pack_words", *EIGHT, "unpack_words",
    ]  # fmt: skip


def test_two_groups(machine: Machine) -> None:
    sort = machine.sort
    ordered = [*EIGHT, "pack_words", *CLEARED, *EIGHT]
    assert sort(WIDE, ONE).names() == [*ordered, "pack_words"]
    assert sort(WIDE, ONE, out_step=2).names() == [*ordered, "copy", "pack_words", "copy"]
    assert sort(WIDE, ONE, index="uint32").names() == ordered
    assert sort(WIDE, ONE, index="int64").names() == [*ordered, "pack_words"]
    in_place = sort(WIDE, ONE, ("int8", "V3"), in_place=True)
    assert in_place.names() == [
        *ordered, "copy", "pack_words", "copy", "pack_words", "copy", "gather", "copy",
    ]  # fmt: skip
    assert sort(WIDE, (70_000, 8)).names() == [
        "sort_small_rows", "pack_words", "sort_small_rows", "pack_words",
    ]  # fmt: skip


def test_groups_use_the_same_storage(machine: Machine) -> None:
    """Beside the order and one group's keys: what the widest sort takes."""
    n = ONE[0]
    widest = machine.sort("float64", ONE, index="uint32").plan.temp_storage_bytes
    for keys in (WIDE, (*WIDE, "uint64"), ("int64",) * 8):
        bytes_taken = machine.sort(keys, ONE, index="uint32").plan.temp_storage_bytes
        assert bytes_taken <= widest + 8 * n + (1 << 20)
        cleared = machine.sort(keys, ONE, index="uint32").plan.steps
        assert sum(isinstance(step, Clear) for step in cleared) == 2 * (len(keys) - 1)
