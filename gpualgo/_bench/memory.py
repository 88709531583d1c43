"""How much memory one call holds at once beyond its arguments, a result that it makes included.

On a GPU what CuPy's pool lends is counted, from which gpualgo takes its storage meanwhile, and what
PyTorch's does; of CUB and cuda.compute the storage that was made for them. On the CPU it is what
Python and NumPy allocate. What a library takes elsewhere (JAX, polars, numba) is not known.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import gpualgo as ga
from gpualgo._bench.support import OURS, Contender, gpu, torch

_BY_PYTHON = (OURS, "NumPy")
_BY_POOL = (OURS, "CuPy", "CUB", "cuda.compute")


def taken(clock: str, who: str, contender: Contender) -> int | None:
    """Return the bytes of one call, or None where they cannot be told."""
    if clock == "cpu":
        return _on_cpu(contender) if who.startswith(_BY_PYTHON) else None
    if clock != "device":
        return None
    if who.startswith("torch"):
        return _by_torch(contender)
    if not who.startswith(_BY_POOL):
        return None
    return _by_cupy(contender) + int(getattr(contender, "temporary_bytes", 0))


def _on_cpu(contender: Contender) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = contender()
        peak = tracemalloc.get_traced_memory()[1]
        del result
    finally:
        tracemalloc.stop()
    return max(0, peak - before)


def _by_torch(contender: Contender) -> int:
    cuda = torch().cuda
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    result = contender()
    peak = cuda.max_memory_allocated()
    del result
    return int(peak - before)


def _by_cupy(contender: Contender) -> int:
    hook = _hook()
    ga.set_memory_resource("cupy")
    try:
        with hook:
            result = contender()
        del result
    finally:
        ga.set_memory_resource(None)
    return int(hook.peak)


def _hook() -> Any:
    cupy = gpu()

    class Peak(cupy.cuda.MemoryHook):  # type: ignore[name-defined]  # there with a GPU
        name = "peak"
        live = peak = 0

        def malloc_postprocess(self, **given: Any) -> None:
            self.live += given["mem_size"]
            self.peak = max(self.peak, self.live)

        def free_postprocess(self, **given: Any) -> None:
            self.live -= given["mem_size"]

    return Peak()
