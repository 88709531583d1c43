"""CPU code: kernels and operators, compiled once and cached in memory and on disk."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import marshal
import os
import platform
import sys
import zlib
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import disk_cache as disk
from gpualgo._base import dtypes, loaded, log, records
from gpualgo._base.disk_cache import PACKAGE, PYTHON, digest_of_sources, files_of, versions_of
from gpualgo._base.imports import loading
from gpualgo._base.memo import Memo, paused
from gpualgo._base.records import Argument, Separate
from gpualgo._cpu import image as machine
from gpualgo._cpu import memory
from gpualgo._cpu.image import keep_alive_forever
from gpualgo._cpu.memory import OFFSET, address
from gpualgo._operators.operator import Operator, count_code, source_location

# --- Entries of the disk cache for CPU code, keyed by the CPU, the settings and the sources.

# Lines of /proc/cpuinfo that identify a CPU model; others vary by core or over time.
_LINES = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
_CPUINFO = "/proc/cpuinfo"
# How the names of those files of an algorithm begin whose constants and functions kernels use.
_KERNEL_FILES = ("cpu", "digits", "problem", "sums")
_unchanged: set[str] = set()  # modules that were loaded from the sources that were read


@cache
def provenance() -> str | None:
    """Return a text of all that cached code depends on; None if nothing can be cached.

    numba compiles Python's bytecode, LLVM compiles for this CPU.
    """
    shells = origin_of_shells()
    return None if shells is None else repr((shells, PYTHON, cpu()))


@cache
def origin_of_shells() -> str | None:
    """Return a text of what shells depend on: sources, versions, settings and platform.

    None if the sources are not files or differ from those that this process has loaded.
    """
    before = set(sys.modules)
    try:
        digest = digest_of_sources((PACKAGE, source_files()))
    except OSError:  # the sources are in an archive, or only bytecode exists
        return None
    if digest is None:
        return None
    _unchanged.update(before)
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    toolchain = (digest, versions_of("numba", "llvmlite"), settings)
    return repr((toolchain, sys.platform, platform.machine(), sys.maxsize))


def source_files() -> list[str]:
    """Return the source files that decide which code is generated."""
    names = ("_base/dtypes.py", "_base/records.py", "_arrays/view.py")
    paths = [os.path.join(PACKAGE, name) for name in names]
    for folder in ("_cpu", "_operators", "_operators/numpy_rules"):
        paths += files_of(os.path.join(PACKAGE, folder), ".py")
    folders = os.scandir(PACKAGE / "_algorithms")
    for folder in sorted([each.path for each in folders if not each.name.startswith("_")]):
        paths += files_of(folder, ".py", _KERNEL_FILES)
    return paths


def cpu() -> str:
    """Return the CPU's model and features, from /proc/cpuinfo if possible, else from LLVM."""
    fields = cpuinfo()
    if "flags" in fields or "Features" in fields:
        return repr([fields.get(name) for name in _LINES])
    from gpualgo._cpu import llvm

    return repr(llvm.host_cpu())


def cpuinfo() -> dict[str, str]:
    """Return what /proc/cpuinfo says of the first core; nothing if there is no such file."""
    try:
        with open(_CPUINFO, "rb", buffering=0) as file:
            text = file.read(1 << 14).decode(errors="replace")  # reading all cores is slow
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_entry(*parts: str) -> tuple[bytes, ...] | None:
    """Return the fields of the disk entry for these parts, None if there is none."""
    key = key_of(*parts)
    return None if key is None else disk.read(key)


def write_entry(fields: tuple[bytes, ...], *parts: str) -> None:
    """Write the disk entry for these parts.

    Nothing is written once a module was loaded from a changed source: this process runs both
    versions.
    """
    key = key_of(*parts)
    if key is not None and not loaded.has_newer_modules(_unchanged):
        disk.write(key, fields)


def key_of(*parts: str) -> str | None:
    """Return the key of a disk entry, None if nothing can be cached."""
    dependencies = provenance()
    if dependencies is None:
        return None
    return disk.FOR_CPU + hashlib.sha256("\0".join((dependencies, *parts)).encode()).hexdigest()


