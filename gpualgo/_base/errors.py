"""Exceptions of the package, and how messages show values."""

from __future__ import annotations

from typing import Any

import numpy as np


def shown(value: Any) -> str:
    """Return a value's text in messages: a name for functions, never a memory address."""
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    if callable(value) and isinstance(name, str):
        module = getattr(value, "__module__", None)
        if isinstance(value, np.ufunc):
            module = "numpy"
        return name if module in (None, "builtins", "__main__") else f"{module}.{name}"
    text = repr(value)
    return f"an object of class {type(value).__name__}" if " at 0x" in text else text


class NoDeviceError(RuntimeError):
    """A GPU was requested by name, and it is missing or cannot be used."""


class CompileError(RuntimeError):
    """An operator or a kernel could not be compiled; the message has the source and the log."""


class Elsewhere(TypeError):
    """An argument is a distributed array, which another module of the package handles."""

    kind = module = page = cure = ""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is {self.kind}, and this is not among the functions that take one, which "
            f"{self.module}.__all__ lists (see {self.page}); pass {self.cure}"
        )

    def call(self, name: str, out: Any, stream: Any, /, *args: Any, **options: Any) -> Any:
        """Call the function of that name in the other module, which takes no out or stream."""
        from importlib import import_module

        function = getattr(import_module(self.module), name, None)
        if function is None:
            raise self
        for argument, value in (("out", out), ("stream", stream)):
            if value is not None:
                raise TypeError(
                    f"{name}: {argument}= is not supported with {self.kind}, whose result is "
                    f"in new memory; leave {argument} out"
                )
        try:
            return function(*args, **options)
        except Exception as error:
            error.__suppress_context__ = True  # the context, this exception, would not help users
            raise


class OnDask(Elsewhere):
    kind, module, page = "a dask array", "gpualgo.dask", "gpualgo.dask"
    cure = "x.compute() if it fits on one machine"


class OnShards(Elsewhere):
    kind, module, page = (
        "a ShardedArray",
        "gpualgo.shards",
        "https://github.com/gpualgo/gpualgo/blob/main/docs/scale.md",
    )
    cure = "x.gather() if it fits on one device"


class CapturesChanged(RuntimeError):
    """Another thread changed an operator's captured values while a call was being prepared."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"{where}: another thread changed {what}, which op reads, while the call began; give "
            "each thread an operator of its own"
        )
