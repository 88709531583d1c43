"""The emulated machine: each mistake of tests/emulator/litmus is caught, what is right passes."""

from __future__ import annotations

import ctypes
import math
import random
import struct
from fractions import Fraction

import pytest

from emulator import litmus_run, toolchain
from emulator.control import Settings, machine, stats
from emulator.litmus_cases import CASES, Case

pytestmark = pytest.mark.skipif(
    toolchain.find_compiler() is None, reason="no C++ compiler for the emulated machine"
)

LITMUS = [pytest.param(file, case, id=case.name) for file, cases in CASES.items() for case in cases]


def find(name: str) -> tuple[str, Case]:
    """Return a litmus and the file that holds it."""
    return next((file, c) for file, cases in CASES.items() for c in cases if c.name == name)


@pytest.mark.parametrize(("file", "case"), LITMUS)
def test_the_right_twin_passes(file: str, case: Case) -> None:
    for seed, result in enumerate(litmus_run.results(file, case, "right")):
        assert not result.report, f"seed {seed}"
        assert case.shows is None or not case.shows(result.out), f"seed {seed}: {result.out}"


@pytest.mark.parametrize(("file", "case"), LITMUS)
def test_the_wrong_twin_is_caught(file: str, case: Case) -> None:
    for result in litmus_run.results(file, case, "wrong"):
        if case.is_rare and not result.report:
            continue
        if case.shows is None:
            assert result.report.startswith(case.says or "?")
            return
        assert not result.report
        if case.shows(result.out):
            return
    pytest.fail(f"not within {case.seeds} seeds")


def test_a_read_before_a_write_behind_a_vote_is_let_pass_by_default() -> None:
    file, case = find("read_vote_write")
    for seed in range(case.seeds):
        how = litmus_run.settings(seed, case)
        how.races = 1
        assert not litmus_run.run(file, "read_vote_write_wrong", case, how).report


def test_blocks_in_any_order_show_who_relies_on_theirs() -> None:
    file, case = find("later_block")
    reports = []
    for seed in range(10):
        how = litmus_run.settings(seed, case)
        how.blocks_any_order = 1
        reports.append(litmus_run.run(file, "later_block_right", case, how).report)
    assert any(report.startswith("LIVELOCK") for report in reports)


@pytest.mark.parametrize(("name", "level"), [("global", 1), ("shared", 2)])
def test_uninitialised_reads_are_let_pass_if_asked(name: str, level: int) -> None:
    file, case = find(f"uninitialised_{name}")
    how = litmus_run.settings(0, case)
    for how.uninitialised in range(3):
        report = litmus_run.run(file, f"uninitialised_{name}_wrong", case, how).report
        assert report.startswith("UNINITIALISED") == (how.uninitialised >= level)


def test_without_races_only_results_tell() -> None:
    file, case = find("missing_barrier")
    how = litmus_run.settings(0, case)
    how.races = how.uninitialised = 0
    assert not litmus_run.run(file, "missing_barrier_wrong", case, how).report


@pytest.mark.parametrize("name", ["message_passing", "missing_barrier", "load_wrong_phase"])
def test_a_seed_gives_one_schedule_whatever_ran_before(name: str) -> None:
    file, case = find(name)
    how = litmus_run.settings(3, case)
    seen = set()
    kept = []
    for before in range(3):
        for other in range(before):
            litmus_run.run(file, f"{name}_wrong", case, litmus_run.settings(other, case))
            kept.append(machine().emu_alloc(10_000 * (other + 1), b"other"))
        right = litmus_run.run(file, f"{name}_right", case, how)
        figures = tuple(stats().values())
        wrong = litmus_run.run(file, f"{name}_wrong", case, how)
        seen.add((tuple(right.out), figures, wrong.report, tuple(stats().values())))
    for address in kept:
        machine().emu_free(address)
    assert len(seen) == 1


def test_seeds_give_different_schedules() -> None:
    file, case = find("missing_second_barrier")
    switches = set()
    for seed in range(10):
        how = Settings(seed=seed, races=1, preempt=0.1)
        litmus_run.run(file, "missing_second_barrier_right", case, how)
        switches.add(stats()["switches"])
    assert len(switches) > 3


def test_a_report_names_who_waits_for_whom() -> None:
    file, case = find("thread_goes_before_barrier")
    how = litmus_run.settings(0, case)
    report = litmus_run.run(file, "thread_goes_before_barrier_wrong", case, how).report
    assert "block 0: threads 0..62 wait at a barrier at together.cc:" in report
    assert "block 0 barrier 1: 63 of 64 threads have come" in report


