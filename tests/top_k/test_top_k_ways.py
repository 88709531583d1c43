"""Long rows: by a sample, also where it misleads, on both backends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ranked import MODES, NUMBERS, check, check_ranks, some
from support import Backend, a_few

import gpualgo as ga
from gpualgo._algorithms.top_k import FirstElements, RankedElements, cpu, tuning

N = 9001


@pytest.fixture(autouse=True)
def _long_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let rows of some thousands be long, and no plan outlive the test."""
    monkeypatch.setattr(tuning, "LONG_ROW", 3000)
    monkeypatch.setattr(tuning, "SHORT_ROW", 1024)
    monkeypatch.setattr(tuning, "MOST_IN_PARTS", 0)
    monkeypatch.setattr(tuning, "MOST_SHARED_BYTES", 0)
    monkeypatch.setattr(tuning, "LEAST_SELECTED", 0)
    monkeypatch.setattr(tuning, "MOST_SORTED", 64)
    monkeypatch.setattr(tuning, "FILTER_THREADS", 64)  # several blocks
    monkeypatch.setattr(tuning, "RANKS_THREADS", 64)
    monkeypatch.setattr(tuning, "RANKS_SHARE", 1 << 10)
    monkeypatch.setattr(cpu, "LONG_ROW", 4000)
    monkeypatch.setattr(cpu, "LONG_FOR_RANK", 4000)
    monkeypatch.setattr(cpu, "_CHUNK", 1000)
    for kind in (FirstElements, RankedElements):
        kind.problems.clear()
    yield
    for kind in (FirstElements, RankedElements):
        kind.problems.clear()


def samples() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "random": rng.standard_normal(N).astype(np.float32),
        "with ties": some(N, "float32"),
        "equal": np.zeros(N, np.float32),
        "rising": np.arange(N, dtype=np.float32),
        "falling": -np.arange(N, dtype=np.float32),
        "few that are not NaN": np.where(rng.random(N) < 0.001, 1, np.nan).astype(np.float32),
        "periodic": (np.arange(N) % 256).astype(np.float32),
        "least": np.zeros(N, np.uint32),
        "largest": np.full(N, np.uint32(0xFFFFFFFF)),
    }


@pytest.mark.parametrize("about", samples())
@pytest.mark.parametrize("k", [1, 10, 64, 65, 500, 560])
def test_first_elements(backend: Backend, about: str, k: int) -> None:
    for mode in MODES:
        check(backend, samples()[about], k, mode)


@pytest.mark.parametrize("about", samples())
@pytest.mark.parametrize("rows", [1, 3])
def test_first_elements_of_parts(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, about: str, rows: int
) -> None:
    """The last part is shorter than the others."""
    monkeypatch.setattr(tuning, "MOST_IN_PARTS", N)
    monkeypatch.setattr(tuning, "SHORT_ROW", 2048)
    monkeypatch.setattr(tuning, "LEAST_PART", 256)
    x = np.stack([np.roll(samples()[about], 50 * row) for row in range(rows)])
    for k in (1, 31, 33, 100, 400):
        assert tuning.strategy_of(rows, N, k, 8) == tuning.PARTS
        check(backend, x[0] if rows == 1 else x, k, "largest")
        check(backend, x.astype("float64"), k, "smallest")


