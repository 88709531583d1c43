"""How functions of the emulated driver answer: a code, then values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from emulator import trial
from emulator.codes import LAUNCH_FAILED, Failed


def call(num_values: int = 0, *, waits: bool = False) -> Callable[[Any], Any]:
    """Return the decorator of a function with so many results; some wait for what is queued.

    Those tell of kernels that went wrong, as the driver's do.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        @functools.wraps(function)
        def answer(*args: Any) -> tuple[Any, ...]:
            try:
                found = function(*args)
            except Failed as failure:
                return (failure.code, *([0] * num_values))
            if waits:
                trial.current.check()
            if waits and trial.current.failures:
                return (LAUNCH_FAILED, *([0] * num_values))
            if num_values == 0:
                return (0,)
            return (0, found) if num_values == 1 else (0, *found)

        return answer

    return decorate
