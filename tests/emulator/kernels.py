"""Kernels as libraries of the host: compiled from the very sources and names that NVRTC gets."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from emulator import control, machine, operators, toolchain, trial
from emulator.control import Settings
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._operators.captured import STATE_NAME, STATE_WORDS

_TOO_LONG = "TOO LONG"  # how the machine's report of that begins
STATE_BYTES = 8 * STATE_WORDS
MOST_THREADS = 1 << 17  # of a launch: more would take seconds


def image_of(spec: Spec, operator: int, source: int = 0) -> bytes:
    """Return what stands for a kernel's machine code: the path of its library, its functions.

    With them goes whether they read numbers, which its parameters then begin with.
    """
    start = time.perf_counter()
    text = (
        f"{spec.source}"
        f'extern "C" void emu_entry(const void* p) {{ emu::call(&{spec.expression}, p); }}\n'
        'extern "C" const unsigned long long emu_params_size = '
        f"emu::params_size(&{spec.expression});\n"
    )
    path = toolchain.compile_kernel(text, [build.source_folder()])
    trial.figures.add("kernels", start)
    has_numbers = spec.op is not None and bool(spec.op.key.numbers)
    return f"{path}|{operator}|{source}|{int(has_numbers)}".encode()


class Library:
    """A loaded library: its kernel, its operator and the words of captured arrays."""

    def __init__(self, image: bytes) -> None:
        path, *functions, has_numbers = image.decode().split("|")
        self.path, self.name = path, path
        self.operator, self.source = (
            operators.by_number(int(number)) if int(number) else None for number in functions
        )
        self.has_numbers = bool(int(has_numbers))
        self.functions = [one for one in (self.operator, self.source) if one is not None]
        self.has_own_state = any(one.words is not None for one in self.functions)
        control.machine()  # whose symbols the code needs, though nothing may have run yet
        self._code = _own_copy(path) if self.has_own_state else _shared(path)
        self.entry = int(ctypes.cast(self._code.emu_entry, ctypes.c_void_p).value or 0)
        self.num_bytes = ctypes.c_uint64.in_dll(self._code, "emu_params_size").value
        self.state = 0
        self.is_loaded = True
        if self.has_own_state:
            words = (ctypes.c_uint64 * STATE_WORDS).in_dll(self._code, STATE_NAME)
            self.state = ctypes.addressof(words)

    def unload(self) -> None:
        """Let the words go; code that others share stays."""
        self.is_loaded = False
        if self.has_own_state:
            _ctypes.dlclose(self._code._handle)

    def launch(
        self, grid: int, threads: int, shared_bytes: int, parameters: bytes, settings: Settings
    ) -> None:
        """Run the kernel now; remember what it does wrong."""
        if trial.current.has_ended:
            return
        how = ", ".join(f"{name} {getattr(settings, name)}" for name, _ in settings._fields_)
        what = f"{self.name}, {grid} blocks of {threads} threads, {how}"
        if not self.is_loaded:
            trial.current.fail(f"{what}: its library was unloaded before it ran")
            return
        for function in self.functions:
            if function.words is not None:
                ctypes.memmove(function.words.ctypes.data, self.state, STATE_BYTES)
        address = 0 if self.operator is None else self.operator.address
        if self.source is not None:
            machine.set_source(self.source.address, parameters if self.has_numbers else b"")
        start = time.perf_counter()
        report = machine.launch(
            self.entry, address, grid, threads, shared_bytes, parameters, settings
        )
        trial.figures.add("launches", start)
        if report is not None and report.startswith(_TOO_LONG):
            trial.current.capped = f"a launch of more than {settings.max_steps} steps"
        elif report is not None:
            trial.current.fail(f"{what}:\n{toolchain.with_places(report, Path(self.path))}")


def check_size(grid: int, threads: int) -> None:
    """Leave a test out that launches more threads than can be run in time."""
    if grid * threads > MOST_THREADS:
        trial.current.capped = f"a launch of more than {MOST_THREADS} threads"
    trial.current.check()


@cache
def _shared(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def _own_copy(path: str) -> ctypes.CDLL:
    """Load a library once more, with constants of its own."""
    handle, copy = tempfile.mkstemp(suffix=".so")
    os.close(handle)
    try:
        shutil.copyfile(path, copy)
        return ctypes.CDLL(copy)
    finally:
        os.unlink(copy)
