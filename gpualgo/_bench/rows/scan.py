"""Scans beside CUB, cuda.compute, CuPy, PyTorch and NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench import data
from gpualgo._bench.peers import arrays, compute, cub, loops
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.SCAN,)  # what these rows compile of it
COLUMNS = 1 << 10


def max_abs(a: Any, b: Any) -> Any:  # a user's operator: no library knows it by name
    return a if abs(a) > abs(b) else b


def _poisoned(x: Any) -> Any:
    """Return an output in which a value that was not written is seen."""
    return gpu().full(x.shape, 77, x.dtype)


def _wide(dtype: Any) -> str:
    return "float64" if np.dtype(dtype).kind == "f" else "int64"


def _sum(dtype: str, n: int) -> Work:
    x = data.steps(n, dtype)
    out = [_poisoned(x) for _ in range(3)]
    contenders = {OURS: lambda: ga.inclusive_scan(x, out=out[0])}
    contenders |= cub.scan(dtype, x, out[1])
    contenders |= compute.scan(x, out[2], None)
    contenders["CuPy"] = lambda: x.cumsum(dtype=dtype)
    contenders |= arrays.function(lambda jnp: lambda v: jnp.cumsum(v, dtype=dtype), x)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().cumsum(tensor, 0, dtype=tensor.dtype)
    return Work(contenders, x.cumsum(dtype=_wide(dtype)).astype(dtype))


def _lambda(n: int) -> Work:
    x, expected = data.peaks(n)
    out = [_poisoned(x) for _ in range(3)]
    contenders = {OURS: lambda: ga.inclusive_scan(x, None, max_abs, out=out[0])}
    contenders |= cub.scan("max_abs_float32", x, out[1])
    contenders |= compute.scan(x, out[2], max_abs)
    contenders |= arrays.scan(lambda jnp: lambda a, b: jnp.where(jnp.abs(a) > jnp.abs(b), a, b), x)
    return Work(contenders, expected)


def _axis(axis: int, n: int) -> Work:
    x = data.steps(n, "float32").reshape(-1, COLUMNS)
    out = _poisoned(x)
    contenders: dict[str, Any] = {OURS: lambda: ga.inclusive_scan(x, axis=axis, out=out)}
    contenders["CuPy"] = lambda: x.cumsum(axis=axis, dtype="float32")
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().cumsum(tensor, axis)
    return Work(contenders, x.cumsum(axis=axis, dtype="float64").astype("float32"))


def _call(op: Any, n: int) -> Work:
    x = data.steps(n, "float32") if op is None else data.peaks(n)[0]
    out = _poisoned(x)
    ours = (lambda: ga.inclusive_scan(x)) if op is None else lambda: ga.inclusive_scan(x, None, op)
    contenders = {OURS: ours, **compute.scan(x, out, op, one_call=True)}
    if op is not None:
        return Work(contenders, data.peaks(n)[1])
    contenders["CuPy"] = lambda: x.cumsum()
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.cumsum(0)
    return Work(contenders, x.cumsum(dtype="float64").astype("float32"))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).integers(-8, 9, n).astype(np.float32)  # sums are exact
    out = np.full((3, n), 77, np.float32)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.inclusive_scan(x, None, lambda a, b: a + b, out=out[0]),
        "NumPy": lambda: np.cumsum(x, out=out[1]),
    }
    contenders |= loops.into("scan", x, out[2])
    return Work(contenders, np.cumsum(x, dtype=np.float64).astype(np.float32))


SIZES = (16, 20, 24, 28, 30)
QUICK: dict[str, tuple[int, ...]] = {  # by dtype: logarithms of n
    "float32": (16, 20, 28),
    "int32": (),
    "int64": (28,),
    "float64": (28,),
    "int8": (28,),
}


def rows() -> list[Row]:
    """Return all rows, a GPU's among them; bytes moved: each element read and written."""
    cpu = [Row("inclusive scan, lambda sum f32", 1 << 24, "cpu", _numpy, 2**27)]
    found = []
    for dtype, quick in QUICK.items():
        kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
        name = f"inclusive scan sum {kind}{8 * size}"
        for power in SIZES:
            n = 1 << power
            build = functools.partial(_sum, dtype)
            found.append(Row(name, n, "device", build, 2 * size * n, quick=power in quick))
    for power in SIZES:
        n = 1 << power
        name = "inclusive scan, user lambda f32"
        found.append(Row(name, n, "device", _lambda, 8 * n, quick=power == 28))
    n = 1 << 28
    for axis in (1, 0):
        build = functools.partial(_axis, axis)
        name = f"cumsum over axis {axis}, f32, beside CuPy"
        found.append(Row(name, n, "device", build, 8 * n, beside="CuPy"))
    for name, op in (("inclusive scan", None), ("inclusive scan, user lambda", max_abs)):
        found.append(Row(name, 1 << 10, "host", functools.partial(_call, op), dtype="f32"))
    return found + cpu
