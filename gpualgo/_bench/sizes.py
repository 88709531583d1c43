"""Numbers of elements as they are written: 2^20."""

from __future__ import annotations


def size_of(text: str) -> int:
    """Return the number that "2^20" or "1000000" means; ValueError for anything else."""
    base, caret, power = text.strip().replace("**", "^").partition("^")
    n = int(base) ** int(power) if caret else int(base)
    if n < 1:
        raise ValueError(f"a size is at least 1, not {text}")
    return n


def size_text(n: int) -> str:
    """Return a number of elements, a power of two as 2^20."""
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and power > 3 else str(n)
