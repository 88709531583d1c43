"""Arrays that operators capture: known to compiled code by their layout, found by their address.

Compiled code depends on an array's dtype, number of dimensions and whether it is C-contiguous. Its
address, shape and strides are words that a call puts where the code reads them.
"""

from __future__ import annotations

import struct
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._arrays.view import View, address_of, as_view, is_contiguous, overlap
from gpualgo._base import dtypes, forks
from gpualgo._driver.default_device import CPU
from gpualgo._operators.content import Key

STATE_NAME, STATE_WORDS = "gpualgo_state", 64  # as in parts/operator.cuh
_WHERE = "op: a captured array"
_PROTOCOLS = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")

Places: TypeAlias = tuple[tuple[int, tuple[int, ...], tuple[int, ...], int], ...]


class Captured(NamedTuple):
    """An operator's key, the arrays that it captures in the order in which it names them, and the
    words of the numbers that are data.
    """

    key: Key
    views: tuple[View, ...]
    words: bytes = b""


class Slot:
    """What stands for a captured array while an operator is compiled: where its words begin."""

    __slots__ = ("dtype_name", "first_word", "is_contiguous", "ndim")

    def __init__(self, token: tuple[Any, ...], first_word: int) -> None:
        self.first_word = first_word
        _, self.dtype_name, self.ndim, self.is_contiguous = token


def is_array(value: Any) -> bool:
    """Return whether a captured value is an array; asks the class, as a property may raise."""
    kind = type(value)
    if kind is np.ndarray:
        return True
    if isinstance(value, (type, np.generic, types.ModuleType)):
        return False
    own = getattr(value, "__dict__", ())
    return any(hasattr(kind, name) or name in own for name in _PROTOCOLS)


def view_of(array: Any) -> View:
    """Return the view of a captured array, with its address and the array itself as the owner."""
    view = as_view(array, _WHERE)
    alignment = view.dtype.alignment
    address = address_of(view)
    strides = (s for n, s in zip(view.shape, view.strides, strict=True) if n > 1)
    if any(place % alignment for place in (address, *strides)) and 0 not in view.shape:
        raise ValueError(
            f"{_WHERE} of dtype {view.dtype} has elements at addresses that are no multiples of "
            f"{alignment}; copy it to aligned memory"
        )
    return View(
        address, view.shape, view.strides, view.dtype, view.device, view.library, view.readonly,
        array,
    )  # fmt: skip


def token_of(view: View) -> tuple[Any, ...]:
    """Return what compiled code depends on."""
    return "array", dtypes.name_of(view.dtype), len(view.shape), is_contiguous(view)


def num_words(ndim: int) -> int:
    """Return how many words an array takes: its address, extents and strides."""
    return 1 + 2 * ndim


def check_size(views: Iterable[View]) -> None:
    """Raise TypeError for more arrays than the words of an operator describe."""
    words = sum(num_words(len(view.shape)) for view in views)
    if words > STATE_WORDS:
        raise TypeError(
            f"op captures arrays of {words} words (an address, extents and strides each), of which "
            f"there are {STATE_WORDS}; capture fewer arrays or of fewer dimensions"
        )


def pack(views: Iterable[View]) -> bytes:
    """Return the words that compiled code reads."""
    words: list[int] = []
    for view in views:
        words += [view.ptr, *view.shape, *view.strides]
    signed = [word - (1 << 64) if word >> 63 == 1 else word for word in words]
    return struct.pack(f"<{len(signed)}q", *signed)


def check_on_cpu(views: Iterable[View]) -> None:
    """Raise TypeError for an array that code on the CPU cannot read."""
    for view in views:
        if view.device != CPU:
            raise TypeError(
                f"op captures {describe(view)}, but the call runs on the CPU; capture a NumPy copy "
                "of it, or pass arrays on that GPU"
            )


def ownerless(views: Iterable[View]) -> tuple[View, ...]:
    """Return where arrays lie, without holding them."""
    return tuple(view._replace(library=None, owner=None) for view in views)


def check_apart(
    views: Iterable[View], out: View, where: str, name: str = "out", op_name: str = "op"
) -> None:
    """Raise ValueError if a result would be written into an array that op reads."""
    if any(overlap(out, view) for view in views):
        raise ValueError(
            f"{where}: {name} shares memory with an array that {op_name} captures; "
            "pass a separate array"
        )


def describe(view: View) -> str:
    """Return whose array it is and where it lies."""
    place = "on the CPU" if view.device == CPU else f"on cuda:{view.device}"
    name = type(view.owner).__module__.partition(".")[0]
    return f"an array of {name} {place} ({view.dtype}, shape {view.shape})"


class Binding:
    """The arrays at some places: whoever owns them, and whose stream they are written on."""

    __slots__ = ("__weakref__", "_owners", "places")

    def __init__(self, places: Places) -> None:
        self.places = places
        self._owners: list[tuple[Callable[[], Any], View]] = []

    def add(self, views: tuple[View, ...]) -> None:
        """Remember arrays at these places, weakly: several may share memory, each for a time."""
        with _lock:
            kept = [pair for pair in self._owners if pair[0]() is not None]
            known = {id(reference()) for reference, _ in kept}
            kept += [
                (_reference(view.owner), view.without_owner())
                for view in views
                if id(view.owner) not in known
            ]
            self._owners = kept

    def owners(self) -> list[tuple[Any, View]]:
        """Return the arrays that live, each with a view that does not own it."""
        alive = [(reference(), view) for reference, view in self._owners]
        return [pair for pair in alive if pair[0] is not None]


_lock = threading.RLock()  # a finalizer may come by while it is held


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


_bindings: weakref.WeakValueDictionary[Places, Binding] = weakref.WeakValueDictionary()


def _reference(owner: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(owner)
    except TypeError:  # its class has no weak references: it lives as long as what is bound to it
        return lambda: owner


def note(views: tuple[View, ...]) -> Places:
    """Return where arrays lie, for the key of a call; who owns them now is remembered."""
    places = tuple((view.ptr, view.shape, view.strides, view.device) for view in views)
    found = _bindings.get(places)
    if found is not None:
        found.add(views)
    return places


def binding_of(views: tuple[View, ...]) -> Binding:
    """Return the one binding of the places where arrays lie."""
    places = note(views)
    found = Binding(places)
    found = _bindings.setdefault(places, found)
    found.add(views)
    return found
