"""NVRTC and nvJitLink: compile source to machine code or LTO-IR, and link LTO-IR with operators.

Through cuda.bindings: cuda.core takes 100 ms to load and passes `-fma=false`, which nvJitLink
refuses. Both compilers run without the GIL.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._driver import driver

_HINT = "pip install 'gpualgo[cu13]'"


def _bindings(name: str, what: str) -> Any:
    try:
        return driver.bindings(name)
    except ImportError as error:
        raise CompileError(f"{what} a kernel needs cuda-bindings: {_HINT} ({error})") from error


@cache
def nvrtc_version() -> str:
    """Return NVRTC's version; an older nvJitLink cannot read a newer NVRTC's LTO-IR."""
    version = _bindings("nvrtc", "compiling").nvrtcVersion()
    return ".".join(map(str, _checked(version)))


def compiled(
    source: str, expression: str, arch: str, folder: Path, is_ltoir: bool
) -> tuple[bytes, str]:
    """Return a kernel's machine code or LTO-IR, and the kernel's mangled name."""
    nvrtc = _bindings("nvrtc", "compiling")
    options = [
        f"--gpu-architecture={arch}", "--std=c++17", f"--include-path={folder}",
        "--fmad=false",  # a * b + c rounds twice, as in NumPy and on the CPU
        "--device-as-default-execution-space",  # needed for generic lambdas up to NVRTC 13.0
    ]  # fmt: skip
    if is_ltoir:
        options += ["--dlink-time-opt", "--relocatable-device-code=true"]
    try:
        program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"gpualgo", 0, [], []))
    except Exception as error:  # the library is missing
        raise CompileError(f"NVRTC failed on {expression}: {error}") from error
    try:
        _checked(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        done = nvrtc.nvrtcCompileProgram(program, len(options), [os.fsencode(o) for o in options])
        if done[0] != 0:
            log = _filled(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            text = log.rstrip(b"\0").decode(errors="replace")
            raise RuntimeError(f"{done[0].name}: {text}")
        name = _checked(nvrtc.nvrtcGetLoweredName(program, expression.encode()))
        kind = "LTOIR" if is_ltoir else "CUBIN"
        size, fill = (getattr(nvrtc, f"nvrtcGet{kind}{end}") for end in ("Size", ""))
        return _filled(size, fill, program), name.decode()
    except RuntimeError as error:
        raise CompileError(f"NVRTC failed on {expression}: {error}") from error
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _filled(size: Any, fill: Any, program: Any) -> bytes:
    buffer = bytearray(_checked(size(program)))
    _checked(fill(program, buffer))
    return bytes(buffer)


def _checked(result: tuple[Any, ...]) -> Any:
    """Return the values of an NVRTC call; raise RuntimeError if it failed."""
    if result[0] != 0:
        raise RuntimeError(result[0].name)
    return result[1] if len(result) == 2 else result[1:]


def linked(parts: tuple[bytes, ...], arch: str, what: str) -> bytes:
    """Link LTO-IR parts with inlining; return the machine code."""
    nvjitlink = _bindings("nvjitlink", "linking")
    options = [f"-arch={arch}", "-lto", "-O3", "-fma=0"]
    linker = nvjitlink.create(len(options), options)
    try:
        for code in parts:
            nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), "gpualgo")
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        return bytes(cubin)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(linker))
        nvjitlink.get_error_log(linker, log)
        raise CompileError(
            f"nvJitLink failed on {what}: {error}: {log.decode(errors='replace')}; it "
            "must be at least as new as NVRTC and NVVM: `gpualgo doctor` compares them"
        ) from error
    finally:
        nvjitlink.destroy(linker)
