"""Scans along axes: every shape of row and column, order, layouts, outputs; and what is large."""

from __future__ import annotations

import operator
from typing import Any

import leaves
import numpy as np
import pytest
from support import (
    DTYPES,
    LAYOUTS,
    Backend,
    a_few,
    affine,
    assert_same,
    assert_same_on_one_core,
    compose,
    need_memory,
    random_array,
    sampled,
    summable,
)
from test_scan import INIT, check_order, scanned

import gpualgo as ga

SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((40_009, 1), 1),  # many short rows
    ((40_009, 3), 1),
    ((5003, 33), -1),
    ((65, 513), 1),
    ((700, 1025), 1),
    ((1, 100_001), 1),  # few long rows
    ((2, 40_009), 1),
    ((63, 33_001), 1),
    ((3, 800_001), 1),
    ((40_009, 2), 0),  # few long columns
    ((40_009, 15), 0),
    ((5003, 16), 0),
    ((4097, 300), 0),
    ((3, 40_009), 0),  # many short columns
    ((1, 40_009), 0),
    ((1025, 257), 0),
    ((31, 33), -2),
    ((4, 5, 1026), 1),  # a middle axis
    ((33, 1000, 2), 1),
    ((3, 5000, 20), 1),
    ((2, 34_001, 3), 1),
    ((4, 300, 1), 1),
    ((1, 1, 1), 1),
    ((3, 4, 5, 6), 0),
    ((3, 4, 5, 6), -2),
    ((1000,), 0),
]


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_order_along_axes(backend: Backend, shape: tuple[int, ...], axis: int) -> None:
    x = affine(shape)
    check_order(backend, x, backend.to_device(x), axis)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((65, 130), 0), ((65, 130), 1), ((9, 65, 31), 1), ((2, 33_001), 1), ((4100, 17), 0)],
    ids=str,
)
def test_layouts_along_axes(
    backend: Backend, layout: str, shape: tuple[int, ...], axis: int
) -> None:
    x = affine(shape)
    check_order(backend, x, backend.arrange(layout, x), axis)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype_along_axes(backend: Backend, dtype: np.dtype[Any], axis: int) -> None:
    x = summable((67, 130), dtype)
    device = backend.to_device(x)
    want = np.add.accumulate(x, axis=axis, dtype=dtype)
    got = ga.inclusive_scan(device, axis=axis)
    assert_same(backend.to_host(got), want, zero_signs=False)
    first = np.zeros_like(x.take([0], axis))
    want = np.concatenate([first, np.delete(want, -1, axis)], axis)
    got = ga.exclusive_scan(device, False, axis=axis)
    assert_same(backend.to_host(got), want, zero_signs=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((9, 33, 20), 0), ((9, 33, 20), 1), ((9, 33, 20), 2), ((2, 33_001), 1), ((4100, 17), 0)],
    ids=str,
)
def test_outputs_and_in_place(
    backend: Backend, guarded: Any, layout: str, shape: tuple[int, ...], axis: int
) -> None:
    x = affine(shape)
    for reverse in a_few((False, True)):
        out = guarded(shape, "uint64", layout)
        for source in ("contiguous", "fortran", "reversed"):
            given = backend.arrange(source, x)
            assert ga.inclusive_scan(given, 5, compose, axis=axis, reverse=reverse, out=out) is out
            assert_same(backend.to_host(out), scanned(compose, x, axis, 5, reverse=reverse))
        out[...] = backend.to_device(x)
        assert ga.inclusive_scan(out, None, compose, axis=axis, reverse=reverse, out=out) is out
        assert_same(backend.to_host(out), scanned(compose, x, axis, reverse=reverse))
        out[...] = backend.to_device(x)
        ga.exclusive_scan(out, INIT, compose, axis=axis, reverse=reverse, out=out)
        want = scanned(compose, x, axis, INIT, exclusive=True, reverse=reverse)
        assert_same(backend.to_host(out), want)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_inputs_without_memory_of_their_own(backend: Backend, axis: int | None) -> None:
    for shape in ((1, 40), (50, 1), (1, 1)):
        x = affine(shape)
        spread = backend.xp.broadcast_to(backend.to_device(x), (50, 40))
        check_order(backend, np.broadcast_to(x, (50, 40)), spread, axis)
    frozen = affine((50, 40))
    frozen.flags.writeable = False
    check_order(backend, frozen, frozen, axis)
    packed = np.zeros((50, 40), [("flag", "u1"), ("value", "u8")])
    packed["value"] = frozen
    check_order(backend, frozen, packed["value"], axis)  # fields start at any byte
    windows = np.lib.stride_tricks.sliding_window_view(affine(89), 40)
    check_order(backend, windows, windows, axis)


@pytest.mark.slow
def test_the_same_bits_on_one_core() -> None:
    assert_same_on_one_core("""if True:
        import zlib, numpy as np, gpualgo as ga
        x = np.random.default_rng(0).standard_normal(1 << 22).astype(np.float32)
        for shape in ((-1,), (3, -1), (-1, 3), (-1, 40), (1 << 10, -1)):
            for axis in range(len(shape)):
                rows = x[: x.size // 120 * 120].reshape(shape) if 1 << 10 not in shape else (
                    x.reshape(shape))
                y = ga.inclusive_scan(rows, 0.5, lambda a, b: a + b, axis=axis)
                print(zlib.crc32(y.tobytes()))
    """)


