"""Errors of unsupported operators, which keep their message although numba wraps exceptions."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from numba.core.errors import TypingError

from gpualgo._operators.numbers import asked


class Refused(TypingError):
    """Raised while numba types or lowers an operator; `last` returns its message."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        _last.sentence = sentence


class ValueNeeded(Refused):
    """Raised if code depends on the value of a data number."""

    def __init__(self, words: Iterable[int], is_exponent: bool = False) -> None:
        super().__init__("a number has to be known before the operator is compiled")
        asked.note(words, is_exponent)


_last = threading.local()


def forget() -> None:
    """Clear the state at the start of a compilation."""
    _last.sentence = None
    asked.note(())


def last() -> str | None:
    """Return the message of the last `Refused` of this thread's compilation, else None."""
    return getattr(_last, "sentence", None)


def shown(value: int) -> str:
    """Return an integer as text, abbreviated if it is long."""
    text = str(value)
    return text if len(text) < 40 else f"{text[:20]}… ({len(text)} digits)"
