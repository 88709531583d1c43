"""Uses of LLVM without numba: loads objects that `image` does not support, and resolves symbols."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding
from llvmlite.binding import ffi
from llvmlite.binding import newpassmanagers as passes

from gpualgo._base import forks

LOCK = ffi.lib._lock._lock  # an RLock; llvmlite's wrapper also calls hooks
forks.wait_for(LOCK)


@cache
def initialise() -> None:
    """Register LLVM's code generator for this machine."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@cache
def free_passes() -> None:
    """Make llvmlite free its pass managers: each is 30 KiB, and an operator needs ten.

    Up to llvmlite 0.50 their first base class has a `_dispose` that does nothing; it hides the
    second base's, which frees them.
    """
    for manager in (passes.ModulePassManager, passes.FunctionPassManager):
        if manager._dispose is ffi.ObjectRef._dispose:
            manager._dispose = passes.NewPassManager._dispose


def host_cpu() -> tuple[str, str]:
    """Return LLVM's name of this machine's CPU and its features."""
    initialise()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def address_of(name: str) -> int | None:
    """Return the address of a symbol in this process, None if there is none."""
    address: int | None = binding.address_of_symbol(name)
    return address


class Loaded:
    """A loaded object file, which is freed with this object."""

    def __init__(self, content: bytes, entry: str, symbols: dict[str, int]) -> None:
        initialise()
        for name, address in symbols.items():
            binding.add_symbol(name, address)
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        self._engine: Any = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self.address = int(self._engine.get_function_address(entry))