@pytest.mark.parametrize("is_tuple", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((80_000,), 0), ((70_001, 3), 0), ((5000, 300), 0)])
def test_aggregates_that_come_late(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], axis: int, is_tuple: bool
) -> None:
    """A CPU thread waits for no other: what it lacks, it computes once more, to the same bits."""
    from gpualgo._algorithms.scan import problem as parameters
    from gpualgo._cpu.kernels import check, status_function
    from gpualgo._cpu.launch import Launch
    from gpualgo._cpu.memory import address

    def backwards(self: Launch, words: Any) -> None:
        table, memory = self.table.copy(), np.zeros(self.scratch_bytes, np.uint8)
        for slot, word in zip(self.slots, words, strict=True):
            table[slot] = address(word) if isinstance(word, np.ndarray) else word
        for task in reversed(range(self.tasks)):
            table[parameters.NEXT] = task
            check(status_function(self.kernel)(address(table), address(memory), 0, 1))
        seen.append(self.tasks)

    seen: list[int] = []
    x, op = affine(shape), compose
    if is_tuple:
        x, op = tuple(leaves.make(shape, leaves.PAIR)), leaves.compose
    with ga.default_device("cpu"):
        want = ga.inclusive_scan(x, None, op, axis=axis)
        monkeypatch.setattr(Launch, "__call__", backwards)
        got = ga.inclusive_scan(x, None, op, axis=axis)
    if is_tuple:
        leaves.assert_each(list(got), list(want))
    else:
        assert_same(got, want)
    assert seen


def test_a_long_sum_rounds_as_it_may(backend: Backend) -> None:
    x = random_array(100_003, np.dtype("float32"))
    exact = np.cumsum(x, dtype=np.float64)
    # The bound of any order of n - 1 roundings of relative size u = eps / 2 (Higham 2002, 4.2).
    roundings = np.arange(x.size) * np.finfo(np.float32).eps / 2
    bound = 1.01 * roundings * np.cumsum(np.abs(x), dtype=np.float64)
    for op in (operator.add, lambda a, b: a + b):
        got = backend.to_host(ga.inclusive_scan(backend.to_device(x), None, op))
        assert (np.abs(got - exact) <= bound).all()


@pytest.mark.slow
def test_beyond_32_bits(backend: Backend) -> None:
    n = 2**31 + 12_345
    need_memory(backend, 3 * n)
    x = backend.xp.broadcast_to(backend.to_device(np.array(1, np.int8)), (n,))
    y = ga.inclusive_scan(x, None, lambda a, b: a + b)
    for start, stop, step in ((0, n, 251), (0, 2**16, 1), (2**31 - 2**16, n, 1)):
        places = backend.xp.arange(start, stop, step)
        want = ((places + 129) % 256 - 128).astype(np.int8)
        assert bool((y[start:stop:step] == want).all()), f"from {start} to {stop} by {step}"


def test_elements_beyond_32_bits(cuda: Backend) -> None:
    n = 2**31 + 12_345
    need_memory(cuda, 4 * n)
    x = cuda.xp.zeros(n, np.int8)
    x[0], x[2**31], x[-1] = 3, 4, 5
    y = ga.exclusive_scan(x, 1, lambda a, b: b if b != 0 else a, reverse=True)
    assert [int(y[i]) for i in (0, 1, 2**31 - 1, 2**31, n - 2, n - 1)] == [4, 4, 4, 5, 5, 1]
    assert int((y == 4).sum()) == 2**31
    rows = x[: n // 3 * 3].reshape(3, -1)  # and far apart
    for axis in (0, 1):  # the assertions are of both
        ga.inclusive_scan(rows, None, max, axis=axis, out=rows)
    assert [int(v) for v in rows.max(axis=1)] == [3, 3, 4]
    assert int((rows[2] == 4).sum()) == n // 3 * 3 - 2**31


@pytest.mark.parametrize("length", [4, 8, 16, 24])
@pytest.mark.parametrize(
    ("dtype", "acc"),
    [("float32", "float64"), ("uint8", "int64"), ("uint8", "int32"), ("int64", "float32"),
     ("int64", "float16")],
)  # fmt: skip
def test_short_rows_of_another_size_than_their_results(
    cuda: Backend, length: int, dtype: str, acc: str
) -> None:
    """What is narrower lies in shared memory at distances that are no multiples of 16 bytes."""
    x = (np.arange(500 * length) % 5).reshape(500, length).astype(dtype)
    for step in (1, -1):
        want = np.add.accumulate(x[:, ::step], 1, acc)[:, ::step]
        got = ga.inclusive_scan(cuda.to_device(x), axis=1, dtype=acc, reverse=step < 0)
        assert_same(cuda.to_host(got), want)
