"""What is said of a name of NumPy's that is not here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np


def told(name: str, known: Iterable[str]) -> str:
    """Return the message for a name that is not here."""
    near = difflib.get_close_matches(name, known, 1)
    text = f"gpualgo.numpy has no {name!r}"
    if hasattr(np, name):
        text += f"; numpy.{name} is not accelerated: gpualgo.numpy.wrap(numpy) hands it on"
    return f"{text}; the nearest is {near[0]!r}" if near else text
