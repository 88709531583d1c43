"""Calls of new lengths: problems and launches that are made from those of another length.

They equal what a process makes that has not seen another length, and compute the right results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray
from support import Backend, forget_problems

import gpualgo as ga
from gpualgo._algorithms.transform.problem import Transformation
from gpualgo._cuda import build
from gpualgo._cuda.plan import Clear, Plan
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Problem

F4, F8, I1, I2, I4, U4, I8, C8 = map(np.dtype, ("f4", "f8", "i1", "i2", "i4", "u4", "i8", "c8"))
offset = 3.0


def _positive(a: Any) -> Any:
    return a > 0


def _pair_sum(a: Any, b: Any) -> Any:
    return a[0] + b[0], max(a[1], b[1])


def _squares(x: Any) -> Any:
    return ga.lazy.transform(lambda a: a * a + offset, x)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "reduce": lambda x, y: ga.reduce(x),
    "reduce with init": lambda x, y: ga.reduce(x, 1, lambda a, b: a + b),
    "reduce, a maximum": lambda x, y: ga.reduce(x, None, max),
    "reduce, ordered": lambda x, y: ga.reduce(x, None, lambda a, b: b),
    "reduce, keepdims": lambda x, y: ga.reduce(x, keepdims=True),
    "reduce no axis": lambda x, y: ga.reduce(x, axis=()),
    "count along the axis": lambda x, y: ga.count(x, _positive, axis=0),
    "histogram of no axis": lambda x, y: ga.histogram(x, 4, (0, 3), axis=()),
    "reduce pairs": lambda x, y: ga.reduce((x, y), None, _pair_sum),
    "reduce computed": lambda x, y: ga.reduce(_squares(x)),
    "reduce indices": lambda x, y: ga.reduce((x, ga.lazy.arange(x.shape[0])), None, _pair_sum),
    "inclusive_scan": lambda x, y: ga.inclusive_scan(x),
    "inclusive_scan, flat": lambda x, y: ga.inclusive_scan(x, axis=None),
    "inclusive_scan, reverse": lambda x, y: ga.inclusive_scan(x, reverse=True),
    "inclusive_scan, a maximum": lambda x, y: ga.inclusive_scan(x, None, lambda a, b: max(a, b)),
    "inclusive_scan of pairs": lambda x, y: ga.inclusive_scan((x, y), None, _pair_sum),
    "inclusive_scan, computed": lambda x, y: ga.inclusive_scan(_squares(x)),
    "exclusive_scan": lambda x, y: ga.exclusive_scan(x, 1),
    "exclusive_scan, reverse": lambda x, y: ga.exclusive_scan(x, reverse=True),
    "transform": lambda x, y: ga.transform(lambda a: a + offset, x),
    "transform two": lambda x, y: ga.transform(lambda a, b: a * b, x, y),
    "transform, a number": lambda x, y: ga.transform(lambda a, b: a * b, x, 2),
    "transform to two": lambda x, y: ga.transform(lambda a, b: (b, a), x, y),
    "transform indices": lambda x, y: ga.transform(operator.mul, x, ga.lazy.arange(x.shape[0])),
    "transform in place": lambda x, y: ga.transform(lambda a, b: a + b, x, y, out=x),
    "select": lambda x, y: ga.select(x, _positive),
    "select by a mask": lambda x, y: ga.select(x, ga.transform(_positive, y)),
    "stable_partition": lambda x, y: ga.stable_partition(x, _positive),
    "select computed": lambda x, y: ga.select(_squares(x), _positive),
    "count": lambda x, y: ga.count(x, _positive),
    "find": lambda x, y: ga.find(x, _positive),
    "argmin": lambda x, y: ga.argmin(x),
    "argmax": lambda x, y: ga.argmax(x),
    "minmax": lambda x, y: ga.minmax(x),
    "adjacent_difference": lambda x, y: ga.adjacent_difference(x),
    "run_length_encode": lambda x, y: ga.run_length_encode(x),
    "radix_sort": lambda x, y: ga.radix_sort(x),
    "radix_sort pairs": lambda x, y: ga.radix_sort(x, y, descending=True),
    "argsort": lambda x, y: ga.argsort(x),
    "argsort, narrow": lambda x, y: ga.argsort(x, dtype=np.int32),
    "histogram": lambda x, y: ga.histogram(x, 16, (-10, 10)),
    "top_k": lambda x, y: ga.top_k(x, 2),
    "rolling": lambda x, y: ga.rolling(x, 2),
    "top_k of a few": lambda x, y: ga.top_k(x, min(2, x.shape[0]), mode="smallest"),
    "kth_value": lambda x, y: ga.kth_value(x, 1),
    "kth_value, two": lambda x, y: ga.kth_value(x, [0, 1]),
    "histogram of weights": lambda x, y: ga.histogram(x, 16, (-10, 10), weights=y),
    "histogram, narrow": lambda x, y: ga.histogram(x, 16, (-10, 10), dtype=np.int32),
    "reduce_by_index": lambda x, y: ga.reduce_by_index(
        ga.lazy.transform(lambda a: np.int64(abs(a)) % 7, x), y, 7
    ),
    "exclusive_scan_by_key": lambda x, y: ga.exclusive_scan_by_key(x, y, 1),
    "reduce_by_key, runs": lambda x, y: ga.reduce_by_key(x, y, consecutive=True),
    "reduce_by_key": lambda x, y: ga.reduce_by_key(x, y),
    "inclusive_scan_by_key": lambda x, y: ga.inclusive_scan_by_key(x, y),
}
DTYPES = {
    "radix_sort": (F4, I1, I8), "argsort": (F4, I8), "transform": (F4, I1, F8, C8),
    "reduce": (F4, I1, F8, C8), "inclusive_scan": (F4, I1, F8, C8),
}  # fmt: skip
CASES = [(name, dtype) for name in CALLS for dtype in DTYPES.get(name, (F4, I2))]

OF_SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    **{name: CALLS[name] for name in CALLS if name.startswith(("transform", "reduce"))
       if "_by_" not in name and "indices" not in name},
    **{name: CALLS[name] for name in ("count", "find", "argmin", "argmax", "minmax", "select",
                                      "select by a mask", "adjacent_difference")},
    "reduce an axis": lambda x, y: ga.reduce(x, axis=0),
    "reduce the last axis": lambda x, y: ga.reduce(x, axis=-1),
    "reduce two axes": lambda x, y: ga.reduce(x, axis=(0, 1)),
    "argmax along an axis": lambda x, y: ga.argmax(x, axis=0),
    "minmax along an axis": lambda x, y: ga.minmax(x, axis=1),
    "inclusive_scan along an axis": lambda x, y: ga.inclusive_scan(x, axis=0),
    "flat inclusive_scan": lambda x, y: ga.inclusive_scan(x, axis=None),
    "radix_sort of rows": lambda x, y: ga.radix_sort(x),
    "histogram of rows": lambda x, y: ga.histogram(x, 4, (0, 3), axis=-1),
    "count along an axis": lambda x, y: ga.count(x, _positive, axis=1),
}  # fmt: skip
SHAPES = [
    (40, 50), (40, 60), (41, 60), (2, 2), (100, 3), (3, 100), (60, 40), (1000, 64), (64, 1000),
    (1, 40), (40, 1), (4, 5, 6), (4, 5, 7), (3, 5, 7), (30, 20, 10), (2, 2, 2), (4, 1, 7),
]  # fmt: skip

# --- Plans for a GPU.

LENGTHS = [5000, 2, 3, 17, 31, 32, 33, 127, 1000, 1 << 12, (1 << 12) + 1, 100_003, 1 << 20, 7]
_NOT_COMPARED = {
    "plans", "plans_into", "cpu_plans", "makers", "warm", "small", "launches", "last_start",
    "op_key", "_kept", "choice", "bins", "table", "input_shape", "is_of_any_shape",
    "num_bytes",
}  # fmt: skip


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Problem, Plan]]:
    """Record problems and plans of calls on a fake GPU."""
    fake_driver.install(monkeypatch)
    result_dtype = build.result_dtype
    fake_driver.stub_kernels(monkeypatch)
    monkeypatch.setattr(build, "result_dtype", result_dtype)
    fake_driver.register_arrays(monkeypatch)
    found: list[tuple[Problem, Plan]] = []
    cuda_plan = planners.cuda_plan

    def recorded(problem: Problem, *others: Any) -> Plan:
        plan = cuda_plan(problem, *others)
        found.append((problem, plan))
        return plan

    monkeypatch.setattr(planners, "cuda_plan", recorded)
    return found


def _array(shape: Any, dtype: np.dtype[Any], shift: int = 0) -> FakeArray:
    array = FakeArray((int(np.prod(shape)) + shift,), dtype)
    array.shape = (shape,) if isinstance(shape, int) else shape
    array.strides = np.empty(array.shape, dtype).strides
    array.data.ptr += shift * dtype.itemsize
    return array


def _shown(problem: Problem, plan: Plan) -> Any:
    steps = [
        step if isinstance(step, Clear) else (
            step.kernel.name, step.grid, step.threads, step.shared_bytes, step.slots, step.offsets,
            step._tail, step._groups, step._overlaps,
        )
        for step in plan.steps
    ]  # fmt: skip
    has_list = vars(type(problem)).get("shape_attributes") is not None
    facts = {
        name: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for name, value in vars(problem).items()
        if has_list and not callable(value) and name not in _NOT_COMPARED
    }
    return facts, steps, plan.pieces


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda x: str(x).replace(" ", "_"))
@pytest.mark.parametrize("shift", [0, 1])
def test_plans_equal_those_of_a_first_call(
    planned: list[tuple[Problem, Plan]], name: str, dtype: np.dtype[Any], shift: int
) -> None:
    _check_plans(planned, CALLS[name], LENGTHS, dtype, shift)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("name", OF_SHAPES)
def test_plans_of_arrays_with_axes(
    planned: list[tuple[Problem, Plan]], name: str, axes: int
) -> None:
    _check_plans(planned, OF_SHAPES[name], [s for s in SHAPES if len(s) == axes], F4, 0)


def _check_plans(
    planned: list[tuple[Problem, Plan]], call: Callable[[Any, Any], Any], shapes: Any,
    dtype: np.dtype[Any], shift: int,
) -> None:  # fmt: skip
    def plans_of(shape: Any) -> list[Any]:
        x, y = _array(shape, dtype, shift), _array(shape, dtype, shift)
        planned.clear()
        call(x, y)
        return [_shown(*pair) for pair in planned]

    after_others = {shape: plans_of(shape) for shape in shapes}
    for shape in shapes:
        forget_problems()
        alone = plans_of(shape)
        assert alone
        assert after_others[shape] == alone, shape


def test_problems_of_one_kind_share_their_launches(planned: list[tuple[Problem, Plan]]) -> None:
    for length in (5000, 6000, 7000, 8000):
        ga.transform(operator.mul, _array(length, F4), _array(length, F4))
    problems = [problem for problem, _ in planned]
    assert len({id(problem) for problem in problems}) == len(problems) == 4
    assert problems[0].launches is not problems[1].launches  # which are made as first ones
    assert all(problem.launches is problems[1].launches for problem in problems[1:])
    assert [problem.results[0].shape[0] for problem in problems] == [5000, 6000, 7000, 8000]


def test_a_class_whose_list_is_too_short_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems are made from others only after one that was made so equalled a first call's."""
    monkeypatch.setattr(Transformation, "shape_attributes", ("shape",))  # without the results
    forget_problems()
    for length in (5000, 6000, 7000, 8000):
        assert ga.transform(operator.neg, np.ones(length)).shape == (length,)
    forget_problems()


