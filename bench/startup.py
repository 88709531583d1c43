"""What a new process, a new operator and a warm disk cache cost, each in a process of its own."""

from __future__ import annotations

import compileall
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import gpualgo
from bench import notes
from bench.peers import OURS, is_here
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
assert first() == 1.0
after_first = clock()
assert second() == 1.0
after_second = clock()
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
    "JAX": """
import os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax, jax.numpy as jnp
held = jax.dlpack.from_dlpack(x)
def call(is_kept, init):
    fold = lambda a, b: jnp.where(is_kept(jnp.abs(a), jnp.abs(b)), a, b)
    made = jax.jit(lambda v: jax.lax.reduce(v, jnp.float32(init), fold, (0,)))
    return float(made(held))
first = lambda: call(jnp.greater, 0)
second = lambda: call(jnp.less, 2)
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
# First calls where numba is loaded and has compiled an operator: their CPU time, which is about
# the time that they take where other programs leave the cores alone.
_FAMILIES = {
    "transform": "ga.transform(lambda a: a * 3.0, x)",
    "reduce": "ga.reduce(x, None, min_abs)",
    "inclusive_scan": "ga.inclusive_scan(x, None, min_abs)",
    "select": "ga.select(x, lambda a: a > 0.5)",
    "merge_sort": "ga.merge_sort(x, less=lambda a, b: abs(a) < abs(b))",
    "radix_sort": "ga.radix_sort(x)",
    "argsort": "ga.argsort(x)",
    "unique": "ga.unique(x)",
    "histogram": "ga.histogram(x, 100, (0.0, 2.0))",
    "reduce_by_key": "ga.reduce_by_key(x, x)",
}
_FAMILY = """
clock = time.process_time
import gpualgo as ga
first = lambda: float(ga.transform(max_abs, x, x)[0])
second = lambda: float({call} is not None)
"""


N = 1 << 20
Parts = tuple[float, float, float]  # import, first operator, second operator
Made = Callable[[Parts, Parts], float]  # a row's figure, of a process without caches and of a later


def _import_and_first(cold: Parts, warm: Parts) -> float:
    return cold[0] + cold[1]


@dataclass(frozen=True)
class Group:
    """Rows that are of the same processes."""

    made: dict[str, Made]  # by the name of the row
    setups: dict[str, str]  # by contender
    is_on_cpu: bool = False

    @property
    def rows(self) -> list[Row]:
        return [Row(name, N, "start", dtype="f32", algorithm="startup") for name in self.made]

    def measure(self, repeats: int) -> list[Row]:
        times: dict[str, dict[str, Times]] = {name: {} for name in self.made}
        for who, setup in self.setups.items():
            if not is_here(who):
                continue
            try:
                parts = [self._cold_and_warm(setup) for _ in range(repeats)]
            except RuntimeError as error:
                if who == OURS:
                    raise
                notes.add("start-up", who, error)
                continue
            for name, made in self.made.items():
                times[name][who] = Times.of([[made(*each)] for each in parts])
        return [row.timed(times[row.name]) for row in self.rows]

    def _cold_and_warm(self, setup: str) -> tuple[Parts, Parts]:
        """Run a process with empty caches, and one that finds what the first has left there."""
        code = (_HOST_DATA if self.is_on_cpu else _DEVICE_DATA) + _TIMING.format(setup=setup)
        with tempfile.TemporaryDirectory() as folder:
            return _run(code, Path(folder), self.is_on_cpu), _run(
                code, Path(folder), self.is_on_cpu
            )


GROUPS = [
    Group(
        {
            "CPU: a new lambda, first of a process": lambda cold, warm: cold[1],
            "CPU: a second lambda": lambda cold, warm: cold[2],
            "CPU: import and a known lambda, warm disk cache": lambda cold, warm: warm[0] + warm[1],
        },
        {OURS: _REDUCE[OURS]}, is_on_cpu=True,
    ),
    *(
        Group({f"CPU: first {name}": lambda cold, warm: cold[2]},
              {OURS: _FAMILY.format(call=call)}, is_on_cpu=True)
        for name, call in _FAMILIES.items()
    ),
    Group(
        {
            "import and first new lambda, no cache": _import_and_first,
            "a second lambda, same process": lambda cold, warm: cold[2],
            "same lambda, new process, warm disk cache: first call": lambda cold, warm: warm[1],
        },
        _REDUCE,
    ),
    Group({"import and first scan with a lambda, no cache": _import_and_first}, _SCAN),
    Group({"import and first radix sort, no cache": _import_and_first}, _SORT),
]  # fmt: skip


@functools.cache
def _package_folder() -> Path:
    """Return the folder that gpualgo is imported from, its bytecode compiled, as pip does it."""
    package = Path(gpualgo.__file__).resolve().parent
    compileall.compile_dir(package, quiet=2)
    return package.parent


def _run(code: str, caches: Path, is_on_cpu: bool) -> Parts:
    env = os.environ | {
        "GPUALGO_CACHE_DIR": str(caches / "gpualgo"),
        "CUPY_CACHE_DIR": str(caches / "cupy"),
        "CUDA_CACHE_PATH": str(caches / "driver"),
        "PYTHONPATH": os.pathsep.join([str(_package_folder()), os.environ.get("PYTHONPATH", "")]),
    }
    if is_on_cpu:
        env["GPUALGO_DEVICE"] = "cpu"
    script = caches / "first.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-2000:])
    imported, first, second = json.loads(done.stdout.splitlines()[-1])
    return imported, first, second


def run_all(
    groups: Iterable[Group], repeats: int, found: list[Row],
    step: Callable[[Row], None] = lambda row: None,
) -> bool:  # fmt: skip
    """Run the groups, add what they tell, and return whether one of ours failed."""
    failed = False
    for group in groups:
        step(group.rows[0])
        try:
            found += group.measure(repeats)
        except RuntimeError as error:
            failed = True
            notes.add("start-up", OURS, f"FAILED: {error}")
    return failed
