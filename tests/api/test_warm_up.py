"""Warming up: what is compiled ahead is what calls ask for, by arrays of the host and of a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
import support
from fake_driver import FakeArray
from support import forget_problems, run_python

import gpualgo as ga
from gpualgo._api import prepare, warm_up
from gpualgo._api.warm_up import StandIn
from gpualgo._base import disk_cache
from gpualgo._base.errors import CompileError
from gpualgo._base.memo import Memo
from gpualgo._cli import main
from gpualgo._cuda import build, compilers
from gpualgo._driver import default_device, device
from gpualgo._driver.driver import Kernel

Make = Callable[[Any], Any]
ARCHS = [(7, 5), (9, 0)]
CALLS: dict[str, Callable[[Make, np.ndarray[Any, Any]], Any]] = {
    "sum": lambda to, x: ga.reduce(to(x)),
    "reduce": lambda to, x: ga.reduce(to(x), x[0], lambda a, b: a if a > b else b),
    "scan": lambda to, x: ga.inclusive_scan(to(x), None, lambda a, b: a + b),
    "exclusive": lambda to, x: ga.exclusive_scan(to(x), x.dtype.type(0)),
    "transform": lambda to, x: ga.transform(lambda v: v * 3, to(x), dtype=np.float32),
    "rows": lambda to, x: ga.reduce(to(x[: len(x) // 8 * 8].reshape(-1, 8)), axis=1),
    "extremes": lambda to, x: (ga.argmin(to(x)), ga.minmax(to(x))),
    "radix_sort": lambda to, x: ga.radix_sort(to(x)),
    "argsort": lambda to, x: ga.argsort(to(x)),
    "merge_sort": lambda to, x: ga.merge_sort(to(x), less=lambda a, b: a > b),
    "histogram": lambda to, x: ga.histogram(to(x), 256, (0, 100)),
    "edges": lambda to, x: ga.histogram(to(x), np.array([0, 1, 50.0])),
    "top_k": lambda to, x: ga.top_k(to(x), 10),
    "searchsorted": lambda to, x: ga.searchsorted(to(x), to(x)),
    "difference": lambda to, x: ga.adjacent_difference(to(x)),
    "segments": lambda to, x: ga.segmented_reduce(to(x), to(np.array([0, 5, 9])), x[0]),
}


class _Keys:
    """Which machine code is asked for, of a GPU that is there or is stood for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_driver.install(monkeypatch)
        fake_driver.register_arrays(monkeypatch)
        self.asked: set[str] = set()

        def stub(spec: build.Spec, ordinal: int) -> Kernel:
            self.asked.add(build._cubin_key(spec, device.get(ordinal).capability))
            return Kernel(b"", spec.expression)

        monkeypatch.setattr(build, "kernel", stub)
        monkeypatch.setattr(build, "kernels", lambda specs, n: [stub(spec, n) for spec in specs])


def _on_device(x: np.ndarray[Any, Any]) -> FakeArray:
    there = FakeArray(x.shape, x.dtype)
    there.memory[:] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    return there


@pytest.mark.parametrize("name", CALLS)
def test_asks_for_what_calls_ask_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pytest.importorskip("cuda.bindings")
    keys, call = _Keys(monkeypatch), CALLS[name]
    capability = ARCHS[len(name) % 2]
    fake_driver.gpu(0).become(capability)
    machine = fake_driver.gpu(0).shared_limit, fake_driver.gpu(0).num_sms
    with ThreadPoolExecutor(1) as pool:
        gpu = StandIn(capability, pool, machine)
    for dtype, size in (("float32", 1000), ("int64", 1 << 18)):
        x = prepare.numbers(dtype, size)
        keys.asked.clear()
        call(_on_device, x)
        wanted = set(keys.asked)
        keys.asked.clear()
        with device.put(gpu), default_device.Fixed(gpu.ordinal, "a test says so"):
            got = call(np.asarray, x)
        assert keys.asked == wanted != set()
        with ga.default_device("cpu"):  # which has computed what the stand-in gives
            np.testing.assert_equal(got, call(np.asarray, x))


def test_table_of_machines_is_as_the_drivers() -> None:
    for capability, shared in fake_driver.SHARED_BYTES.items():
        assert warm_up.MACHINES[capability][0] << 10 == shared


SOURCE = """
import numpy as np
import gpualgo as ga

def larger(a, b):
    return a if a > b else b

def sums():
    table = np.arange(8.0)
    looked_up = ga.transform(lambda i: table[i], np.arange(5))
    assert looked_up.tolist() == [0, 1, 2, 3, 4]
    assert float(ga.reduce(np.arange(1000, dtype=np.float32), None, larger)) == 999

def wrong():
    raise KeyError("nothing")

def listed(a, b):
    return [a, b]

def leaves():
    raise SystemExit(3)

class Kind:
    pass

number = 3
"""


