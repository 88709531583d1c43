"""Memory is copied by all threads that stand by, or by one: never beyond its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, forget_problems

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._cpu import launch, team

SIZES = (1, 1000, launch.LEAST_BYTES - 1, launch.LEAST_BYTES, (1 << 20) + 3, 3 << 20)


class _Slow(launch.CostEstimate):
    """One thread takes long, so that several never lose."""

    seconds = property(lambda self: 1.0, lambda self, value: None)  # type: ignore[assignment]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks the threads that stand by were given, for each copy."""
    found: list[int] = []
    run = team.Team.run

    def noted(self: team.Team, *args: Any) -> int:
        found.append(args[3])
        return run(self, *args)

    monkeypatch.setattr(team.Team, "run", noted)
    monkeypatch.setattr(launch, "_copies", _Slow())
    monkeypatch.setattr(threads, "_num_cores", lambda: 3)
    return found


def _check() -> None:
    source = np.random.default_rng(0).integers(1, 255, SIZES[-1] + 10, dtype=np.uint8)
    for size in SIZES:
        for begin in (0, 7):
            target = np.zeros(len(source) + 10, np.uint8)
            launch.copy(target.ctypes.data + begin, source.ctypes.data + 3, size)
            np.testing.assert_array_equal(target[begin : begin + size], source[3 : 3 + size])
            assert not target[:begin].any()
            assert not target[begin + size :].any()


def test_by_several(jobs: list[int]) -> None:
    _check()
    assert jobs == [-(-size // launch.PIECE_BYTES) for size in SIZES[3:] for _ in range(2)]


def test_while_others_lead(jobs: list[int]) -> None:
    leader = team.current()
    assert leader is not None
    leader._calls.add(self := object())
    try:
        _check()
    finally:
        leader._calls.discard(self)
    assert len(jobs) == 6


def test_by_one(jobs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_NUM_THREADS", "1")
    _check()
    assert not jobs


def test_where_nothing_can_be_compiled(jobs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(launch, "get_kernel", fails)
    launch._copier.cache_clear()
    try:
        _check()
        assert launch._copier() is None
    finally:
        launch._copier.cache_clear()
    assert not jobs


def test_the_time_is_that_of_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_num_cores", lambda: 3)
    pace = launch.CostEstimate(1.0)
    pace.alone = 2
    monkeypatch.setattr(launch, "_copies", pace)
    source, target = np.ones(1 << 22, np.uint8), np.zeros(1 << 22, np.uint8)
    launch.copy(target.ctypes.data, source.ctypes.data, len(source))
    assert pace.alone == 1
    assert 1e-12 < pace.seconds < 1e-7


def test_host_arrays_are_copied_by_several_threads(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpualgo._driver import pinned, staging

    usual, sizes = launch.copy, list[int]()

    def copy(target: int, source: int, size: int) -> None:
        sizes.append(size)
        usual(target, source, size)

    monkeypatch.setattr(launch, "copy", copy)
    monkeypatch.setattr(pinned, "TRAY_BYTES", 0)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    forget_problems()
    with ga.default_device("cuda"):
        assert ga.inclusive_scan(np.ones(3000))[-1] == 3000
    assert sizes == [24000, 24000]
