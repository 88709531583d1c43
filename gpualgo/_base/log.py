"""The logger "gpualgo", which reports compilation, cache hits and copies.

See https://github.com/gpualgo/gpualgo/blob/main/docs/logging.md.
`logging` is imported only if logging is enabled or to log a warning.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from gpualgo._base import ranges

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
    """Log a message at a level; `text` is formatted with `args` only if the level is enabled."""
    if is_on(level):
        _logging().getLogger("gpualgo").log(level, text, *args)


def warn(text: str, *args: Any) -> None:
    """Log a warning; without a handler, logging writes it to standard error."""
    _logging().getLogger("gpualgo").warning(text, *args)


@contextmanager
def timed_block(what: str, *args: Any) -> Iterator[None]:
    start = perf_counter()
    with ranges.named(what, *args):
        yield
    log(INFO, f"{what} in %.3f s", *args, perf_counter() - start)
