"""What stands between a warm call and its launch: the frames of the package on the stack."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray, FakeDriver

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS

N = 1 << 16
PACKAGE = str(Path(ga.__file__).parent)
MAX_FRAMES = 3  # the public function, the pipeline, the plan


def _array(dtype: Any = np.float32, shape: tuple[int, ...] = (N,)) -> FakeArray:
    return FakeArray(shape, dtype)


def _calls() -> dict[str, Callable[[], Any]]:
    """Return each call on arrays that stay."""
    x, y, rows = _array(), _array(), _array(shape=(64, 1000))
    total = _array(shape=())
    keys, values = _array(np.uint32), _array(np.int32)
    mask, count, lengths = _array(np.bool_), _array(np.int64, ()), _array(np.int64)
    offsets = _array(np.int64, (65,))
    firsts = _array(np.int64)
    return {
        "transform": lambda: ga.transform(_double, x),
        "transform with out": lambda: ga.transform(_double, x, out=y),
        "adjacent_difference": lambda: ga.adjacent_difference(x),
        "rolling": lambda: ga.rolling(x, 10),
        "reduce": lambda: ga.reduce(x),
        "reduce with out": lambda: ga.reduce(x, out=total),
        "reduce of rows": lambda: ga.reduce(rows, 0, max, axis=1),
        "inclusive_scan": lambda: ga.inclusive_scan(x),
        "exclusive_scan": lambda: ga.exclusive_scan(x, 0, operator.add),
        "radix_sort": lambda: ga.radix_sort(keys),
        "radix_sort of pairs": lambda: ga.radix_sort(keys, values),
        "argsort": lambda: ga.argsort(keys),
        "histogram": lambda: ga.histogram(x, 50, (0.0, 1.0)),
        "argmin": lambda: ga.argmin(x),
        "argmax": lambda: ga.argmax(rows, 1),
        "minmax": lambda: ga.minmax(x),
        "sort": lambda: ga.sort(keys),
        "merge_sort": lambda: ga.merge_sort(keys),
        "merge": lambda: ga.merge(keys, keys),
        "searchsorted": lambda: ga.searchsorted(keys, keys),
        "top_k": lambda: ga.top_k(rows, 8),
        "kth_value": lambda: ga.kth_value(x, 5),
        "select": lambda: ga.select(x, mask, out=y, out_count=count),
        "stable_partition": lambda: ga.stable_partition(x, mask, out=y, out_count=count),
        "run_length_encode": lambda: ga.run_length_encode(x, out=(y, lengths), out_count=count),
        "segmented_reduce": lambda: ga.segmented_reduce(x, offsets),
        "segmented_inclusive_scan": lambda: ga.segmented_inclusive_scan(x, offsets),
        "segmented_exclusive_scan": lambda: ga.segmented_exclusive_scan(x, offsets),
        "segmented_sort": lambda: ga.segmented_sort(x, offsets),
        "reduce_by_key": lambda: ga.reduce_by_key(
            lengths, x, consecutive=True, out=(firsts, y), out_count=count
        ),
        "inclusive_scan_by_key": lambda: ga.inclusive_scan_by_key(mask, x, consecutive=True),
        "exclusive_scan_by_key": lambda: ga.exclusive_scan_by_key(mask, x, consecutive=True),
        "reduce_by_index": lambda: ga.reduce_by_index(keys, x, 64),
        "find": lambda: ga.find(x, mask),
        "count": lambda: ga.count(x, mask),
    }


def _plans() -> dict[str, Callable[[], Any]]:
    """Return a plan's call for each function, with the same arrays again."""
    x, keys, mask = _array(), _array(np.uint32), _array(np.bool_)
    outs, offsets = (_array(), _array(np.int64)), _array(np.int64, (65,))
    prepared = {
        "transform": (ga.prepare(ga.transform, _double, x), x, _array()),
        "adjacent_difference": (ga.prepare(ga.adjacent_difference, x), x, _array()),
        "rolling": (ga.prepare(ga.rolling, x, 10), x, _array(shape=(N - 9,))),
        "reduce": (ga.prepare(ga.reduce, x), x, _array(shape=())),
        "inclusive_scan": (ga.prepare(ga.inclusive_scan, x), x, _array()),
        "exclusive_scan": (ga.prepare(ga.exclusive_scan, x, 0, operator.add), x, _array()),
        "radix_sort": (ga.prepare(ga.radix_sort, keys), keys, _array(np.uint32)),
        "argsort": (ga.prepare(ga.argsort, keys), keys, _array(np.int64)),
        "histogram": (
            ga.prepare(ga.histogram, x, 50, (0.0, 1.0)), x, _array(np.int64, (50,)),
        ),
        "argmin": (ga.prepare(ga.argmin, x), x, _array(np.int64, ())),
        "argmax": (ga.prepare(ga.argmax, x), x, _array(np.int64, ())),
        "minmax": (ga.prepare(ga.minmax, x), x, (_array(shape=()), _array(shape=()))),
        "sort": (ga.prepare(ga.sort, keys), keys, _array(np.uint32)),
        "merge_sort": (ga.prepare(ga.merge_sort, keys), keys, _array(np.uint32)),
        "merge": (_twice(ga.prepare(ga.merge, keys, keys)), keys, _array(np.uint32, (2 * N,))),
        "searchsorted": (
            _twice(ga.prepare(ga.searchsorted, keys, keys)), keys, _array(np.int64),
        ),
        **{
            f.__name__: (_beside(ga.prepare(f, x, offsets), offsets), x, _array(shape=shape))
            for f, shape in (
                (ga.segmented_reduce, (64,)), (ga.segmented_inclusive_scan, (N,)),
                (ga.segmented_exclusive_scan, (N,)), (ga.segmented_sort, (N,)),
            )
        },
        "top_k": (ga.prepare(ga.top_k, x, 5), x, (_array(shape=(5,)), _array(np.int64, (5,)))),
        "kth_value": (ga.prepare(ga.kth_value, x, 5), x, _array(shape=())),
        "select": (_marked(ga.prepare(ga.select, x, mask), mask), x, _array()),
        "stable_partition": (
            _marked(ga.prepare(ga.stable_partition, x, mask), mask), x, _array(),
        ),
        "run_length_encode": (_marked(ga.prepare(ga.run_length_encode, x)), x, outs),
        "reduce_by_key": (
            _marked(ga.prepare(ga.reduce_by_key, x, mask, consecutive=True), mask), x,
            (_array(), _array(np.bool_)),
        ),
        "inclusive_scan_by_key": (
            _twice(ga.prepare(ga.inclusive_scan_by_key, x, x, consecutive=True)), x, _array(),
        ),
        "exclusive_scan_by_key": (
            _twice(ga.prepare(ga.exclusive_scan_by_key, x, x, consecutive=True)), x, _array(),
        ),
        "reduce_by_index": (
            _beside(ga.prepare(ga.reduce_by_index, keys, x, 64), x), keys, _array(shape=(64,)),
        ),
    }  # fmt: skip

    def bound(plan: Any, source: FakeArray, target: FakeArray) -> Callable[[], Any]:
        return lambda: plan(source, out=target)

    return {name: bound(*prepared[name]) for name in prepared}


