"""Plans of sorts of several arrays, made without a GPU: their steps, and temporary storage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_radix_sort_plans import PASSES, Machine, Made, check, view_of

from gpualgo._algorithms.radix_sort import cuda
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._arrays.forms import Form
from gpualgo._cuda.plan import Clear
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Call

KEYS = [("int8", "float32"), ("float64", "int64"), ("float32",) * 5, ("uint16",)]
VALUES: list[tuple[str, ...]] = [(), ("int8",), ("V3",), ("float32", "int8"), ("complex128", "V3")]
SHAPES: list[tuple[int, ...]] = [(20,), (3000,), (100_000,), (1 << 28,), ((1 << 32) + 5,),
          (4, 70_000), (1029, 70_000), (70_000, 8)]  # fmt: skip
LAYOUTS: list[dict[str, Any]] = [{}, {"step": 2}, {"out_step": 3}, {"shift": 1},
           {"in_place": True}, {"axis": 0}, {"axis": None}]  # fmt: skip


class TupleMachine(Machine):
    """The same for tuples."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__(patch)
        patch.setattr(cuda, "Plan", self._plan)

    def sort_tuples(
        self, keys: tuple[str, ...], shape: tuple[int, ...], values: tuple[str, ...] = (),
        axis: int | None = -1, index: str | None = None, step: int = 1, out_step: int = 1,
        shift: int = 0, in_place: bool = False,
    ) -> Made:  # fmt: skip
        dtypes = [np.dtype(name) for name in (*keys, *values)]
        views = [view_of(i + 1, shape, d, step, shift) for i, d in enumerate(dtypes)]
        forms = [Form(tuple, (None,) * len(part)) for part in (keys, values) if part]
        where = "radix_sort" if index is None else "argsort"
        rest = ((False,) * len(keys), 0, None, axis, index, tuple(forms))
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
def machine(monkeypatch: pytest.MonkeyPatch) -> TupleMachine:
    return TupleMachine(monkeypatch)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_every_plan_is_sound(
    keys: tuple[str, ...], layout: dict[str, Any], machine: TupleMachine
) -> None:
    for shape in SHAPES:
        for values in VALUES:
            check(machine.sort_tuples(keys, shape, values, **layout), machine)
        if "in_place" not in layout:
            for index in ("int64", "uint32") if math.prod(shape) < 1 << 32 else ("int64",):
                check(machine.sort_tuples(keys, shape, index=index, **layout), machine)


ONE, WIDE, BOTH = (4 << 20,), ("float64", "int64"), ("int32", "float32")
EIGHT = ["radix_histogram", *["radix_pass"] * 8]
CLEARED = ["clear", "clear"]


def test_one_word(machine: TupleMachine) -> None:
    sort = machine.sort_tuples
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


def test_two_groups(machine: TupleMachine) -> None:
    sort = machine.sort_tuples
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


def test_groups_use_the_same_storage(machine: TupleMachine) -> None:
    """Beside the order and one group's keys: what the widest sort takes."""
    n = ONE[0]
    widest = machine.sort("float64", ONE, index="uint32").plan.temp_storage_bytes
    for keys in (WIDE, (*WIDE, "uint64"), ("int64",) * 8):
        bytes_taken = machine.sort_tuples(keys, ONE, index="uint32").plan.temp_storage_bytes
        assert bytes_taken <= widest + 8 * n + (1 << 20)
        cleared = machine.sort_tuples(keys, ONE, index="uint32").plan.steps
        assert sum(isinstance(step, Clear) for step in cleared) == 2 * (len(keys) - 1)
