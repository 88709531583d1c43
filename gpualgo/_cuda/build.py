"""Builds loaded kernels from templates, arguments and operators, with caches in memory and on disk.

Three things are cached separately: a kernel's PTX or LTO-IR (by source, template arguments and
architecture), the dtype of an operator's result, and the cubin. So a new operator costs numba and
the assembler or the link; a known one in a new process costs reading one file.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import disk_cache as disk
from gpualgo._base import loaded, log, records
from gpualgo._base.disk_cache import PACKAGE, PYTHON, digest_of_sources, files_of, versions_of
from gpualgo._base.errors import CompileError
from gpualgo._base.memo import Memo
from gpualgo._base.records import Argument, Computed, field_dtypes
from gpualgo._base.threads import run_concurrently
from gpualgo._cuda import compilers
from gpualgo._cuda.parameters import Parameters
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._operators.operator import SOURCE, Operator, count_code, source_location

# --- Disk cache of compiled code: what its keys depend on, and when entries may be written.

_unchanged: set[str] = set()  # modules that were loaded from the sources that were read


def source_folder() -> Path:
    """Return the folder of the .cuh files: in the installed package, else in the source tree."""
    installed = PACKAGE / "cuda_src"
    return installed if installed.is_dir() else PACKAGE.parent / "cuda_src"


@cache
def origin() -> str | None:
    """Return what the code of kernels without Python operators depends on: sources and options.

    None if the sources cannot be read, or have changed since this process loaded the package.
    """
    try:
        digest = digest_of_sources((source_folder(), source_files()[0]))
    except OSError:  # the modules are in an archive, or only bytecode exists
        return None
    return None if digest is None else repr((digest, compilers.OPTIONS))


@cache
def provenance() -> str | None:
    """Return what all other cached code depends on: also modules, compilers, numba's settings.

    None if the sources cannot be read, or differ from those that this process has loaded.
    """
    before = set(sys.modules)
    try:
        digest = digest_of_sources((PACKAGE, source_files()[1]))
    except OSError:
        return None
    if digest is None or origin() is None:
        return None
    _unchanged.update(before)
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    return repr((origin(), digest, PYTHON, versions_of("numba", "llvmlite"), settings))


def source_files() -> tuple[list[str], list[str]]:
    """Return the kernels' sources, and the modules that determine how operators are compiled."""
    folder = str(source_folder())
    subfolders = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    kernels = files_of(folder, ".cuh")
    for name in subfolders:
        kernels += files_of(os.path.join(folder, name), ".cuh")
    rules = [
        os.path.join(PACKAGE, *name.split("/"))
        for name in (
            "_arrays/view.py",
            "_cuda/build.py",
            "_cuda/operator.py",
            "_cuda/compilers.py",
            "_cuda/target.py",
        )
    ]
    for name in ("_base", "_operators", "_operators/numpy_rules"):
        rules += files_of(os.path.join(PACKAGE, *name.split("/")), ".py")
    return kernels, rules


def key_of(*parts: str) -> str:
    """Return the cache key for these parts and the provenance."""
    return _hashed(provenance(), *parts)


def _hashed(*parts: str | None) -> str:
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()


def read(key: str) -> tuple[bytes, ...] | None:
    """Return the fields of a disk entry; None if there is none.

    Without provenance nothing was written under a key that needs it.
    """
    return None if origin() is None else disk.read(key)


def write(key: str, fields: tuple[bytes, ...]) -> None:
    """Write a disk entry, unless a source file has changed.

    NVRTC reads the kernels' sources at each compilation, so each write checks them again. After a
    change it is unknown whether this process compiled the old or the new source.
    """
    if provenance() is not None and not _has_changed():
        disk.write(key, fields)


def _has_changed() -> bool:
    try:
        kernels, _ = source_files()
        is_newer = any(loaded.is_newer(os.stat(path)) for path in kernels)
        return is_newer or loaded.has_newer_modules(_unchanged)
    except OSError:  # a source file is missing
        return True


