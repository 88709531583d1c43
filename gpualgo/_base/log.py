"""What is compiled, found on disk and staged, told to the logger "gpualgo": see docs/logging.md.

`logging` is loaded where somebody listens, or where there is a warning: most programs need it not.
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
    """Show what GPUALGO_LOG asks for on standard error; raise ValueError if that is no level."""
    text = os.environ.get("GPUALGO_LOG", "")
    level = _LEVELS.get(text.lower())
    if level is None:
        raise ValueError(
            f"GPUALGO_LOG must be one of {', '.join(_LEVELS)}, got {text!r}; unset it for warnings "
            "alone"
        )
    logger = _loaded().getLogger("gpualgo")
    logger.setLevel(level)
    if not logger.handlers:
        handler = _loaded().StreamHandler()
        handler.setFormatter(_loaded().Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False  # else a program that shows its own shows these twice


def _loaded() -> Any:
    import logging

    return logging


def is_on(level: int) -> bool:
    """Return whether anybody listens at a level."""
    # None, too, while another thread is about to load it: nobody listens yet.
    find = getattr(sys.modules.get("logging"), "getLogger", None)
    return find is not None and bool(find("gpualgo").isEnabledFor(level))


def tell(level: int, text: str, *args: Any) -> None:
    """Tell those who listen at a level; `text` is formatted with `args` for them alone."""
    if is_on(level):
        _loaded().getLogger("gpualgo").log(level, text, *args)


def warn(text: str, *args: Any) -> None:
    """Warn, whoever listens: without a handler logging itself writes it to standard error."""
    _loaded().getLogger("gpualgo").warning(text, *args)


@contextmanager
def making(what: str, *args: Any) -> Iterator[None]:
    """Tell what has been made, with the time that it took; nothing if that fails."""
    begin = perf_counter()
    with ranges.named(what, *args):
        yield
    tell(INFO, f"{what} in %.3f s", *args, perf_counter() - begin)