def _twice(plan: Any) -> Any:
    return lambda x, **more: plan(x, x, **more)


def _beside(plan: Any, *others: FakeArray) -> Callable[..., Any]:
    return lambda x, out: plan(x, *others, out=out)


def _double(a: Any) -> Any:
    return a * 2


def _marked(plan: Any, *others: FakeArray) -> Callable[..., Any]:
    """Return a plan's call with arrays that stay, and one for a count."""
    count = _array(np.int64, ())
    return lambda x, out: plan(x, *others, out=out, out_count=count)


SEGMENTED = ("segmented_reduce", "segmented_inclusive_scan", "segmented_exclusive_scan",
             "segmented_sort")  # fmt: skip
PLANS = ("transform", "adjacent_difference", "rolling", "reduce", "inclusive_scan",
         "exclusive_scan", "radix_sort", "argsort", "histogram", "argmin", "argmax", "minmax",
         "sort", "merge_sort", "merge", "searchsorted", *SEGMENTED, "top_k", "kth_value", "select",
         "stable_partition", "run_length_encode", "reduce_by_key", "inclusive_scan_by_key",
         "exclusive_scan_by_key", "reduce_by_index")  # fmt: skip
AGAIN = ("find", "count")  # whose plans look at their arguments as the functions do
# Who waits is decided on the way.
COUNTED = ("select", "stable_partition", "run_length_encode", "reduce_by_key")
SHARED = ("inclusive_scan", "exclusive_scan", "argmin", "argmax", "find", "count")  # one body
CALLS = (
    *PLANS,
    *AGAIN,
    "transform with out",
    "reduce with out",
    "reduce of rows",
    "radix_sort of pairs",
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    return made


def _frames(fake: FakeDriver, call: Callable[[], Any]) -> list[list[str]]:
    """Return the package's functions on the stack at each launch of a warm call, inmost first."""
    seen: list[list[str]] = []

    def look() -> None:
        frame, found = sys._getframe(), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                found.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
            frame = frame.f_back  # type: ignore[assignment]
        seen.append(found)

    for _ in range(3):  # plans remember their arrays at the second
        call()
    fake.on_launch = look
    call()
    fake.on_launch = lambda: None
    assert seen, "nothing was launched"
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_a_warm_call_is_near_its_launch(name: str, fake: FakeDriver) -> None:
    frames = max(_frames(fake, _calls()[name]), key=len)
    assert len(frames) <= MAX_FRAMES + 2 * (name in COUNTED) + (name in SHARED), frames


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_near_its_launch(name: str, fake: FakeDriver) -> None:
    frames = max(_frames(fake, _plans()[name]), key=len)
    more = (name in ("minmax", "top_k")) + 2 * (name in COUNTED)  # results are put together
    assert len(frames) <= MAX_FRAMES + more, frames


def test_every_algorithm_is_here(fake: FakeDriver) -> None:
    names = {function.__name__ for function in ALGORITHMS}
    assert set(_plans()) == set(PLANS) == names.difference(AGAIN)
    assert set(_calls()) == set(CALLS) >= names


@pytest.mark.parametrize("name", CALLS)
def test_a_warm_call_allocates_and_compiles_nothing(name: str, fake: FakeDriver) -> None:
    call = _calls()[name]
    call()
    fake.calls.clear()
    call()
    launches = len(fake.named("cuLaunchKernel", "cuLaunchKernelEx"))
    assert launches >= 1
    assert len(fake.calls) == launches, fake.calls
