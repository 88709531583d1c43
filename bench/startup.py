"""What a new process, a new operator and a warm disk cache cost, each in a process of its own."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gpualgo
from bench.peers import OURS, is_here, note
from bench.row import Row, Times

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
clock = time.perf_counter
start = clock()
{setup}
imported = clock()
assert call(max_abs, 0.0) == 1.0
after_first = clock()
assert call(min_abs, 2.0) == 1.0
print(json.dumps([imported - start, after_first - imported, clock() - after_first]))
"""
_CC = "import cuda.compute as cc\ncall = lambda op, init: (cc."
# By contender: what it imports, and a call by an operator, whose result is 1.
_REDUCE = {
    OURS: "import gpualgo as ga\ncall = lambda op, init: float(ga.reduce(x, init, op))",
    "cuda.compute": f"""{_CC}reduce_into(d_in=x, d_out=out, op=op, num_items=x.size,
        h_init=np.full(1, init, x.dtype)), float(out[0]))[1]""",
    "CuPy": """
def call(op, init):
    fold = f"fabsf(a) {'>' if op is max_abs else '<'} fabsf(b) ? a : b"
    return float(cp.ReductionKernel("T x", "T y", "x", fold, "y = a", str(init), "fold")(x))
""",
    "JAX": """
import jax, jax.numpy as jnp
held = jax.dlpack.from_dlpack(x)
def call(op, init):
    is_kept = jnp.greater if op is max_abs else jnp.less
    fold = lambda a, b: jnp.where(is_kept(jnp.abs(a), jnp.abs(b)), a, b)
    return float(jax.jit(lambda v: jax.lax.reduce(v, jnp.float32(init), fold, (0,)))(held))
""",
}
_SCAN = {
    OURS: "import gpualgo as ga\ncall = lambda op, _: float(ga.inclusive_scan(x, None, op)[-1])",
    "cuda.compute": f"""{_CC}inclusive_scan(d_in=x, d_out=(y := cp.empty_like(x)), op=op,
        init_value=None, num_items=x.size), float(y[-1]))[1]""",
}
_SORT = {
    OURS: "import gpualgo as ga\ncall = lambda op, init: float(ga.radix_sort(x)[0])",
    "cuda.compute": f"""{_CC}radix_sort(d_in_keys=x, d_out_keys=(y := cp.empty_like(x)),
        num_items=x.size, order=cc.SortOrder.ASCENDING), float(y[0]))[1]""",
    "CuPy": "call = lambda op, init: float(cp.sort(x)[0])",
}
# First calls where numba is loaded and has compiled an operator: their CPU time, which is about
# the time that they take where other programs leave the cores alone.
_FIRST_CALLS = (
    "transform(lambda a: a * 3.0, x)", "reduce(x, None, min_abs)",
    "inclusive_scan(x, None, min_abs)", "select(x, lambda a: a > 0.5)",
    "merge_sort(x, less=lambda a, b: abs(a) < abs(b))", "radix_sort(x)", "argsort(x)", "unique(x)",
    "histogram(x, 100, (0.0, 2.0))", "reduce_by_key(x, x)",
)  # fmt: skip
_FIRST_CALL = """
clock = time.process_time
import gpualgo as ga
def call(op, init):
    return float(ga.transform(op, x, x)[0]) if op is max_abs else float(ga.{call} is not None)
"""
Parts = tuple[float, float, float]  # import, first operator, second operator


@dataclass(frozen=True)
class Group:
    """Rows that are of the same processes."""

    # By the name of a row its figure, of a process without caches and of a later one.
    made: dict[str, Callable[[Parts, Parts], float]]
    setups: dict[str, str]  # by contender
    is_on_cpu: bool = False

    @property
    def rows(self) -> list[Row]:
        return [Row(name, 1 << 20, "start", dtype="f32", algorithm="startup") for name in self.made]

    def measure(self, repeats: int) -> list[Row]:
        parts: dict[str, list[tuple[Parts, Parts]]] = {}
        for who in filter(is_here, self.setups):
            try:
                parts[who] = [self._cold_and_warm(self.setups[who]) for _ in range(repeats)]
            except RuntimeError as error:
                if who == OURS:
                    raise
                note("start-up", who, str(error))
        return [row.timed({who: Times.of([[self.made[row.name](*pair)] for pair in pairs])
                           for who, pairs in parts.items()}) for row in self.rows]  # fmt: skip

    def _cold_and_warm(self, setup: str) -> tuple[Parts, Parts]:
        """Run a process with empty caches, and one that finds what the first has left there."""
        package = Path(gpualgo.__file__).resolve().parent
        compileall.compile_dir(package, quiet=2)  # its bytecode, as pip does it
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "first.py")
            data = _HOST_DATA if self.is_on_cpu else _DEVICE_DATA
            script.write_text(data + _TIMING.format(setup=setup), encoding="utf-8")
            env = os.environ | {
                "GPUALGO_CACHE_DIR": f"{folder}/gpualgo", "CUPY_CACHE_DIR": f"{folder}/cupy",
                "CUDA_CACHE_PATH": f"{folder}/driver",
                "PYTHONPATH": f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
                **({"GPUALGO_DEVICE": "cpu"} if self.is_on_cpu else {}),
            }  # fmt: skip
            found = []
            for _ in range(2):
                command = [sys.executable, str(script)]
                done = subprocess.run(command, env=env, capture_output=True, text=True)
                if done.returncode != 0:
                    raise RuntimeError(done.stderr.strip()[-2000:])
                found.append(tuple(json.loads(done.stdout.splitlines()[-1])))
        return found[0], found[1]


_SECOND, _NO_CACHE = lambda cold, warm: cold[2], lambda cold, warm: cold[0] + cold[1]
GROUPS = [
    Group({"CPU: a new lambda, first of a process": lambda cold, warm: cold[1],
           "CPU: a second lambda": _SECOND,
           "CPU: import and a known lambda, warm disk cache": lambda cold, warm: warm[0] + warm[1]},
          {OURS: _REDUCE[OURS]}, is_on_cpu=True),
    *(Group({f"CPU: first {call.partition('(')[0]}": _SECOND},
            {OURS: _FIRST_CALL.format(call=call)}, is_on_cpu=True) for call in _FIRST_CALLS),
    Group({"import and first new lambda, no cache": _NO_CACHE,
           "a second lambda, same process": _SECOND,
           "same lambda, new process, warm disk cache: first call": lambda cold, warm: warm[1]},
          _REDUCE),
    Group({"import and first scan with a lambda, no cache": _NO_CACHE}, _SCAN),
    Group({"import and first radix sort, no cache": _NO_CACHE}, _SORT),
]  # fmt: skip
