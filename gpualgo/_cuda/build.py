"""Kernel template + arguments + operator -> a loaded kernel; caches in memory and on disk.

Three things are cached apart: a kernel's own LTO-IR (per source, template arguments and
architecture), an operator's result dtype, and the linked cubin. So a new operator costs numba
and the link, and a known one in a new process costs reading one file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpualgo._base import disk_cache as disk
from gpualgo._base import dtypes as _dtypes
from gpualgo._base.errors import CompileError
from gpualgo._base.memo import Memo
from gpualgo._base.provenance import PACKAGE, digest_of_sources, versions_of
from gpualgo._cuda.parameters import Parameters
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._operators.content import digest_of
from gpualgo._operators.operator import Operator

_HINT = "pip install 'gpualgo[cu13]'"


@dataclass(frozen=True)
class Spec:
    """A kernel: its header in cuda_src, its name with template arguments, what it takes."""

    header: str
    expression: str
    parameters: Parameters = field(compare=False)  # they follow from the expression
    op: Operator | None = None  # None: recognised operators are part of the expression
    arg_dtypes: tuple[np.dtype[Any], ...] = ()
    result_dtype: np.dtype[Any] | None = None

    def __post_init__(self) -> None:
        if self.op is not None and self.op.key.numbers:
            object.__setattr__(self, "parameters", self.parameters.with_numbers())

    @property
    def source(self) -> str:
        """What is compiled; with what tells of captured arrays and numbers if there are any."""
        defined = ""
        if self.op is not None and self.op.key.arrays:
            defined = "#define GPUALGO_CAPTURES\n"
        if self.op is not None and self.op.key.numbers:
            defined += "#define GPUALGO_NUMBERS\n"
        return f'{defined}#include "{self.header}"\n{self.parameters.checks(self.expression)}'


def source_folder() -> Path:
    """Return where the .cuh files are: in the installed package, else in the source tree."""
    installed = PACKAGE / "cuda_src"
    return installed if installed.is_dir() else PACKAGE.parent / "cuda_src"


@cache
def _source_digest() -> str:
    # What an operator compiles to depends on how it is typed and rewritten, too.
    rules = [
        *sorted((PACKAGE / "_operators").rglob("*.py")), *sorted((PACKAGE / "_base").rglob("*.py")),
        PACKAGE / "_arrays/view.py", PACKAGE / "_cuda/operator.py",
    ]  # fmt: skip
    folder = source_folder()
    digest = digest_of_sources((folder, sorted(folder.rglob("*.cuh"))), (PACKAGE, rules))
    return f"{digest} {versions_of('numba_cuda', 'numba', 'llvmlite')}"


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((_source_digest(), *parts)).encode()).hexdigest()


# A kernel that is given up stays loaded: graphs that others recorded may launch it, and never tell.
_kernels: Memo[driver.Kernel] = Memo(4096)
_images: Memo[tuple[bytes, str]] = Memo(256)  # the machine code of operators that capture arrays
_cubins: Memo[tuple[bytes, str]] = Memo(256)  # what follows is on disk, too
_kernel_irs: Memo[tuple[bytes, str]] = Memo(256)
_operator_irs: Memo[Any] = Memo(256)
_result_dtypes: Memo[np.dtype[Any]] = Memo(4096)


def kernel(spec: Spec, device: int) -> driver.Kernel:
    """Return the loaded kernel of a spec for a device's architecture."""
    capability = gpu.get(device).capability
    key = (*_memory_key(spec), capability)
    views = () if spec.op is None else spec.op.arrays
    if views:
        from gpualgo._cuda import captured as bound

        image = _images.made(key, lambda: bound.tried(*_load(spec, capability, device), device))
        return bound.kernel(key, image, views, device)
    return _kernels.made(key, lambda: _load(spec, capability, device)[0])


def _load(spec: Spec, capability: tuple[int, int], device: int) -> tuple[driver.Kernel, bytes]:
    code, name = cubin(spec, capability)
    with gpu.get(device).outside_capture():  # of whatever anybody records
        try:
            return driver.Kernel(code, name), code
        except RuntimeError:  # made for another driver: an older one may not load it
            code, name = _build(spec, capability)
            return driver.Kernel(code, name), code


def _memory_key(spec: Spec) -> tuple[Any, ...]:
    op = None if spec.op is None else spec.op.key
    return spec.header, spec.expression, op, spec.arg_dtypes, spec.result_dtype


def _operator_parts(op: Operator, arg_dtypes: Any, result_dtype: Any) -> tuple[str, ...]:
    dtypes = ",".join(str(_dtypes.name_of(dtype)) for dtype in arg_dtypes)
    wanted = "" if result_dtype is None else str(_dtypes.name_of(result_dtype))
    return digest_of(op.key), dtypes, wanted


