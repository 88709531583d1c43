"""Arrays of initial values: one for each row, segment or index comes before its elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import DTYPES, Backend, affine, assert_same, compose, sampled, summable

import gpualgo as ga

Array = np.ndarray[Any, Any]
SCANS = (ga.inclusive_scan, ga.exclusive_scan)
SEGMENTED_SCANS = (ga.segmented_inclusive_scan, ga.segmented_exclusive_scan)
SEGMENTED = (ga.segmented_reduce, *SEGMENTED_SCANS)
OFFSETS = np.array([0, 0, 1, 33, 33, 70, 71, 5000, 5000, 5031, 19_990, 19_990])
TASK = 1 << 16  # elements and ends of segments that a CPU's task has


class Way(NamedTuple):
    """A function, what it combines, and a loop that gives the same."""

    function: Callable[..., Any]
    shape: tuple[int, ...]  # of x
    starts: tuple[int, ...]  # the shape of init
    places: list[Any]  # of each start the places of its elements, in their order
    places_by: Any = None  # offsets or indices
    options: dict[str, Any] = {}  # noqa: RUF012

    def __str__(self) -> str:
        by = "" if self.places_by is None else f" {self.places_by.dtype}"
        name = self.function.__name__
        return f"{name}{by} {self.shape}->{self.starts} {self.options or ''}"

    def __call__(self, backend: Backend, x: Any, init: Any, *op: Any, **more: Any) -> Any:
        by = None if self.places_by is None else backend.to_device(self.places_by)
        more = {**self.options, **more}
        if self.function is ga.reduce_by_index:
            return self.function(by, x, *self.starts, init, *op, **more)
        return self.function(x, *([] if by is None else [by]), init, *op, **more)

    def prepare(self, backend: Backend, x: Any, init: Any, op: Any) -> Callable[..., Any]:
        by = [] if self.places_by is None else [backend.to_device(self.places_by)]
        if self.function is ga.reduce_by_index:
            plan = ga.prepare(self.function, *by, x, *self.starts, init, op)
            return lambda x, init: plan(*by, x, init)
        plan = ga.prepare(self.function, x, *by, init, op, **self.options)
        return lambda x, init: plan(x, *by, init)

    @property
    def is_scan(self) -> bool:
        return self.function in (*SCANS, *SEGMENTED_SCANS)

    def looped(self, op: Any, x: list[Any], init: list[Any]) -> list[Any]:
        found = list(x if self.is_scan else init)
        is_exclusive = "exclusive" in self.function.__name__
        for k, (total, places) in enumerate(zip(init, self.places, strict=True)):
            for i in places:
                before, total = total, op(total, x[i])
                if self.is_scan:
                    found[i] = before if is_exclusive else total
            if not self.is_scan:
                found[k] = total
        return found

    def wanted(self, op: Any, x: Array, init: Array) -> Array:
        items = (list(a.ravel()) if op is not compose else a.ravel().tolist() for a in (x, init))
        with np.errstate(over="ignore"):
            found = np.array(self.looped(op, *items), init.dtype)
        return found.reshape(self.shape if self.is_scan else self.starts)


def along(f: Any, shape: tuple[int, ...], axis: Any, *, reverse: bool = False) -> Way:
    axes = axis if isinstance(axis, tuple) else (axis,)
    kept = [a for a in range(len(shape)) if a not in axes]
    rows = np.arange(np.prod(shape, dtype=int)).reshape(shape).transpose(*kept, *sorted(axes))
    starts = tuple(shape[a] for a in kept)
    rows = rows.reshape(int(np.prod(starts)), int(np.prod([shape[a] for a in axes])))
    options = {"axis": axis, "reverse": True} if reverse else {"axis": axis}
    return Way(f, shape, starts, rows[:, :: -1 if reverse else 1].tolist(), None, options)


def scans(shape: tuple[int, ...], axis: int) -> list[Way]:
    return [along(f, shape, axis, reverse=reverse) for f in SCANS for reverse in (False, True)]


def segments(f: Any, n: int, offsets: Array) -> Way:
    places = [range(a, b) for a, b in itertools.pairwise(offsets.tolist())]
    return Way(f, (n,), (len(offsets) - 1,), places, offsets)


def by_index(n: int, size: int, most: int) -> Way:
    indices = np.random.default_rng(n).integers(0, most, n)
    places = [np.flatnonzero(indices == k).tolist() for k in range(size)]
    return Way(ga.reduce_by_index, (n,), (size,), places, indices)


def each(ways: list[Way]) -> Any:
    return pytest.mark.parametrize("way", ways, ids=str)


ROWS: list[tuple[tuple[int, ...], Any]] = [
    ((40_009, 3), 1),  # many short rows
    ((2, 30_007), 1),  # few long rows
    ((30_007, 2), 0),  # few long columns
    ((33, 1025), 0), ((4, 5, 102), 1), ((6, 7, 65), (2, 0)), ((6, 7, 65), ()), ((1, 1), 1),
]  # fmt: skip
LINES: list[tuple[tuple[int, ...], int]] = [
    ((2003, 7), 1), ((2, 20_011), 1), ((3001, 2), 0), ((9, 33, 70), 1), ((5, 1), 1), ((300, 40), 0),
]  # fmt: skip
INDICES = [np.minimum(OFFSETS, np.iinfo(dtype).max).astype(dtype)
           for dtype in (np.int64, np.uint32, np.int8)]  # fmt: skip
ORDERS = [
    *[along(ga.reduce, shape, axis) for shape, axis in ROWS],
    *[way for shape, axis in LINES for way in scans(shape, axis)],
    *[segments(f, 20_003, offsets) for f in SEGMENTED for offsets in INDICES],
    # Heads at the ends of threads, warps and tiles, and at the last element.
    *[segments(f, 6150, np.arange(3, 6148, n)) for f in SEGMENTED for n in (1, 2, 31, 2048, 2049)],
    by_index(1, 40, 35), by_index(3001, 40, 35),
    by_index(700, 5000, 5000),  # by which elements are sorted first
]  # fmt: skip
NOTHING = [
    *[along(ga.reduce, shape, 1) for shape in ((3, 0), (0, 3), (0, 0))],
    *[way for shape in ((3, 0), (0, 3)) for way in scans(shape, 1)],
    *[segments(f, 0, np.zeros(4, int)) for f in SEGMENTED],
    *[segments(f, 5, np.array([2])) for f in SEGMENTED],
    by_index(0, 40, 1),
]  # fmt: skip


def some(rows: int, n: int) -> list[Way]:
    """Return a way of each kind."""
    offsets = np.array([2, 5, 5, 6, n])
    return [
        along(ga.reduce, (rows, n), 1), along(ga.reduce, (n, rows), 0), *scans((rows, n), 1),
        *scans((n, rows), 0), *[segments(f, n, offsets) for f in SEGMENTED],
        by_index(n, rows, min(rows, 7)),
    ]  # fmt: skip


@each(ORDERS)
def test_starts_come_first(backend: Backend, guarded: Any, way: Way) -> None:
    x, init = affine(way.shape), affine(way.starts, seed=3)
    given = backend.to_device(x), backend.to_device(init)
    want = way.wanted(compose, x, init)
    for _ in range(2):
        assert_same(backend.to_host(way(backend, *given, compose)), want)
    assert_same(backend.to_host(given[0]), x)
    out = given[0] if way.is_scan else guarded(way.starts, np.uint64)
    assert way(backend, *given, compose, out=out) is out
    assert_same(backend.to_host(out), want)
    assert_same(backend.to_host(given[1]), init)


@each(NOTHING)
def test_no_elements(backend: Backend, way: Way) -> None:
    x, init = affine(way.shape), affine(way.starts, seed=10)
    for on in (backend, Backend(backend.name, np)):
        result = way(on, on.to_device(x), on.to_device(init), compose)
        assert_same(on.to_host(result), way.wanted(compose, x, init))


@each(some(37, 130))
@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last(backend: Backend, way: Way, op: Any) -> None:
    x, init = affine(way.shape), affine(way.starts, seed=4)
    result = way(backend, backend.to_device(x), backend.to_device(init), op)
    assert_same(backend.to_host(result), way.wanted(op, x, init))


@each(some(33, 30))
@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, way: Way, dtype: np.dtype[Any]) -> None:
    x, init = summable(way.shape, dtype), summable(way.starts, dtype, seed=7)
    result = way(backend, backend.to_device(x), backend.to_device(init))
    want = way.wanted(lambda a, b: np.add(a, b, dtype=dtype), x, init)
    assert_same(backend.to_host(result), want)


@each(some(3, 50))
def test_dtype_of_starts_accumulates(backend: Backend, way: Way) -> None:
    x, init = np.full(way.shape, 100, np.int8), np.arange(np.prod(way.starts), dtype=np.int32)
    result = way(backend, backend.to_device(x), backend.to_device(init.reshape(way.starts)))
    assert_same(backend.to_host(result), way.wanted(np.add, x.astype(np.int32), init))


ACCUMULATORS: list[tuple[str, Any, str]] = [
    ("int8", 7, "int8"),  # a Python number is weak
    ("uint8", True, "uint8"),
    ("float32", 7, "float32"),
    ("float32", 0.5, "float32"),
    ("float16", 0.5, "float16"),
    ("complex64", 2.5, "complex64"),
    ("complex64", 1j, "complex64"),
    ("int8", np.int64(1000), "int64"),  # a NumPy scalar or array names the accumulator
    ("float32", np.float64(0.5), "float64"),
    ("int32", np.float64(0.5), "float64"),
    ("float64", np.float32(0.5), "float32"),
    ("int8", np.array(1000, np.int32), "int32"),
    ("int8", np.array([1000], np.int32), "int32"),
    ("bool", np.int64(0), "int64"),
]


@each([along(ga.reduce, (100,), 0), *scans((100,), 0)[::2]])
@pytest.mark.parametrize(("dtype", "init", "wanted"), ACCUMULATORS)
def test_one_start_and_the_accumulator(
    backend: Backend, way: Way, dtype: str, init: Any, wanted: str
) -> None:
    x = summable(100, np.dtype(dtype))
    got = way(backend, backend.to_device(x), init)
    first = np.asarray(init).reshape(()).astype(wanted)
    want = way.wanted(lambda a, b: np.add(a, b, dtype=wanted), x.astype(wanted), first)
    assert_same(backend.to_host(got), want)


def then(p: Any, q: Any) -> Any:
    return p[0] * q[0], np.int32(p[1] * q[0] + q[1])


def wrapped(p: Any, q: Any) -> Any:
    """Return the same of Python's integers."""
    slope, shift = p[0] * q[0], p[1] * q[0] + q[1]
    return (slope + 2**63) % 2**64 - 2**63, (shift + 2**31) % 2**32 - 2**31