# --- Operators: compiled once for each choice of dtypes.

_compiled: Memo[CompiledOperator] = Memo(1024)


class Applied(NamedTuple):
    """An operator, its arguments' dtypes, and the dtype its result is cast to, if any."""

    op: Operator
    arguments: tuple[Argument, ...]
    result_dtype: np.dtype[Any] | None

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the code within this process."""
        return self.op.code, self.arguments, self.result_dtype

    @property
    def parts(self) -> tuple[str, ...]:
        """Key of the code that is the same in every process."""
        names = ",".join(map(records.label, self.arguments))
        return self.op.digest, names, records.label(self.result_dtype)

    @property
    def words(self) -> np.ndarray[Any, Any] | None:
        """Memory of the captured values that the code reads; None if there are none."""
        key = self.op.key
        return memory.state_of(key).words if key.arrays or key.numbers else None


class CompiledOperator(NamedTuple):
    """An operator as LLVM bitcode for kernels to inline, and its result's dtype."""

    bitcode: bytes
    result_dtype: np.dtype[Any]


def compile_operator(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None
) -> CompiledOperator:
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    applied = Applied(op, arg_dtypes, result_dtype)
    compiled = _compiled.made(applied.key, lambda: _read_or_compile(applied))
    if result_dtype is None:  # the kernel asks for this dtype next
        key = (op.code, arg_dtypes, compiled.result_dtype)
        if _compiled.get(key) is None:
            _compiled.add(key, compiled)
    return compiled


def _read_or_compile(applied: Applied) -> CompiledOperator:
    parts = "operator", *applied.parts
    count_code(applied.op)
    entry = read_entry(*parts)
    if entry is not None and len(entry) == 2:
        result_dtype = records.from_label(entry[0].decode())
        if result_dtype is not None:
            log.log(log.DEBUG, "found on disk: bitcode of operator %s for the CPU",
                     source_location(applied.op.shown))  # fmt: skip
            return CompiledOperator(entry[1], result_dtype)
    with paused(), log.timed_block("compiled operator %s (%s) for the CPU",
                    source_location(applied.op.shown), applied.parts[1]):  # fmt: skip
        with loading():
            from gpualgo._cpu import compiler
        compiled = CompiledOperator(*compiler.compile_operator(*applied))
    write_entry((records.label(compiled.result_dtype).encode(), compiled.bitcode), *parts)
    return compiled


# --- Kernels.

Kernel = machine.Loaded
"""Code of f(table, scratch, first, last): addresses of arguments and scratch, a range of tasks."""

KernelSource = Callable[..., Callable[..., None]]
"""Returns a kernel's Python source function; its argument is the operator call, if there is one."""

_kernels: Memo[Kernel] = Memo(1536)
_shells: Memo[bytes] = Memo(64)
_pinned: dict[int, machine.Loaded] = {}  # keeps code whose address was given out


def named(module: str, name: str, *options: Hashable) -> tuple[tuple[Hashable, ...], KernelSource]:
    """Return the key and source of a kernel: what a function returns for an operator and options.

    `module`: an algorithm, whose `cpu_kernels` has the function, or a module of the package with a
    dot in its name. A function that takes neither operator nor options is the kernel itself.
    """

    def write(*fn: Any) -> Callable[..., None]:
        path = module if "." in module else f"_algorithms.{module}.cpu_kernels"
        function: Any = getattr(import_module(f"gpualgo.{path}"), name)
        kernel: Callable[..., None] = function(*fn, *options) if fn or options else function
        return kernel

    return (module, name, *options), write


def get_kernel(
    key: tuple[Hashable, ...], write: KernelSource, applied: Applied | None = None
) -> Kernel:
    """Return the compiled code of a key, a kernel or another C function of words.

    write() returns its Python source function. The key holds strings, numbers and dtypes: all that
    write() depends on except the operator.
    """
    memory_key = key if applied is None else (key, applied.key)
    return _kernels.made(memory_key, lambda: _load(key, write, applied))


