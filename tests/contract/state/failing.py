"""Operators whose captured number changes, and a driver that fails when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from contract.state.program import STYLES, Program
from contract.state.templates import Template
from support import Backend


class Operator:
    """A template's operator: one function whose captured number changes."""

    def __init__(self, template: Template, program: Program, backend: Backend) -> None:
        style = self.style = program.style
        self.backend, self.dtype = backend, np.dtype(program.dtype)
        args, _, body = template.op.removeprefix("lambda").partition(":")
        self._source = template.op
        body = body.replace("K", "K[0]") if style == "array" else body
        self._names: dict[str, Any] = {}
        code = STYLES[style].format(args.strip(), body.strip())
        exec(compile(code, f"<{template.name}: {template.op}>", "exec"), self._names)
        self.function: FunctionType = self._names["make"](3)

    def set(self, k: Any) -> None:
        function = self.function
        if self.style == "array" and isinstance(k, int):
            k = self.backend.to_device(np.array([k], self.dtype))
        if self.style == "global":
            self._names["K"] = k
        elif self.style == "default":
            function.__defaults__ = (k,)
        elif function.__closure__:
            function.__closure__[0].cell_contents = k

    def reference(self, k: int) -> Any:
        number = self.dtype.type(k) if self.style == "array" else k
        found = eval(self._source, {"K": number})
        found.k = number
        return found


@contextmanager
def driver_fails(fails: str) -> Iterator[None]:
    """Let one call of the stand-in driver fail, the first, second … from here on."""
    from gpualgo._driver import driver

    if not fails.startswith("driver"):
        yield
        return
    made, at = driver.api(), int(fails.split()[1])
    failing = _Failing(made, at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "api", lambda: failing)
        try:
            yield
        finally:
            failing.left = 0  # whoever has kept one of its functions


class _Failing:
    """A driver one of whose calls that launch, copy or take memory fails."""

    NAMES = ("cuLaunch", "cuMemcpy", "cuMemAlloc", "cuEventRecord", "cuStreamWaitEvent")

    def __init__(self, made: Any, at: int) -> None:
        self._made, self.left = made, at

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._made, name)
        if not name.startswith(self.NAMES):
            return value

        def call(*args: Any) -> Any:
            self.left -= 1
            return (2, 0)[: 1 + name.startswith("cuMemAlloc")] if self.left == 0 else value(*args)

        return call