@each([*some(11, 40), along(ga.reduce, (3, 0), 1), segments(ga.segmented_reduce, 0, OFFSETS * 0)])
def test_tuples(backend: Backend, way: Way) -> None:
    rng = np.random.default_rng(9)
    x, init = (
        (rng.integers(0, 99, shape), rng.integers(0, 99, shape).astype(np.int32))
        for shape in (way.shape, way.starts)
    )
    pairs = [
        list(zip(*[part.ravel().tolist() for part in both], strict=True)) for both in (x, init)
    ]
    want = np.array(way.looped(wrapped, *pairs)).reshape(-1, 2)
    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    for got, wanted, part in zip(way(backend, *on, then), want.T, init, strict=True):
        wanted = wanted.reshape(got.shape).astype(part.dtype)
        assert_same(backend.to_host(got), wanted)


@each(some(33, 70))
def test_computed_elements_numbers_and_plans(backend: Backend, way: Way) -> None:
    x, init = summable(way.shape, np.dtype("int64")), summable(way.starts, np.dtype("int64"), 12)
    on = backend.to_device(x)
    for k in (3, 4):
        lazy = ga.lazy.transform(lambda a: a * k, on)  # noqa: B023
        for source, factor in ((on, 1), (lazy, k)):
            for seed in (0, 5):
                first = backend.to_device(init + seed)
                want = way.wanted(lambda a, b: a + b + k, x * factor, init + seed)  # noqa: B023
                if not seed:
                    plan = way.prepare(backend, source, first, lambda a, b: a + b + k)  # noqa: B023
                    result = way(backend, source, first, lambda a, b: a + b + k)  # noqa: B023
                    assert_same(backend.to_host(result), want)
                assert_same(backend.to_host(plan(source, first)), want)


