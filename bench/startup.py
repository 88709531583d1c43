"""What a new process, a new operator and a warm disk cache cost, each in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.support import OURS, Result, Row, gpu

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
_SETUPS = {
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

Times = tuple[float, float, float]  # import, first operator, second operator


def _measure(who: str, data: str, caches: Path, device: str | None = None) -> Times:
    """Run one process whose caches are in a folder of their own."""
    root = Path(__file__).resolve().parents[1]
    env = os.environ | {
        "GPUALGO_CACHE_DIR": str(caches / "gpualgo"),
        "CUPY_CACHE_DIR": str(caches / "cupy"),
        "CUDA_CACHE_PATH": str(caches / "driver"),
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    if device:
        env["GPUALGO_DEVICE"] = device
    code = data + _TIMING.format(setup=_SETUPS[who])
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as script:
        script.write(code)
    try:
        done = subprocess.run(
            [sys.executable, script.name], env=env, capture_output=True, text=True, check=False
        )
    finally:
        os.unlink(script.name)
    if done.returncode != 0:
        raise RuntimeError(f"{who}: {done.stderr.strip()[-2000:]}")
    imported, first, second = json.loads(done.stdout.splitlines()[-1])
    return imported, first, second


def _cold_and_warm(who: str, data: str, device: str | None = None) -> tuple[Times, Times]:
    with tempfile.TemporaryDirectory() as folder:
        caches = Path(folder)
        cold = _measure(who, data, caches, device)
        return cold, _measure(who, data, caches, device)


def _row(name: str, target: float | None) -> Row:
    def build(_: int) -> object:
        raise NotImplementedError("start-up rows time whole processes")

    return Row(name, 1 << 20, "start", build, target=target)  # type: ignore[arg-type]


def _contenders() -> list[str]:
    installed = importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.compute")
    return [OURS, *(["cuda.compute"] if installed else []), "CuPy"]


def results() -> list[Result]:
    """Time every contender and return the rows of the table."""
    found = []
    (_, first, second), _ = _cold_and_warm(OURS, _HOST_DATA, "cpu")
    found.append(Result(_row("CPU: a new lambda, first of a process", None), {OURS: first}))
    found.append(Result(_row("CPU: a second lambda", 0.6), {OURS: second}))
    if gpu() is None:
        return found
    whole = Result(_row("import and first new lambda, no cache", 1.2))
    another = Result(_row("a second lambda, same process", 0.15))
    again = Result(_row("same lambda, new process, warm disk cache: first call", 0.02))
    for who in _contenders():
        try:
            cold, warm = _cold_and_warm(who, _DEVICE_DATA)
        except RuntimeError as error:
            if who == OURS:
                raise
            print(f"bench: {error}", file=sys.stderr)
            continue
        whole.seconds[who], another.seconds[who] = cold[0] + cold[1], cold[2]
        again.seconds[who] = warm[1]
    return [*found, whole, another, again]
