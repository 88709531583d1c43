"""Adds the called function and the operator's source line to error messages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._operators.key import python_function


def name(error: Exception, op: Any, where: str, argument: str = "op") -> None:
    """Prefix an error about op with the called function, and append the operator's source line.

    `argument`: the parameter name of the operator. Errors that already have the prefix stay
    unchanged.
    """
    text = str(error)
    if text.startswith(f"{where}: eq "):
        return
    if not isinstance(error, CompileError) and not text.startswith(("op ", "op:", f"{where}: op ")):
        return
    text = text.removeprefix(f"{where}: ")
    if text.startswith(("op ", "op:")):
        text = argument + text[2:]
    text = f"{where}: {text}"
    function = python_function(getattr(op, "shown", op))
    if function is not None:
        from gpualgo._operators.numpy_rules.errors import source_of

        code = function.__code__
        if f"{code.co_filename}:{code.co_firstlineno}" not in text:
            text = f"{text}: {source_of(function)}"
    error.args = (text,)


@contextlib.contextmanager
def told_by(where: str, part: str, names: dict[str, str] | None = None) -> Iterator[None]:
    """Rewrite errors of a helper algorithm `part` so that they name the public function `where`.

    `names`: maps the helper's argument names to the public function's.
    """
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        text = str(error)
        if text.startswith(f"{part}: "):
            text = text.removeprefix(f"{part}: ")
            for own, other in (names or {}).items():
                if text.startswith(own):
                    text = f"{other}{text.removeprefix(own)}"
                    break
            error.args = (f"{where}: {text}",)
        raise
