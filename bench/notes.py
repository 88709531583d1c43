"""What was left out of a run, and why: printed once, and kept with the results."""

from __future__ import annotations

_left_out: dict[tuple[str, str], str] = {}


def add(row: str, who: str, reason: object) -> None:
    """Note that a contender is missing from a row, or from all ("" for the row)."""
    text = str(reason).strip().splitlines()
    _left_out.setdefault((row, who), text[-1][:300] if text else type(reason).__name__)


def taken() -> list[dict[str, str]]:
    found = [{"row": row, "who": who, "reason": why} for (row, who), why in _left_out.items()]
    _left_out.clear()
    return found
