"""Fork handlers: a fork waits for compilations and imports; the child resets its locks.

The child has one thread: a lock that another thread holds at the fork is never released there, and
the work of that thread is never finished.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from _thread import RLock
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0  # seconds that a fork waits for each lock: a thread may never release it
IMPORT_PATIENCE = 5.0  # for an import, which takes milliseconds

# Packages that calls import lazily.
_AWAITED = (__name__.partition(".")[0], "concurrent", "hashlib", "logging", "tempfile")
_BROKEN = (
    "{} cannot be done in this process: it was forked while another thread was doing "
    "so; fork before, or start processes by multiprocessing's 'spawn'"
)

_hooks: list[Callable[[], None]] = []  # one for each module, in the order of their imports
_locks: list[Any] = []  # in the order in which they are acquired
_every: weakref.WeakSet[Lock] = weakref.WeakSet()
_held = threading.local()
_is_broken = False  # this process was forked while a lock was held


def in_child(hook: Callable[[], None]) -> Callable[[], None]:
    """Register a function to run in each forked child; usable as a decorator."""
    _hooks.append(hook)
    return hook


class Lock(RLock):  # type: ignore[misc]  # final for type checkers alone
    """A reentrant lock that is free in each forked child, unless the forking thread holds it.

    No signal handler raises between its acquisition by `with` and the block, or before its release.
    """

    __slots__ = ()

    def __init__(self) -> None:
        _every.add(self)

    if sys.version_info >= (3, 14):
        # Since then `with` calls `__enter__` as any function: if that is written in C, Python
        # handles signals between its return and the block. It handles none after an iteration, nor
        # when a Python function returns. `__exit__` stays in C: Python handles none before it.
        def __enter__(self) -> bool:
            return not [*iter(self.acquire, True)]  # calls `acquire` until it returns True


def wait_for(lock: Any, around: Any = None) -> None:
    """Make all later forks wait until no other thread holds `lock`.

    `around` is an already registered lock that threads acquire only while they hold `lock`.
    """
    if not lock.acquire(timeout=PATIENCE):  # held at a fork, before it was registered
        raise RuntimeError(_BROKEN.format("compiling or loading a package"))
    lock.release()
    if not _locks and _may_fork:  # two threads may both register `_before`, which allows that
        # Handlers run in reverse order of registration. These two modules must register theirs
        # before: they hold their locks during a fork, and holders of `lock` may log or use threads.
        import concurrent.futures.thread  # noqa: F401
        import logging  # noqa: F401

        os.register_at_fork(before=_acquire_locks, after_in_parent=_release_locks)
    _locks.insert(len(_locks) if around is None else _locks.index(around), lock)


def check(what: str) -> None:
    """Raise RuntimeError in a child that was forked while its parent loaded or compiled."""
    if _is_broken:
        raise RuntimeError(_BROKEN.format(what))


def _acquire_locks(patience: float | None = None) -> None:
    if getattr(_held, "locks", None):
        return  # already acquired for this fork
    _held.locks, _held.has_missed = [], False
    for lock in _locks:  # other threads may append locks meanwhile
        if lock.acquire(timeout=PATIENCE if patience is None else patience):
            _held.locks.append(lock)
        else:
            _held.has_missed = True


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module that calls import.

    The module's import lock would never be released in the child.
    """
    end = time.monotonic() + IMPORT_PATIENCE
    while _is_importing() and time.monotonic() < end:
        time.sleep(0.0005)
    _acquire_locks(IMPORT_PATIENCE)  # of locks that were registered since this fork began


def _is_importing() -> bool:
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    free = (None, threading.get_ident())
    return any(
        name.partition(".")[0] in _AWAITED and getattr(reference(), "owner", None) not in free
        for name, reference in list(locks.items())
    )


def _release_locks() -> None:
    while getattr(_held, "locks", None):  # missing if registered while a fork was under way
        _held.locks.pop().release()


def _are_free(locks: list[Any]) -> bool:
    for lock in locks:
        if not lock.acquire(blocking=False):
            return False
        lock.release()
    return True


def _reset_child() -> None:
    global _is_broken
    _is_broken |= getattr(_held, "has_missed", False)
    _release_locks()
    _is_broken |= not _are_free(_locks)  # a lock may have been registered while the fork began
    for lock in list(_every):
        if not lock._is_owned():  # type: ignore[attr-defined]
            lock._at_fork_reinit()  # type: ignore[attr-defined]
    for hook in _hooks:
        hook()


_may_fork = hasattr(os, "register_at_fork")  # not on Windows
if _may_fork:
    # The `before` handler that is registered first runs last, right before the fork.
    os.register_at_fork(
        before=_wait_for_imports, after_in_parent=_release_locks, after_in_child=_reset_child
    )
