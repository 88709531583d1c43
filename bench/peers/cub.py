"""CUB from Python: cub.cu, built by nvcc where there is one and called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Contender = Callable[[], Any]
SOURCE = Path(__file__).with_name("cub.cu")


def _headers() -> list[str]:
    """Prefer the wheel nvidia-cuda-cccl: its CUB is newer than most toolkits'."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for include in Path(folder).glob("*/include/cccl"):
            return [f"-I{include}"]
    return []


@functools.cache
def load(major: int, minor: int) -> ctypes.CDLL | None:
    """Return the library for a compute capability, or None where there is no nvcc."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    flags = [f"-arch=sm_{major}{minor}", "-O3", "-std=c++17", *_headers()]
    key = hashlib.sha256(SOURCE.read_bytes() + repr((nvcc, flags)).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"gpualgo-bench-cub-{key}.so"
    if not library.exists():
        partial = library.with_suffix(".part.so")
        command = [nvcc, *flags, "-shared", "-Xcompiler", "-fPIC", "-o", str(partial), str(SOURCE)]
        subprocess.run(command, check=True)
        partial.replace(library)
    return ctypes.CDLL(str(library))


def _current() -> ctypes.CDLL | None:
    import cupy

    capability = cupy.cuda.Device().compute_capability
    return load(int(capability[:-1]), int(capability[-1]))


def _checked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"CUB returned CUDA error {status}")


def reduction(name: str, x: Any, out: Any, *sizes: int) -> dict[str, Contender]:
    """Return CUB's reduction of that name; its temporary storage is allocated here, once."""
    import cupy

    library = _current()
    if library is None:
        return {}
    function = getattr(library, f"cub_{name}")
    pointers = [ctypes.c_void_p(array.data.ptr) for array in (x, out)]
    extents = [ctypes.c_int64(size) for size in sizes[:1]] + [ctypes.c_int(s) for s in sizes[1:]]
    needed = ctypes.c_size_t(0)
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    _checked(function(None, ctypes.byref(needed), *pointers, *extents, stream))
    temp = cupy.empty(max(needed.value, 1), cupy.uint8)

    def call() -> Any:
        _checked(
            function(
                ctypes.c_void_p(temp.data.ptr), ctypes.byref(needed), *pointers, *extents, stream
            )
        )
        return out

    return {"CUB": call}


def transformation(name: str, arrays: list[Any], out: Any) -> dict[str, Contender]:
    """Return CUB's transformation of that name."""
    import cupy

    library = _current()
    if library is None:
        return {}
    function = getattr(library, f"cub_{name}")
    pointers = [ctypes.c_void_p(array.data.ptr) for array in (*arrays, out)]
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)

    def call() -> Any:
        _checked(function(*pointers, ctypes.c_int64(out.size), stream))
        return out

    return {"CUB": call}
