"""Short rows, which NumPy sorts on the CPU: orders, devices, keys that others write, dtypes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from support import other_spelling, run_python
from test_radix_sort import assert_bits, stable_order

import gpualgo as ga
from gpualgo._algorithms.radix_sort import cpu_numpy
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._base import dtypes
from gpualgo._pipeline import auto

DTYPES = ("int16", "int32", "uint32", "float32", "int64", "uint64", "float64")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have NumPy sort all that it can, and each dtype known."""
    monkeypatch.setattr(cpu_numpy, "is_vectorised", lambda: True)
    monkeypatch.setattr(cpu_numpy, "_has_narrow_vectors", lambda: True)
    Sort.problems.clear()
    with ga.default_device("cpu"):
        for dtype in DTYPES:
            for _ in range(2):
                ga.radix_sort(np.arange(9)[::-1].astype(dtypes.from_name(dtype)))
        yield
    Sort.problems.clear()


def _keys(dtype: str, n: int = 1000) -> np.ndarray[Any, Any]:
    keys = np.random.default_rng(n).integers(-40, 40, n).astype(dtypes.from_name(dtype))
    if dtypes.kind(keys.dtype) == "f":
        keys[::3] *= -1  # zeros of both signs
        keys[5::50], keys[7::50] = np.nan, -np.nan
    return keys


def test_orders() -> None:
    rows = {row.name: row for row in auto.TABLE}
    counted = dict.fromkeys(cpu_numpy.COUNTED_DTYPES, 1 << 14)
    assert np.dtype("f4") in cpu_numpy._ORDER_KEYS
    for dtype, most in (counted | cpu_numpy._ORDER_KEYS).items():
        row = rows["order"]
        assert row.least_keys is not None
        assert dtype.itemsize < row.least_key_bytes or most < row.least_keys  # no GPU takes it
        for n in (0, 1, most, most + 1):
            keys = _keys(dtype.name, n)
            want = np.argsort(keys, kind="stable")
            for _ in range(2):
                assert_bits(ga.argsort(keys), want)
            assert_bits(ga.argsort(keys, dtype=np.int32), want.astype(np.int32))
            assert_bits(ga.argsort(keys, descending=True), stable_order(keys, True))
            out = np.zeros(n, np.int64)
            assert ga.argsort(keys, out=out) is out
            assert_bits(out, want)
            with pytest.raises(TypeError, match="argsort: axis"):
                ga.argsort(keys, axis=True)


def test_an_environment_that_another_thread_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import default_device

    class Changed:
        """An environment that is another one the next time that it is read."""

        _data: ClassVar = {default_device.DEVICE_KEY: os.environ.encodevalue("cpu")}  # type: ignore[attr-defined]
        decodevalue = staticmethod(os.environ.decodevalue)  # type: ignore[attr-defined]

        def get(self, *_: Any) -> str:
            return "no device"

    token = default_device.chosen.set(None)
    try:
        monkeypatch.setattr(default_device, "_from_environment", {})
        monkeypatch.setattr(default_device, "os", SimpleNamespace(environ=Changed()))
        for _ in range(2):
            assert default_device.current() == default_device.CPU
    finally:
        default_device.chosen.reset(token)


_WRITTEN_TO = """
import numpy as np
from gpualgo._algorithms.radix_sort.cpu_numpy import kernel
from gpualgo._cpu.launch import Launch

for size in (4, 8):
    for falls in (0, 1):
        for length in (9, 5000):
            table = np.array((0, 0, length))
            mend = Launch(kernel("mend", size, falls), table, (0, 1), 0, 1, 0)
            row = np.full(length, np.nan, f"f{size}")
            row[:4] = (0, 0, -0.0, -1) if falls else (-1, -0.0, 0, 0)
            for keys in (np.ones_like(row), np.zeros_like(row)):
                keys[5:7] = -0.0, np.nan
                mend((keys, row.copy()))
print("ended")
"""


def test_keys_that_another_thread_writes_to() -> None:
    """Zeros and NaNs that a row has, and keys have no more, are not looked for for ever."""
    found = run_python(_WRITTEN_TO, timeout=60)
    assert (found.returncode, found.stdout) == (0, "ended\n"), found.stderr


def test_warm_results_have_the_first_result_s_dtype() -> None:
    """Not the other spelling of the keys' dtype, nor its metadata."""
    own = np.dtype(np.int64)
    for dtype in (other_spelling(own), np.dtype("int64", metadata={"unit": "s"})):
        x = np.arange(9)[::-1].astype(dtype)
        with ga.default_device("cpu"):
            results = [sort(x) for sort in (ga.radix_sort, ga.sort) for _ in range(4)]
        assert [(y.dtype.char, y.dtype.metadata) for y in results] == [(own.char, None)] * 8
