"""Arrays on the CPU that NumPy's loops reduce: the bits are those of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, random_array

import gpualgo as ga
from gpualgo._algorithms.reduce import cpu
from gpualgo._base import threads

KERNELS = {
    np.maximum: lambda a, b: a if a >= b or a != a else b,
    np.minimum: lambda a, b: a if a <= b or a != a else b,
    np.fmax: lambda a, b: a if a >= b or b != b else b,
    np.fmin: lambda a, b: a if a <= b or b != b else b,
}


@pytest.fixture(autouse=True)
def on_the_cpu(backend: Backend) -> None:
    if backend.name != "cpu":
        pytest.skip("tells of the CPU alone")


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce by NumPy wherever the axes allow it."""
    names = "BYTES", "ROW_BYTES", "ROWS", "COUNTED"
    for name in (f"_LEAST_{each}" for each in names):
        monkeypatch.setattr(cpu, name, 1)
    monkeypatch.setattr(cpu, "_LEAST_PIECE_BYTES", 256)


@pytest.fixture(params=["one", "several"])
def some_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce by one thread, and by several in small pieces."""
    if request.param == "several":
        monkeypatch.setattr(threads, "LARGE_BYTES", 1)
        monkeypatch.setattr(threads, "SMALL_BYTES", 1)
        monkeypatch.setattr(cpu, "_PIECE_BYTES", 5000)
        monkeypatch.setenv("GPUALGO_NUM_THREADS", "2")
        monkeypatch.setattr(threads, "_num_cores", lambda: 2)


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


@pytest.mark.usefixtures("some_threads")
@pytest.mark.parametrize("op", [np.maximum, np.minimum, np.fmax, np.fmin])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int32", "uint64"])
def test_bits_are_those_of_kernels(op: Any, dtype: str) -> None:
    kernel = KERNELS[op]
    for seed in range(3):
        x = random_array(40_001, np.dtype(dtype), seed)
        cases = [x, x.reshape(-1, 1), np.asfortranarray(x[:40_000].reshape(8, -1))]
        if x.dtype.kind == "f":
            zeros = np.where(x > 8, 0.0, -0.0).astype(dtype)
            payloads = np.full(40_001, np.nan, dtype)
            payloads.view(f"u{x.itemsize}")[:] += np.arange(40_001, dtype=f"u{x.itemsize}") % 999
            some = x.copy()
            some[seed * 9_000 + 5 :: 700] = payloads[: some[seed * 9_000 + 5 :: 700].size]
            tops = -1 - np.abs(x)  # whose greatest are zeros of both signs
            tops[seed * 9_000 + 5 :: 700] = np.copysign(0, x[seed * 9_000 + 5 :: 700])
            cases += [zeros, -zeros, tops, -tops, payloads, payloads[::-1].copy(), some]
        for case in cases:
            in_memory = case.ravel(order="K")
            want = ga.reduce(in_memory, None, kernel)
            computed = ga.lazy.transform(lambda a: a, in_memory)
            assert bits(ga.reduce(computed, None, op)) == bits(want)
            for _ in range(2):  # a first call, and a warm one
                assert bits(ga.reduce(case, None, op)) == bits(want)
            out = np.empty((), dtype)
            assert ga.reduce(case, None, op, out=out) is out
            assert bits(out) == bits(want)


@pytest.mark.usefixtures("some_threads", "short_rows")
@pytest.mark.parametrize("op", [np.maximum, np.minimum, np.fmax, np.fmin])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64"])
def test_bits_along_axes_are_those_of_kernels(op: Any, dtype: str) -> None:
    """NumPy reduces neighbouring axes of arrays without gaps in any order, kernels the others."""
    kernel = KERNELS[op]
    x = random_array(6 * 4_000, np.dtype(dtype), 4)
    if x.dtype.kind == "f":
        x[:4_000] = np.where(x[:4_000] > 0, 0.0, -0.0)
        x[5_000::6_000] = x[5_090::6_000] = np.nan
        x[5_090::6_000] = -x[5_090::6_000]
        x[9_000:9_002] = -np.inf, np.inf
        x[12_000:16_000] = np.nan
        x[16_000:20_000:3] = -0.0
    grid = x.reshape(2, 3, 4_000)
    others = grid.transpose(1, 0, 2), grid.T, grid[:, :, ::2], grid[:, :1]
    cases = [(y, axis) for y in (grid, *others) for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2))]
    cases += [(grid[:, ::-1], 0), (grid[:, ::-1], 2)]
    cube = x.reshape(4, 5, 30, 40)
    cases += [(cube, axis) for axis in (1, (1, 2), (0, 3), (2, 3))]
    cases += [(cube.transpose(2, 0, 3, 1), axis) for axis in (0, 1, (0, 3), (0, 1, 2))]
    for case, axis in cases:
        order = np.argsort([-abs(step) for step in case.strides], kind="stable")
        places = tuple(np.flatnonzero(np.isin(order, axis)).tolist())
        in_memory = ga.reduce(case.transpose(order), None, kernel, axis=places, keepdims=True)
        want = in_memory.transpose(np.argsort(order)).reshape(op.reduce(case, axis=axis).shape)
        for keepdims in (False, True, False):
            found = ga.reduce(case, None, op, axis=axis, keepdims=keepdims)
            assert bits(found) == bits(want), (case.shape, axis)
        out = np.empty((*want.shape, 2), dtype)[..., 1]
        assert ga.reduce(case, None, op, axis=axis, out=out) is out
        assert bits(out.copy()) == bits(want)


@pytest.mark.usefixtures("some_threads", "short_rows")
def test_bools_of_long_rows() -> None:
    x = np.zeros((5, 70_000), bool)
    x[1], x[2, 9], x[3, -1] = True, True, True
    for y in (x, ~x):
        np.testing.assert_array_equal(ga.reduce(y, None, np.logical_or, axis=1), y.any(1))
        np.testing.assert_array_equal(ga.reduce(y, None, np.logical_and, axis=1), y.all(1))
        for dtype in (np.int64, np.int8, np.uint16):
            found = ga.reduce(y, axis=1, dtype=dtype)
            np.testing.assert_array_equal(found, np.add.reduce(y, axis=1, dtype=dtype))
            assert found.dtype == dtype


@pytest.mark.usefixtures("some_threads")
def test_bools() -> None:
    for place in (None, 0, 5_000, 99_999):
        x = np.zeros(100_000, bool)
        if place is not None:
            x[place] = True
        for y in (x, ~x, x.reshape(10, -1)):
            for _ in range(2):
                for op in (np.logical_or, np.bitwise_or, np.maximum):
                    assert ga.reduce(y, None, op) == y.any()
                for op in (np.logical_and, np.bitwise_and, np.minimum):
                    assert ga.reduce(y, None, op) == y.all()
                for dtype in a_few((np.int64, np.int8, np.uint16)):
                    want = np.add.reduce(y, axis=None, dtype=dtype)
                    assert ga.reduce(y, dtype=dtype) == want
                    assert ga.reduce(y, dtype=dtype).dtype == dtype


@pytest.mark.usefixtures("some_threads")
@pytest.mark.parametrize("op", [np.bitwise_and, np.bitwise_or, np.bitwise_xor])
def test_bits_of_integers(op: Any) -> None:
    x = random_array(70_001, np.dtype(np.int32), 5)
    assert ga.reduce(x, None, op) == op.reduce(x)
    assert ga.reduce(x, None, op, keepdims=True).shape == (1,)


def test_starts_go_by_kernels() -> None:
    x = np.arange(50_000)
    for start in (None, 7, 10**6, None):
        want = max(49_999, start or 0)
        assert ga.reduce(x, start, np.maximum) == want
        assert ga.reduce(x, start, np.maximum, out=np.empty((), int)) == want


def test_any_ends_at_what_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, real = [], cpu.of_pieces

    def seen(x: Any, count: int, function: Any, deciding: Any, axis: int) -> list[Any]:
        def look(part: Any) -> Any:
            looked.append(part.size)
            return function(part)

        return real(x, count, look, deciding, axis)

    monkeypatch.setattr(cpu, "of_pieces", seen)
    assert ga.reduce(np.ones(1 << 25, bool), None, np.logical_or)
    assert sum(looked) <= 2 * cpu._PIECE_BYTES + 8


@pytest.mark.parametrize("axis", [None, (0, 1)])
def test_a_start_in_warm_calls_that_keep_axes(backend: Backend, axis: Any) -> None:
    x = backend.to_device(np.arange(1 << 15, dtype=np.int16).reshape(2, -1))
    for start, expected in ((None, 0), (-3, -3), (5, 0), (-3, -3)):
        for keepdims in (True, False):
            found = ga.reduce(x, start, min, axis=axis, keepdims=keepdims)
            assert np.ravel(backend.to_host(found)).tolist() == [expected]
