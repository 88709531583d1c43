"""What was left out of a run, and why: told once, and kept with the results."""

from __future__ import annotations

_left_out: dict[tuple[str, str], str] = {}


def add(what: str, who: str, reason: object) -> None:
    """Note that a contender is missing from a row, or from all ("" for the row)."""
    text = str(reason).strip().splitlines()
    _left_out.setdefault((what, who), text[-1][:300] if text else type(reason).__name__)


def taken() -> list[dict[str, str]]:
    """Return all notes, and forget them."""
    found = [{"row": what, "who": who, "reason": why} for (what, who), why in _left_out.items()]
    _left_out.clear()
    return found
