"""What an operator cannot be, said in a sentence of ours wherever numba comes upon it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from numba.core.errors import TypingError

from gpualgo._operators.numbers import asked


class Refused(TypingError):
    """Raised while numba types or lowers an operator; it may bury it among its own reasons."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        _last.sentence = sentence


class ValueNeeded(Refused):
    """Raised where code depends on what a number that is data is."""

    def __init__(self, words: Iterable[int], is_exponent: bool = False) -> None:
        super().__init__("a number has to be known before the operator is compiled")
        asked.note(words, is_exponent)


_last = threading.local()


def forget() -> None:
    """Begin a compilation."""
    _last.sentence = None
    asked.note(())


def last() -> str | None:
    """Return the last refusal of this thread's compilation."""
    return getattr(_last, "sentence", None)


def shown(value: int) -> str:
    """Return an integer's digits, of a long one the first."""
    text = str(value)
    return text if len(text) < 40 else f"{text[:20]}… ({len(text)} digits)"
