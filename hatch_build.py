"""Adds the CPU's kernels to a wheel as LLVM bitcode, so that a first call compiles in less time.

Only kernels without an operator, and the parts of the others that are common to all operators, are
compiled in advance. The wheel runs without them, too: on other platforms, and with other versions
of numba than it was built with.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


class Shells(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the calls below in a new process; an editable installation does not."""
        if version == "editable":
            return
        if importlib.util.find_spec("numba") is None:
            self.app.display_warning("numba is missing: the wheel holds no compiled kernels")
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "shells.bin"
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "GPUALGO_"))}
        env["PYTHONPATH"] = str(ROOT)
        subprocess.run([sys.executable, __file__, str(file)], env=env, check=True)
        build_data["force_include"][str(file)] = "gpualgo/_cpu/shells.bin"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        if version != "editable" and hasattr(self, "_folder"):
            self._folder.cleanup()


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


if __name__ == "__main__":
    write(Path(sys.argv[1]))
