"""Pageable arrays of which a part has been page-locked: the driver refuses to copy them as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga
from gpualgo._driver import driver
from gpualgo._pipeline import host_small

REFUSED = 1  # CUDA_ERROR_INVALID_VALUE
PAGE = 4096
LENGTH = 8 * PAGE // 8


class Refusing:
    """The driver, which copies no memory that is pageable only in part."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self.locked = (0, 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def _is_mixed(self, host: int, size: int) -> bool:
        begin, end = self.locked
        return max(begin, host) < min(end, host + size) and not begin <= host <= host + size <= end

    def cuMemcpyHtoDAsync(self, target: int, source: Any, size: int, stream: int) -> Any:
        if isinstance(source, int) and self._is_mixed(source, size):
            return (REFUSED,)
        return self._made.cuMemcpyHtoDAsync(target, source, size, stream)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> Any:
        if self._is_mixed(target, size):
            return (REFUSED,)
        return self._made.cuMemcpyDtoHAsync(target, source, size, stream)


@pytest.fixture
def refusing(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Refusing:
    made = Refusing(driver.api())
    monkeypatch.setattr(driver, "api", lambda: made)
    return made


@pytest.fixture(params=["by a tray", "by copies", "whole"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    from gpualgo._driver import pinned

    monkeypatch.setattr(host_small, "IN_PLACE_BYTES", 0)
    if request.param != "by a tray":
        monkeypatch.setattr(pinned, "TRAY_BYTES", 0)
    if request.param == "whole":
        monkeypatch.setattr(host_small, "MOST_BYTES", 0)
    return str(request.param)


def _pages(length: int) -> np.ndarray[Any, Any]:
    """Return numbers that begin where a page does."""
    raw = np.zeros(length * 8 + PAGE, np.uint8)
    start = -raw.ctypes.data % PAGE
    return raw[start : start + length * 8].view(np.float64)


@pytest.mark.parametrize("part", [(0, 3), (3, 5), (5, 8)], ids=["first", "middle", "last"])
def test_arrays_and_outputs(
    cuda: Backend, refusing: Refusing, way: str, part: tuple[int, int]
) -> None:
    x, out = _pages(LENGTH), _pages(LENGTH)
    x[:] = np.arange(LENGTH)
    runtime = cuda.xp.cuda.runtime
    with ga.default_device("cuda"):
        ga.reduce(x)
        ga.inclusive_scan(x)  # are known to be pageable
        for array in (x, out):
            place, size = array.ctypes.data + part[0] * PAGE, (part[1] - part[0]) * PAGE
            runtime.hostRegister(place, size, 0)
            refusing.locked = place, place + size
            try:
                for _ in range(2):
                    assert ga.reduce(x) == x.sum()
                    out[:] = -1
                    assert ga.inclusive_scan(x, out=out) is out
                    assert_same(out, np.cumsum(x))
            finally:
                refusing.locked = 0, 0
                runtime.hostUnregister(place)
