"""What belongs to one GPU: found once, kept apart from other GPUs', and left by forked children."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from fake_driver import NUM_DEVICES, FakeDriver, install

import gpualgo as ga
from gpualgo._cuda.plan import TICKETS, Piece, Pieces
from gpualgo._driver import device, driver
from gpualgo._driver.device import KEPT_BYTES, MARK_BYTES, STATE_BYTES, TICKET_BYTES

SIZE = TICKET_BYTES + KEPT_BYTES + STATE_BYTES + MARK_BYTES


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


def test_there_is_one_object_for_each_gpu(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_devices", {})
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: device.get(1), range(8)))
    assert len(found) == 1
    assert found.pop() is device.get(1) is not device.get(0)
    with pytest.raises(ga.NoDeviceError, match=f"only {NUM_DEVICES} GPU"):
        device.get(NUM_DEVICES)


def test_answers_of_the_driver_are_kept(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_devices", {})
    asked: list[Any] = []

    def attribute(name: str, ordinal: int) -> tuple[int, int]:
        asked.append((name.removeprefix("CU_DEVICE_ATTRIBUTE_"), ordinal))
        time.sleep(0.01)
        return 0, 9 if "MAJOR" in name else 0

    monkeypatch.setattr(fake, "cuDeviceGetAttribute", attribute, raising=False)
    monkeypatch.setattr(fake, "cuDriverGetVersion", lambda: (0, 12030), raising=False)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: device.get(1).capability, range(8)))
    assert found == {(9, 0)}
    assert device.get(1).may_overlap
    assert set(asked) == {("COMPUTE_CAPABILITY_MAJOR", 1), ("COMPUTE_CAPABILITY_MINOR", 1)}
    asked.clear()
    assert device.get(1).capability == (9, 0)
    assert not asked


def test_a_stream_keeps_its_workspace(fake: FakeDriver) -> None:
    gpu, other = device.get(0), device.get(1)
    address = gpu.kept_workspace(0x10)
    assert not any(ctypes.string_at(address, SIZE))
    assert gpu.kept_workspace(0x10) == address
    with gpu.second_workspace(0x10) as second:
        others = {gpu.kept_workspace(0x20), other.kept_workspace(0x10), second}
    assert len(others | {address, 0}) == 5
    assert len(fake.named("cuMemAlloc")) == 4
    assert fake.current == 0  # what was current is so again


def test_when_a_call_needs_storage_of_its_own(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = device.get(0)
    fake.capturing = {0x10}
    given = device.Given(4096, 1024)
    with device.supplied(given), gpu.second_workspace(0x20) as second:
        assert gpu.kept_workspace(0x20) == second == 0
        assert gpu.allocate(512, 0x20) == 4096
        gpu.free(4096, 0x20)
    with gpu.second_workspace(0x10) as second:
        assert gpu.kept_workspace(0x10) == second == 0
    assert not fake.calls
    monkeypatch.setattr(device, "_MAX_WORKSPACES", 2)
    kept = gpu.kept_workspace(1)
    with gpu.second_workspace(1) as second, gpu.second_workspace(2) as third:
        assert min(kept, second) > third == 0
    assert gpu.kept_workspace(2) == 0
    assert gpu.kept_workspace(1) == kept
    own = gpu.allocate(100, 2)
    device.clear(own, 100, 2)
    assert ctypes.string_at(own, 100) == bytes(100)
    gpu.free(own, 2)
    assert fake.named("cuMemFreeAsync") == [("cuMemFreeAsync", own, 2)]


def test_a_call_within_a_call_has_its_own_second_workspace(fake: FakeDriver) -> None:
    """A signal handler or finalizer may call between two launches of this thread."""
    gpu = device.get(0)
    with gpu.second_workspace(0x10) as outer, gpu.second_workspace(0x10) as inner:
        assert outer > 0 == inner
    with gpu.second_workspace(0x10) as again:
        assert again == outer


def test_the_second_workspace_is_one_threads_at_a_time(fake: FakeDriver) -> None:
    gpu = device.get(0)
    inside, most = 0, 0
    lock = threading.Lock()

    def use(_: int) -> None:
        nonlocal inside, most
        with gpu.second_workspace(0x10) as found:
            assert found
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.002)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(16)))
    assert most == 1
    assert len(fake.named("cuMemAlloc")) == 1


def test_a_failed_release_holds_no_turn(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = Pieces(
        device.get(0), [Piece(1 << 10, TICKETS, is_zeroed=True), Piece(1 << 10)], is_shared=True
    )

    def fail(address: int, stream: int) -> None:
        raise RuntimeError("cuMemFreeAsync")

    lent = pieces.lend(0x10)
    assert lent.turn is not None
    monkeypatch.setattr(fake, "cuMemFreeAsync", fail)
    with pytest.raises(RuntimeError, match="cuMemFreeAsync") as held:  # with all its frames
        lent.release()
    assert held.tb is not None
    workspaces = device.get(0).storage._workspaces
    (turn,) = [turn for (number, _), (_, turn) in workspaces.items() if number == 1]
    assert not turn._is_owned()


def test_a_resource_is_of_its_gpu_alone(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "core_stream", lambda stream: stream)
    closed: list[Any] = []
    buffer = SimpleNamespace(handle=0x5000, close=lambda stream: closed.append(stream))
    resource = SimpleNamespace(
        allocate=lambda size, stream: buffer, deallocate=None, device_id=1,
        is_device_accessible=True,
    )  # fmt: skip
    ga.set_memory_resource(resource)
    first, second = device.get(0), device.get(1)
    from_pool, lent = first.allocate(64, 0x10), second.allocate(64, 0x20)
    assert lent == 0x5000 != from_pool
    ga.set_memory_resource(None)
    again = second.allocate(64, 0x20)
    assert len(fake.named("cuMemPoolCreate")) == 2  # one for each GPU
    first.free(from_pool, 0x10)
    second.free(lent, 0x20)
    second.free(again, 0x20)
    assert closed == [0x20]
    assert [call[1] for call in fake.named("cuMemFreeAsync")] == [from_pool, again]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_uses_nothing_of_its_parents(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_owner_pid", os.getpid())
    gpu = device.get(0)
    gpu.kept_workspace(0x10)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            device.get(0)
        except RuntimeError as error:
            is_left = any(gpu in left.values() for left in device._abandoned)
            code = 0 if "forked" in str(error) and is_left and not driver.is_simple else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert device.get(0) is gpu
    assert driver.is_simple
