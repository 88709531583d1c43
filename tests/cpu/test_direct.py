"""Kernels as functions of CPython's own kind: as by ctypes, and fields of arrays as NumPy tells."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from gpualgo._cpu import image, kernels
from gpualgo._cpu.kernels import get_kernel, status_function
from gpualgo._cpu.memory import OFFSET, address
from gpualgo._cpu.plan import compiled


def _noting() -> Any:
    from numba import types

    from gpualgo._cpu.packing import load, pointer_to, store

    words = pointer_to(types.intp)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = words(table)
        store(p, 0, scratch)
        store(p, 1, first)
        store(p, 2, last)
        if load(p, 3):
            raise ValueError

    return kernel


def test_status_and_arguments() -> None:
    kernel = get_kernel(("test of direct calls",), _noting)
    run: Any = status_function(kernel)
    assert type(run).__name__ == "builtin_function_or_method"
    table = np.zeros(4, np.int64)
    assert run(address(table), -(1 << 62), 7, (1 << 62) + 1) == 0
    assert table.tolist() == [-(1 << 62), 7, (1 << 62) + 1, 0]
    table[3] = 1
    assert run(address(table), 0, 0, 0) == 1


def test_fields_stand_where_numpy_tells() -> None:
    x = np.arange(40.0)
    for array in (x, x[3:], x[::-2], x.reshape(5, 8).T, x[:0], np.array(3)):
        assert address(array) == array.__array_interface__["data"][0]
        assert ctypes.c_ssize_t.from_address(id(array) + OFFSET - 8).value == id(np.ndarray)


def _summing() -> Any:
    from numba import types

    from gpualgo._cpu.packing import load, pointer_to, store

    words = pointer_to(types.intp)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = words(table)
        out = words(load(p, 2))
        store(out, 0, load(p, 0) + load(p, 1))
        store(out, 1, last)
        store(out, 2, scratch)
        store(p, 1, 99)  # the table is the call's own

    return kernel


def test_launcher() -> None:
    kernel: Any = get_kernel(("test of launches",), _summing)
    table, out = np.array([40, 0, 0], np.int64), np.zeros(3, np.int64)
    run: Any = kernels.launch_function([kernels.Step(kernel, table, 7)], (1, 2))
    for out_word in (out, address(out)):
        for number in (-3, 1 << 40):
            assert run(5, number, out_word) == 0
            assert out.tolist() == [40 + number, 7, 5]
    assert table.tolist() == [40, 0, 0]
    assert run(5, 1) == 2
    assert run(5, 1, "out") == 2
    assert run(5, 1, out, 3) == 2
    assert (
        kernels.launch_function([kernels.Step(kernel, np.zeros(1 << 10, np.int64), 7)], ()) is None
    )


def test_launches_in_sequence() -> None:
    """Each launch has its own table in the call's copy; buffers lie in scratch memory."""
    kernel: Any = get_kernel(("test of launches",), _summing)
    first, second = np.array([40, 2, 0], np.int64), np.array([0, 5, 0, 0], np.int64)
    steps = [kernels.Step(kernel, first, 7), kernels.Step(kernel, second, 9)]
    run: Any = kernels.launch_function(steps, (0, 3, 5), [(2, 16)])
    scratch, out = np.zeros(8, np.int64), np.zeros(3, np.int64)
    assert run(address(scratch), 30, -4, out) == 0
    assert scratch.tolist() == [0, 0, 32, 7, address(scratch), 0, 0, 0]
    assert out.tolist() == [1, 9, address(scratch)]
    assert (first.tolist(), second.tolist()) == ([40, 2, 0], [0, 5, 0, 0])


def _failing() -> Any:
    from numba import types

    from gpualgo._cpu.packing import load, pointer_to, store

    words = pointer_to(types.intp)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = words(table)
        store(words(load(p, 1)), 0, 1)
        if load(p, 0):
            raise ValueError

    return kernel


def test_a_launch_that_fails_ends_the_sequence() -> None:
    kernel: Any = get_kernel(("test of failures",), _failing)
    steps = [kernels.Step(kernel, np.zeros(2, np.int64), 1) for _ in range(3)]
    run: Any = kernels.launch_function(steps, (1, 2, 3, 5))
    outs = np.zeros((3, 1), np.int64)
    assert run(0, outs[0], 1, outs[1], outs[2]) != 0
    assert outs.ravel().tolist() == [1, 1, 0]


_ENDS = """
import atexit, ctypes, gc

def is_there(address):
    with open("/proc/self/maps") as file:
        ranges = [line.split()[0].split("-") for line in file]
    return any(int(low, 16) <= address < int(high, 16) for low, high in ranges)

def at_the_end():
    for module in (kernels, image):
        vars(module).clear()
    kernel_code.clear()
    gc.collect()
    print(*[is_there(address) for address in addresses])

atexit.register(at_the_end)  # before all others, and so called after them
from gpualgo._cpu import image, kernels
from gpualgo._algorithms.radix_sort.cpu_numpy import kernel

found = kernel("mend", 4, 0)
method = kernels._method("call_kernel")
addresses = [found.address, ctypes.c_void_p.from_address(method + 8).value]
kernel_code = [found]
gone = image.Loaded(image.Image(bytes(99), 0, (), ()), None)
address = gone.address
assert is_there(address)
del found, gone
assert not is_there(address)
"""


@pytest.mark.skipif(not image.SUPPORTED, reason="code is LLVM's, which has its own way")
def test_code_outlives_the_interpreter() -> None:
    """A daemon's thread may be in it, and functions of CPython's read how they are described."""
    ran = subprocess.run(
        [sys.executable, "-c", _ENDS], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True True\n", "")


def test_a_function_holds_the_code_that_its_table_points_to() -> None:
    """The launch itself may be gone when the plan of a call runs."""

    class Code:
        """Stands for compiled code."""

    from gpualgo._cpu.launch import Launch, plan_in_sequence

    kernel: Any = get_kernel(("test of launches",), _summing)
    routine = compiled("sum", 1, 1, 8)
    alone, first, last = Code(), Code(), Code()
    seen = [weakref.ref(code) for code in (alone, first, last)]
    table = np.zeros(3, np.int64)
    run = Launch(kernel, table, (0, 1, 2), 0, 1, 8, alone).plan(routine)
    launches = [Launch(kernel, table, (0, 1, 2), 0, 1, 8, code) for code in (first, last)]
    in_sequence = plan_in_sequence(launches, [[8]], 8, routine)
    assert in_sequence is not None
    del alone, first, last, launches
    gc.collect()
    assert all(code() is not None for code in seen)
    del run, in_sequence
    gc.collect()
    assert not any(code() is not None for code in seen)