def test_clocks_that_run_and_one_that_stands_still_are_drawn() -> None:
    """A wait goes on for the cycles that it is told, if there are any."""
    file, case = find("waits_for_the_clock")
    waited = [result.out[: case.threads] for result in litmus_run.results(file, case, "right")]
    still = [each for each in waited if not any(each)]
    assert 0 < len(still) < len(waited)
    assert all(min(each) >= 300 for each in waited if any(each))


def test_threads_that_never_waited_are_told_without_a_place() -> None:
    file, case = find("spins_without_end")
    how = litmus_run.settings(0, case)
    report = litmus_run.run(file, "spins_without_end_wrong", case, how).report
    assert "threads 0 " in report
    assert not any(line.rstrip().endswith(" at") for line in report.splitlines())


def test_freed_memory_is_named() -> None:
    file, _ = find("past_the_end")
    lib = machine()
    memory = [lib.emu_alloc(256, b"short-lived") for _ in range(4)]
    lib.emu_free(memory[0])
    params = (ctypes.c_void_p * 4)(*memory)
    kernel = ctypes.cast(litmus_run.library(file)[1].past_the_end_right, ctypes.c_void_p)
    how = Settings(seed=1, races=1)
    assert lib.emu_launch(kernel, None, 1, 1, 0, params, 32, how) == 1
    for address in memory[1:]:
        lib.emu_free(address)
    assert lib.emu_report().startswith(
        b"OUT OF BOUNDS: read of 1 bytes at +255 of short-lived, which was freed"
    )


def test_copies_stay_within_allocations() -> None:
    lib = machine()
    memory = lib.emu_alloc(16, b"sixteen")
    word = (ctypes.c_uint8 * 32)(*range(32))
    back = (ctypes.c_uint8 * 16)()
    assert lib.emu_copy(memory, word, 16) == 0
    assert lib.emu_copy(back, memory, 16) == 0
    assert list(back) == list(range(16))
    assert lib.emu_copy(memory, word, 17) == 1
    assert lib.emu_report().startswith(b"OUT OF BOUNDS: a copy of 17 bytes at +0 of sixteen")
    assert lib.emu_fill(memory, 8, word, 2, 3, 2) == 0
    assert lib.emu_copy(back, memory, 16) == 0
    assert list(back) == [0, 1, 0, 1, 0, 1, 6, 7, 0, 1, 0, 1, 0, 1, 14, 15]
    assert lib.emu_fill(memory, 12, word, 2, 3, 2) == 1
    lib.emu_free(memory)


def number(kind: str, bits: int) -> float:
    size, code = ("I", "f") if kind == "float" else ("Q", "d")
    return float(struct.unpack(code, struct.pack(size, bits))[0])


def rounded_down(kind: str, exact: Fraction) -> float:
    """Return the largest number of a kind that is not above an exact one, by bisection."""
    bits = 32 if kind == "float" else 64
    sign = 1 << (bits - 1)

    def at(rank: int) -> float:  # numbers in order of their value
        return number(kind, rank if rank >= 0 else sign | (-rank - 1))

    infinite = (0xFF << 23) if kind == "float" else (0x7FF << 52)
    low, high = -infinite, infinite - 1  # of finite numbers
    if exact < Fraction(at(low)):
        return -math.inf
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if Fraction(at(middle)) <= exact else (low, middle - 1)
    return at(low)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_fma_is_rounded_down_once(kind: str) -> None:
    c_type = ctypes.c_float if kind == "float" else ctypes.c_double
    call = getattr(machine(), f"emu_fma_down_{kind}")
    call.restype, call.argtypes = c_type, [c_type] * 3
    drawn = random.Random(0)
    bits, edge = (32, 23) if kind == "float" else (64, 52)
    for _ in range(2000):
        a, b, c = (number(kind, drawn.getrandbits(bits)) for _ in range(3))
        if drawn.random() < 0.7:  # near each other, and near cancelling
            a, b = (math.ldexp(1 + drawn.getrandbits(edge) / 2**edge, -3) for _ in range(2))
            c = c_type(-a * b * drawn.choice([1, -1, 1 + 2.0**-20])).value
        if not all(map(math.isfinite, (a, b, c))):
            continue
        got, want = call(a, b, c), rounded_down(kind, Fraction(a) * Fraction(b) + Fraction(c))
        assert got == want, (a, b, c)
