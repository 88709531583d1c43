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
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpualgo._bench import notes, places
from gpualgo._bench.support import is_wanted

Contender = Callable[[], Any]
REDUCE = TRANSFORM = "cub"  # the file of each algorithm, without its suffix
SCAN, SORT_KEYS, SORT_PAIRS = "cub_scan", "cub_sort_keys", "cub_sort_pairs"
HISTOGRAM = "cub_histogram"
SELECT, MERGE_SORT = "cub_select", "cub_merge_sort"
BY_KEY = "cub_by_key"


def _cccl_version(include: Path) -> int:
    text = (include / "cuda" / "std" / "__cccl" / "version.h").read_text(encoding="utf-8")
    found = re.search(r"define CCCL_VERSION (\d+)", text)
    return int(found[1]) if found else 0


def _headers() -> list[str]:
    """Prefer the wheels' headers, nvidia-cuda-cccl's or cuda-cccl's: newer than most toolkits'."""
    found = []
    for package, pattern in (("nvidia", "*/include/cccl"), ("cuda", "cccl/headers/include")):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            found += [path for path in Path(folder).glob(pattern) if (path / "cub").is_dir()]
    return [f"-I{max(found, key=_cccl_version)}"] if found else []


def version() -> str | None:
    """Return the version of the headers that CUB is compiled with, None without a compiler."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    found = _headers()
    toolkit = Path(nvcc).resolve().parents[1] / "include" / "cccl"
    number = 0
    for folder in [*(Path(flag.removeprefix("-I")) for flag in found), toolkit]:
        try:
            number = number or _cccl_version(folder)
        except OSError:
            continue
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}" if number else "unknown"


def _build(source: str, arch: str) -> Path | None:
    """Return the shared library of a source, compiled unless an equal one was; None if it fails."""
    nvcc = shutil.which("nvcc")
    if nvcc is None or not is_wanted("CUB"):
        return None
    path = Path(__file__).with_name(f"{source}.cu")
    flags = [f"-arch={arch}", "-O3", "-std=c++17", *_headers()]
    key = hashlib.sha256(path.read_bytes() + repr((nvcc, flags)).encode()).hexdigest()[:16]
    library = places.built() / f"{source}-{key}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}.so")
        command = [nvcc, *flags, "-shared", "-Xcompiler", "-fPIC", "-o", str(partial), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            notes.add(source, "CUB", done.stderr)
            return None
        partial.replace(library)
    return library


@functools.cache
def _load(source: str, arch: str) -> ctypes.CDLL | None:
    library = _build(source, arch)
    return ctypes.CDLL(str(library)) if library else None


def _arch() -> str:
    import cupy

    return f"sm_{cupy.cuda.Device().compute_capability}"


def build(sources: Collection[str]) -> None:
    """Compile sources at once, so that rows find them ready."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(_build, sources, [_arch()] * len(sources)))


def _checked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"CUB returned CUDA error {status}")


def _two_phase(
    source: str, name: str, arrays: list[Any], n: int, extents: list[Any], result: Any
) -> dict[str, Contender]:
    """Return CUB's function of that name; its temporary storage is allocated here, once."""
    import cupy

    library = _load(source, _arch())
    if library is None:
        return {}
    function = getattr(library, f"cub_{name}")
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    pointers = [ctypes.c_void_p(array.data.ptr) for array in arrays]
    arguments = [*pointers, ctypes.c_int64(n), *extents, stream]
    needed = ctypes.c_size_t(0)
    try:
        _checked(function(None, ctypes.byref(needed), *arguments))
    except RuntimeError as error:  # a driver older than the compiler, say
        notes.add(name, "CUB", error)
        return {}
    temp = cupy.empty(max(needed.value, 1), cupy.uint8)
    storage = ctypes.c_void_p(temp.data.ptr)

    def call() -> Any:
        _checked(function(storage, ctypes.byref(needed), *arguments))
        return result

    call.keep = (temp, *arrays)  # type: ignore[attr-defined]  # ctypes holds no reference
    call.temporary_bytes = needed.value  # type: ignore[attr-defined]  # for gpualgo._bench.memory
    return {"CUB": call}


