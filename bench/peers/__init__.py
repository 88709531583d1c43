"""The libraries that gpualgo is compared with: those that are here, and how they are called."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# JAX takes the memory that it needs, and works in 64 bits.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("JAX_ENABLE_X64", "1")
_HERE = Path(__file__).parent
_SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in _HERE.glob("*.cu")}
OURS = "gpualgo"
PEERS = ("CUB", "cuda.compute", "CuPy", "torch", "JAX", "NumPy", "numba", "polars")
COPIES = "peer copies"  # the part of a call's time that copies between GPUs take
# JAX has streams of its own, which events do not see. It is timed by the host's clock over several
# calls, which says little of small arrays: it takes no part in those.
JAX_LEAST = 1 << 24  # elements

Call = Callable[[], Any]


@dataclass(frozen=True)
class Prepared:
    """A call whose storage or compilation is not timed: `make` returns the call, or None."""

    make: Callable[..., Any]
    cub_source: str = ""  # the .cu file that it is compiled from


_notes: dict[tuple[str, str], str] = {}
_wanted: list[str] = []  # peers by the beginnings of their names; empty: all of them


def note(row: object, who: str, reason: object) -> None:
    """Note that a contender is missing from a row, or from all ("" for the row), and why."""
    kind = f"{type(reason).__name__}: " if isinstance(reason, Exception) else ""
    _notes.setdefault((str(row), who), kind + (str(reason).strip().splitlines() or [""])[-1][:300])


@contextmanager
def left_out_if_it_fails(row: object, who: str) -> Iterator[None]:
    """Note a peer's failure, and go on: its time would compare nothing. Ours is raised."""
    try:
        yield
    except Exception as error:
        if who == OURS:
            raise
        note(row, who, error)


def taken_notes() -> list[dict[str, str]]:
    found = [{"row": row, "who": who, "reason": why} for (row, who), why in _notes.items()]
    _notes.clear()
    return found


def want(peers: list[str]) -> None:
    _wanted[:] = [peer.lower() for peer in peers]


def is_here(who: str) -> bool:
    """Return whether a contender takes part: no library's, or one that is wanted and works."""
    if not who.startswith(PEERS):
        return True
    peer = next(peer for peer in PEERS if who.startswith(peer))
    found = shutil.which("nvcc") if peer == "CUB" else library(peer)
    return found is not None and (not _wanted or who.lower().startswith(tuple(_wanted)))


_IS_FIT: dict[str, Callable[[Any], Any]] = {
    "CuPy": lambda cupy: cupy.cuda.runtime.getDeviceCount(),
    "torch": lambda torch: torch.cuda.is_available(),
    "JAX": lambda jax: jax.default_backend() == "gpu",
}


@functools.cache
def library(peer: str) -> Any:
    try:
        module = importlib.import_module(peer.lower())
        return module if _IS_FIT.get(peer, bool)(module) else None
    except Exception:  # what is installed and does not load, or finds no driver, is not here either
        return None


gpu, torch, jax, polars, cuda_compute = (
    functools.partial(library, peer) for peer in ("CuPy", "torch", "JAX", "polars", "cuda.compute")
)


def as_tensor(x: Any) -> Any:
    if isinstance(x, dict):
        return {name: as_tensor(each) for name, each in x.items()}
    if isinstance(x, tuple):
        return getattr(x, "_make", tuple)(map(as_tensor, x))
    return torch().from_dlpack(x) if isinstance(x, gpu().ndarray) else x


def free_memory() -> None:
    """Give the peers' pooled memory back: the next row finds all of it."""
    if gpu() is not None:
        gpu().get_default_memory_pool().free_all_blocks()
        if is_here("torch"):
            torch().cuda.empty_cache()


def in_jax(function: Callable[..., Any]) -> Prepared:

    def make(x: Any) -> Call | None:
        if x.size < JAX_LEAST:
            return None
        import jax.numpy as jnp

        compiled = jax().jit(functools.partial(function, jnp))
        return functools.partial(compiled, jax().dlpack.from_dlpack(x))

    return Prepared(make)


def in_polars(function: Callable[[Any], Any]) -> Prepared:
    """Call a function of a series that shares NumPy's memory; of a table of several arrays."""

    def make(*arrays: Any) -> Call:
        columns = {str(i): x for i, x in enumerate(arrays)}
        held = polars().DataFrame(columns) if len(arrays) > 1 else polars().Series(arrays[0])
        return lambda: function(held).to_numpy()

    return Prepared(make)


