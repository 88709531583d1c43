"""What calls on arrays of the host ask of the driver, without a GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeDriver
from support import forget_problems

import gpualgo as ga
from gpualgo._driver import device, driver, pinned, staging


class Listed:
    """A driver that lists the names of its functions as they are called, launches aside."""

    def __init__(self, made: FakeDriver) -> None:
        self._made, self.names = made, list[str]()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._made, name)
        if not name.startswith("cu") or name.startswith("cuda") or not callable(value):
            return value

        def call(*args: Any) -> Any:
            self.names.append(name)
            return value(*args)

        return call


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Listed:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    found = Listed(made)
    monkeypatch.setattr(driver, "api", lambda: found)
    return found


def _asked(listed: Listed, call: Callable[[], Any]) -> list[str]:
    call()
    call()
    listed.names.clear()
    call()
    return [name for name in listed.names if not name.startswith("cuLaunch")]


IN_PLACE = ["cuCtxGetCurrent", "cuPointerGetAttribute", "cuStreamSynchronize"]


def test_a_warm_call_asks_little(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = np.arange(1000.0), np.zeros(1000)
    with ga.default_device("cuda"), device.get(0).current():
        assert _asked(listed, lambda: ga.transform(lambda a: a + 1, x)) == IN_PLACE
        kept = ["cuStreamIsCapturing", "cuStreamGetId"]  # for a workspace
        assert _asked(listed, lambda: ga.reduce(x)) == IN_PLACE  # one block
        several = _asked(listed, lambda: ga.reduce(np.arange(6000.0)))
        assert several == [*IN_PLACE[:2], *kept, IN_PLACE[2]]
        assert _asked(listed, lambda: ga.inclusive_scan(x)) == IN_PLACE
        into = _asked(listed, lambda: ga.inclusive_scan(x, out=out))
        assert into == [IN_PLACE[0], IN_PLACE[1], *IN_PLACE[1:]]
        copied = _asked(listed, lambda: ga.radix_sort(x))
        assert copied == [*IN_PLACE[:2], "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", IN_PLACE[2]]
        monkeypatch.setattr(pinned, "TRAY_BYTES", 0)
        forget_problems()
        pooled = _asked(listed, lambda: ga.reduce(x))
        assert pooled.count("cuMemAllocFromPoolAsync") == pooled.count("cuMemFreeAsync") == 1


def test_a_tray_is_not_lent_before_its_work_has_run(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, x = device.get(0).trays, np.arange(1000.0)
    take, taken = found.take, list[Any]()

    def noted() -> Any:
        taken.append(take())
        return taken[-1]

    def refused(stream: int) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(found, "take", noted)
    with ga.default_device("cuda"):
        ga.inclusive_scan(x)
        with monkeypatch.context() as patch:
            patch.setattr(driver, "synchronize", refused)
            for _ in range(3):
                with pytest.raises(RuntimeError, match="planted"):
                    ga.inclusive_scan(x)
        for _ in range(3):
            ga.inclusive_scan(x)
    first, *failed = taken[:4]
    assert failed[0] is first
    assert len(set(failed)) == 3
    assert set(taken[4:]) < set(failed)


def test_a_block_is_waited_for_before_it_is_used_again(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(pinned, "FIRST_BYTES", 500)
    monkeypatch.setattr(pinned, "MOST_BLOCKS", 2)
    copied: list[int] = []
    monkeypatch.setattr(pinned, "copy", lambda target, source, size: copied.append(size))
    x = np.zeros(3500, np.uint8)
    with device.get(0).stages.lend() as stage:
        stage.upload([(1 << 20, x.ctypes.data, 1000)], 0)  # makes both blocks
    with device.get(0).stages.lend() as again:
        assert again is stage
        for block in stage.blocks:
            block.wait()
        copied.clear()
        listed.names.clear()
        stage.upload([(0, x.ctypes.data, 3200), (3200, x.ctypes.data + 3200, 300)], 0)
    assert copied == [500, 1000, 1000, 700, 300]
    send, record, wait = "cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize"
    assert listed.names == [*[send, record] * 2, *[wait, send, record] * 3]


def _use(
    found: pinned.Lender[pinned.PinnedRing], stream: int, error: BaseException | None = None
) -> pinned.PinnedRing:
    """Have a stage carry something; then raise an error, if one is given."""
    x = np.zeros(1000, np.uint8)
    with found.lend() as stage:
        stage.upload([(1 << 20, x.ctypes.data, x.nbytes)], stream)
        if error is not None:
            raise error
    return stage


def _refuse(listed: Listed, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let functions of the driver fail."""
    for name in names:
        monkeypatch.setattr(listed, name, lambda *args: (906,), raising=False)
    for name in ("cuGetErrorName", "cuGetErrorString"):
        monkeypatch.setattr(listed, name, lambda error: (0, b"planted"), raising=False)


