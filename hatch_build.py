"""Adds compiled kernels to a wheel, so that first calls take less time.

For the CPU they are LLVM bitcode, for GPUs machine code. Only kernels without an operator, and on
the CPU the parts of the others that are common to all operators, are compiled in advance. The wheel
runs without them, too: on other platforms, on other GPUs, and with other versions of numba than it
was built with.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


class Kernels(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the calls below in a new process; an editable installation does not."""
        if version == "editable":
            return
        if importlib.util.find_spec("numba") is None:
            self.app.display_warning("numba is missing: the wheel holds no compiled kernels")
            return
        self._folder = tempfile.TemporaryDirectory()
        shells, kernels = (Path(self._folder.name) / f"{name}.bin" for name in ("cpu", "gpu"))
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "GPUALGO_"))}
        folders = (str(ROOT), env.get("PYTHONPATH"))  # pip puts requirements there
        env["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
        if nvidia := importlib.util.find_spec("nvidia"):  # cuda-bindings does not look there
            places = [f"{folder}/cu13/lib" for folder in nvidia.submodule_search_locations or ()]
            places += filter(None, [env.get("LD_LIBRARY_PATH")])
            env["LD_LIBRARY_PATH"] = os.pathsep.join(places)
        subprocess.run([sys.executable, __file__, str(shells), str(kernels)], env=env, check=True)
        build_data["force_include"][str(shells)] = "gpualgo/_cpu/shells.bin"
        if kernels.exists():
            build_data["force_include"][str(kernels)] = "gpualgo/_cuda/kernels.bin"
        else:
            self.app.display_warning("NVRTC is missing: the wheel holds no kernels for GPUs")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        if version != "editable" and hasattr(self, "_folder"):
            self._folder.cleanup()


# --- The CPU's kernels.


def calls(x: Any) -> list[Callable[[], object]]:
    """Return calls of common functions on an array of numbers from 0 to 99."""
    import numpy as np

    import gpualgo as ga
    import gpualgo.numpy as gnp

    rows, indices = x.reshape(-1, 100), np.arange(len(x))
    mask, increasing = x > 50, np.sort(x)
    folds = gnp.sum, gnp.prod, gnp.max, gnp.mean, gnp.var, gnp.median, gnp.argmax, gnp.any
    return [
        *(lambda f=f, axis=axis: f(rows, axis=axis) for f in folds for axis in (None, 0, 1)),
        *(lambda f=f: f(rows, axis=0) for f in (gnp.cumsum, gnp.cumprod, gnp.sort, gnp.argsort)),
        *(lambda f=f: f(rows, axis=1) for f in (gnp.cumsum, gnp.cumprod, gnp.sort, gnp.argsort)),
        lambda: gnp.unique(x, return_index=True, return_inverse=True, return_counts=True),
        lambda: [gnp.histogram(x, 50), gnp.diff(x), gnp.searchsorted(increasing, x)],
        lambda: [gnp.where(mask, x, -x), gnp.quantile(x, 0.3), gnp.std(x), gnp.nonzero(mask)],
        lambda: gnp.bincount(x) if x.dtype.kind == "i" else gnp.nanmean(x),
        lambda: [ga.select(x, mask), ga.stable_partition(x, mask), ga.count(x, lambda a: a > 50)],
        lambda: [ga.select(x, lambda a: a > 50), ga.find(x, lambda a: a > 98)],
        lambda: [ga.transform(lambda a: a * 2, x), ga.transform(lambda a, b: a * b, x, x)],
        lambda: ga.transform(lambda a: a > 2, x),
        lambda: ga.reduce((x, indices), None, lambda a, b: a if a[0] > b[0] else b),
        lambda: [ga.merge_sort(x, less=lambda a, b: a > b), ga.radix_sort(x, values=indices)],
        lambda: [ga.reduce_by_key(x, x), ga.inclusive_scan_by_key(x, x), ga.top_k(x, 10)],
        lambda: ga.reduce_by_key(increasing, x),
        lambda: ga.reduce_by_key(x * 10_000_000, x),  # integers of a wide range are sorted
    ]


def write(path: Path) -> None:
    """Compile all kernels anew: those on disk and of an earlier file would be missing here."""
    import gpualgo as ga
    from gpualgo._api import prepare
    from gpualgo._cpu import kernels

    kernels.collected = {}
    with tempfile.TemporaryDirectory() as folder, ga.default_device("cpu"):
        os.environ["GPUALGO_CACHE_DIR"] = folder
        kernels.WHEEL_FILE = Path(folder) / "none"
        for recipe in prepare.known():
            recipe.calls()
        for dtype in prepare.DTYPES:
            for size in prepare.SIZES:
                for call in calls(prepare.numbers(dtype, size // 100 * 100)):
                    call()
    kernels.write_shells(path, kernels.collected)


# --- Kernels for GPUs.

ARCHITECTURES = (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)
GPU_SIZES = (1000, *(1 << bits for bits in (16, 18, 20, 22, 24)))


def gpu_calls(x: Any) -> list[Callable[[], object]]:
    """Return calls of common functions on an array, of which no element is read."""
    import numpy as np

    import gpualgo as ga

    positions = np.empty(len(x), np.int32)
    sorts = [
        lambda: ga.radix_sort(x), lambda: ga.argsort(x), lambda: ga.radix_sort(x, values=positions)
    ]  # fmt: skip
    sums = [lambda: ga.reduce(x), lambda: ga.inclusive_scan(x)]
    return sorts + sums if len(x) in (1000, 1 << 20, 1 << 24) else sorts


def planned(capability: tuple[int, int]) -> dict[tuple[Any, ...], dict[Any, None]]:
    """Return kernels without operators that the calls need on a GPU, grouped by similarity."""
    import numpy as np

    from gpualgo._api import prepare
    from gpualgo._api.warm_up import StandIn, _Kernel
    from gpualgo._arrays.view import NumPy, View
    from gpualgo._driver import default_device, device
    from gpualgo._pipeline import planners

    groups: dict[tuple[Any, ...], dict[Any, None]] = {}

    class Planner(StandIn):
        """Plans calls, and neither compiles nor computes anything."""

        def kernel(self, spec: Any) -> Any:
            family = spec.expression.partition("<")[0], np.dtype(dtype).itemsize, capability
            if spec.op is None:
                groups.setdefault(family, {})[spec] = None
            return _Kernel(spec.expression)

        def run(self, problem: Any, arrays: Any, results: Any, op: Any, init: Any) -> None:
            planners.cuda_plan(problem, self._views(arrays), op, self._views(results))

        def _views(self, arrays: Any) -> tuple[View, ...]:
            views = (self._device_view(NumPy.view(array)) for array in arrays)
            return tuple(view._replace(ptr=view.ptr & -256) for view in views)  # aligned as there

    gpu = Planner(capability, None)
    with device.put(gpu), default_device.Fixed(gpu.ordinal, "kernels are planned for it"):
        for dtype in prepare.DTYPES:
            for size in GPU_SIZES:
                for call in gpu_calls(np.empty(size, dtype)):
                    call()
    return groups


def write_gpu(path: Path) -> None:
    """Compile kernels for all architectures; write nothing without NVRTC."""
    from gpualgo._base.errors import CompileError
    from gpualgo._cuda import build, compilers

    try:
        compilers.nvrtc_version()
    except (CompileError, RuntimeError):
        return
    compiled = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for capability in ARCHITECTURES:
            for group in planned(capability).values():
                codes = [pool.submit(build._compile, spec, capability) for spec in group]
                keys = [build._cubin_key(spec, capability) for spec in group]
                compiled.append((keys, codes))
        groups = [
            {key: code.result() for key, code in zip(keys, codes, strict=True)}
            for keys, codes in compiled
        ]
    build.write_kernels(path, groups)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    for name in sys.argv[2:]:
        write_gpu(Path(name))
