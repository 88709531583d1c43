"""The logger "gpualgo", GPUALGO_LOG, the warning of operators that keep compiling, and NVTX."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import support
from support import Backend, run_python

import gpualgo as ga
from gpualgo._base import log
from gpualgo._operators import operator

SUM = "import numpy as np, gpualgo as ga; ga.default_device('cpu').__enter__()\n"


@pytest.fixture
def told(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.LogCaptureFixture]:
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.INFO, "gpualgo"):
        yield caplog


def test_nobody_listens_while_another_thread_loads_logging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "logging", ModuleType("logging"))
    assert not log.is_on(log.WARNING)


def test_what_is_compiled_is_told_once(told: pytest.LogCaptureFixture, backend: Backend) -> None:
    if support.is_emulated:
        pytest.skip("the emulated GPU has a compiler of its own")
    x = backend.to_device(np.arange(100, dtype=np.int32))
    op = lambda a: a * 3 - 77  # noqa: E731
    ga.transform(op, x)
    compiled = [m for m in told.messages if m.startswith("compiled")]
    assert any("of <lambda>" in m and Path(__file__).name in m for m in compiled)
    assert any("operator <lambda>" in m for m in compiled)
    assert any("kernel" in m and "transform" in m and m.endswith(" s") for m in compiled)
    told.clear()
    ga.transform(op, x)
    assert told.messages == []


def test_host_arrays_that_travel_are_told(cuda: Backend, told: pytest.LogCaptureFixture) -> None:
    ga.reduce(np.arange(100, dtype=np.int32))
    assert any(m.startswith("staged reduce on cuda:0") and "400 bytes to the GPU" in m
               for m in told.messages)  # fmt: skip


def test_the_level_of_the_environment(tmp_path: Path) -> None:
    code = SUM + "print(ga.reduce(np.ones(10), 0.0, lambda a, b: a + b * 1.0))"
    cache = {"GPUALGO_CACHE_DIR": str(tmp_path)}
    first, second = (run_python(code, GPUALGO_LOG="info", **cache) for _ in range(2))
    assert "gpualgo: compiled operator <lambda>" in first.stderr
    assert "gpualgo: found on disk: CPU kernel" in second.stderr
    assert "compiled" not in second.stderr
    quiet = run_python(f"{code}\nimport sys; print('logging' in sys.modules)", **cache)
    result, is_loaded = quiet.stdout.split()
    assert (result, quiet.stderr) == ("10.0", "")
    if not support.count_gpus():  # whose driver's bindings load it
        assert is_loaded == "False"


def test_a_level_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_LOG", "loud")
    with pytest.raises(ValueError, match="GPUALGO_LOG must be one of debug, info"):
        log.start()


def test_an_operator_that_changes_with_each_call_is_told_of_once(
    told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "MOST_CODES", 3)
    monkeypatch.setattr(operator, "_codes", {})
    x = np.arange(4)

    def call(which: str) -> None:
        ga.transform(lambda a: a + len(which), x)

    with ga.default_device("cpu"):
        for step in (1.5, 2.5, 3.5, 4.5):  # data, which compile nothing
            ga.transform(lambda a, by=step: a * by, x)
        assert not [r for r in told.records if r.levelno == logging.WARNING]
        for n in range(6):
            call("x" * n)
    (warned,) = [r.getMessage() for r in told.records if r.levelno == logging.WARNING]
    assert Path(__file__).name in warned
    assert "capture what changes as a number" in warned


def test_expressions_that_differ_are_not_one_operator(
    told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "MOST_CODES", 2)
    monkeypatch.setattr(operator, "_codes", {})
    x = ga.lazy.asarray(np.arange(4.0))

    def offset(which: str) -> Any:
        return ga.lazy.transform(lambda a: a + len(which), x)

    with ga.default_device("cpu"):
        for expression in (-x, x * x, abs(x)):
            assert ga.reduce(expression) == ga.copy(expression).sum()
        assert not [r for r in told.records if r.levelno == logging.WARNING]
        for n in range(2):
            assert ga.reduce(offset("x" * n)) == 6 + 4 * n
    (warned,) = [r.getMessage() for r in told.records if r.levelno == logging.WARNING]
    assert Path(__file__).name in warned


def test_operators_that_the_package_makes_are_not_blamed_on_the_caller(
    told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "MOST_CODES", 3)
    monkeypatch.setattr(operator, "_codes", {})
    x = ga.lazy.asarray(np.arange(4.0))
    adds = [
        lambda a, b: a + b,
        lambda a, b: b + a,
        lambda a, b: a + b + 0.0,
        lambda a, b: b + a + 0.0,
    ]
    with ga.default_device("cpu"):
        for add in adds:  # of one lazy array, whose elements stay the same
            assert ga.reduce(x, 0.0, add) == 6
        assert not [r for r in told.records if r.levelno == logging.WARNING]
        for k in range(2, 6):  # of one operator, which stays the same
            assert ga.reduce(x**k, 0.0, adds[0]) == 1 + 2**k + 3**k
    (warned,) = [r.getMessage() for r in told.records if r.levelno == logging.WARNING]
    assert warned.startswith("an operator that gpualgo makes of a lazy array has been compiled")
    assert "Pass an exponent that changes as an array, such as numpy.asarray(2)" in warned


def test_what_fails_is_not_told_as_made(told: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), log.timed_block("compiled %s", "nothing"):
        raise ZeroDivisionError
    assert told.messages == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_once_that_compiling_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, seconds = Terminal(), iter([0.0, 0.5, 1.5, 1.75, 10.0, 11.0, 20.0, 30.0])
    monkeypatch.delenv("GPUALGO_LOG", raising=False)
    monkeypatch.setattr(log, "_compile_time", log.CompileTime())
    monkeypatch.setattr(log, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(sys, "stderr", terminal)
    with log.timed_block("compiled kernel %s", "one"), log.timed_block("compiled operator"):
        pass
    assert not terminal.getvalue(), "less than two seconds"
    with log.timed_block("compiled kernel %s", "two"):
        pass
    assert terminal.getvalue().startswith(
        "gpualgo: compiled kernel two; first calls have compiled for 2.2 s. `gpualgo warmup`"
    )
    with log.timed_block("compiled kernel %s", "three"):
        pass
    assert terminal.getvalue().count("gpualgo:") == 1


class Broken(Terminal):
    def write(self, text: str) -> int:
        raise OSError("the terminal is gone")


def closed_file() -> io.StringIO:
    file = io.StringIO()
    file.close()
    return file


@pytest.mark.parametrize("stderr", [None, object(), closed_file(), Broken()])
def test_a_call_succeeds_whatever_stderr_is(stderr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUALGO_LOG", raising=False)
    monkeypatch.setattr(log, "_compile_time", log.CompileTime())
    seconds = iter([0.0, 9.0])
    monkeypatch.setattr(log, "perf_counter", lambda: next(seconds))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        with log.timed_block("compiled kernel"):
            pass
    assert log._compile_time.is_told


def test_a_terminal_is_not_told_that_what_failed_was_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, seconds = Terminal(), iter([0.0, 10.0, 12.5])
    monkeypatch.delenv("GPUALGO_LOG", raising=False)
    monkeypatch.setattr(log, "_compile_time", log.CompileTime())
    monkeypatch.setattr(log, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(ZeroDivisionError), log.timed_block("compiled kernel one"):
        _ = 1 / 0
    assert not terminal.getvalue()
    with log.timed_block("compiled kernel two"):
        pass
    assert "compiled kernel two; first calls have compiled for 2.5 s" in terminal.getvalue()


@pytest.mark.parametrize("change", ["no terminal", "a level", "gpualgo's own command"])
def test_who_is_not_told_that_compiling_takes_long(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO() if change == "no terminal" else Terminal()
    monkeypatch.delenv("GPUALGO_LOG", raising=False)
    if change == "a level":
        monkeypatch.setenv("GPUALGO_LOG", "error")
    monkeypatch.setattr(log, "_compile_time", log.CompileTime())
    if change == "gpualgo's own command":
        log.tell_no_times()
    monkeypatch.setattr(sys, "stderr", terminal)
    seconds = iter([0.0, 9.0])
    monkeypatch.setattr(log, "perf_counter", lambda: next(seconds))
    with log.timed_block("compiled kernel"):
        pass
    assert not terminal.getvalue()


def test_without_a_profiler_functions_are_what_they_were() -> None:
    def run() -> int:
        return 5

    assert log._nvtx is None
    assert log.each(lambda: "run")(run) is run


NVTX = """
from contextlib import contextmanager
@contextmanager
def annotate(message, domain):
    print("begin", domain, message)
    yield
    print("end", domain, message)
