"""Plans of selections by rank on a GPU that is not there."""

from __future__ import annotations

from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray

import gpualgo as ga
from gpualgo._algorithms.top_k import tuning

STRATEGIES = [
    (1, 1 << 14, 10, tuning.SHORT), (1, 1 << 14, 2000, tuning.SHARED),
    (1, 1 << 20, 10, tuning.PARTS), (1, 1 << 20, 1000, tuning.SHARED),
    (16, 128_256, 2000, tuning.SHARED), (1, 1 << 20, 10_000, tuning.SORT),
    (1, 1 << 24, 1000, tuning.LONG), (1, 1 << 24, 10_000, tuning.LONG),
    (1, 1 << 24, 1 << 23, tuning.SORT), (1000, 20_000, 2000, tuning.BLOCK),
    (1 << 20, 64, 64, tuning.SMALL), (1 << 20, 65, 65, tuning.SHORT),
]  # fmt: skip
OF_RANKS = [
    (1 << 20, 128, [31], tuning.SMALL), (1 << 20, 128, [0, 31], tuning.SORT),
    (1 << 20, 129, [0, 31], tuning.SHORT), (1 << 20, 129, [0, 32], tuning.SORT),
    (127, 1000, [500, 501], tuning.BLOCK), (128, 1000, [500], tuning.SORT),
    (128, 1025, [500], tuning.BLOCK), (1024, 1 << 14, [500, 501], tuning.SORT),
    (1024, 1 << 15, [500, 501], tuning.BLOCK), (1024, 1 << 15, [0, 1, 2], tuning.SORT),
    (200, 1 << 18, [0, 1], tuning.SORT), (100, 1 << 19, [0], tuning.SORT),
    (1, 1 << 20, [0, 1], tuning.SHARED), (64, 1 << 18, [0], tuning.SHARED),
    (64, 1 << 18, [0, 1], tuning.SORT), (8, 1 << 21, [0, 1], tuning.SHARED),
    (64, 1 << 15, [0, 1, 2, 3], tuning.SHARED), (64, 1 << 15, [0, 1, 2, 3, 4], tuning.BLOCK),
    (1, 1 << 24, list(range(8)), tuning.LONG), (1, 1 << 24, list(range(9)), tuning.SORT),
    (1 << 27, 33, [0, 1], tuning.SMALL), (1 << 22, 1025, [0, 99], tuning.BLOCK),
]  # fmt: skip


def test_the_strategy_follows_from_rows_and_count() -> None:
    for num_rows, row_items, count, strategy in STRATEGIES:
        assert tuning.strategy_of(num_rows, row_items, count, 4) == strategy
    for num_rows, row_items, ranks, strategy in OF_RANKS:
        assert tuning.strategy_of_ranks(num_rows, row_items, 4, ranks) == strategy


def test_more_rows_than_a_launch_has_blocks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    monkeypatch.setattr(tuning, "SMALL_FIRST", 0)  # a block has 4 rows
    assert ga.temp_storage_bytes(ga.top_k, FakeArray((1 << 32, 1), np.int8), 1) >= 0
    with pytest.raises(ValueError, match=r"blocks in one launch, of which a GPU takes 2147483647"):
        ga.temp_storage_bytes(ga.top_k, FakeArray((9 << 30, 1), np.int8), 1)


def test_a_process_that_has_a_part_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that wait for each other are launched again, half as many, until all can run."""
    driver = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    grids: list[int] = []

    def launched(config: Any, *_: Any) -> tuple[Any]:
        grids.append(config.gridDimX)
        assert config.attrs[0].id == "CU_LAUNCH_ATTRIBUTE_COOPERATIVE"
        is_too_large = config.numAttrs > 0 and config.gridDimX > 3 * most
        return ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" if is_too_large else 0,)

    monkeypatch.setattr(driver, "cuLaunchKernelEx", launched)
    x, most = FakeArray((1 << 20,), np.float32), 10
    for _ in range(2):  # the second call begins with the grid that the first one found
        ga.kth_value(x, [0, 1, 2])
    assert grids == [192, 96, 48, 24, 24]
    most = 0
    for _ in range(2):  # a block for each rank waits for no other
        ga.kth_value(x, [0, 1, 2])
    assert grids[5:] == [24, 12, 6, 3, 3]


def test_a_gpu_of_fewer_blocks_than_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block for each of them waits for no other: all need not run at the same time."""
    driver = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    for ordinal in range(fake_driver.NUM_DEVICES):
        monkeypatch.setitem(fake_driver.gpu(ordinal).__dict__, "num_sms", 16)
    launches: list[tuple[int, bool]] = []

    def launched(config: Any, *_: Any) -> tuple[Any]:
        launches.append((config.gridDimX, bool(getattr(config, "numAttrs", 0))))
        return (0,)

    monkeypatch.setattr(driver, "cuLaunchKernelEx", launched)
    for num_rows in (64, 16):
        ga.kth_value(FakeArray((num_rows, 1 << 14), np.float32), 7)
    assert launches == [(64, False), (32, True)]