_BLOCKS = records.cpp_name(records.BLOCK_POSITION)  # random numbers share blocks if linked
# Bytes of the narrowest numbers that a folder's kernels take by words; others are slower so.
_LEAST_BYTES = {
    "adjacent_difference": 4, "by_index": 4, "by_key": 4, "reduce": 4, "scan": 4, "segments": 4,
    "transform": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """A kernel: its header in cuda_src, its template instance, its parameters and its operator."""

    header: str
    expression: str
    parameters: Parameters = field(compare=False)  # determined by the expression
    op: Operator | None = None  # None: a recognised operator, which is part of the expression
    arg_dtypes: tuple[Argument, ...] = ()
    result_dtype: np.dtype[Any] | None = None
    computed: Computed | None = None  # how op's source computes the elements

    def __post_init__(self) -> None:
        if self.op is not None and self.op.key.numbers:
            object.__setattr__(self, "parameters", self.parameters.with_numbers())

    @property
    def source(self) -> str:
        """The C++ source to compile; macros say whether op captures arrays and numbers."""
        return self.source_of(False)

    @property
    def may_take_words(self) -> bool:
        """Whether op's code may replace its calls in PTX (ADR 42): no kernel is slower so."""
        if self.op is None or self.op.part == SOURCE or self.computed is not None:
            return False
        least = _LEAST_BYTES.get(self.header.partition("/")[0])
        if least is None or _BLOCKS in self.expression:
            return False
        assert self.result_dtype is not None
        result = () if self.result_dtype.kind == "b" else (self.result_dtype,)
        types = *records.slots(self.arg_dtypes), *result
        return all(field.itemsize >= least for dtype in types for field in field_dtypes(dtype))

    def source_of(self, by_words: bool) -> str:
        macros = "#define GPUALGO_WORDS\n" if by_words else ""
        if self.op is not None and self.op.key.arrays:
            macros += "#define GPUALGO_CAPTURES\n"
        if self.op is not None and self.op.key.numbers:
            macros += "#define GPUALGO_NUMBERS\n"
        return f'{macros}#include "{self.header}"\n{self.parameters.checks(self.expression)}'


# An evicted kernel stays loaded: recorded graphs may still launch it.
_kernels: Memo[driver.Kernel] = Memo(4096)
_images: Memo[tuple[bytes, str]] = Memo(256)  # machine code of kernels with captured arrays
_cubins: Memo[tuple[bytes, str]] = Memo(256)  # this and the following are also on disk
_expressions: Memo[str] = Memo(4096)  # by mangled kernel name
_kernel_codes: Memo[tuple[bytes, str]] = Memo(256)
_operator_irs: Memo[Any] = Memo(256)
_result_dtypes: Memo[np.dtype[Any]] = Memo(4096)


def kernel(spec: Spec, device: int) -> driver.Kernel:
    gpu_device = gpu.get(device)
    if gpu_device.stand_in is not None:
        placeholder: driver.Kernel = gpu_device.stand_in.kernel(spec)
        return placeholder
    capability = gpu_device.capability
    key = (*_memory_key(spec), capability)
    views = () if spec.op is None else spec.op.arrays
    if views:
        from gpualgo._cuda import operator as bound

        image = _images.made(key, lambda: bound.tried(*_load(spec, capability, device), device))
        return bound.kernel(key, image, views, device)
    return _kernels.made(key, lambda: _load(spec, capability, device)[0])


def kernels(specs: Sequence[Spec], device: int) -> list[driver.Kernel]:
    """Return the loaded kernels of specs; missing ones are compiled in parallel."""
    if gpu.get(device).stand_in is not None:
        return [kernel(spec, device) for spec in specs]
    capability = gpu.get(device).capability
    run_concurrently(
        *(
            partial(cubin, spec, capability)
            for spec in specs
            if _kernels.get((*_memory_key(spec), capability)) is None
            and not _is_kept(spec, capability)
        )
    )
    return [kernel(spec, device) for spec in specs]


def _load(spec: Spec, capability: tuple[int, int], device: int) -> tuple[driver.Kernel, bytes]:
    code, name = cubin(spec, capability)
    with gpu.get(device).outside_capture():  # exempt from captures of any thread
        try:
            return driver.Kernel(code, name), code
        except RuntimeError:  # built for another driver: an older one may refuse it
            key = _cubin_key(spec, capability)
            code, name = _write_code(key, _build(spec, capability))
            return driver.Kernel(code, name), code


def _memory_key(spec: Spec) -> tuple[Any, ...]:
    op = None if spec.op is None else spec.op.code
    return spec.header, spec.expression, op, spec.arg_dtypes, spec.result_dtype, spec.computed


def _operator_parts(op: Operator, arg_dtypes: Any, result_dtype: Any) -> tuple[str, ...]:
    return op.digest, ",".join(map(records.label, arg_dtypes)), records.label(result_dtype)


class _Function(NamedTuple):
    """A device function that a kernel calls, compiled from Python."""

    op: Operator
    arg_dtypes: tuple[Argument, ...]
    result_dtype: np.dtype[Any] | None


def is_functor(op: Operator, args: Sequence[Any], result: Any) -> bool:
    """Return whether an operator is a C++ functor, whose arguments and result have one type."""
    return op.name is not None and all(arg == result for arg in args)


def _functions_of(spec: Spec) -> list[_Function]:
    """Return the functions of a kernel that are compiled from Python."""
    if spec.op is None:
        return []
    functions = []
    if not is_functor(spec.op, spec.arg_dtypes, spec.result_dtype):
        functions.append(_Function(spec.op, spec.arg_dtypes, spec.result_dtype))
    if spec.computed is not None:
        numbers = tuple(map(records.operand_dtype, spec.computed.numbers))
        functions.append(_Function(spec.op.source, numbers, spec.computed.result))
    return functions


def cubin(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Return a spec's machine code and its kernel's name; needs no GPU."""
    key = _cubin_key(spec, capability)

    def make() -> tuple[bytes, str]:
        op_text = "" if spec.op is None else f" of {source_location(spec.op.shown)}"
        what, arch = spec.expression + op_text, arch_of(capability)
        if spec.op is not None:
            count_code(spec.op)
        if (cached := _kept(spec, key)) is not None:
            log.log(log.INFO, "found on disk: kernel %s for %s", what, arch)
            return cached
        with log.timed_block("compiled kernel %s for %s", what, arch):
            built = _build(spec, capability)
        return _write_code(key, built)

    code = _cubins.made(key, make)
    if _expressions.get(code[1]) is None:
        _expressions.add(code[1], spec.expression)
    return code


def expression_of(name: str) -> str:
    """Return the template instance of a kernel built by this process, else the name itself."""
    return _expressions.get(name) or name


def asked(spec: Spec, capability: tuple[int, int]) -> tuple[str, bool]:
    """Return the key of a spec's machine code, and whether it is cached.

    If it is not, the spec's operator is compiled, which may raise.
    """
    is_kept = _is_kept(spec, capability)
    if not is_kept:
        for function in _functions_of(spec):
            operator(*function, capability)
    return _cubin_key(spec, capability), is_kept


def _cubin_key(spec: Spec, capability: tuple[int, int]) -> str:
    common = "cubin", spec.source, spec.expression, arch_of(capability)
    if spec.op is None:
        return _hashed(origin(), *common)
    parts = [part for function in _functions_of(spec) for part in _operator_parts(*function)]
    return key_of(*common, *parts)


def _is_kept(spec: Spec, capability: tuple[int, int]) -> bool:
    """Return whether a spec's machine code is cached; loads it from disk into memory."""
    key = _cubin_key(spec, capability)
    if _cubins.get(key) is None:
        code = _kept(spec, key)
        if code is None:
            return False
        _cubins.add(key, code)
    return True


def _build(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Compile a spec without looking it up in the cache."""
    if spec.op is None:
        return _compile(spec, capability)
    compilers.bindings("nvrtc", "compiling")  # now: later it would wait until numba is imported
    # Before sm_90 shuffles are functions of the assembler, too: see compilers.is_simple.
    by_words = spec.may_take_words and capability >= (9, 0)
    arch, functions = arch_of(capability), _functions_of(spec)

    def code_of(function: _Function, kind: str) -> Any:
        return getattr(operator(*function, capability), kind)

    if by_words:
        made, (code, name) = run_concurrently(
            partial(code_of, functions[0], "ptx"), partial(_kernel_code, spec, capability, True)
        )
        if compilers.is_simple(made):
            try:
                return compilers.with_operator(code, made, arch, spec.expression), name
            except CompileError as error:  # a notation that it does not know
                log.log(log.INFO, "linked instead: %s", error)
    *parts, (code, name) = run_concurrently(
        *(partial(code_of, function, "ltoir") for function in functions),
        partial(_kernel_code, spec, capability, False),
    )
    return compilers.linked((code, *parts), arch, spec.expression), name


def operator(
    op: Operator, arg_dtypes: tuple[Any, ...], result_dtype: Any, capability: tuple[int, int]
) -> Any:
    def make() -> Any:
        from gpualgo._cuda.operator import compile_operator

        count_code(op)
        location, arch = source_location(op.shown), arch_of(capability)
        with log.timed_block("compiled operator %s for %s", location, arch):
            return compile_operator(op, arg_dtypes, result_dtype, capability)

    compiled = _operator_irs.made((op.code, arg_dtypes, result_dtype, capability), make)
    if result_dtype is None:  # the kernel will ask for it with this dtype
        key = (op.code, arg_dtypes, compiled.result_dtype, capability)
        if _operator_irs.get(key) is None:
            _operator_irs.add(key, compiled)
    return compiled


def result_dtype(
    op: Operator, arg_dtypes: tuple[Any, ...], wanted: Any, capability: tuple[int, int]
) -> np.dtype[Any]:
    """Return the dtype of op's result; inferred results are cached on disk."""

    def make() -> np.dtype[Any]:
        key = key_of("result", *_operator_parts(op, arg_dtypes, wanted))
        entry = read(key)
        if entry is not None and len(entry) == 1:
            cached = records.from_label(entry[0].decode())
            if cached is not None:
                return cached
        inferred: np.dtype[Any] = operator(op, arg_dtypes, wanted, capability).result_dtype
        write(key, (records.label(inferred).encode(),))
        return inferred

    return _result_dtypes.made((op.code, arg_dtypes, wanted), make)


def arch_of(capability: tuple[int, int]) -> str:
    return f"sm_{capability[0]}{capability[1]}"


def _compile(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Run NVRTC; return machine code and the kernel's name."""
    return compilers.compiled(spec.source, spec.expression, arch_of(capability), source_folder())


def compile_for_operator(
    spec: Spec, capability: tuple[int, int], by_words: bool
) -> tuple[bytes, str]:
    """Return PTX of a kernel that calls its operator by words, or else LTO-IR, and its name.

    Never with --gen-opt-lto, after which NVRTC (12.9 to 13.5) optimises PTX less in that process.
    """
    arch, keep = arch_of(capability), "--relocatable-device-code=true"
    source, folder = spec.source_of(by_words), source_folder()
    if by_words:
        arch = arch.replace("sm", "compute")
        code, name = compilers.compiled(source, spec.expression, arch, folder, "PTX", keep)
        return compilers.without_unused_data(code.rstrip(b"\0").decode()).encode(), name
    options = keep, "--dlink-time-opt"
    return compilers.compiled(source, spec.expression, arch, folder, "LTOIR", *options)


def _kernel_code(spec: Spec, capability: tuple[int, int], by_words: bool) -> tuple[bytes, str]:
    source, version = spec.source_of(by_words), compilers.nvrtc_version()
    key = key_of("for an operator", source, spec.expression, arch_of(capability), version)

    def make() -> tuple[bytes, str]:
        if (cached := _read_code(key)) is not None:
            log.log(log.DEBUG, "found on disk: intermediate code of kernel %s", spec.expression)
            return cached
        with log.timed_block("compiled kernel %s to intermediate code", spec.expression):
            built = compile_for_operator(spec, capability, by_words)
        return _write_code(key, built)

    return _kernel_codes.made(key, make)


def _kept(spec: Spec, key: str) -> tuple[bytes, str] | None:
    """Return a spec's machine code from disk, else from the wheel; None if neither holds it.

    Disk comes first: what a driver refused of the wheel was compiled anew and written there.
    """
    code = _read_code(key)
    return _code_of_wheel(key) if code is None and spec.op is None else code


def _read_code(key: str) -> tuple[bytes, str] | None:
    entry = read(key)
    return (entry[1], entry[0].decode()) if entry is not None and len(entry) == 2 else None


def _write_code(key: str, code: tuple[bytes, str]) -> tuple[bytes, str]:
    write(key, (code[1].encode(), code[0]))
    return code


# --- Kernels of the wheel: machine code of kernels without Python operators, compiled when the
# wheel was built. The file holds the length of an index, the index, and groups of similar kernels,
# which are compressed together. A process reads the index when it first needs a kernel that is not
# on disk, and only the groups of the kernels that it needs.

WHEEL_FILE = PACKAGE / "_cuda" / "kernels.bin"
KEY_BYTES = 32
_MOST_BYTES = 1 << 20  # of an index; a damaged file may say more

Group = Mapping[str, tuple[bytes, str]]
"""Machine code and name of kernels, by their keys in the disk cache."""


def _wheel_key() -> str:
    """Return the key of the wheel's index.

    Drivers run the code of newer compilers of their own major CUDA version only, and cuda-bindings
    has that version.
    """
    return f"kernels of CUDA {driver.api().CUDA_VERSION // 1000}: {origin()}"


@cache
def wheel_index() -> list[tuple[int, int, bytes]]:
    """Return offset, size and joined keys of each group; none if the wheel has other sources."""
    if origin() is None:
        return []
    try:
        with open(WHEEL_FILE, "rb", buffering=0) as file:
            (size,) = struct.unpack("<Q", file.read(8))
            fields = disk.decode(_wheel_key(), file.read(min(size, _MOST_BYTES))) or ()
    except (ImportError, OSError, struct.error):
        return []
    groups, start = [], 8 + size
    for length, keys in zip(fields[::2], fields[1::2], strict=True):
        groups.append((start, int.from_bytes(length, "little"), keys))
        start += groups[-1][1]
    return groups


def _code_of_wheel(key: str) -> tuple[bytes, str] | None:
    wanted = bytes.fromhex(key)
    for start, size, keys in wheel_index():
        if wanted in keys:
            fields = _group(start, size)
            codes = zip(fields[2::3], map(bytes.decode, fields[1::3]), strict=True)
            return dict(zip(fields[::3], codes, strict=True)).get(wanted)
    return None


def _group(start: int, size: int) -> tuple[bytes, ...]:
    """Return keys, names and codes of a group; nothing if it is damaged or of another wheel."""
    try:
        import lzma
    except ImportError:  # Python was built without it
        return ()
    try:
        with open(WHEEL_FILE, "rb", buffering=0) as file:
            file.seek(start)
            return disk.decode(f"group {origin()}", lzma.decompress(file.read(size))) or ()
    except (OSError, lzma.LZMAError):
        return ()


def write_kernels(path: Path, groups: Sequence[Group]) -> None:
    """Write kernels to a file, which a wheel holds as `WHEEL_FILE`."""
    import lzma

    index, contents = [], []
    # Instructions have 16 bytes.
    codec = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 1, "lp": 3, "pb": 4}
    for group in groups:
        kernels = [(bytes.fromhex(key), name, code) for key, (code, name) in group.items()]
        fields = [field for key, name, code in kernels for field in (key, name.encode(), code)]
        content = disk.encode(f"group {origin()}", tuple(fields))
        contents.append(lzma.compress(content, filters=[codec]))
        index += [len(contents[-1]).to_bytes(8, "little"), b"".join(key for key, *_ in kernels)]
    head = disk.encode(_wheel_key(), tuple(index))
    path.write_bytes(b"".join((struct.pack("<Q", len(head)), head, *contents)))