"""


@pytest.mark.parametrize(
    ("asked", "injected", "is_wanted"),
    [
        ("1", "", True),
        ("0", "", False),
        ("", "", False),
        ("", "/libToolsInjection64.so", True),
        ("0", "/libToolsInjection64.so", False),
    ],
)
def test_when_ranges_are_wanted(
    monkeypatch: pytest.MonkeyPatch, asked: str, injected: str, is_wanted: bool
) -> None:
    monkeypatch.setenv("GPUALGO_NVTX", asked)
    monkeypatch.setenv("NVTX_INJECTION64_PATH", injected)
    assert log.is_wanted() is is_wanted


@pytest.mark.parametrize("name", ["GPUALGO_NVTX", "GPUALGO_CHECK"])
def test_a_switch_that_is_neither_on_nor_off(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ask = {"GPUALGO_NVTX": log.is_wanted, "GPUALGO_CHECK": log.checks_device_values}[name]
    monkeypatch.setenv(name, "no")
    with pytest.raises(ValueError, match=f"{name} must be 1 or 0, got 'no'"):
        ask()
    monkeypatch.setenv(name, "1")
    assert ask()
    monkeypatch.setenv(name, "0")
    assert not ask()


def test_ranges_where_a_profiler_listens(tmp_path: Path) -> None:
    (tmp_path / "nvtx.py").write_text(NVTX)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SUM}"
    code += "x = np.ones(10)\nfor _ in range(2): print(ga.reduce(x))\n"
    code += "plan = ga.prepare(ga.reduce, x); plan(x)"
    done = run_python(code, GPUALGO_CACHE_DIR=str(tmp_path), NVTX_INJECTION64_PATH="/lib.so")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("begin gpualgo reduce") == lines.count("end gpualgo reduce") >= 2
    assert "begin gpualgo plan of reduce" in lines
    assert any(line.startswith("begin gpualgo compiled CPU kernel") for line in lines)


def test_without_the_package_nvtx_nothing_is_said() -> None:
    code = "import sys; sys.modules['nvtx'] = None\n" + SUM + "print(ga.reduce(np.ones(10)))"
    assert run_python(code, GPUALGO_NVTX="1").stdout == "10.0\n"