@pytest.fixture
def ops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A module `warm_ops` in the current folder, an empty cache, and nothing in memory."""
    pytest.importorskip("cuda.bindings")
    (tmp_path / "warm_ops.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delitem(sys.modules, "warm_ops", raising=False)
    monkeypatch.setattr(warm_up, "present", dict)
    _forget(monkeypatch)
    return tmp_path


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._cpu import kernels

    for module in (build, kernels, kernels):
        for name, value in list(vars(module).items()):
            if isinstance(value, Memo):
                monkeypatch.setattr(module, name, Memo(256))
    forget_problems()  # they hold plans, which hold kernels


@pytest.mark.usefixtures("ops")
def test_what_is_compiled_is_there_for_calls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["warmup", "--ops", "warm_ops:sums", "--arch", "sm_80", "sm_90", "--jobs", "2"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "sm_80: 2 kernels compiled, 0 found\nsm_90: 2 kernels compiled, 0 found" in told
    _forget(monkeypatch)
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "cpu: 0 entries compiled" in told
    assert "sm_80: 0 kernels compiled, 2 found\nsm_90: 0 kernels compiled, 2 found" in told
    _forget(monkeypatch)
    import warm_ops  # type: ignore[import-not-found]

    fake_driver.install(monkeypatch)
    fake_driver.register_arrays(monkeypatch)

    def compile_nothing(*_: Any) -> Any:
        raise AssertionError("it was not compiled ahead")

    monkeypatch.setattr(build, "_build", compile_nothing)
    x = _on_device(np.arange(1000, dtype=np.float32))
    with disk_cache.watched() as seen:
        ga.reduce(x, None, warm_ops.larger)
    assert seen.read
    assert not seen.written


A_CALL = """
import cupy, warm_ops
import gpualgo as ga
found = ga.reduce(cupy.arange(1000, dtype=cupy.float32), None, warm_ops.larger)
assert float(found) == 999
"""


@pytest.mark.usefixtures("cuda")
def test_a_gpu_finds_what_was_compiled_without_one(ops: Path) -> None:
    """By processes of their own: the first sees no GPU, the second one compiles nothing."""
    if support.is_emulated:
        pytest.skip("the emulated GPU has a compiler of its own")
    arch = build.arch_of(device.get(0).capability)
    environment = {
        "GPUALGO_CACHE_DIR": str(ops / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ops), str(support.REPOSITORY), *filter(None, sys.path)]),
    }
    command = [sys.executable, "-m", "gpualgo", "warmup", "--ops", "warm_ops:sums", "--arch", arch]
    compiled = subprocess.run(
        command, env={**os.environ, **environment, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    assert f"{arch}: 2 kernels compiled, 0 found" in compiled.stdout
    found = run_python(A_CALL, GPUALGO_LOG="info", **environment)
    assert found.returncode == 0, found.stderr
    assert "found on disk" in found.stderr
    assert "compiled" not in found.stderr


@pytest.mark.usefixtures("ops")
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--arch", "sm_1"], 2, "unknown architecture 'sm_1'; use sm_75, "),
        (["--jobs", "0"], 2, "--jobs must be 1 or more, got 0"),
        (["--ops", "warm_ops"], 2, "--ops takes module:function, got 'warm_ops'"),
        (["--ops", "warm_ops:none"], 2, "warm_ops:none cannot be imported"),
        (["--ops", "warm_ops:number"], 2, "warm_ops:number is int; name a function"),
        (["--ops", "warm_ops:wrong"], 1, "failed: warm_ops:wrong: KeyError: 'nothing'"),
        (["--ops", "warm_ops:leaves"], 1, "failed: warm_ops:leaves: SystemExit: 3"),
        (["--ops", "warm_ops:Kind"], 2, "warm_ops:Kind is type; name a function"),
        (["--ops", "broken:f"], 2, "broken:f cannot be imported (RuntimeError('at import'))"),
        (["--ops", ".warm_ops:f"], 2, ".warm_ops:f cannot be imported (TypeError"),
        (["--ops", "os:getcwd"], 1, "failed: os:getcwd: it calls nothing of gpualgo's"),
        (["--ops", "warm_ops:listed"], 1, "failed: warm_ops:listed of float32"),
    ],
)
def test_what_is_wrong_is_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    Path("broken.py").write_text("raise RuntimeError('at import')")
    assert main(["warmup", *arguments]) == code
    assert told in capsys.readouterr().err


def test_a_cache_that_keeps_nothing(
    ops: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (ops / "file").write_text("")
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(ops / "file"))
    assert main(["warmup", "--ops", "warm_ops:sums"]) == 1
    assert "nothing would be kept in" in capsys.readouterr().err


@pytest.mark.usefixtures("ops")
def test_a_cache_that_is_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "replace", full)
    monkeypatch.setattr(disk_cache, "_warned", True)
    assert main(["warmup", "--ops", "warm_ops:sums"]) == 1
    err = capsys.readouterr().err
    assert err.count("failed: compiled kernels are not kept on disk: [Errno 28] No space left") == 1


@pytest.mark.usefixtures("ops")
def test_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> str:
        raise CompileError("compiling a kernel needs cuda-bindings")

    monkeypatch.setattr(compilers, "nvrtc_version", missing)
    assert main(["warmup", "--ops", "warm_ops:sums", "--arch", "sm_90"]) == 1
    assert capsys.readouterr().err == ("gpualgo warmup: compiling a kernel needs cuda-bindings\n")


def test_what_an_operator_is_for() -> None:
    calls = {recipe.name for recipe in prepare.of_operator("m:f", lambda a, b: a + b)}
    assert calls == {f"m:f of {dtype}" for dtype in prepare.DTYPES}
    assert prepare._num_arguments(np.add) == prepare._num_arguments(ga.Operator(min)) == 2
    assert prepare._num_arguments(lambda a, b=1: a) == 1
