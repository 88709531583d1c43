"""A second try of a call whose operator cannot do without the values of numbers that are data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._operators import key as keys
from gpualgo._operators.numbers import ConstantNeeded
from gpualgo._operators.operator import Operator, key_within


@contextmanager
def retried(op: Any, hot: Any, error: Exception) -> Iterator[bool]:
    """Give whether to try again, with numbers of op compiled in; `hot` is what it was.

    An error that has nothing to do with them comes again, and they are data again.
    """
    key = key_within(hot)
    numbers = getattr(key, "numbers", ())
    if not numbers or not isinstance(error, (CompileError, TypeError)):
        yield False
        return
    words, is_exponent = None, False
    if isinstance(error, ConstantNeeded):
        words, is_exponent = error.words, error.is_exponent
    fn = op.fn if isinstance(op, Operator) else op
    places, added = keys.compile_in(fn, key, words, is_exponent)
    try:
        yield bool(places)  # another thread may have had them compiled in meanwhile
    except BaseException:
        keys.make_data(fn, added)
        raise
