"""What a new process, a new operator and a warm disk cache cost, each in a process of its own."""

import compileall
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gpualgo
from bench.peers import OURS
from bench.row import Row

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


@functools.cache
def seconds(setup, is_on_cpu, repeat):
    """Return the seconds of the import, of a first and of a second operator.

    They are of a process with empty caches, and of one that finds what the first has left there.
    """
    package = Path(gpualgo.__file__).resolve().parent
    compileall.compile_dir(package, quiet=2)  # its bytecode, as pip does it
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "first.py")
        data = _HOST_DATA if is_on_cpu else _DEVICE_DATA
        script.write_text(data + _TIMING.format(setup=setup), encoding="utf-8")
        env = os.environ | {
            "GPUALGO_CACHE_DIR": f"{folder}/gpualgo", "CUPY_CACHE_DIR": f"{folder}/cupy",
            "CUDA_CACHE_PATH": f"{folder}/driver",
            "PYTHONPATH": f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            **({"GPUALGO_DEVICE": "cpu"} if is_on_cpu else {}),
        }  # fmt: skip
        found = []
        for _ in range(2):
            done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip()[-2000:])
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def started(name, setups, figure):
    """Return a row of a figure of both processes; rows with equal setups share the processes."""
    is_on_cpu = name.startswith("CPU: ")
    calls = {who: lambda repeat, setup=setup: figure(*seconds(setup, is_on_cpu, repeat))
             for who, setup in setups.items()}  # fmt: skip
    return Row(name, 1 << 20, "start", calls=calls, of_its_size=True)


first, second = lambda cold, warm: cold[1], lambda cold, warm: cold[2]
with_import = lambda cold, warm: cold[0] + cold[1]
OURS_ALONE = {OURS: _REDUCE[OURS]}
STARTUP = [
    started("CPU: a new lambda, first of a process", OURS_ALONE, first),
    started("CPU: a second lambda", OURS_ALONE, second),
    started("CPU: import and a known lambda, warm disk cache", OURS_ALONE,
            lambda cold, warm: warm[0] + warm[1]),
    *(started(f"CPU: first {call.partition('(')[0]}", {OURS: _FIRST_CALL.format(call=call)}, second)
      for call in _FIRST_CALLS),
    started("import and first new lambda, no cache", _REDUCE, with_import),
    started("a second lambda, same process", _REDUCE, second),
    started("same lambda, new process, warm disk cache: first call", _REDUCE,
            lambda cold, warm: warm[1]),
    started("import and first radix sort, no cache", _SORT, with_import),
]  # fmt: skip