def cubin(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Return a spec's machine code and kernel name; needs no GPU."""
    parts = () if spec.op is None else _operator_parts(spec.op, spec.arg_dtypes, spec.result_dtype)
    key = _key("cubin", spec.source, spec.expression, arch_of(capability), *parts)

    def make() -> tuple[bytes, str]:
        entry = disk.read(key)
        if entry is not None and len(entry) == 2:
            return entry[1], entry[0].decode()
        code, name = _build(spec, capability)
        disk.write(key, (name.encode(), code))
        return code, name

    return _cubins.made(key, make)


def _build(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Compile a spec past the cache of cubins."""
    if spec.op is None:
        return _compile(spec, capability, "cubin")
    operator_ir = operator(spec.op, spec.arg_dtypes, spec.result_dtype, capability)
    return _link(spec, capability, _kernel_ir(spec, capability), operator_ir.ltoir)


def operator(
    op: Operator, arg_dtypes: tuple[Any, ...], result_dtype: Any, capability: tuple[int, int]
) -> Any:
    """Return the compiled operator for one architecture."""

    def make() -> Any:
        from gpualgo._cuda.operator import compile_operator

        return compile_operator(op, arg_dtypes, result_dtype, capability)

    return _operator_irs.made((op.key, arg_dtypes, result_dtype, capability), make)


def result_dtype(
    op: Operator, arg_dtypes: tuple[Any, ...], wanted: Any, capability: tuple[int, int]
) -> np.dtype[Any]:
    """Return the dtype of op's result, from the disk cache where it has been inferred before."""

    def make() -> np.dtype[Any]:
        key = _key("result", *_operator_parts(op, arg_dtypes, wanted))
        entry = disk.read(key)
        if entry is not None and len(entry) == 1 and entry[0].decode() in _dtypes.NAMES:
            return _dtypes.from_name(entry[0].decode())
        found: np.dtype[Any] = operator(op, arg_dtypes, wanted, capability).result_dtype
        disk.write(key, (str(_dtypes.name_of(found)).encode(),))
        return found

    return _result_dtypes.made((op.key, arg_dtypes, wanted), make)


def arch_of(capability: tuple[int, int]) -> str:
    """Return NVRTC's name of an architecture."""
    return f"sm_{capability[0]}{capability[1]}"


def _cuda_core() -> Any:
    try:
        return driver.core()
    except ImportError as error:
        raise CompileError(f"compiling a kernel needs cuda-core: {_HINT} ({error})") from error


def _compile(spec: Spec, capability: tuple[int, int], target: str) -> tuple[bytes, str]:
    """Run NVRTC on a kernel; target is "cubin" or "ltoir"."""
    core = _cuda_core()
    options = core.ProgramOptions(
        arch=arch_of(capability),
        std="c++17",
        include_path=str(source_folder()),
        fma=False,  # a * b + c rounds twice, as in NumPy and on the CPU
        link_time_optimization=target == "ltoir",
        relocatable_device_code=target == "ltoir",
    )
    program = core.Program(spec.source, "c++", options)
    try:
        code = program.compile(target, name_expressions=(spec.expression,))
    except Exception as error:
        raise CompileError(f"NVRTC failed on {spec.expression}: {error}") from error
    name = code.symbol_mapping[spec.expression]
    return bytes(code.code), name.decode() if isinstance(name, bytes) else str(name)


def _kernel_ir(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    key = _key("ltoir", spec.source, spec.expression, arch_of(capability), _nvrtc_version())

    def make() -> tuple[bytes, str]:
        entry = disk.read(key)
        if entry is not None and len(entry) == 2:
            return entry[1], entry[0].decode()
        code, name = _compile(spec, capability, "ltoir")
        disk.write(key, (name.encode(), code))
        return code, name

    return _kernel_irs.made(key, make)


@cache
def _nvrtc_version() -> str:
    """Return NVRTC's version: an older nvJitLink cannot read a newer NVRTC's LTO-IR."""
    version = driver.bindings("nvrtc").nvrtcVersion()
    return ".".join(map(str, driver.check(version, "nvrtcVersion")))


def _link(
    spec: Spec, capability: tuple[int, int], kernel: tuple[bytes, str], operator_ir: bytes
) -> tuple[bytes, str]:
    """Link a kernel's LTO-IR with an operator's into machine code.

    Through nvJitLink's own binding: cuda.core 1.2 hands it `-fma=false`, which it refuses.
    """
    try:
        nvjitlink = driver.bindings("nvjitlink")
    except ImportError as error:
        raise CompileError(f"linking a kernel needs cuda-bindings: {_HINT} ({error})") from error
    options = [f"-arch={arch_of(capability)}", "-lto", "-O3", "-fma=0"]
    linker = nvjitlink.create(len(options), options)
    try:
        for code in (kernel[0], operator_ir):
            nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), "gpualgo")
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        return bytes(cubin), kernel[1]
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(linker))
        nvjitlink.get_error_log(linker, log)
        raise CompileError(
            f"nvJitLink failed on {spec.expression}: {error}: {log.decode(errors='replace')}; it "
            "must be at least as new as NVRTC and NVVM: `gpualgo doctor` compares them"
        ) from error
    finally:
        nvjitlink.destroy(linker)
