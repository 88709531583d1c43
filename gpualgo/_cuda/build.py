"""Kernel template + arguments + operator -> a loaded kernel; caches in memory and on disk.

Three things are cached apart: a kernel's own LTO-IR (per source, template arguments and
architecture), an operator's result dtype, and the linked cubin. So a new operator costs numba
and the link, and a known one in a new process costs reading one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import log, records
from gpualgo._base.memo import Memo
from gpualgo._base.records import Argument, Computed
from gpualgo._base.threads import side_by_side
from gpualgo._cuda import kept, toolchain
from gpualgo._cuda.parameters import Parameters
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._operators import recompiled
from gpualgo._operators.operator import Operator


@dataclass(frozen=True)
class Spec:
    """A kernel: its header in cuda_src, its name with template arguments, what it takes."""

    header: str
    expression: str
    parameters: Parameters = field(compare=False)  # they follow from the expression
    op: Operator | None = None  # None: recognised operators are part of the expression
    arg_dtypes: tuple[Argument, ...] = ()
    result_dtype: np.dtype[Any] | None = None
    computed: Computed | None = None  # what op's source makes of what is read

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


# A kernel that is given up stays loaded: graphs that others recorded may launch it, and never tell.
_kernels: Memo[driver.Kernel] = Memo(4096)
_images: Memo[tuple[bytes, str]] = Memo(256)  # the machine code of operators that capture arrays
_cubins: Memo[tuple[bytes, str]] = Memo(256)  # what follows is on disk, too
_expressions: Memo[str] = Memo(4096)  # by the names that compilers made of them
_kernel_irs: Memo[tuple[bytes, str]] = Memo(256)
_operator_irs: Memo[Any] = Memo(256)
_result_dtypes: Memo[np.dtype[Any]] = Memo(4096)


def kernel(spec: Spec, device: int) -> driver.Kernel:
    """Return the loaded kernel of a spec for a device's architecture."""
    found = gpu.get(device)
    if found.stand_in is not None:
        stood: driver.Kernel = found.stand_in.kernel(spec)
        return stood
    capability = found.capability
    key = (*_memory_key(spec), capability)
    views = () if spec.op is None else spec.op.arrays
    if views:
        from gpualgo._cuda import captured as bound

        image = _images.made(key, lambda: bound.tried(*_load(spec, capability, device), device))
        return bound.kernel(key, image, views, device)
    return _kernels.made(key, lambda: _load(spec, capability, device)[0])