@each([along(ga.reduce, (17, 3001), 1), *scans((17, 3001), 1)])
def test_bits_repeat_and_nan_stays_in_its_row(backend: Backend, way: Way) -> None:
    x = np.random.default_rng(8).standard_normal((17, 3001)).astype(np.float32)
    init = np.array([0.1, -0.0, np.nan, np.inf, *range(13)], np.float32)
    given = backend.to_device(x), backend.to_device(init)
    found, again = (backend.to_host(way(backend, *given)) for _ in range(2))
    assert_same(again, found)
    assert np.isnan(found[2]).all()
    assert not np.isnan(found[[0, 1, 4, 16]]).any()
    if not way.is_scan:
        for k in (0, 3, 16):
            assert_same(found[k], backend.to_host(way(backend, given[0], init[k]))[k])


def test_repeated_starts(backend: Backend) -> None:
    way = along(ga.reduce, (5, 70), 1)
    x, one = affine((5, 70)), affine(1, seed=6)
    given = backend.xp.broadcast_to(backend.to_device(one), (5,))
    want = way.wanted(compose, x, np.repeat(one, 5))
    assert_same(backend.to_host(way(backend, backend.to_device(x), given, compose)), want)
    kept = way(backend, backend.to_device(x), given, compose, keepdims=True)
    assert_same(backend.to_host(kept), want[:, None])


