"""CUB from Python: the .cu files here, built by nvcc where there is one, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import folders, notes, peers
from bench.peers import Contender, Prepared


def function(
    source: str, name: str, *extents: Any, rows: bool = False, count: str = "",
    has_storage: bool = True,
) -> Prepared:  # fmt: skip
    """Return the C function ``cub_name`` of a source, called with inputs, outputs, n and extents.

    `count` is the dtype of one more output: how many elements were written. With `rows` n is the
    number of rows of a matrix.
    """

    def make(*inputs: Any, out: Any) -> Contender | None:
        library = _load(source, _arch())
        if library is None:
            return None
        cupy = peers.gpu()
        outputs = [*(out if isinstance(out, tuple) else [out])]
        outputs += [cupy.empty((), count)] if count else []
        arrays = [*inputs, *outputs]
        n = inputs[0].shape[0] if rows else inputs[0].size
        stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
        arguments: list[Any] = [ctypes.c_void_p(array.data.ptr) for array in arrays]
        sizes = [ctypes.c_int(extent) if isinstance(extent, int) else extent for extent in extents]
        arguments += [ctypes.c_int64(n), *sizes, stream]
        c_function = getattr(library, f"cub_{name}")
        storage: list[Any] = []
        needed = ctypes.c_size_t(0)
        temp = None
        if has_storage:  # asked for its size first; allocated here, once
            _check(c_function(None, ctypes.byref(needed), *arguments))
            temp = cupy.empty(max(needed.value, 1), cupy.uint8)
            storage = [ctypes.c_void_p(temp.data.ptr), ctypes.byref(needed)]

        def call() -> Any:
            _check(c_function(*storage, *arguments))
            return out

        call.keep = (temp, *arrays)  # type: ignore[attr-defined]  # ctypes holds no reference
        call.temporary_bytes = needed.value  # type: ignore[attr-defined]  # read by bench.memory
        return call

    return Prepared(make, source)


def _sort_rows(x: Any, *, out: Any) -> Any:
    starts = peers.gpu().arange(0, x.size + 1, x.shape[-1], dtype="int64")
    name, count = "sort_rows_float32", ctypes.c_int64(x.shape[0])
    return function(SORT_ROWS.cub_source, name, count).make(x, starts, out=out)


SORT_ROWS = Prepared(_sort_rows, "cub_sort_pairs")  # the segmented sort of a matrix's rows


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"CUB returned CUDA error {status}")


def build(sources: Iterable[str]) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(functools.partial(_build, arch=_arch()), sources))


@functools.cache
def _load(source: str, arch: str) -> ctypes.CDLL | None:
    library = _build(source, arch)
    return ctypes.CDLL(str(library)) if library else None


def _arch() -> str:
    return f"sm_{peers.gpu().cuda.Device().compute_capability}"


def _build(source: str, arch: str) -> Path | None:
    """Return the shared library of a source, compiled unless an equal one was; None if it fails."""
    nvcc = shutil.which("nvcc")
    if nvcc is None or not peers.is_wanted("CUB"):
        return None
    path = Path(__file__).with_name(f"{source}.cu")
    flags = [f"-arch={arch}", "-O3", "-std=c++17", *(f"-I{folder}" for folder in _headers()[:1])]
    key = hashlib.sha256(path.read_bytes() + repr((nvcc, flags)).encode()).hexdigest()[:16]
    library = folders.built() / f"{source}-{key}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}.so")
        command = [nvcc, *flags, "-shared", "-Xcompiler", "-fPIC", "-o", str(partial), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            notes.add(source, "CUB", done.stderr)
            return None
        partial.replace(library)
    return library


def _headers() -> list[Path]:
    """Return the wheels' folders of headers (nvidia-cuda-cccl's, cuda-cccl's), the newest first.

    Their CUB is newer than most toolkits'.
    """
    found: list[Path] = []
    for package, pattern in (("nvidia", "*/include/cccl"), ("cuda", "cccl/headers/include")):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            found += [path for path in Path(folder).glob(pattern) if (path / "cub").is_dir()]
    return sorted(found, key=_cccl_version, reverse=True)


def _cccl_version(include: Path) -> int:
    try:
        text = (include / "cuda" / "std" / "__cccl" / "version.h").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r"define CCCL_VERSION (\d+)", text)
    return int(found[1]) if found else 0


def version() -> str | None:
    """Return the version of the headers that CUB is compiled with, None without a compiler."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    toolkit = Path(nvcc).resolve().parents[1] / "include" / "cccl"
    number = next(filter(None, map(_cccl_version, [*_headers()[:1], toolkit])), 0)
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}" if number else "unknown"