def test_a_stage_is_given_back_after_an_error(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = device.get(0).stages
    stage = _use(found, 7)
    listed.names.clear()
    with monkeypatch.context() as patch:
        _refuse(listed, patch, "cuEventRecord")
        with pytest.raises(RuntimeError, match="planted"):
            _use(found, 7)
    assert "cuStreamSynchronize" in listed.names  # what is under way ends before that
    assert _use(found, 7) is stage
    listed.names.clear()
    with pytest.raises(KeyboardInterrupt):
        _use(found, 7, KeyboardInterrupt())
    assert "cuStreamSynchronize" not in listed.names  # the block's event tells
    assert _use(found, 7) is stage
    assert listed.names.count("cuEventSynchronize") == 2


def test_stages_are_kept_while_a_stream_refuses_all(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As beside a capture of a blocking stream: nothing is queued, so nothing is in doubt."""
    found = device.get(0).stages
    with monkeypatch.context() as patch:
        _refuse(listed, patch, "cuMemcpyHtoDAsync", "cuStreamSynchronize")
        for _ in range(3):
            with pytest.raises(RuntimeError, match="planted"):
                _use(found, 0)
    _use(found, 0)
    assert listed.names.count("cuMemHostAlloc") == 1


def test_stages_are_waited_for(listed: Listed) -> None:
    found = device.get(0).stages
    entered = [found.lend() for _ in range(pinned.MOST_STAGES)]
    for each in entered:
        each.__enter__()
    ran: list[int] = []

    def last() -> None:
        with found.lend():
            ran.append(1)

    thread = threading.Thread(target=last)
    thread.start()
    thread.join(0.05)
    assert not ran
    for each in entered:
        each.__exit__(None, None, None)
    thread.join(10)
    assert ran


def test_all_that_wait_are_told_that_no_stage_will_come(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kernel's error, which the driver repeats for good."""
    found, told = device.get(0).stages, list[int]()
    entered = [found.lend() for _ in range(pinned.MOST_STAGES)]
    for each in entered:
        each.__enter__()
    error = RuntimeError("planted")

    def refused(stage: pinned.PinnedRing) -> None:
        raise error

    def waits() -> None:
        with pytest.raises(RuntimeError, match="planted"), found.lend():
            pass
        told.append(1)

    monkeypatch.setattr(pinned.PinnedRing, "settle", refused)
    threads = [threading.Thread(target=waits, daemon=True) for _ in range(pinned.MOST_STAGES + 3)]
    for thread in threads:
        thread.start()
    for each in entered:
        assert not each.__exit__(RuntimeError, error, None)
    for thread in threads:
        thread.join(10)
    assert len(told) == len(threads)


def test_where_no_memory_can_be_locked(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(size: int, flags: int) -> tuple[Any, int]:
        return "CUDA_ERROR_OUT_OF_MEMORY", 0

    monkeypatch.setattr(listed, "cuMemHostAlloc", refused, raising=False)
    for name in ("cuGetErrorName", "cuGetErrorString"):
        monkeypatch.setattr(listed, name, lambda error: (0, b""), raising=False)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    x = np.arange(1000.0)
    with ga.default_device("cuda"):
        asked = _asked(listed, lambda: ga.transform(lambda a: a + 1, x))
        assert asked.count("cuMemcpyHtoDAsync") == asked.count("cuMemcpyDtoHAsync") == 1
        assert asked.count("cuMemAllocFromPoolAsync") == asked.count("cuMemFreeAsync") == 1


def test_memory_is_given_back_whatever_fails(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, freed = device.get(0).free, list[int]()

    def fails(address: int, stream: int) -> None:
        freed.append(address)
        free(address, stream)
        raise RuntimeError("planted")

    monkeypatch.setattr(device.get(0), "free", fails)
    wanted = set[int]()

    def use() -> None:
        with device.get(0).current(), staging.device_buffers(0, 0, [10, 20, 30]) as memory:
            wanted.update(memory)
            memory.pop()

    with pytest.raises(RuntimeError, match="planted"):
        use()
    assert set(freed) == wanted


def test_a_lane_that_cannot_be_waited_for_is_not_lent_again(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, lent = device.get(0).lanes, list[object]()
    wait = driver.synchronize

    def lend() -> None:
        with found.lend() as lane:
            lent.append(lane)
            driver.synchronize(lane.stream)

    def refused(stream: int) -> None:
        raise RuntimeError("planted")

    def refused_once(stream: int) -> None:
        monkeypatch.setattr(driver, "synchronize", wait)
        raise RuntimeError("planted")

    with device.get(0).current():
        lend()
        for each in (refused_once, refused):
            monkeypatch.setattr(driver, "synchronize", each)
            with pytest.raises(RuntimeError, match="planted"):
                lend()
        monkeypatch.setattr(driver, "synchronize", wait)
        for _ in range(2):
            lend()
    assert lent[0] is lent[1] is lent[2]
    assert lent[3] is lent[4] is lent[2]  # which could be waited for by then