def test_structured_starts() -> None:
    kind = [("a", "i8"), ("b", "f4")]
    x = np.array([[(1, 2.0), (3, 4.0)], [(5, 6.0), (7, 8.0)]], kind)
    init = np.array([(10, 0.5), (20, 9.5)], kind)
    found = ga.reduce(x, init, lambda p, q: (p.a + q.a, max(p.b, q.b)), axis=1)
    np.testing.assert_array_equal(found, np.array([(14, 4.0), (32, 9.5)], kind))


@each(scans((1, 7), 1))
def test_tuples_of_one_row(backend: Backend, way: Way) -> None:
    """Arrays of one element each are starts here, on a GPU as on the host."""
    x = np.arange(1, 8).reshape(1, 7), np.arange(7, dtype=np.int32).reshape(1, 7)
    init = np.array([3]), np.array([5], np.int32)
    want = np.array(way.looped(wrapped, [*zip(*[a[0].tolist() for a in x], strict=True)], [(3, 5)]))
    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    for got, wanted in zip(way(backend, *on, then), want.T, strict=True):
        np.testing.assert_array_equal(backend.to_host(got), wanted[None])
    if backend.xp is not np:
        name = way.function.__name__
        match = rf"^{name}: init\[0\] is an array of one element; pass a Python or"
        with pytest.raises(TypeError, match=match):
            way(backend, *on, then, axis=None)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("f", SEGMENTED, ids=lambda f: f.__name__)
