"""Boolean environment variables."""

from __future__ import annotations

import os


def flag(name: str) -> bool | None:
    """Return the value of a variable that is 1 or 0, None if it is not set."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{name} must be 1 or 0, got {text!r}; unset it for the default")
    return text == "1" if text else None
