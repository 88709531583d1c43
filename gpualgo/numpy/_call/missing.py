"""Error message for a name of NumPy's that this package does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np


def told(name: str, known: Iterable[str]) -> str:
    similar = difflib.get_close_matches(name, known, 1)
    message = f"gpualgo.numpy has no {name!r}"
    if hasattr(np, name):
        message += (
            f"; numpy.{name} is not accelerated: gpualgo.numpy.wrap(numpy) delegates it to NumPy"
        )
    return f"{message}; the nearest is {similar[0]!r}" if similar else message
