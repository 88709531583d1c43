"""What surrounds a fork: no lock that a child needs is held, and the child forgets what is gone.

A child has one thread: a lock that another thread holds at the fork is never free there, and what
that thread was about stays half done. So a fork waits until nobody compiles or loads a package.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0  # seconds that a fork waits for each lock: a thread may never give it back
IMPORT_PATIENCE = 5.0  # for an import, which takes milliseconds

# What calls import when they need it.
_AWAITED = (__name__.partition(".")[0], "concurrent", "hashlib", "logging", "tempfile")
_BROKEN = (
    "{} cannot be done in this process: it was forked while another thread was doing "
    "so; fork before, or start processes by multiprocessing's 'spawn'"
)

_hooks: list[Callable[[], None]] = []  # of modules, so few; in the order of their imports
_locks: list[Any] = []  # in the order in which they are taken
_held = threading.local()
_is_broken = False  # this process was forked while a lock was held


def in_child(hook: Callable[[], None]) -> Callable[[], None]:
    """Run a module's function in each forked child; usable as a decorator."""
    _hooks.append(hook)
    return hook


def wait_for(lock: Any, around: Any = None) -> None:
    """Let each fork from now on wait until no other thread holds a lock, which has `acquire`.

    `around` is a lock that is waited for already and is only taken by who holds this one.
    """
    if not lock.acquire(timeout=PATIENCE):  # held at a fork, before anybody waited for it
        raise RuntimeError(_BROKEN.format("compiling or loading a package"))
    lock.release()
    if not _locks and _may_fork:  # two threads may come by here: `_before` does not mind
        # What was registered last is run first: whoever holds the lock may want to log something
        # or to start threads, and the locks of these two are held during a fork as well.
        import concurrent.futures.thread  # noqa: F401
        import logging  # noqa: F401

        os.register_at_fork(before=_before, after_in_parent=_release)
    _locks.insert(len(_locks) if around is None else _locks.index(around), lock)


def check(what: str) -> None:
    """Raise RuntimeError in a child whose parent was loading or compiling and never stopped."""
    if _is_broken:
        raise RuntimeError(_BROKEN.format(what))


def _before() -> None:
    if getattr(_held, "locks", None):
        return  # taken already for this fork
    _held.locks, _held.has_missed = [], False
    for lock in _locks:  # to which the thread that is waited for may add
        if lock.acquire(timeout=PATIENCE):
            _held.locks.append(lock)
        else:
            _held.has_missed = True


def _let_imports_end() -> None:
    """Wait until no other thread imports a module that a call imports.

    Python's own lock of that module would never be free in the child.
    """
    end = time.monotonic() + IMPORT_PATIENCE
    while _is_importing() and time.monotonic() < end:
        time.sleep(0.0005)


def _is_importing() -> bool:
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    free = (None, threading.get_ident())
    return any(
        name.partition(".")[0] in _AWAITED and getattr(reference(), "owner", None) not in free
        for name, reference in list(locks.items())
    )


def _release() -> None:
    while getattr(_held, "locks", None):  # none if a thread registered this while a fork began
        _held.locks.pop().release()


def _are_free(locks: list[Any]) -> bool:
    """Return whether this thread, the only one, can have all locks."""
    for lock in locks:
        if not lock.acquire(blocking=False):
            return False
        lock.release()
    return True


def _run() -> None:
    global _is_broken
    if hasattr(_held, "locks"):
        _is_broken |= _held.has_missed
        _release()
    _is_broken |= not _are_free(_locks)  # one was new, and taken while this fork began
    for hook in _hooks:
        hook()


_may_fork = hasattr(os, "register_at_fork")  # not on Windows
if _may_fork:
    # What was registered first is run last, right before the fork.
    os.register_at_fork(before=_let_imports_end, after_in_child=_run)
