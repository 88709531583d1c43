"""How much memory one call holds at once beyond its arguments, a result that it makes included.

On a GPU it is what CuPy's pool gives, from which gpualgo takes its storage meanwhile, and what
PyTorch's gives; of CUB and cuda.compute the storage that was made for them. On the CPU it is what
Python and NumPy allocate. What JAX, polars and numba take is not known.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import gpualgo as ga
from bench import notes
from bench.peers import OURS, Contender, gpu, torch


def peak(clock: str, who: str, call: Contender) -> int | None:
    """Return the bytes of one call, or None where they are not known."""
    try:
        if clock == "cpu" and who.startswith((OURS, "NumPy")):
            return _on_cpu(call)
        if clock == "device" and who.startswith("torch"):
            return _by_torch(call)
        if clock == "device" and who.startswith((OURS, "CuPy", "CUB", "cuda.compute")):
            return _by_cupy(call) + int(getattr(call, "temporary_bytes", 0))
    except Exception as reason:  # its time is worth having without it
        notes.add("peak memory", who, f"{type(reason).__name__}: {reason}")
    return None


def _on_cpu(call: Contender) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = call()
        most = tracemalloc.get_traced_memory()[1]
        del result
    finally:
        tracemalloc.stop()
    return max(0, most - before)


def _by_torch(call: Contender) -> int:
    cuda = torch().cuda
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    result = call()
    most = cuda.max_memory_allocated()
    del result
    return int(most - before)


def _by_cupy(call: Contender) -> int:
    class Peak(gpu().cuda.MemoryHook):  # type: ignore[misc]  # there with a GPU
        name = "peak"
        live = most = 0

        def malloc_postprocess(self, **given: Any) -> None:
            self.live += given["mem_size"]
            self.most = max(self.most, self.live)

        def free_postprocess(self, **given: Any) -> None:
            self.live -= given["mem_size"]

    hook = Peak()
    ga.set_memory_resource("cupy")
    try:
        with hook:
            result = call()
        del result
    finally:
        ga.set_memory_resource(None)
    return int(hook.most)
