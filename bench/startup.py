"""What a new process, a new operator and a warm disk cache cost, each in a process of its own."""

from __future__ import annotations

import compileall
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from bench.peers import compute
from bench.support import OURS, Result, Row, Work, gpu

T = TypeVar("T")

# Making the data, with NumPy's or CuPy's import and the CUDA context, is outside the timing.
_HOST_DATA = "import numpy as np; x = np.ones(1 << 20, np.float32)\n"
_DEVICE_DATA = """
import numpy as np, cupy as cp
x, out = cp.ones(1 << 20, cp.float32), cp.empty(1, cp.float32)
float(x[0])
"""
_TIMING = """
import json, time
def max_abs(a, b): return a if abs(a) > abs(b) else b
def min_abs(a, b): return a if abs(a) < abs(b) else b
start = time.perf_counter()
{setup}
imported = time.perf_counter()
assert first() == 1.0
after_first = time.perf_counter()
assert second() == 1.0
after_second = time.perf_counter()
print(json.dumps([imported - start, after_first - imported, after_second - after_first]))
"""
_REDUCE = {
    OURS: """
import gpualgo as ga
first = lambda: float(ga.reduce(x, 0.0, max_abs))
second = lambda: float(ga.reduce(x, 2.0, min_abs))
""",
    "cuda.compute": """
import cuda.compute as cc
def call(op, init):
    cc.reduce_into(d_in=x, d_out=out, op=op, num_items=x.size, h_init=np.full(1, init, x.dtype))
    return float(out[0])
first = lambda: call(max_abs, 0)
second = lambda: call(min_abs, 2)
""",
    "CuPy": """
def call(compare, identity):
    fold = f"fabsf(a) {compare} fabsf(b) ? a : b"
    return float(cp.ReductionKernel("T x", "T y", "x", fold, "y = a", identity, "fold")(x))
first = lambda: call(">", "0")
second = lambda: call("<", "2")
""",
}
_SCAN = {
    OURS: """
import gpualgo as ga
first = lambda: float(ga.inclusive_scan(x, None, max_abs)[-1])
second = lambda: float(ga.inclusive_scan(x, None, min_abs)[-1])
""",
    "cuda.compute": """
import cuda.compute as cc
def call(op):
    out = cp.empty_like(x)
    cc.inclusive_scan(d_in=x, d_out=out, op=op, init_value=None, num_items=x.size)
    return float(out[-1])
first = lambda: call(max_abs)
second = lambda: call(min_abs)
""",
}
_SORT = {
    OURS: """
import gpualgo as ga
first = second = lambda: float(ga.radix_sort(x)[0])
""",
    "cuda.compute": """
import cuda.compute as cc
def first():
    out = cp.empty_like(x)
    order = cc.SortOrder.ASCENDING
    cc.radix_sort(d_in_keys=x, d_out_keys=out, num_items=x.size, order=order)
    return float(out[0])
second = first
""",
    "CuPy": "first = second = lambda: float(cp.sort(x)[0])",
}

Times = tuple[float, float, float]  # import, first operator, second operator


_ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def _compile_bytecode() -> None:
    """Do what pip does when it installs the package: it runs from its sources here."""
    compileall.compile_dir(_ROOT / "gpualgo", quiet=2)


def _measure(setup: str, data: str, caches: Path, device: str | None = None) -> Times:
    """Run one process whose caches are in a folder of their own."""
    _compile_bytecode()
    env = os.environ | {
        "GPUALGO_CACHE_DIR": str(caches / "gpualgo"),
        "CUPY_CACHE_DIR": str(caches / "cupy"),
        "CUDA_CACHE_PATH": str(caches / "driver"),
        "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    if device:
        env["GPUALGO_DEVICE"] = device
    code = data + _TIMING.format(setup=setup)
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as script:
        script.write(code)
    try:
        done = subprocess.run(
            [sys.executable, script.name], env=env, capture_output=True, text=True, check=False
        )
    finally:
        os.unlink(script.name)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-2000:])
    imported, first, second = json.loads(done.stdout.splitlines()[-1])
    return imported, first, second


def _cold(setup: str, data: str, device: str | None = None) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        return _measure(setup, data, Path(folder), device)


def _cold_and_warm(setup: str, data: str) -> tuple[Times, Times]:
    with tempfile.TemporaryDirectory() as folder:
        caches = Path(folder)
        cold = _measure(setup, data, caches)
        return cold, _measure(setup, data, caches)


def _result(name: str, target: float | None) -> Result:
    def build(_: int) -> Work:
        raise NotImplementedError("start-up rows time whole processes")

    return Result(Row(name, 1 << 20, "start", build, target=target))


def _on_cpu() -> list[Result]:
    first = _result("CPU: a new lambda, first of a process", None)
    second = _result("CPU: a second lambda", 0.6)
    _, first.seconds[OURS], second.seconds[OURS] = _cold(_REDUCE[OURS], _HOST_DATA, "cpu")
    return [first, second]


def _each(setups: dict[str, str], measure: Callable[[str], T]) -> Iterator[tuple[str, T]]:
    """Measure each contender; a peer that is missing or fails is left out."""
    for who, setup in setups.items():
        if who == "cuda.compute" and compute.module() is None:
            continue
        try:
            yield who, measure(setup)
        except RuntimeError as error:
            if who == OURS:
                raise
            print(f"bench: {who} left out: {str(error).splitlines()[-1]}", file=sys.stderr)


def _first_reduce() -> list[Result]:
    whole = _result("import and first new lambda, no cache", 1.2)
    another = _result("a second lambda, same process", 0.15)
    again = _result("same lambda, new process, warm disk cache: first call", 0.02)
    for who, (cold, warm) in _each(_REDUCE, lambda s: _cold_and_warm(s, _DEVICE_DATA)):
        whole.seconds[who], another.seconds[who] = cold[0] + cold[1], cold[2]
        again.seconds[who] = warm[1]
    return [whole, another, again]


def _first_scan() -> list[Result]:
    whole = _result("import and first scan with a lambda, no cache", None)
    for who, cold in _each(_SCAN, lambda s: _cold(s, _DEVICE_DATA)):
        whole.seconds[who] = cold[0] + cold[1]
    return [whole]


def _first_sort() -> list[Result]:
    whole = _result("import and first radix sort, no cache", 0.5)
    for who, cold in _each(_SORT, lambda s: _cold(s, _DEVICE_DATA)):
        whole.seconds[who] = cold[0] + cold[1]
    return [whole]


GROUPS: dict[str, Callable[[], list[Result]]] = {
    "start-up, CPU": _on_cpu,
    "start-up, reduce": _first_reduce,
    "start-up, scan": _first_scan,
    "start-up, radix sort": _first_sort,
}


def results(chosen: str) -> list[Result]:
    """Time the groups whose name contains the text, and return their rows of the table."""
    groups = [run for name, run in GROUPS.items() if chosen in name]
    runnable = [run for run in groups if gpu() is not None or run is _on_cpu]
    return [result for run in runnable for result in run()]
