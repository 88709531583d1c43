"""Retries calls whose operator needs captured numbers as compile-time constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._operators import key as keys
from gpualgo._operators.captured import ConstantNeeded
from gpualgo._operators.operator import Operator, content_key


@contextmanager
def retry_with_constants(op: Any, hot: Any, error: Exception) -> Iterator[bool]:
    """Yield True if the call should be retried with captured numbers compiled in as constants.

    `hot`: the operator's key. If the retry fails as well, the numbers become run-time arguments
    again.
    """
    key = content_key(hot)
    numbers = getattr(key, "numbers", ())
    if not numbers or not isinstance(error, (CompileError, TypeError)):
        yield False
        return
    values, is_exponent = None, False
    if isinstance(error, ConstantNeeded):
        values, is_exponent = error.words, error.is_exponent
    fn = op.fn if isinstance(op, Operator) else op
    indices, added = keys.make_constant(fn, key, values, is_exponent)
    try:
        yield bool(indices)  # False if another thread has done so meanwhile
    except BaseException:
        keys.make_data(fn, added)
        raise
