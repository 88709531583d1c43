"""Calls on arrays of the host while the driver fails: at each of its calls in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import support
from contract.state.failing import driver_fails
from support import Backend, assert_same, forget_problems

import gpualgo as ga
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, pinned, staging
from gpualgo._pipeline import host_small

Host = np.ndarray[Any, Any]
TRAY = 1 << 14
# How many values each of those gives beside its status; all others give none.
VALUES = dict.fromkeys(
    ("cuMemAlloc", "cuMemHostAlloc", "cuEventCreate", "cuPointerGetAttribute", "cuCtxGetCurrent",
     "cuStreamIsCapturing", "cuStreamGetId", "cuThreadExchangeStreamCaptureMode"), 1,
)  # fmt: skip
# Invalid value, which sends a copy another way; out of memory, which keeps blocks few; any other.
CODES = (1, 2, 999)


class Failing:
    """The driver, whose calls fail from one on: that one alone, or all that follow."""

    def __init__(self, made: Any) -> None:
        self._made, self.names = made, list[str]()
        self.first = self.last = -1
        self.code = 0
        self.locked = set[int]()  # memory that has been page-locked

    def begin(self, first: int, last: int, code: int) -> None:
        self.names.clear()
        self.locked.clear()
        self.first, self.last, self.code = first, last, code

    def end(self) -> list[str]:
        """Fail no more; return what was called since the beginning."""
        self.first = self.last = -1
        return list(self.names)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._made, name)
        if not name.startswith("cu") or name.startswith("cuGetError") or not callable(value):
            return value

        def call(*args: Any) -> Any:
            self.names.append(name)
            if self.first < len(self.names) <= self.last and name != "cuMemFreeHost":
                return (self.code, *[0] * VALUES.get(name, 0))
            answer = value(*args)
            if name == "cuMemHostAlloc":
                self.locked.add(answer[1])
            elif name == "cuMemFreeHost":
                self.locked.remove(args[0])
            return answer

        return call


def _fresh(monkeypatch: pytest.MonkeyPatch) -> gpu.Device:
    """Let the device have nothing that it keeps for such calls."""
    device = gpu.get(0)
    for name, make in (
        ("trays", lambda: pinned.SmallBuffer(TRAY)),
        ("stages", device.stages._make),
    ):
        monkeypatch.setattr(device, name, pinned.Lender(device.context, make, 2))
    return device


@pytest.fixture
def failing(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Failing:
    if not support.is_emulated:
        pytest.skip("of the emulated GPU alone, which is as it was after that")
    _fresh(monkeypatch)
    made = Failing(driver.api())
    monkeypatch.setattr(driver, "api", lambda: made)
    monkeypatch.setattr(host_small, "IN_PLACE_BYTES", 0)
    monkeypatch.setattr(pinned, "BLOCK_BYTES", 1 << 9)
    monkeypatch.setattr(pinned, "FIRST_BYTES", 1 << 8)
    monkeypatch.setattr(pinned, "MOST_BLOCKS", 2)
    return made


@pytest.fixture(params=["by a tray", "by copies", "by stages"])
def way(failing: Failing, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "by a tray":
        monkeypatch.setattr(pinned, "TRAY_BYTES", 0)
    if request.param == "by stages":
        monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    return str(request.param)


def _scanned(x: Host) -> list[Host]:
    same = x.copy()
    ga.inclusive_scan(same, out=same)
    return [same]


def _by_key(x: Host) -> list[Host]:
    """Bound results: how long they are comes back first."""
    out, count = (np.full(x.size, 7), np.full(x.size, 7.0)), np.zeros((), np.int64)
    ga.reduce_by_key(np.arange(x.size) // 30, x, out=out, out_count=count)
    return [*out, count]


def _assert_all_same(found: list[Host], want: list[Host]) -> None:
    for got, expected in zip(found, want, strict=True):
        assert_same(got, expected)


@pytest.mark.parametrize(
    ("code", "is_lasting"), [*[(code, False) for code in CODES], (CODES[-1], True)]
)
@pytest.mark.parametrize("call", [_scanned, _by_key])
def test_what_comes_after(
    failing: Failing, way: str, call: Any, code: int, is_lasting: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Results are right, and no memory is lost but what nobody can say is free."""
    x, other = np.arange(80.0), np.arange(80.0)[::-1].copy()
    with ga.default_device("cpu"):
        want, wanted_then = call(x), call(other)
    with ga.default_device("cuda"):
        call(x)
        at = num_failed = 0
        while True:
            with monkeypatch.context() as patch:
                device = _fresh(patch)
                failing.begin(at, 1 << 20 if is_lasting else at + 1, code)
                found = None
                try:
                    found = call(x)
                except (MemoryError, RuntimeError):
                    num_failed += 1
                names = failing.end()
                if at >= len(names):
                    break
                if found is not None:
                    _assert_all_same(found, want)
                for given, expected in ((other, wanted_then), (x, want)):
                    _assert_all_same(call(given), expected)
                assert not device.trays._in_doubt
                assert len(device.trays._idle) == device.trays._count <= 1
                assert len(device.stages._idle) == device.stages._count == (way == "by stages")
                kept = device.trays._count + sum(len(each.blocks) for each in device.stages._idle)
                if not (is_lasting and names[at] == "cuEventRecord"):  # a copy may be under way
                    assert len(failing.locked) == kept
            at += 1
    assert at >= num_failed > 0


@pytest.mark.parametrize("bins", [5, [0, 2, 3, 9]])
def test_after_a_failed_launch(cuda: Backend, bins: Any) -> None:
    """The launches before it leave nothing in temporary storage that later calls share."""
    x = cuda.to_device(np.arange(600.0).reshape(3, 200) % 9)

    def call() -> Any:
        return ga.histogram(x, bins, None if len(np.shape(bins)) else (0, 9), weights=x, axis=1)

    want, num_failed = cuda.to_host(call()), 0
    for at in range(1, 6):
        forget_problems()
        try:
            with driver_fails(f"driver {at}"):
                call()
        except (MemoryError, RuntimeError):
            num_failed += 1
        assert_same(cuda.to_host(call()), want)
    assert num_failed > 1