# --- Results.


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda x: str(x).replace(" ", "_"))
def test_results_of_many_lengths(backend: Backend, name: str, dtype: np.dtype[Any]) -> None:
    """They equal those of a call that has seen no other length."""
    _check_results(backend, CALLS[name], [513, 2, 40, 3, 64, 65, 1000, 4097, 31, 8191, 2], dtype)


@pytest.mark.parametrize("name", OF_SHAPES)
def test_results_of_arrays_with_axes(backend: Backend, name: str) -> None:
    _check_results(backend, OF_SHAPES[name], SHAPES, F4)


def _check_results(
    backend: Backend, call: Callable[[Any, Any], Any], shapes: Any, dtype: np.dtype[Any]
) -> None:
    rng = np.random.default_rng(1)
    samples = [[rng.integers(-9, 9, n).astype(dtype) for _ in range(2)] for n in shapes]

    def flat(result: Any) -> list[tuple[Any, bytes]]:
        items = result if isinstance(result, tuple) else (result,)
        hosts = [np.asarray(backend.to_host(x)) for x in items]
        return [(x.dtype, x.shape, x.tobytes()) for x in hosts]

    def result_of(x: Any, y: Any) -> Any:
        return flat(call(backend.to_device(x.copy()), backend.to_device(y)))

    after_others = [result_of(x, y) for x, y in samples]
    for shape, (x, y), found in zip(shapes, samples, after_others, strict=True):
        forget_problems()
        assert found == result_of(x, y), shape


