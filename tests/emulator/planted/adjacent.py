"""Bugs of adjacent differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga
from emulator.planted.bug import WRONG, Bug, bug
from emulator.planted.calls import Results

_KERNEL = "adjacent_difference/kernel.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "adjacent difference: what lies before the first element is read",
        _KERNEL,
        "      if (held.place > 0) {\n        held.before.items[0]",
        "      if (held.place >= 0) {\n        held.before.items[0]",
        "adjacent difference",
        "OUT OF BOUNDS",
    ),
    bug(
        "adjacent difference: a line that begins within a pack",
        _KERNEL,
        "if (Policy::is_along && ++place == params.length.value) place = 0;",
        "++place;",
        "adjacent difference of rows",
        WRONG,
    ),
    bug(
        "adjacent difference: what lies before the first row is read",
        _KERNEL,
        "    } else if (held.place > 0) {",
        "    } else {",
        "adjacent difference of columns",
        "OUT OF BOUNDS",
    ),
    bug(
        "adjacent difference: an element too far",
        _KERNEL,
        "i < first + items && i < params.num_items; ++i",
        "i < first + items && i <= params.num_items; ++i",
        "adjacent difference",
        "OUT OF BOUNDS",
    ),
)


def differences(shape: tuple[int, ...], axis: int) -> Any:
    """Return calls on lines of an axis."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        x = rng.integers(-1000, 1000, shape).astype(np.int32)
        zeros = np.zeros([1 if i == axis else n for i, n in enumerate(shape)], np.int32)
        yield ga.adjacent_difference(gpu.to_device(x), axis=axis), np.diff(x, 1, axis, zeros)

    return calls
