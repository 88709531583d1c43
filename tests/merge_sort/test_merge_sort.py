"""merge_sort and sort: order, stability, values, axes, outputs, operators."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, REAL, Array, Backend, a_few, random_array, sampled

import gpualgo as ga

Host = np.ndarray[Any, Any]
Point = namedtuple("Point", ["x", "y"])

# Threads, rows of warps and tiles, each with its neighbours.
SIZES = (0, 1, 2, 16, 17, 18, 31, 33, 34, 35, 543, 545, 2175, 2176, 2177, 4351, 4353, 6530, 20_003)
MANY = 140_003  # longer tiles; on the emulated GPU several seconds


def coarse(a: Any, b: Any) -> Any:
    return a // 10 < b // 10


def by_coarse(keys: Host, axis: int = -1) -> Host:
    return np.argsort(keys // 10, axis=axis, kind="stable")


def some_keys(shape: Any, seed: int = 0, dtype: Any = np.int32) -> Host:
    return np.random.default_rng(seed).integers(-99, 100, shape).astype(dtype)


def value_order(keys: Host, descending: bool = False) -> Host:
    """Return the stable order by value: zeros equal, NaN last in any case."""
    if keys.dtype == BFLOAT16 or keys.dtype == bool:
        keys = keys.astype(np.float32)
    ranks = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    is_nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(keys.shape, bool)
    ranks = np.where(is_nan, keys.size, -ranks if descending else ranks)
    return np.argsort(ranks, kind="stable")


def assert_bits(got: Any, want: Host) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if np.ascontiguousarray(got).tobytes() != np.ascontiguousarray(want).tobytes():
        np.testing.assert_array_equal(got, want)
        raise AssertionError("equal values of different bits")


def check(backend: Backend, keys: Host, order: Host, **options: Any) -> None:
    """Sort keys alone and with their positions, and compare with an order bit for bit."""
    device = backend.to_device(keys)
    assert_bits(backend.to_host(ga.merge_sort(device, **options)), keys[order])
    check_pairs(backend, keys, order, **options)
    assert_bits(backend.to_host(device), keys)


def check_pairs(backend: Backend, keys: Host, order: Host, **options: Any) -> None:
    device, places = backend.to_device(keys), np.arange(keys.size, dtype=np.int32)
    got, moved = ga.merge_sort(device, backend.to_device(places), **options)
    assert_bits(backend.to_host(got), keys[order])
    assert_bits(backend.to_host(moved), places[order])


@pytest.mark.parametrize("size", SIZES)
def test_stable_at_every_size(backend: Backend, size: int) -> None:
    keys = some_keys(size)
    check(backend, keys, by_coarse(keys), less=coarse)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [*range(530, 550), *range(2160, 2180), MANY, 1_100_003])
def test_stable_at_many_sizes(backend: Backend, size: int) -> None:
    keys = some_keys(size)
    check(backend, keys, by_coarse(keys), less=coarse)


@pytest.mark.parametrize("size", [2179, 8707, 20_005, 35_001])  # of no other test
def test_cuts_by_a_kernel_of_their_own(
    backend: Backend, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU they are, of more than 32 MB."""
    monkeypatch.setattr("gpualgo._algorithms.merge_sort.tuning.CACHED_BYTES", 0)
    keys = some_keys(size)
    check(backend, keys, by_coarse(keys), less=coarse)


def test_many_passes_on_all_cores(backend: Backend) -> None:
    if backend.xp is not np:
        pytest.skip("of the CPU")
    keys = some_keys(300_001)
    check(backend, keys, by_coarse(keys), less=coarse)
    check(backend, np.sort(keys), by_coarse(np.sort(keys)), less=coarse)


