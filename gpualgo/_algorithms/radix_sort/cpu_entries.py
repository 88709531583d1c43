"""CPU kernels of the radix sort by name: compiled, or loaded from the disk cache."""

from __future__ import annotations

from collections.abc import Callable

from gpualgo._cpu.kernels import Kernel, get_entry, get_kernel


def entry(name: str, *options: int | str) -> int:
    """Return the address of the kernel that `<name>_kernel(*options)` generates."""
    return get_entry(("radix_sort", name, *options), lambda: _generate(name, *options))


def invoke() -> Kernel:
    """Return the kernel that Python calls; it runs another kernel without the GIL."""
    return kernel("invoke")


def kernel(name: str, *options: int | str) -> Kernel:
    """Return the kernel that `<name>_kernel(*options)` generates, callable from Python."""
    return get_kernel(("radix_sort", name, *options), lambda: _generate(name, *options))


def _generate(name: str, *options: int | str) -> Callable[..., None]:
    from gpualgo._algorithms.radix_sort import cpu_kernels, cpu_merge_kernels, cpu_row_kernels
    from gpualgo._algorithms.radix_sort import cpu_merge_kernels as cpu_coded_kernels
    from gpualgo._algorithms.radix_sort import cpu_row_kernels as cpu_lines
    from gpualgo._algorithms.radix_sort import cpu_row_kernels as cpu_runs_kernels

    for module in (
        cpu_kernels, cpu_lines, cpu_row_kernels, cpu_merge_kernels, cpu_coded_kernels,
        cpu_runs_kernels,
    ):  # fmt: skip
        generate = getattr(module, name + "_kernel", None)
        if generate is not None:
            function: Callable[..., None] = generate(*options)
            return function
    raise ValueError(f"no kernel has the name {name}")
