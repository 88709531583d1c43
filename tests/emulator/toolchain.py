"""Compiles the emulated machine and the kernels that run on it, each once for all workers."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
MACHINE = HERE / "machine"

_VERSIONS = range(24, 13, -1)  # of LLVM
_SHARED = ["-std=c++17", "-g1", "-fPIC", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off"]

# Every load and store of a kernel calls the machine, as the compiler would have it call the thread
# sanitizer. No access is invented, merged or left out that the kernel's source has. A bool of
# another value than 0 and 1 may be copied: such is what was never written, and is watched anyway.
# The machine checks the bounds and the alignment of each access, so that code for that, a quarter
# of a compilation, is left out.
_KERNEL = [
    *_SHARED,
    "-O1",
    "-w",
    "-fno-strict-aliasing",
    "-fno-optimize-sibling-calls",
    "-fsanitize=thread,undefined",
    "-fno-sanitize=vptr,signed-integer-overflow,null,pointer-overflow,bool,alignment,object-size",
    "-fno-sanitize-recover=undefined",
]
_KERNEL_CLANG = [
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fno-sanitize=function",
    *(
        word
        for option in (
            "-inline-threshold=10000",
            "-simplifycfg-sink-common=false",  # a call is of one place
            "-simplifycfg-hoist-common=false",
            "-tsan-instrument-read-before-write=1",
            "-tsan-instrument-func-entry-exit=0",
        )
        for word in ("-mllvm", option)
    ),
]
_KERNEL_GCC = [
    "-fno-tree-vectorize",
    "-fno-tree-tail-merge",
    "-fno-crossjumping",
    "--param=tsan-instrument-func-entry-exit=0",
]


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler of this machine."""

    path: str
    is_clang: bool
    version: str

    def kernel_flags(self) -> list[str]:
        return [*_KERNEL, *(_KERNEL_CLANG if self.is_clang else _KERNEL_GCC)]


class CompilationError(RuntimeError):
    """What the compiler said about a kernel."""


@functools.cache
def find_compiler() -> Compiler | None:
    """Return clang++ or g++, whichever comes first; GPUALGO_EMULATOR_CXX names another."""
    named = os.environ.get("GPUALGO_EMULATOR_CXX")
    names = [named] if named else ["clang++", *(f"clang++-{v}" for v in _VERSIONS), "g++"]
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"(\d+)\.\d+", done.stdout)
        is_clang = "clang" in done.stdout
        if found is None or int(found[1]) < (14 if is_clang else 11):
            continue  # older ones lack some of the options above
        return Compiler(path, is_clang, done.stdout.split("\n")[0])
    return None


def cache_folder() -> Path:
    """Return where compiled files are kept: GPUALGO_EMULATOR_CACHE, or the user's cache."""
    named = os.environ.get("GPUALGO_EMULATOR_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(base) / "gpualgo-emulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@functools.cache
def machine() -> ctypes.CDLL:
    """Return the machine, loaded so that kernels' libraries find it."""
    sources = sorted(MACHINE.glob("*.cc"))
    flags = [*_SHARED, "-O2", "-fno-semantic-interposition", "-Wall", "-Wextra", "-Werror"]
    flags += [f"-I{INCLUDE}", f"-I{MACHINE}"]
    target = cache_folder() / f"machine-{_digest([INCLUDE, MACHINE], flags)}.so"
    with _made_once(target) as made:
        if made is not None:
            _compile_machine(sources, flags, made)
    return ctypes.CDLL(str(target), mode=ctypes.RTLD_GLOBAL)


def compile_kernel(
    text: str, include: Sequence[Path] = (), defines: Mapping[str, str] | None = None,
    has_cxx_headers: bool = False,
) -> Path:  # fmt: skip
    """Return the library of a kernel's text, which sees cuda_host.h and the folders to include.

    Without the headers of C++, which take a quarter of a kernel's time, mathematical functions are
    C's: `ceilf` is that of floats.
    """
    flags = [*_compiler().kernel_flags(), f"-I{INCLUDE}", *(f"-I{folder}" for folder in include)]
    flags += [] if has_cxx_headers else ["-nostdinc++"]
    flags += [f"-D{name}={value}" for name, value in (defines or {}).items()]
    digest = _digest([INCLUDE, *include], [*flags, text])
    target = cache_folder() / f"kernel-{digest}.so"
    with _made_once(target) as made:
        if made is not None:
            source = target.with_suffix(".cc")
            source.write_text(text)
            _run([*flags, "-include", "cuda_host.h", "-c", source, "-o", f"{made}.o"])
            linker = None if has_cxx_headers else shutil.which("ld")
            _link(Path(f"{made}.o"), made, linker)
            os.remove(f"{made}.o")
    return target


def with_places(report: str, library: Path) -> str:
    """Return a report of the machine with file:line in place of offsets into a library."""
    symbolizer = _symbolizer()
    if symbolizer is None:
        return report

    @functools.cache
    def at(number: str) -> str:
        offset = hex(int(number, 16) - 1)  # within the call, not after it
        command = [symbolizer, "-i", "-e", str(library), offset]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line.split(" ")[0] for line in done.stdout.splitlines()]
        seen = [Path(line).name for line in lines if str(INCLUDE) not in line] or lines
        return "at " + " < ".join(seen[:5])

    return re.sub(r"@([0-9a-f]+)", lambda match: at(match[1]), report)


@functools.cache
def _symbolizer() -> str | None:
    """Return LLVM's addr2line, which knows all that was inlined, or else GNU's."""
    names = ["llvm-addr2line", *(f"llvm-addr2line-{v}" for v in _VERSIONS), "addr2line"]
    return next(filter(None, map(shutil.which, names)), None)


def _compiler() -> Compiler:
    compiler = find_compiler()
    if compiler is None:
        raise RuntimeError("no compiler for the emulated machine; install clang++ or g++")
    return compiler


def _compile_machine(sources: list[Path], flags: list[str], target: Path) -> None:
    """Compile all sources as one, so that the headers are read once and calls are inlined."""
    together = Path(f"{target}.cc")
    together.write_text("".join(f'#include "{source.name}"\n' for source in sources))
    _run([*flags, "-shared", together, "-ldl", "-o", target])
    together.unlink()


def _link(compiled: Path, target: Path, linker: str | None) -> None:
    """Link a kernel: by the linker itself if there is one, or in five times that by the compiler.

    C++'s objects that are there from the beginning need what compilers add.
    """
    needs = ["-shared", compiled, "-lm", "-o", target]
    if linker is None:
        _run(["-nodefaultlibs", *needs])
    else:
        _run(needs, linker)


def _run(arguments: Iterable[str | Path], program: str | None = None) -> None:
    command = [program or _compiler().path, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompilationError(f"{' '.join(command)}\n{done.stderr[:8000]}")


def _digest(folders: Iterable[Path], words: Iterable[str]) -> str:
    digest = hashlib.sha256(repr((_compiler(), list(words))).encode())
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cuh", ".cc"):
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:24]


@contextlib.contextmanager
def _made_once(target: Path) -> Iterator[Path | None]:
    """Give the path at which to make a file, or None if it is there; then move it to its place."""
    if target.exists():
        yield None
        return
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        made = target.with_suffix(f".{os.getpid()}")
        yield made
        os.replace(made, target)