def test_descending_is_stable(backend: Backend) -> None:
    for size in (33, 3001):
        keys = some_keys(size)
        order = np.argsort(-(keys // 10), kind="stable")
        check_pairs(backend, keys, order, less=coarse, descending=True)


def special(dtype: np.dtype[Any], size: int) -> Host:
    keys = random_array(size, dtype, 3)
    if dtype.kind in "iub":
        return keys if dtype.kind == "b" else keys // np.array(7, dtype)
    pool = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0]).astype(dtype)
    mixed: Host = np.where(np.arange(size) % 3 == 0, keys, np.resize(pool, size))
    return mixed.astype(dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", sampled(REAL, ["float32", "int8", "bfloat16"]), ids=str)
def test_by_value(backend: Backend, dtype: np.dtype[Any], descending: bool) -> None:
    """The bits of zeros and NaNs stay, and so does their order."""
    keys = special(dtype, 2503)
    check_pairs(backend, keys, value_order(keys, descending), descending=descending)


def test_tuples_by_value(backend: Backend) -> None:
    x, y = some_keys(2503, 1, np.int16), special(np.dtype("float32"), 2503)
    given = tuple(map(backend.to_device, (x, y)))
    for ways in (False, (True, False), (False, True)):
        first, second = (ways, ways) if isinstance(ways, bool) else ways
        inner = value_order(y, second)
        ranks = -x.astype(int) if first else x.astype(int)
        order = inner[np.argsort(ranks[inner], kind="stable")]
        got = ga.merge_sort(given, descending=ways)
        assert_bits(backend.to_host(got[0]), x[order])
        assert_bits(backend.to_host(got[1]), y[order])


@pytest.mark.slow
def test_function_of_tuples(backend: Backend) -> None:
    """Namedtuples have their fields; records of more than 16 bytes move whole."""
    x, y = some_keys(2503, 1), special(np.dtype("float64"), 2503)
    z = np.arange(2503, dtype=np.complex128)
    order = np.argsort(x // 10, kind="stable")
    given = Point(*map(backend.to_device, (x, y)))
    got = ga.merge_sort(given, less=lambda p, q: p.x // 10 < q.x // 10)
    assert isinstance(got, Point)
    assert_bits(backend.to_host(got.x), x[order])
    assert_bits(backend.to_host(got.y), y[order])
    wide = tuple(map(backend.to_device, (z, x, z, y)))
    results = ga.merge_sort(wide, less=lambda p, q: p[1] // 10 < q[1] // 10)
    for result, want in zip(results, (z, x, z, y), strict=True):
        assert_bits(backend.to_host(result), want[order])


def test_structured_arrays(backend: Backend) -> None:
    keys = np.zeros(1003, [("a", np.int32), ("b", np.float64)])
    keys["a"], keys["b"] = some_keys(1003), np.arange(1003)
    order = by_coarse(keys["a"])
    got = ga.merge_sort(keys, less=lambda p, q: p.a // 10 < q.a // 10)
    assert got.dtype == keys.dtype
    assert (got == keys[order]).all()


def test_complex_keys(backend: Backend) -> None:
    keys = random_array(1003, np.dtype("complex64"))
    got = ga.merge_sort(backend.to_device(keys), less=lambda a, b: abs(a) < abs(b))
    assert_bits(backend.to_host(got), keys[np.argsort(np.abs(keys), kind="stable")])


@pytest.mark.parametrize("kind", ["V3", "complex128", "V40", "two", "several"])
def test_values(backend: Backend, kind: str) -> None:
    """They travel along where they are words, and are gathered else."""
    keys = some_keys(2503)
    order = by_coarse(keys)
    numbers = random_array(2503, np.dtype("int64"))
    if kind in ("two", "several"):
        parts = [numbers, numbers.astype(np.int8), numbers.astype(np.float64)]
        moved = tuple(parts[:2] if kind == "two" else parts)
        _, got = ga.merge_sort(
            backend.to_device(keys), tuple(map(backend.to_device, moved)), less=coarse
        )
        for result, want in zip(got, moved, strict=True):
            assert_bits(backend.to_host(result), want[order])
        return
    if kind[0] == "V" and backend.xp is not np:
        backend = Backend(backend.name, np)  # of what CuPy has no arrays
    size = np.dtype(kind).itemsize
    values = np.frombuffer(np.random.default_rng(0).bytes(2503 * size), kind)
    _, result = ga.merge_sort(backend.to_device(keys), backend.to_device(values), less=coarse)
    assert_bits(backend.to_host(result), values[order])


@pytest.mark.parametrize("shape", [(5, 1), (700, 3), (9, 17), (3, 100), (2, 3, 2200)], ids=str)
def test_rows(backend: Backend, shape: tuple[int, ...]) -> None:
    keys = some_keys(shape)
    places = np.broadcast_to(np.arange(shape[-1], dtype=np.int32), shape).copy()
    order = by_coarse(keys)
    got, moved = ga.merge_sort(*map(backend.to_device, (keys, places)), less=coarse)
    assert_bits(backend.to_host(got), np.take_along_axis(keys, order, -1))
    assert_bits(backend.to_host(moved), order.astype(np.int32))


def test_axes(backend: Backend) -> None:
    keys = some_keys((37, 4, 21))
    for axis in a_few((0, 1, -1)):
        want = np.take_along_axis(keys, by_coarse(keys, axis), axis)
        got = ga.merge_sort(backend.to_device(keys), less=coarse, axis=axis)
        assert_bits(backend.to_host(got), want)
    flat = keys.ravel()
    got = ga.merge_sort(backend.to_device(keys), less=coarse, axis=None)
    assert_bits(backend.to_host(got), flat[by_coarse(flat)])


def test_rows_of_one_element_into_misaligned_outputs(backend: Backend) -> None:
    keys = np.arange(5, dtype=np.int32).reshape(5, 1)
    memory = backend.to_device(np.zeros(keys.nbytes + 1, np.uint8))
    out = memory[1:].view(np.int32).reshape(5, 1)
    assert ga.merge_sort(backend.to_device(keys), less=coarse, out=out) is out
    assert backend.to_host(memory)[1:].tobytes() == keys.tobytes()


def test_recognised_functions(backend: Backend) -> None:
    """What is known by name is called like any other."""
    import operator

    keys = some_keys(503)
    for less, turned in ((operator.lt, False), (np.greater, True), (ga.Operator(np.less), False)):
        want = keys[value_order(keys, turned)]
        assert_bits(backend.to_host(ga.merge_sort(backend.to_device(keys), less=less)), want)


def test_any_function_leaves_memory_alone(backend: Backend, guarded: Callable[..., Array]) -> None:
    """Of a function that is no order the result has no meaning, and nothing else is harmed."""
    keys = random_array(6530, np.dtype("int32"))
    for less in (lambda a, b: a ^ b > 5, lambda a, b: True):
        out = guarded(keys.shape, keys.dtype)
        ga.merge_sort(backend.to_device(keys), less=less, out=out)


def test_sort_chooses(backend: Backend, kinds: list[str]) -> None:
    keys = some_keys(503)
    got = ga.sort(backend.to_device(keys))
    assert_bits(backend.to_host(got), np.sort(keys))
    assert not any("merge" in kind or "sort_tiles" in kind for kind in kinds)
    moved = ga.sort(backend.to_device(keys), backend.to_device(keys), less=coarse)[1]
    assert_bits(backend.to_host(moved), keys[by_coarse(keys)])
