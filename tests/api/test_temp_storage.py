"""temp_storage_bytes: what calls on a GPU take besides their arrays, and what it refuses."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from support import Backend, count_gpus

import gpualgo as ga

MIB = 1 << 20


def test_sort_takes_one_copy(cuda: Backend) -> None:
    n = 1 << 25
    keys, values = cuda.xp.zeros(n, "u4"), cuda.xp.zeros(n, "i8")
    table = 6 * MIB  # a bound whatever n
    assert n * 4 <= ga.temp_storage_bytes(ga.radix_sort, keys) <= n * 4 + table
    assert n * 12 <= ga.temp_storage_bytes(ga.radix_sort, keys, values) <= n * 12 + table


def test_scan_takes_a_word_for_each_tile(cuda: Backend) -> None:
    x = cuda.xp.zeros(1 << 26, np.float32)
    tiles = -(-x.size // (256 * 36))
    assert ga.temp_storage_bytes(ga.inclusive_scan, x) == 256 + 8 * tiles
    assert ga.temp_storage_bytes(ga.inclusive_scan, x.reshape(-1, 64), axis=1) == 0


def test_transform_takes_none(cuda: Backend) -> None:
    assert ga.temp_storage_bytes(ga.transform, lambda a: a + 1, cuda.xp.zeros(9)) == 0


def test_histogram_within_what_a_stream_keeps(cuda: Backend) -> None:
    assert ga.temp_storage_bytes(ga.histogram, cuda.xp.zeros(1 << 20), 256, (0, 1)) <= MIB


def test_on_the_cpu_nothing_is_the_callers() -> None:
    x = np.arange(1000.0)[::-1].copy()
    with ga.default_device("cpu"):
        assert ga.temp_storage_bytes(ga.radix_sort, x) == 0
        plan = ga.prepare(ga.radix_sort, x)
        storage = np.empty(plan.temp_storage_bytes, np.uint8)
        np.testing.assert_array_equal(plan(x, temp_storage=storage), np.arange(1000.0))
        with pytest.raises(ValueError, match="shares memory with an array"):
            plan(x, temp_storage=x.view(np.uint8))
        locked = np.empty(8, np.uint8)
        locked.flags.writeable = False
        with pytest.raises(ValueError, match="temp_storage must be writable"):
            plan(x, temp_storage=locked)


@pytest.mark.skipif(count_gpus() > 0, reason="a GPU is here")
def test_memory_resources_without_a_gpu() -> None:
    """A program that sets them runs; what is wrong with a GPU is wrong without one."""
    ga.set_memory_resource(None)
    with pytest.raises(ValueError, match="unknown resource 'malloc'"):
        ga.set_memory_resource("malloc")
    with pytest.raises(ga.NoDeviceError):
        ga.set_memory_resource(None, device=0)
    with pytest.raises(TypeError, match=r"object is no MemoryResource of cuda\.core"):
        ga.set_memory_resource(object())
    if importlib.util.find_spec("rmm") is None:
        with pytest.raises(ImportError, match=r"^set_memory_resource: rmm is not installed"):
            ga.set_memory_resource("rmm")
