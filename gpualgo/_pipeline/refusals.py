"""Errors of operators, with the function that they were passed to and the line they stand in."""

from __future__ import annotations

from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._operators.key import python_function

# What operators are called that are not `op`, by the function that they are passed to.
_PARAMETERS = dict.fromkeys(("select", "stable_partition", "find", "count"), "predicate")
_PARAMETERS["run_length_encode"] = "eq"


def name(error: Exception, op: Any, where: str) -> None:
    """Add the function and the operator's source line to an error that says something of op."""
    text = str(error)
    if not isinstance(error, CompileError) and not text.startswith(("op ", "op:", f"{where}: op ")):
        return
    if not text.startswith(f"{where}:"):
        text = f"{where}: {text}"
    if where in _PARAMETERS:
        text = text.replace(f"{where}: op", f"{where}: {_PARAMETERS[where]}", 1)
    function = python_function(getattr(op, "shown", op))
    if function is not None:
        from gpualgo._operators.numpy_rules.errors import source_of

        code = function.__code__
        if f"{code.co_filename}:{code.co_firstlineno}" not in text:
            text = f"{text}: {source_of(function)}"
    error.args = (text,)
