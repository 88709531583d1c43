"""Numbers of elements as they are written: 2^20."""

from __future__ import annotations


def size_of(text: str) -> int:
    """Return the number that "2^20" or "1000000" means; ValueError for anything else."""
    base, caret, power = text.strip().replace("**", "^").partition("^")
    if caret and not 0 <= int(power) < 64:  # a power of billions would be computed for hours
        raise ValueError(f"a size is below 2^63, not {text}")
    n = int(base) ** int(power) if caret else int(base)
    if not 1 <= n < 1 << 63:
        raise ValueError(f"a size is from 1 to 2^63 - 1, not {text}")
    return n


def size_text(n: int) -> str:
    """Return a number of elements, a power of two as 2^20."""
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and power > 3 else str(n)