def get_entry(key: tuple[Hashable, ...], write: KernelSource) -> int:
    """Return the address of a key's C function of words, which stays valid for good."""
    loaded = get_kernel(key, write)
    _pinned[loaded.address] = loaded
    return loaded.address


def check(status: int) -> None:
    if status:
        raise RuntimeError(
            "op raised an exception inside a compiled kernel, which cannot propagate it; "
            "run op in plain Python to debug"
        )


def _load(
    key: tuple[Hashable, ...], write: KernelSource, applied: Applied | None
) -> machine.Loaded:
    """Load a kernel's code from disk, else compile it and write it there."""
    parts = "kernel", stable_key(key), *(() if applied is None else applied.parts)
    if applied is not None:
        count_code(applied.op)
    words = None if applied is None else applied.words
    entry = read_entry(*parts)
    if entry is not None:
        with contextlib.suppress(RuntimeError):  # it needs a symbol that numba no longer has
            loaded = machine.Loaded(machine.Image(*marshal.loads(entry[0])), words)
            log.log(log.INFO, "found on disk: CPU kernel %s%s", parts[1], _of_operator(applied))
            return loaded
    with paused(), log.timed_block("compiled CPU kernel %s%s", parts[1], _of_operator(applied)):
        compiled = _compile(key, write, applied)
    loaded = machine.Loaded(compiled, words)
    write_entry((marshal.dumps(tuple(compiled)),), *parts)
    return loaded


def _of_operator(applied: Applied | None) -> str:
    return "" if applied is None else f" of {source_location(applied.op.shown)}"


def _compile(
    key: tuple[Hashable, ...], write: KernelSource, applied: Applied | None
) -> machine.Image:
    with loading():
        from gpualgo._cpu import compiler

    if applied is None:
        return compiler.machine_code(_shell(key, write, ()), None)
    operator = compile_operator(*applied)  # may raise an error
    slots = (*applied.arguments, operator.result_dtype)
    shell = _shells.made((key, slots), lambda: _shell(key, write, slots))
    return compiler.machine_code(shell, operator.bitcode)


def _shell(key: tuple[Hashable, ...], write: KernelSource, slots: tuple[Any, ...]) -> bytes:
    """Return the bitcode of a kernel without its operator, from the wheel or disk if possible.

    `slots`: the dtypes of the operator's arguments and result; empty if there is no operator.
    """
    from gpualgo._cpu import compiler

    parts = "shell", stable_key(key), stable_key(slots)
    if (shell := shells_of_wheel().get(repr(parts).encode())) is not None:
        return zlib.decompress(shell)
    entry = read_entry(*parts) if slots else None  # the others have their machine code on disk
    if entry is not None and len(entry) == 1:
        return entry[0]
    operator = (compiler.operator_call(slots[:-1], slots[-1]),) if slots else ()
    shell = compiler.compile_shell(write(*operator))
    if slots:
        write_entry((shell,), *parts)
    if collected is not None and key[0] != "_cpu.packing":  # those depend on the CPU
        collected[repr(parts).encode()] = zlib.compress(shell, 9)
    return shell


# --- Shells of the wheel: bitcode that was compiled when the wheel was built. From it LLVM alone
# makes machine code, in a fifth of the time that numba and LLVM take.

WHEEL_FILE = PACKAGE / "_cpu" / "shells.bin"
collected: dict[bytes, bytes] | None = None  # the shells that this process compiles, if wanted


@cache
def shells_of_wheel() -> dict[bytes, bytes]:
    """Return compressed shells by their keys; none if the wheel was built from other sources or
    for other versions of the compilers.
    """
    origin = origin_of_shells()
    if origin is None or not WHEEL_FILE.exists():
        return {}
    fields = disk.decode(f"shells {origin}", WHEEL_FILE.read_bytes()) or ()
    return dict(zip(fields[::2], fields[1::2], strict=True))


