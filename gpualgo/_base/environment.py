"""What the environment sets: on, off, or nothing."""

from __future__ import annotations

import os


def flag(name: str) -> bool | None:
    """Return what a variable says that is 1 or 0; None: it is not set."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{name} must be 1 or 0, got {text!r}; unset it for what holds without it")
    return text == "1" if text else None
