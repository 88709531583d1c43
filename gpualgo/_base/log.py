"""The logger "gpualgo", which reports compilation, cache hits and copies.

See https://github.com/gpualgo/gpualgo/blob/main/docs/logging.md.
`logging` is imported only if logging is enabled or to log a warning.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from time import perf_counter
from typing import Any, TypeVar, cast

# --- Boolean environment variables.


def flag(name: str) -> bool | None:
    """Return the value of a variable that is 1 or 0, None if it is not set."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{name} must be 1 or 0, got {text!r}; unset it for the default")
    return text == "1" if text else None


def checks_device_values() -> bool:
    return flag("GPUALGO_CHECK") is True


# --- NVTX ranges around calls, graph launches and compilation, for profilers.
#
# They are enabled at import, if NVTX_INJECTION64_PATH is set (by nsys and ncu) or
# GPUALGO_NVTX=1, and if the package `nvtx` is installed. Otherwise they add no cost to calls.

Function = TypeVar("Function", bound=Callable[..., Any])

DOMAIN = "gpualgo"


def is_wanted() -> bool:
    requested = flag("GPUALGO_NVTX")
    return bool(os.environ.get("NVTX_INJECTION64_PATH")) if requested is None else requested


def _load_nvtx() -> Any:
    if not is_wanted():
        return None
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


_nvtx = _load_nvtx()


def named(text: str, *args: Any) -> AbstractContextManager[Any]:
    if _nvtx is None:
        return nullcontext()
    context: AbstractContextManager[Any] = _nvtx.annotate(text % args, domain=DOMAIN)
    return context


def each(name: Callable[..., str]) -> Callable[[Function], Function]:
    """Decorate a function so that each call is a range; `name` maps the arguments to its name."""

    def decorate(function: Function) -> Function:
        if _nvtx is None:
            return function

        @functools.wraps(function)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            with named("%s", name(*args)):
                return function(*args, **kwargs)

        result: Any = ranged
        return cast(Function, result)

    return decorate


DEBUG, INFO, WARNING = 10, 20, 30
_LEVELS = {"debug": DEBUG, "info": INFO, "warning": WARNING, "error": 40}


def start() -> None:
    text = os.environ.get("GPUALGO_LOG", "")
    level = _LEVELS.get(text.lower())
    if level is None:
        raise ValueError(
            f"GPUALGO_LOG must be one of {', '.join(_LEVELS)}, got {text!r}; unset it for warnings "
            "alone"
        )
    logger = _logging().getLogger("gpualgo")
    logger.setLevel(level)
    if not logger.handlers:
        handler = _logging().StreamHandler()
        handler.setFormatter(_logging().Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False  # a root handler would show the messages twice


def _logging() -> Any:
    import logging

    return logging


def is_on(level: int) -> bool:
    # None, too, while another thread imports logging.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    return get_logger is not None and bool(get_logger("gpualgo").isEnabledFor(level))


def log(level: int, text: str, *args: Any) -> None:
    if is_on(level):
        _logging().getLogger("gpualgo").log(level, text, *args)


def warn(text: str, *args: Any) -> None:
    """Log a warning; without a handler, logging writes it to standard error."""
    _logging().getLogger("gpualgo").warning(text, *args)


@contextmanager
def timed_block(what: str, *args: Any) -> Iterator[None]:
    start = perf_counter()
    with named(what, *args):
        yield
    end = perf_counter()
    log(INFO, f"{what} in %.3f s", *args, end - start)
    _compile_time.add(start, end, what, args)


class CompileTime:
    """The time that compiling has taken. After `PATIENCE` seconds a terminal is told, once."""

    PATIENCE = 2.0

    def __init__(self) -> None:
        self.is_told = "GPUALGO_LOG" in os.environ
        self._total = self._end = 0.0

    def add(self, start: float, end: float, what: str, args: tuple[Any, ...]) -> None:
        # Blocks within this one, and of other threads, are counted already.
        self._total += max(0.0, end - max(start, self._end))
        self._end = max(end, self._end)
        if self.is_told or self._total < self.PATIENCE:
            return
        self.is_told = True
        with suppress(Exception):  # stderr is None, closed, or another object: the call goes on
            if sys.stderr.isatty():
                sys.stderr.write(
                    f"gpualgo: {what % args}; first calls have compiled for {self._total:.1f} s. "
                    "`gpualgo warmup` compiles in advance, GPUALGO_LOG=error hides this line.\n"
                )


_compile_time = CompileTime()


def tell_no_times() -> None:
    """Do not tell the terminal how long this process compiles."""
    _compile_time.is_told = True