@pytest.mark.parametrize("about", samples())
def test_ranks(backend: Backend, monkeypatch: pytest.MonkeyPatch, about: str) -> None:
    """Several in one reading, near each other or not."""
    monkeypatch.setattr(tuning, "DEVIATIONS", 2)  # their bounds do not overlap
    x = samples()[about]
    check_ranks(backend, x, [N - 1, 0, 1, 100, N // 2, N - 2, N // 4, N // 2 + 1])
    check_ranks(backend, x, [N // 3])


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks share rows of some thousands."""
    monkeypatch.setattr(tuning, "MOST_SHARED_BYTES", 1 << 24)
    monkeypatch.setattr(tuning, "LEAST_SHARED", 2000)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("about", samples())
@pytest.mark.parametrize("rows", [1, 3])
def test_rows_that_blocks_share(backend: Backend, about: str, rows: int) -> None:
    x = np.stack([np.roll(samples()[about], 50 * row) for row in range(rows)])
    x = x[0] if rows == 1 else x
    assert tuning.is_shared(rows, N, 8)
    check_ranks(backend, x, N // 3)
    check_ranks(backend, x, [N - 1, 0, N // 2 + 1])
    assert tuning.strategy_of(rows, N, 100, 8) == tuning.SHARED
    check(backend, x, 100, "largest")
    check(backend, x.astype("float64"), N // 4, "smallest")


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("about", samples())
def test_rows_that_blocks_share_in_several_launches(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, about: str
) -> None:
    monkeypatch.setattr(tuning, "MOST_GROUPS", 4)
    x = np.stack([np.roll(samples()[about], 50 * row) for row in range(3)])
    check_ranks(backend, x, [N - 1, 0, N // 2 + 1, 7])


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "int64", "float64"])
def test_dtypes_of_shared_rows(backend: Backend, dtype: str) -> None:
    x = some((2, N), dtype)
    check_ranks(backend, x, [0, N // 2, N - 1])
    check(backend, x, 300, "largest")
    check(backend, x, 1, "smallest")


@pytest.mark.usefixtures("shared")
def test_shared_rows_leave_zeros(backend: Backend) -> None:
    """Calls after each other on one stream use the same counts, also after a call by a sort."""
    x = some(N, "float32")
    for _ in range(3):
        check_ranks(backend, x, 7)
        check_ranks(backend, np.zeros(N, np.int8), N - 7)
        ga.argsort(backend.to_device(x))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("length", [33, 700, 2100])
def test_ranks_of_rows_that_are_sorted(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, dtype: str, length: int
) -> None:
    """In a block, or by passes; also where columns are copied to rows, and to an output."""
    monkeypatch.setattr(tuning, "MANY_ROWS", 5)
    ranks, x = [length - 1, 0, length // 2, length // 2], some((5, length), dtype)
    assert tuning.strategy_of_ranks(5, length, x.itemsize, ranks) == tuning.SORT
    check_ranks(backend, x, ranks)
    check_ranks(backend, x, length // 2 if length < 1000 else [length // 3, 40])
    columns = backend.to_device(np.ascontiguousarray(x.T))
    check_ranks(backend, x, ranks, columns.T)
    out = backend.to_device(np.zeros((len(ranks), 10), dtype))
    assert ga.kth_value(columns, ranks, axis=0, out=out[:, ::2]) is not None
    found, want = backend.to_host(out), np.zeros((len(ranks), 10), dtype)
    want[:, ::2] = backend.to_host(ga.kth_value(backend.to_device(x), ranks))
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("length", [1, 2, 3, 8, 31, 32, 33, 64, 65, 128])
def test_rows_that_lanes_sort(backend: Backend, dtype: str, length: int) -> None:
    """Every count and rank; also where the last row's lanes are not all there."""
    x = some((67, length), dtype, length)
    for k in a_few(range(1, length + 1), 3):
        for mode in MODES:
            check(backend, x, k, mode)
    check_ranks(backend, x, [*range(length)][:8])
    check_ranks(backend, x, length - 1)
    columns = backend.to_device(np.ascontiguousarray(x.T))
    check_ranks(backend, x, [length // 2, 0], columns.T)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "int64", "float64"])
def test_dtypes(backend: Backend, dtype: str) -> None:
    x = some(N, dtype)
    check(backend, x, 60, "largest")
    check(backend, x, 300, "smallest")
    check_ranks(backend, x, [N // 3])
    check_ranks(backend, x, [N // 5, N // 2, 3])


def test_a_few_long_rows_of_any_alignment(backend: Backend) -> None:
    x = some((3, N), "int16")
    check(backend, x, 20, "largest")
    check(backend, x, 200, "largest")
    check_ranks(backend, x, [5, 4000])
    for begin in range(1, 9):
        part = x[0][begin:]
        check(backend, part.copy(), 20, "largest", backend.to_device(x[0])[begin:])


@pytest.mark.parametrize("about", samples())
def test_rows_that_blocks_read_again(backend: Backend, about: str) -> None:
    x = np.resize(samples()[about], (6, 3001))
    for mode in MODES:
        for k in (1, 40, 64):
            check(backend, x, k, mode)


CHANGES = [{"last": 0}, {"capacity": 3}, {"first": 200, "last": 210}]


@pytest.mark.parametrize("change", CHANGES)
def test_samples_that_mislead(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, change: dict[str, int]
) -> None:
    """Too few are kept, or more than there is room for: the row itself is looked at."""
    usual = tuning.sample_of

    def changed(row_items: int, rank: int, is_one: bool, most_bits: int = 20) -> tuning.Sample:
        sample = replace(usual(row_items, rank, is_one, most_bits), **change)
        return replace(sample, first=min(sample.first, sample.last) if is_one else -1)

    monkeypatch.setattr(tuning, "sample_of", changed)
    x = some(N, "float32")
    for k in (10, 300):
        check(backend, x, k, "largest")
    check_ranks(backend, x, [3, N // 2])


@pytest.mark.parametrize("log", range(15, 40))
def test_samples_are_in_proportion(log: int) -> None:
    for n in (1 << log, (1 << log + 1) - 1):
        for rank in (0, 99, n // 100, n // 2, n - 1):
            for is_one in (False, True):
                sample = tuning.sample_of(n, rank, is_one)
                size = 1 << sample.bits
                assert -1 <= sample.first < (rank + 1) * size / n < sample.last + 1 <= size + 1
                assert 0 < sample.capacity <= n
                # The kernel's product of a stretch's number and the length stays in 64 bits.
                assert size * n < 1 << 64


def test_temporary_storage_is_little(backend: Backend) -> None:
    if backend.xp is np:
        pytest.skip("of the GPU")
    x = backend.to_device(np.zeros(60_000, np.float32))
    assert ga.temp_storage_bytes(ga.top_k, x, 5) < 8 * 60_000
    assert ga.temp_storage_bytes(ga.kth_value, x, 5) < 8 * 60_000


def test_positions_of_64_bits(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """As rows of 2^32 elements and more have them."""
    monkeypatch.setattr(tuning, "index_bytes", lambda row_items: 8)
    for x in (some(N, "int16"), some((5, 1500), "float64")):
        for k in (20, 300):
            check(cuda, x, k, "largest")
        check_ranks(cuda, x, [3, 700])
    for dtype in a_few(("int16", "float64")):
        check_ranks(cuda, some(N + 1, dtype), [N // 2, 70, N])
        check(cuda, some(N + 1, dtype), 300, "largest")