def kernels(specs: Sequence[Spec], device: int) -> list[driver.Kernel]:
    """Return the loaded kernels of specs; those that are new are compiled side by side."""
    if gpu.get(device).stand_in is not None:
        return [kernel(spec, device) for spec in specs]
    capability = gpu.get(device).capability
    side_by_side(
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
    with gpu.get(device).outside_capture():  # of whatever anybody records
        try:
            return driver.Kernel(code, name), code
        except RuntimeError:  # made for another driver: an older one may not load it
            code, name = _build(spec, capability)
            return driver.Kernel(code, name), code


def _memory_key(spec: Spec) -> tuple[Any, ...]:
    op = None if spec.op is None else spec.op.key
    return spec.header, spec.expression, op, spec.arg_dtypes, spec.result_dtype, spec.computed


def _operator_parts(op: Operator, arg_dtypes: Any, result_dtype: Any) -> tuple[str, ...]:
    return op.digest, ",".join(map(records.label, arg_dtypes)), records.label(result_dtype)


class _Function(NamedTuple):
    """A function that a kernel calls."""

    op: Operator
    arg_dtypes: tuple[Argument, ...]
    result_dtype: np.dtype[Any] | None


def is_functor(op: Operator, args: Sequence[Any], result: Any) -> bool:
    """Return whether an operator is one of the kernels' own, which take and return one type."""
    return op.name is not None and all(arg == result for arg in args)


def _functions_of(spec: Spec) -> list[_Function]:
    """Return what is compiled from Python for a kernel."""
    if spec.op is None:
        return []
    found = []
    if not is_functor(spec.op, spec.arg_dtypes, spec.result_dtype):
        found.append(_Function(spec.op, spec.arg_dtypes, spec.result_dtype))
    if spec.computed is not None:
        numbers = tuple(map(records.number_of, spec.computed.numbers))
        found.append(_Function(spec.op.source, numbers, spec.computed.result))
    return found


def cubin(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Return a spec's machine code and kernel name; needs no GPU."""
    key = _cubin_key(spec, capability)

    def make() -> tuple[bytes, str]:
        what, arch = spec.expression + _of(spec.op), arch_of(capability)
        if spec.op is not None:
            recompiled.noted(spec.op)
        if (found := _read_code(key)) is not None:
            log.tell(log.INFO, "found on disk: kernel %s for %s", what, arch)
            return found
        with log.making("compiled kernel %s for %s", what, arch):
            made = _build(spec, capability)
        return _write_code(key, made)

    code = _cubins.made(key, make)
    if _expressions.get(code[1]) is None:
        _expressions.add(code[1], spec.expression)
    return code


def _of(op: Operator | None) -> str:
    return "" if op is None else f" of {recompiled.place_of(op.shown)}"


def expression_of(name: str) -> str:
    """Return the expression of a kernel that has been built here, else its name as it is."""
    return _expressions.get(name) or name


def asked(spec: Spec, capability: tuple[int, int]) -> tuple[str, bool]:
    """Return the key of a spec's machine code, and whether that is kept.

    Where it is not, what the kernel calls of Python's is compiled, which may be refused.
    """
    is_kept = _is_kept(spec, capability)
    if not is_kept:
        for function in _functions_of(spec):
            operator(*function, capability)
    return _cubin_key(spec, capability), is_kept


def _cubin_key(spec: Spec, capability: tuple[int, int]) -> str:
    parts = [part for function in _functions_of(spec) for part in _operator_parts(*function)]
    return kept.key_of("cubin", spec.source, spec.expression, arch_of(capability), *parts)


def _is_kept(spec: Spec, capability: tuple[int, int]) -> bool:
    """Return whether a spec's machine code is in memory, or was on disk and is there now."""
    key = _cubin_key(spec, capability)
    if _cubins.get(key) is None:
        code = _read_code(key)
        if code is None:
            return False
        _cubins.add(key, code)
    return True


def _build(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Compile a spec past the cache of cubins."""
    if spec.op is None:
        return _compile(spec, capability, is_ltoir=False)
    *compiled, (code, name) = side_by_side(
        *(partial(operator, *function, capability) for function in _functions_of(spec)),
        partial(_kernel_ir, spec, capability),
    )
    pieces = (code, *(function.ltoir for function in compiled))
    return toolchain.linked(pieces, arch_of(capability), spec.expression), name


def operator(
    op: Operator, arg_dtypes: tuple[Any, ...], result_dtype: Any, capability: tuple[int, int]
) -> Any:
    """Return the compiled operator for one architecture."""

    def make() -> Any:
        from gpualgo._cuda.operator import compile_operator

        recompiled.noted(op)
        place, arch = recompiled.place_of(op.shown), arch_of(capability)
        with log.making("compiled operator %s for %s", place, arch):
            return compile_operator(op, arg_dtypes, result_dtype, capability)

    made = _operator_irs.made((op.code, arg_dtypes, result_dtype, capability), make)
    if result_dtype is None:  # for the kernel, which asks for this dtype
        key = (op.code, arg_dtypes, made.result_dtype, capability)
        if _operator_irs.get(key) is None:
            _operator_irs.add(key, made)
    return made


def result_dtype(
    op: Operator, arg_dtypes: tuple[Any, ...], wanted: Any, capability: tuple[int, int]
) -> np.dtype[Any]:
    """Return the dtype of op's result, from the disk cache where it has been inferred before."""

    def make() -> np.dtype[Any]:
        key = kept.key_of("result", *_operator_parts(op, arg_dtypes, wanted))
        entry = kept.read(key)
        if entry is not None and len(entry) == 1:
            known = records.from_label(entry[0].decode())
            if known is not None:
                return known
        found: np.dtype[Any] = operator(op, arg_dtypes, wanted, capability).result_dtype
        kept.write(key, (records.label(found).encode(),))
        return found

    return _result_dtypes.made((op.code, arg_dtypes, wanted), make)


def arch_of(capability: tuple[int, int]) -> str:
    """Return NVRTC's name of an architecture."""
    return f"sm_{capability[0]}{capability[1]}"


def _compile(spec: Spec, capability: tuple[int, int], is_ltoir: bool) -> tuple[bytes, str]:
    """Run NVRTC on a kernel: return machine code or LTO-IR, and the kernel's name."""
    arch = arch_of(capability)
    return toolchain.compiled(spec.source, spec.expression, arch, kept.source_folder(), is_ltoir)


def _kernel_ir(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    version = toolchain.nvrtc_version()
    key = kept.key_of("ltoir", spec.source, spec.expression, arch_of(capability), version)

    def make() -> tuple[bytes, str]:
        if (found := _read_code(key)) is not None:
            log.tell(log.DEBUG, "found on disk: LTO-IR of kernel %s", spec.expression)
            return found
        with log.making("compiled kernel %s to LTO-IR", spec.expression):
            made = _compile(spec, capability, is_ltoir=True)
        return _write_code(key, made)

    return _kernel_irs.made(key, make)


def _read_code(key: str) -> tuple[bytes, str] | None:
    entry = kept.read(key)
    return (entry[1], entry[0].decode()) if entry is not None and len(entry) == 2 else None


def _write_code(key: str, code: tuple[bytes, str]) -> tuple[bytes, str]:
    kept.write(key, (code[1].encode(), code[0]))
    return code
