"""The kernels of the radix sort on the CPU, by name: compiled, or read from disk."""

from __future__ import annotations

from collections.abc import Callable

from gpualgo._cpu.kernels import Kernel, get_entry, get_kernel


def entry(name: str, *options: int | str) -> int:
    """Return the address of the kernel that `<name>_kernel(*options)` writes."""
    return get_entry(("radix_sort", name, *options), lambda: _write(name, *options))


def invoke() -> Kernel:
    """Return the kernel that Python calls: it runs any other without the GIL."""
    return kernel("invoke")


def kernel(name: str, *options: int | str) -> Kernel:
    """Return the same as Python calls it."""
    return get_kernel(("radix_sort", name, *options), lambda: _write(name, *options))


def _write(name: str, *options: int | str) -> Callable[..., None]:
    from gpualgo._algorithms.radix_sort import (
        cpu_coded_kernels,
        cpu_kernels,
        cpu_lines,
        cpu_merge_kernels,
        cpu_row_kernels,
        cpu_runs_kernels,
    )

    for module in (
        cpu_kernels, cpu_lines, cpu_row_kernels, cpu_merge_kernels, cpu_coded_kernels,
        cpu_runs_kernels,
    ):  # fmt: skip
        write = getattr(module, name + "_kernel", None)
        if write is not None:
            written: Callable[..., None] = write(*options)
            return written
    raise ValueError(f"no kernel has the name {name}")
