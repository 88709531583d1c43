"""A driver for machines without a GPU: its device memory is the host's, and it notes every call."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import pytest

from gpualgo._driver import driver, lifetime


class FakeDriver:
    """Stands for cuda.bindings.driver; kernels cannot run."""

    class CUstreamCaptureMode:
        CU_STREAM_CAPTURE_MODE_RELAXED = 2

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.capturing: set[int] = set()
        self.device_of_stream: dict[int, int] = {}
        self.current = 0

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def note(*args: Any) -> tuple[Any, ...]:
            self.calls.append((name, *args))
            return (0, len(self.calls)) if name.endswith("Create") else (0,)

        return note

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the calls of some functions."""
        return [call for call in self.calls if call[0] in names]

    def cuStreamIsCapturing(self, stream: int) -> tuple[int, int]:
        return 0, int(stream in self.capturing)

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> tuple[int, int]:
        return 0, mode

    def cuEventQuery(self, event: Any) -> tuple[int]:
        return (0,)

    def cuCtxGetCurrent(self) -> tuple[int, int]:
        return 0, self.current

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        self.current = context
        return (0,)

    def cuStreamGetCtx(self, stream: int) -> tuple[int, int]:
        return 0, 100 + self.device_of_stream[stream]

    def cuCtxGetDevice(self) -> tuple[int, int]:
        return 0, self.current - 100

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        ctypes.memmove(target, source, size)
        return (0,)

    def _set(self, address: int, pitch: int, word: bytes, width: int, height: int) -> tuple[int]:
        for row in range(height):
            ctypes.memmove(address + row * pitch, word * width, len(word) * width)
        return (0,)

    def cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        return self._set(address, 0, value.to_bytes(1, "little"), count, 1)

    def cuMemsetD16Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        return self._set(address, 0, value.to_bytes(2, "little"), count, 1)

    def cuMemsetD32Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        return self._set(address, 0, value.to_bytes(4, "little"), count, 1)

    def cuMemsetD2D8Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> tuple[int]:
        return self._set(address, pitch, value.to_bytes(1, "little"), width, height)

    def cuMemsetD2D16Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> tuple[int]:
        return self._set(address, pitch, value.to_bytes(2, "little"), width, height)

    def cuMemsetD2D32Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> tuple[int]:
        return self._set(address, pitch, value.to_bytes(4, "little"), width, height)


def install(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Replace the driver for one test."""
    gc.collect()  # what lives on a real GPU is freed there
    made = FakeDriver()
    monkeypatch.setattr(driver, "api", lambda: made)
    monkeypatch.setattr(driver, "is_simple", True)
    monkeypatch.setattr(driver, "primary_context", lambda device: 100 + device)
    monkeypatch.setattr(driver, "require_device", lambda ordinal: None)
    monkeypatch.setattr(lifetime, "_in_use", {})
    return made
