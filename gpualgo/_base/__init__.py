"""Helpers without dependencies on the rest of the package: dtypes, threads, caches, logging."""

import inspect
import re
from types import FunctionType
from typing import Any


class _Parameter(inspect.Parameter):
    """A parameter that is shown as ``op=operator.add``, not as ``op=<built-in function add>``."""

    def __str__(self) -> str:
        text = str(inspect.Parameter(self.name, self.kind, default=self.default))
        prefix = "operator." if getattr(self.default, "__module__", "") == "_operator" else ""
        text = re.sub("<built-in function (.+)>", rf"{prefix}\1", text)
        return re.sub("<class '(.+)'>", r"\1", text)

    def _format(self, **_: Any) -> str:  # what Signature.format calls from Python 3.14 on
        return str(self)


def show_signatures(*values: Any) -> None:
    """Have `help` show functions and methods of classes without annotations, as the manual does."""
    for value in values:
        for member in vars(value).values() if isinstance(value, type) else (value,):
            function: Any = getattr(member, "__func__", member)  # of a class method
            if isinstance(function, FunctionType):
                found = inspect.signature(function).parameters.values()
                shown = [_Parameter(one.name, one.kind, default=one.default) for one in found]
                function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