def test_tasks_of_the_cpu(f: Any) -> None:
    """Of several tasks, some of which begin within a segment, others at one."""
    host = Backend("cpu", np)
    bounds = np.array([5, TASK // 2, TASK, TASK, TASK + 9, 3 * TASK - 1])
    for way in (segments(f, 3 * TASK, bounds), segments(f, 2 * TASK, np.arange(2 * TASK + 1))):
        x, init = affine(way.shape), affine(way.starts, seed=8)
        assert_same(way(host, x, init, compose), way.wanted(compose, x, init))


@pytest.mark.parametrize("f", SEGMENTED, ids=lambda f: f.__name__)
def test_offsets_outside(cuda: Backend, f: Any) -> None:
    x, init = affine(70), affine(4, seed=9)
    offsets = np.array([-5, 40, 20 if f is ga.segmented_reduce else 60, 90, 100])
    way = segments(f, 70, np.clip(offsets, 0, 70))
    result = way._replace(places_by=offsets)(cuda, cuda.to_device(x), cuda.to_device(init), compose)
    assert_same(cuda.to_host(result), way.wanted(compose, x, init))


@pytest.mark.parametrize("f", SEGMENTED_SCANS, ids=lambda f: f.__name__)
def test_offsets_that_fall(cuda: Backend, f: Any) -> None:
    """Scans begin wherever an offset is, each from one of the starts, the same on every run."""
    x, init = affine(3000), affine(5, seed=9)
    offsets = np.array([0, 2500, 900, 100, 1700, 3000])
    given = [cuda.to_device(array) for array in (x, offsets, init)]
    result = cuda.to_host(f(*given, compose))
    assert_same(cuda.to_host(f(*given, compose)), result)
    for begin, end in itertools.pairwise(np.sort(offsets)):
        way = segments(f, end - begin, np.array([0, end - begin]))
        wants = [way.wanted(compose, x[begin:end], first) for first in init[:, None]]
        assert any((result[begin:end] == want).all() for want in wants)


@each([along(ga.reduce, (3, 4), 1), *scans((3, 4), 1)[::2],
       *[segments(f, 3, np.arange(4)) for f in SEGMENTED], by_index(4, 3, 2)])  # fmt: skip
def test_what_does_not_fit_is_refused(backend: Backend, way: Way) -> None:
    x = backend.to_device(np.ones(way.shape, np.float32))
    starts = backend.to_device(np.ones(3, np.float32))
    pair, is_reduce = (x, x), way.function is ga.reduce

    def wrong(error: type[Exception], match: str, init: Any, x: Any = x, **more: Any) -> None:
        with pytest.raises(error, match=rf"^{way.function.__name__}: {match}"):
            way(backend, x, init, *([then] if x is pair else []), **more)

    one = "init must be one value, .*got shape "
    wrong(ValueError, rf"{one}\(4,\)", backend.to_device(np.ones(4, np.float32)))
    wrong(TypeError, "init has dtype float32, the accumulator float64", starts, dtype=np.float64)
    wrong(TypeError, "x of dtype float32 does not fit", starts.astype(np.int32))
    if way.function in SCANS:
        wrong(ValueError, "out overlaps init", x[:, 1], out=x)
    else:
        wrong(ValueError, "out overlaps init", starts, out=starts)
    if way.places_by is None:
        wrong(ValueError, r"init must be one value, .* shape \(4,\), got shape \(3,\)", starts,
              axis=0)  # fmt: skip
        wrong(ValueError, r"init must be one value, got shape \(3,\)", starts, axis=None)
    if is_reduce:
        wrong(ValueError, rf"{one}\(3, 1\)", starts.reshape(3, 1), keepdims=True)
        number = "init must be a Python or NumPy scalar, got"
        wrong(TypeError, f"{number} tuple", (starts, starts))
        wrong(TypeError, f"{number} list", [1.0, 2.0, 3.0])
        wrong(TypeError, "init must be a tuple like the elements", starts, pair)
        wrong(TypeError, r"init\[1\] is a float next to arrays", (starts, 1.0), pair)
        if backend.xp is not np:
            wrong(TypeError, "the arrays mix", np.ones(3, np.float32))
            wrong(TypeError, "the arrays mix", starts, np.ones((3, 4), np.float32))