def compute(name: str, op: Callable[..., Any] | None = None, *, one_call: bool = False) -> Prepared:
    """Call a function of cuda.compute: prepared, or one call that allocates its storage."""

    def make(x: Any, *others: Any, out: Any) -> Call:
        module = cuda_compute()
        given = {"d_in1": x, "d_in2": others[0]} if others else {"d_in": x}
        given |= {"d_out": out, "op": op or module.OpKind.PLUS}
        if name == "reduce_into":
            given |= {"d_out": out.reshape(1), "h_init": np.zeros(1, x.dtype)}
        if name == "inclusive_scan":
            given["init_value"] = None
        function = getattr(module, name) if one_call else getattr(module, f"make_{name}")(**given)
        given["num_items"] = x.size
        if one_call:
            function(**given)  # compiles: a peer that cannot is left out
        elif not name.endswith("transform"):
            needed = function(temp_storage=None, **given)
            given["temp_storage"] = gpu().empty(max(needed, 1), "uint8")
        return lambda: (function(**given), out)[1]

    return Prepared(make)


# CUB from Python: the .cu files here, built by nvcc where there is one, called through ctypes.


def cub(name: str, *extents: int | ctypes.c_int64, rows: bool = False, count: str = "") -> Prepared:
    """Return the C function ``cub_name`` as a call with inputs, outputs, n and extents.

    `count` is the dtype of one more output: how many elements were written. With `rows` n is the
    number of rows of a matrix.
    """
    source, text = next(each for each in _SOURCES.items() if f"cub_{name}" in each[1])
    has_storage = f"cub_{name}(const void" not in text

    def make(*inputs: Any, out: Any) -> Call | None:
        library = _load(source)
        if library is None:
            return None
        cupy, function = gpu(), getattr(library, f"cub_{name}")
        arrays = [*inputs, *(out if isinstance(out, tuple) else [out]),
                  *([cupy.empty((), count)] if count else [])]  # fmt: skip
        arguments = [
            *(ctypes.c_void_p(array.data.ptr) for array in arrays),
            ctypes.c_int64(inputs[0].shape[0] if rows else inputs[0].size),
            *(ctypes.c_int(each) if isinstance(each, int) else each for each in extents),
            ctypes.c_void_p(cupy.cuda.get_current_stream().ptr),
        ]
        needed, storage = ctypes.c_size_t(0), []
        if has_storage:  # asked for its size first; allocated here, once
            function(None, ctypes.byref(needed), *arguments)
            arrays.append(cupy.empty(max(needed.value, 1), cupy.uint8))
            storage = [ctypes.c_void_p(arrays[-1].data.ptr), ctypes.byref(needed)]

        def call() -> Any:
            if status := function(*storage, *arguments):
                raise RuntimeError(f"CUB returned CUDA error {status}")
            return out

        call.keep = arrays  # type: ignore[attr-defined]  # ctypes holds no reference
        return call

    return Prepared(make, source)


def _sort_rows(*inputs: Any, out: Any) -> Any:
    x = inputs[-1]
    starts = gpu().arange(0, x.size + 1, x.shape[-1], dtype="int64")
    return cub("sort_rows_float32", ctypes.c_int64(x.shape[0])).make(x, starts, out=out)


CUB_ROWS = Prepared(_sort_rows, "cub_sort_pairs")  # sorts the rows of the last input as segments


def build(calls: Iterable[Any]) -> None:
    sources = {call.cub_source for call in calls if isinstance(call, Prepared) and is_here("CUB")}
    with ThreadPoolExecutor() as pool:
        list(pool.map(_load, sources))


@functools.cache
def _load(source: str) -> ctypes.CDLL | None:
    """Return the library of a source, compiled unless an equal one was; None if that fails."""
    nvcc = shutil.which("nvcc") or "nvcc"
    path, arch = _HERE / f"{source}.cu", f"sm_{gpu().cuda.Device().compute_capability}"
    flags = [f"-arch={arch}", "-O3", "-std=c++17", f"-I{_headers()}"]
    key = hashlib.sha256(path.read_bytes() + repr((nvcc, flags)).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpualgo" / "bench"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        raise PermissionError(f"others can write to {folder}: what is built there is not loaded")
    library = folder / f"{source}-{key}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}.so")
        command = [nvcc, *flags, "-shared", "-Xcompiler", "-fPIC", "-o", str(partial), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            note(source, "CUB", done.stderr)
            return None
        partial.replace(library)
    return ctypes.CDLL(str(library))


def _headers() -> Path:
    """Return the newest wheel's folder of headers: newer than most toolkits', else nvcc's."""
    wheels, nvcc = Path(np.__file__).parents[1], Path(shutil.which("nvcc") or "/bin/nvcc").resolve()
    found = [*wheels.glob("nvidia/*/include/cccl"), *wheels.glob("cuda/cccl/headers/include")]
    return max(found or [nvcc.parents[1] / "include" / "cccl"], key=_cccl_version)


def _cccl_version(include: Path) -> int:
    header = include / "cuda" / "std" / "__cccl" / "version.h"
    text = header.read_text(encoding="utf-8") if header.is_file() else ""
    return int((re.findall(r"define CCCL_VERSION (\d+)", text) or [0])[0])


def cub_version() -> str | None:
    """Return the version of the headers that CUB is compiled with, None without a compiler."""
    number = _cccl_version(_headers())
    version = f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
    return version if shutil.which("nvcc") else None
