"""Keys: one object for each content of a callable."""

from __future__ import annotations

import threading
import weakref
from typing import Any, TypeAlias

from gpualgo._base import forks

Token: TypeAlias = Any  # nested tuples of str, int, bytes, types; hashable, compared by value


class Key:
    """Identifies what a callable computes. Keys are unique and compared by identity.

    They are held weakly: a key lives as long as a cache that uses it.
    """

    __slots__ = ("__weakref__", "arrays", "function", "numbers", "token")

    def __init__(
        self, token: Token, function: Any, arrays: tuple[Token, ...], numbers: tuple[Any, ...]
    ) -> None:
        self.token = token
        self.function = function  # the function to compile: a copy that reads no variables
        self.arrays = arrays  # tokens of the captured arrays
        self.numbers = numbers  # captured numbers passed as data, with their locations

    def __repr__(self) -> str:
        return f"Key({digest_of(self)[:8]})"


_keys: weakref.WeakValueDictionary[Token, Key] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # a finalizer may run while it is held


def intern(
    token: Token, function: Any = None, arrays: tuple[Token, ...] = (),
    numbers: tuple[Any, ...] = (),
) -> Key:  # fmt: skip
    """Return the unique key of a content; the first caller's function is used."""
    key = _keys.get(token)
    if key is None:
        with _lock:  # a content must never have two keys
            key = _keys.get(token)
            if key is None:
                key = _keys[token] = Key(token, function, arrays, numbers)
    return key


def digest_of(key: Key) -> str:
    """Return the SHA-256 of a key's content, which is the same in every process."""
    import hashlib  # takes milliseconds; only GPU code needs it

    return hashlib.sha256(repr(key.token).encode()).hexdigest()


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()