TABLES: dict[str, Callable[[Any, Any], Any]] = {
    "transform": lambda t, i: ga.transform(lambda k: t[k], i),
    "reduce": lambda t, i: ga.reduce(ga.lazy.transform(lambda k: t[k], i)),
    "reduce by": lambda t, i: ga.reduce(i, None, lambda a, b: max(a, b) + 0 * t[0]),
    "inclusive_scan": lambda t, i: ga.inclusive_scan(ga.lazy.transform(lambda k: t[k], i)),
    "inclusive_scan by": lambda t, i: ga.inclusive_scan(i, None, lambda a, b: a + b + 0 * t[0]),
    "select": lambda t, i: ga.select(i, lambda k: t[k] > 0),
    "stable_partition": lambda t, i: ga.stable_partition(i, lambda k: t[k] > 0),
    "count": lambda t, i: ga.count(i, lambda k: t[k] > 0),
    "find": lambda t, i: ga.find(i, lambda k: t[k] > 0),
    "argmax": lambda t, i: ga.argmax(ga.lazy.transform(lambda k: t[k], i)),
    "adjacent_difference": lambda t, i: ga.adjacent_difference(i, lambda a, b: t[a] - t[b]),
    "histogram": lambda t, i: ga.histogram(ga.lazy.transform(lambda k: t[k], i), 8, (0, 64)),
    "unique": lambda t, i: ga.unique(t[i], return_index=True),
}


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_captured_arrays_take_turns(backend: Backend, name: str, on_host: bool) -> None:
    """Kernels read each call's arrays, also copies of host arrays, which have new addresses."""
    if on_host and backend.name == "cpu":
        pytest.skip("host arrays are not copied")
    to_device = np.asarray if on_host else backend.to_device
    rng = np.random.default_rng(1)
    device = "cpu" if backend.name == "cpu" else "cuda:0"
    for turn in range(12):
        length = (100, 64, 101, 500)[turn % 4]
        table = rng.permutation(64).astype(np.int64) - (turn % 3 == 0)
        index = rng.integers(0, 64, length)
        with ga.default_device("cpu"):
            expected = TABLES[name](table, index)
        with ga.default_device(device):
            found = TABLES[name](to_device(table), to_device(index))
        pairs = [(found, expected)]
        if isinstance(found, tuple):
            pairs = [*zip(found, expected, strict=True)]
        for one, other in pairs:
            host = np.asarray(one if on_host else backend.to_host(one))
            np.testing.assert_array_equal(host, np.asarray(other), err_msg=f"turn {turn}")


REFUSED: dict[
    str, tuple[Callable[[Any], Any], int, int]
] = {  # a length that fits, one that does not
    "histogram": (lambda x: ga.histogram(x, 4, (0, 1), dtype=np.int8), 100, 200),
    "top_k": (lambda x: ga.top_k(x, 8), 100, 5),
    "kth_value": (lambda x: ga.kth_value(x, 8), 100, 5),
    "rolling": (lambda x: ga.rolling(x, 8), 100, 5),
    "reduce": (lambda x: ga.reduce(x, None, lambda a, b: max(a, b)), 100, 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_length_that_does_not_fit_is_refused_in_any_order(backend: Backend, name: str) -> None:
    call, fitting, wrong = REFUSED[name]
    for lengths in ((fitting, wrong), (wrong, fitting), (fitting + 1, fitting, wrong, fitting)):
        forget_problems()
        for length in lengths:
            x = backend.to_device(np.zeros(length, np.float32))
            if length != wrong:
                call(x)
                continue
            with pytest.raises(ValueError, match=name):
                call(x)
