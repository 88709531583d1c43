"""What a forked child does before anything else: forget the parent's threads, locks and GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable

_hooks: list[Callable[[], None]] = []  # of modules, so few; in the order of their imports


def in_child(hook: Callable[[], None]) -> Callable[[], None]:
    """Run a module's function in each forked child; usable as a decorator."""
    _hooks.append(hook)
    return hook


def _run() -> None:
    for hook in _hooks:
        hook()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_run)