def reduction(name: str, x: Any, out: Any, *sizes: int) -> dict[str, Contender]:
    """Return CUB's reduction of that name, of n elements or of rows and columns."""
    extents = [ctypes.c_int(size) for size in sizes[1:]]
    return _two_phase(REDUCE, name, [x, out], sizes[0], extents, out)


def scan(name: str, x: Any, out: Any) -> dict[str, Contender]:
    """Return CUB's inclusive scan of that name."""
    return _two_phase(SCAN, f"scan_{name}", [x, out], x.size, [], out)


def sort_keys(x: Any, out: Any) -> dict[str, Contender]:
    """Return CUB's radix sort of keys."""
    return _two_phase(SORT_KEYS, f"sort_{x.dtype}", [x, out], x.size, [], out)


def sort_pairs(x: Any, values: Any, out: tuple[Any, Any]) -> dict[str, Contender]:
    """Return CUB's radix sort of keys with their values."""
    name = f"sort_pairs_{x.dtype}_{values.dtype}"
    return _two_phase(SORT_PAIRS, name, [x, values, *out], x.size, [], out)


def sort_rows(x: Any, out: Any) -> dict[str, Contender]:
    """Return CUB's segmented sort of the rows of a matrix."""
    import cupy

    rows, columns = x.shape
    starts = cupy.arange(0, x.size + 1, columns, dtype="int64")
    extents = [ctypes.c_int64(rows)]
    return _two_phase(SORT_PAIRS, f"sort_rows_{x.dtype}", [x, starts, out], x.size, extents, out)


def selection(name: str, arrays: list[Any], out: Any, n: int) -> dict[str, Contender]:
    """Return CUB's selection of that name; how many it kept is written, too."""
    import cupy

    outs = out if isinstance(out, tuple) else (out,)
    count = cupy.empty((), "int64")
    return _two_phase(SELECT, name, [*arrays, *outs, count], n, [], out)


def merge_sort(x: Any, out: Any) -> dict[str, Contender]:
    """Return CUB's merge sort of keys, by a < b."""
    return _two_phase(MERGE_SORT, f"merge_sort_{x.dtype}", [x, out], x.size, [], out)


def histogram(x: Any, out: Any, upper: int) -> dict[str, Contender]:
    """Return CUB's histogram of even bins from 0 up to, and without, `upper`."""
    extents = [ctypes.c_int(out.size), ctypes.c_int(upper)]
    return _two_phase(HISTOGRAM, f"histogram_{x.dtype}", [x, out], x.size, extents, out)


def histogram_edges(x: Any, edges: Any, out: Any) -> dict[str, Contender]:
    """Return CUB's histogram between given edges; the last bin is open there."""
    extents = [ctypes.c_int(out.size)]
    name = f"histogram_edges_{x.dtype}"
    return _two_phase(HISTOGRAM, name, [x, edges, out], x.size, extents, out)


def reduction_by_key(keys: Any, x: Any, outs: tuple[Any, Any]) -> dict[str, Contender]:
    """Return CUB's sums of runs of int32 keys and float32 values."""
    import cupy

    arrays = [keys, x, *outs, cupy.empty(1, "int32")]
    return _two_phase(BY_KEY, "reduce_by_key", arrays, x.size, [], outs)


def scan_by_key(keys: Any, x: Any, out: Any) -> dict[str, Contender]:
    """Return CUB's running sums of runs of int32 keys and float32 values."""
    return _two_phase(BY_KEY, "scan_by_key", [keys, x, out], x.size, [], out)


def transformation(name: str, arrays: list[Any], out: Any) -> dict[str, Contender]:
    """Return CUB's transformation of that name."""
    import cupy

    library = _load(TRANSFORM, _arch())
    if library is None:
        return {}
    function = getattr(library, f"cub_{name}")
    pointers = [ctypes.c_void_p(array.data.ptr) for array in (*arrays, out)]
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)

    def call() -> Any:
        _checked(function(*pointers, ctypes.c_int64(out.size), stream))
        return out

    return {"CUB": call}
