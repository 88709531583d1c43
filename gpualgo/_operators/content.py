"""Contents of callables, and the one key that stands for each."""

from __future__ import annotations

import threading
import weakref
from typing import Any, TypeAlias

from gpualgo._base import forks

Token: TypeAlias = Any  # nested tuples of str, int, bytes, types; hashable, compared by value


class Key:
    """What a callable computes. Keys are compared by identity: there is one for each content.

    It lives as long as whoever caches something by it, and its content with it.
    """

    __slots__ = ("__weakref__", "arrays", "function", "numbers", "token")

    def __init__(
        self, token: Token, function: Any, arrays: tuple[Token, ...], numbers: tuple[Any, ...]
    ) -> None:
        self.token = token
        self.function = function  # what is compiled: a copy that reads no variable
        self.arrays = arrays  # the tokens of those that it captures
        self.numbers = numbers  # those that are data, with the places that they are read from

    def __repr__(self) -> str:
        return f"Key({digest_of(self)[:8]})"


_keys: weakref.WeakValueDictionary[Token, Key] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # a finalizer may come by while it is held


def intern(
    token: Token, function: Any = None, arrays: tuple[Token, ...] = (),
    numbers: tuple[Any, ...] = (),
) -> Key:  # fmt: skip
    """Return the one key of a content, with the function that the first to ask gave."""
    key = _keys.get(token)
    if key is None:
        with _lock:  # two keys of one content would be two operators
            key = _keys.get(token)
            if key is None:
                key = _keys[token] = Key(token, function, arrays, numbers)
    return key


def digest_of(key: Key) -> str:
    """Return a key's content as a SHA-256 that is the same in every process."""
    import hashlib  # takes milliseconds, and only work on a GPU asks

    return hashlib.sha256(repr(key.token).encode()).hexdigest()


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()