def write_shells(path: Path, shells: dict[bytes, bytes]) -> None:
    """Write shells to a file, which a wheel holds as `WHEEL_FILE`."""
    fields = tuple(field for item in sorted(shells.items()) for field in item)
    path.write_bytes(disk.encode(f"shells {origin_of_shells()}", fields))


def stable_key(value: Hashable) -> str:
    """Return a key as a text that is the same in every process."""
    if isinstance(value, Separate):
        return records.label(value)
    if isinstance(value, np.dtype):
        is_known = value.names is not None or dtypes.name_of(value) is not None
        return records.label(value) if is_known else value.str
    if isinstance(value, tuple):
        return "(" + ",".join(map(stable_key, value)) + ")"
    if value is None or type(value) in (str, int, bool):
        return repr(value)
    raise TypeError(f"a kernel's key holds {value!r}, which other processes cannot compare")


def compute_code(
    op: Operator, element: records.Computed, acc: np.dtype[Any], capacity: int
) -> machine.Loaded:
    """Return the code of f(slots, memory, count), which computes elements from numbers.

    `slots` are the numbers' addresses. It writes the elements, converted to acc, to memory for
    `capacity` elements, and replaces the addresses in slots by theirs.
    """
    numbers = tuple(map(records.operand_dtype, element.numbers))
    code = named("_cpu.direct_kernels", "compute_kernel", numbers, element.result, acc, capacity)
    return get_kernel(*code, Applied(op, numbers, element.result))


# --- Kernels wrapped as built-in functions of CPython, which calls them ten times as fast as
# ctypes: that takes 45 ns for each argument and as long again for the call. The wrappers
# (`direct_kernels`) are compiled and cached as kernels are.

_METH_FASTCALL = 0x80
_MOST_WORDS = 512  # of a table that is copied to the stack

Array = np.ndarray[Any, Any]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


def status_function(kernel: Kernel) -> Callable[[int, int, int, int], int]:
    """Return a function that calls a kernel and returns its status. It does not hold it."""
    if kernel.function is None:
        kernel.function = _function(_method("call_kernel"), kernel.address)
    return kernel.function


class Step(NamedTuple):
    """A launch of a kernel: its table, its number of tasks, and code that the table points to."""

    kernel: Kernel
    table: Array
    tasks: int
    held: Any = None


def launch_function(
    steps: Sequence[Step], slots: Sequence[int], inner: Sequence[tuple[int, int]] = ()
) -> Callable[..., int] | None:
    """Return f(scratch, *words): run launches with these words in their tables, return the status.

    Words are ints, or NumPy arrays for their addresses. `slots` are their indices, counted through
    all tables. `inner` are pairs of such an index and the offset of a buffer in scratch memory.
    None if the tables are too long for a stack.
    """
    table = np.concatenate([step.table for step in steps]) if len(steps) > 1 else steps[0].table
    if len(table) > _MOST_WORDS:
        return None
    head = [len(table), address(table), len(slots), len(inner), len(steps), *slots]
    for pair in inner:
        head += pair
    start = 0
    held: list[Any] = [table]
    for kernel, words, tasks, code in steps:
        head += [kernel.address, start, tasks]
        start += len(words)
        held += [kernel, code]
    block = np.array(head, np.int64)
    self_object = address(block), np.ndarray, block, *held
    method = _method("launch_kernel", OFFSET, _MOST_WORDS)
    function: Callable[..., int] = _function(method, self_object)
    return function


def _function(method: int, self_object: Any) -> Any:
    """Return the built-in function of a PyMethodDef with this `self`."""
    new_function = ctypes.pythonapi.PyCFunction_NewEx
    new_function.restype = ctypes.py_object
    new_function.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    return new_function(method, self_object, None)


@cache
def _method(name: str, *options: int) -> int:
    """Return the address of a wrapper's PyMethodDef."""
    loaded = get_kernel(*named("_cpu.direct_kernels", name, *options))
    method = _Method(name.encode(), loaded.address, _METH_FASTCALL, None)
    keep_alive_forever((loaded, method))  # functions read it when they are freed, even at exit
    return ctypes.addressof(method)
