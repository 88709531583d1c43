"""The switch between fibers: each finds its registers and its stack as it left them."""

from __future__ import annotations

import ctypes
import random

import pytest

from emulator import toolchain
from emulator.control import machine

pytestmark = pytest.mark.skipif(
    toolchain.find_compiler() is None, reason="no C++ compiler for the emulated machine"
)

Words, Numbers = ctypes.c_uint64 * 12, ctypes.c_double * 12


class Held(ctypes.Structure):
    """As in litmus/fibers.cc."""

    _fields_ = (
        ("words", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("words_after", ctypes.c_void_p),
        ("numbers_after", ctypes.c_void_p),
        ("room", ctypes.c_uint64),
    )


def _library() -> ctypes.CDLL:
    machine()
    text = f'#include "{toolchain.HERE / "litmus" / "fibers.cc"}"\n'
    # Compiled anew, too, when the machine's own source is another.
    folders = [toolchain.HERE / "litmus", toolchain.MACHINE]
    made = toolchain.compile_kernel(text, folders, has_cxx_headers=True)  # the machine has some
    return ctypes.CDLL(str(made))


def test_what_is_held_survives_a_switch() -> None:
    drawn = random.Random(1)
    words = [Words(*(drawn.getrandbits(64) for _ in range(12))) for _ in range(2)]
    numbers = [Numbers(*(drawn.random() for _ in range(12))) for _ in range(2)]
    after = [(Words(), Numbers()) for _ in range(2)]
    both = (Held * 2)()
    for i in range(2):
        memory = (words[i], numbers[i], *after[i])
        both[i] = Held(*(ctypes.addressof(array) for array in memory), room=100)
    hold_both = _library().hold_both
    hold_both.restype = ctypes.c_uint64
    assert hold_both(both) % 16 == 0
    for i, (words_after, numbers_after) in enumerate(after):
        assert list(words_after) == list(reversed(words[i]))
        assert list(numbers_after) == list(reversed(numbers[i]))
