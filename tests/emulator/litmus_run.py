"""Runs the litmus kernels on the machine."""

from __future__ import annotations

import ctypes
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from emulator import toolchain
from emulator.control import Settings, machine
from emulator.litmus_cases import Case

FOLDER = Path(__file__).parent / "litmus"
CUDA_SRC = FOLDER.parents[2] / "cuda_src"
NUM_WORDS = 64
SIZES = {"data": 4, "words": 8, "out": 4, "fresh": 4}  # bytes of an element


class Result(NamedTuple):
    report: str  # empty: the launch was good
    out: list[int]


@functools.cache
def library(file: str) -> tuple[Path, ctypes.CDLL]:
    machine()
    text = f'#include "{FOLDER / file}.cc"\n'
    path = toolchain.compile_kernel(text, [FOLDER, CUDA_SRC])
    return path, ctypes.CDLL(str(path))


def settings(seed: int, case: Case) -> Settings:
    """Return one of the ways in which a launch may go."""
    drawn = random.Random(seed)
    return Settings(
        seed=seed,
        order=drawn.choice([0, 0, 1, 2, 3]),
        residency=drawn.choice([0, 2, 8]) if case.residency is None else case.residency,
        races=case.races,
        preempt=drawn.choice([0.0, 0.02, 0.2]),
        weak=drawn.choice([1, 2]),
        max_steps=1 << 19,
        uninitialised=2,
    )


def run(file: str, entry: str, case: Case, how: Settings) -> Result:
    """Launch a kernel with fresh memory."""
    lib = machine()
    path, code = library(file)
    memory = [lib.emu_alloc(NUM_WORDS * size, name.encode()) for name, size in SIZES.items()]
    zero = ctypes.c_uint8(0)
    for address, (name, size) in zip(memory, SIZES.items(), strict=True):
        if name != "fresh":
            assert lib.emu_fill(address, 0, ctypes.byref(zero), 1, NUM_WORDS * size, 1) == 0
    params = (ctypes.c_void_p * len(memory))(*memory)
    kernel = ctypes.cast(getattr(code, entry), ctypes.c_void_p)
    failed = lib.emu_launch(
        kernel, None, case.grid, case.threads, 0, params, ctypes.sizeof(params), how
    )
    report = toolchain.with_places(lib.emu_report().decode(), path) if failed else ""
    size = SIZES[case.leaves]
    out = ((ctypes.c_uint32 if size == 4 else ctypes.c_uint64) * NUM_WORDS)()
    lib.emu_copy(out, memory[list(SIZES).index(case.leaves)], ctypes.sizeof(out))
    for address in memory:
        lib.emu_free(address)
    return Result(report, list(out))


def results(file: str, case: Case, twin: str) -> Iterator[Result]:
    """Run a twin under one seed after the other."""
    for seed in range(case.seeds):
        yield run(file, f"{case.name}_{twin}", case, settings(seed, case))
