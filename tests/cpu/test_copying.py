"""Memory is copied by all threads that stand by, or by one: never beyond its end."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from support import Backend, forget_problems

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._cpu import team

SIZES = (1, 1000, team.LEAST_BYTES - 1, team.LEAST_BYTES, (1 << 20) + 3, 3 << 20)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks the threads that stand by were given, for each copy."""
    found: list[int] = []
    run = team.Team.run

    def noted(self: team.Team, *args: Any) -> int:
        found.append(args[3])
        return run(self, *args)

    monkeypatch.setattr(team.Team, "run", noted)
    monkeypatch.setattr(team, "_cost", pace := team._CostEstimate())
    pace.byte_seconds = 1.0  # of one thread, so that several never lose
    monkeypatch.setattr(pace, "by_one", ctypes.memmove)
    monkeypatch.setattr(threads, "_num_cores", lambda: 3)
    return found


def _check() -> None:
    source = np.random.default_rng(0).integers(1, 255, SIZES[-1] + 10, dtype=np.uint8)
    for size in SIZES:
        for begin in (0, 7):
            target = np.zeros(len(source) + 10, np.uint8)
            team.copy(target.ctypes.data + begin, source.ctypes.data + 3, size)
            np.testing.assert_array_equal(target[begin : begin + size], source[3 : 3 + size])
            assert not target[:begin].any()
            assert not target[begin + size :].any()


def test_by_several(jobs: list[int]) -> None:
    _check()
    assert jobs == [-(-size // team.PIECE_BYTES) for size in SIZES[3:] for _ in range(2)]


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

    monkeypatch.setattr(team, "get_kernel", fails)
    monkeypatch.setattr(team, "_kernels", [])
    monkeypatch.setattr(team, "_is_copy_refused", False)
    _check()
    assert team._is_copy_refused
    assert not jobs


def test_several_give_way_where_they_are_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = team._CostEstimate()
    monkeypatch.setattr(team, "_cost", pace)
    size = team.LEAST_BYTES
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    by: list[str] = []

    def several(*given: int) -> bool:
        by.append("several")
        ctypes.memmove(*given)
        pace.learn(seconds, size)
        return True

    def one(*given: int) -> None:
        by.append("one")
        usual(*given)
        pace.byte_seconds = 1.0

    usual = pace.by_one
    monkeypatch.setattr(team, "_copied_by_several", several)
    monkeypatch.setattr(pace, "by_one", one)
    seconds = 2.0 * size
    for _ in range(14):
        team.copy(target.ctypes.data, source.ctypes.data, size)
    lost = [["several", *["one"] * count] for count in (1, 3, 7)]
    assert by == ["one", *lost[0], *lost[1], *lost[2]][:14]
    seconds, pace.alone, pace.losses = 0.5 * size, 0, 1
    by.clear()
    for _ in range(3):
        team.copy(target.ctypes.data, source.ctypes.data, size)
    assert by == ["several"] * 3
    assert pace.losses == 0


def test_host_arrays_are_copied_by_several_threads(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpualgo._driver import pinned, staging

    usual, sizes = team.copy, list[int]()

    def copy(target: int, source: int, size: int) -> None:
        sizes.append(size)
        usual(target, source, size)

    monkeypatch.setattr(team, "copy", copy)
    monkeypatch.setattr(pinned, "TRAY_BYTES", 0)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    forget_problems()
    with ga.default_device("cuda"):
        assert ga.inclusive_scan(np.ones(3000))[-1] == 3000
    assert sizes == [24000, 24000]
