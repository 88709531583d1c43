"""LLVM without numba: objects become code where `image` has no way, and symbols addresses."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding
from llvmlite.binding import ffi
from llvmlite.binding import newpassmanagers as passes

from gpualgo._base import forks

LOCK = ffi.lib._lock._lock  # an RLock, which llvmlite wraps to call hooks as well
forks.wait_for(LOCK)


@cache
def initialise() -> None:
    """Let LLVM make code for this machine."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@cache
def free_passes() -> None:
    """Have llvmlite free the pass managers that it makes: each is 30 KiB, an operator takes ten.

    Up to llvmlite 0.50 their first base has a `_dispose` that does nothing, and the second one's,
    which frees them, is never called.
    """
    for kind in (passes.ModulePassManager, passes.FunctionPassManager):
        if kind._dispose is ffi.ObjectRef._dispose:
            kind._dispose = passes.NewPassManager._dispose


def host_cpu() -> tuple[str, str]:
    """Return LLVM's name of this machine's CPU and its features."""
    initialise()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def address_of(name: str) -> int | None:
    """Return the address of a symbol of this process, None if it has none of that name."""
    found: int | None = binding.address_of_symbol(name)
    return found


class Loaded:
    """An object in memory, which lives as long as this."""

    def __init__(self, content: bytes, entry: str, symbols: dict[str, int]) -> None:
        initialise()
        for name, address in symbols.items():
            binding.add_symbol(name, address)
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        self._engine: Any = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self.address = int(self._engine.get_function_address(entry))
