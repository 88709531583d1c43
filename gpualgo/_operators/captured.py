"""Arrays that operators capture: compiled code depends on their layouts, calls pass addresses.

Compiled code depends on an array's dtype, number of dimensions and C-contiguity. Each call passes
the address, shape and strides as 64-bit words.
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

STATE_NAME, STATE_WORDS = "gpualgo_state", 64  # must match parts/operator.cuh
_WHERE = "op: a captured array"
_PROTOCOLS = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")

Places: TypeAlias = tuple[tuple[int, tuple[int, ...], tuple[int, ...], int], ...]


class Captured(NamedTuple):
    """An operator's key, its captured arrays in the order of its variables, and the packed captured
    numbers that are passed as data.
    """

    key: Key
    views: tuple[View, ...]
    words: bytes = b""


class Slot:
    """Placeholder of a captured array in compilation: its layout, and the index of its words."""

    __slots__ = ("dtype_name", "first_word", "is_contiguous", "ndim")

    def __init__(self, token: tuple[Any, ...], first_word: int) -> None:
        self.first_word = first_word
        _, self.dtype_name, self.ndim, self.is_contiguous = token


def is_array(value: Any) -> bool:
    """Return whether a captured value is an array.

    The class is inspected, as a property of the instance may raise.
    """
    kind = type(value)
    if kind is np.ndarray:
        return True
    if isinstance(value, (type, np.generic, types.ModuleType)):
        return False
    instance_attributes = getattr(value, "__dict__", ())
    return any(hasattr(kind, name) or name in instance_attributes for name in _PROTOCOLS)


def view_of(array: Any) -> View:
    """Return the view of a captured array, which is the view's owner."""
    view = as_view(array, _WHERE)
    alignment = view.dtype.alignment
    address = address_of(view)
    strides = (s for n, s in zip(view.shape, view.strides, strict=True) if n > 1)
    if any(number % alignment for number in (address, *strides)) and 0 not in view.shape:
        raise ValueError(
            f"{_WHERE} of dtype {view.dtype} has elements at addresses that are no multiples of "
            f"{alignment}; copy it to aligned memory"
        )
    return View(
        address, view.shape, view.strides, view.dtype, view.device, view.library, view.readonly,
        array,
    )  # fmt: skip


def token_of(view: View) -> tuple[Any, ...]:
    """Return the part of an array that compiled code depends on: dtype, dimensions, contiguity."""
    return "array", dtypes.name_of(view.dtype), len(view.shape), is_contiguous(view)


def num_words(ndim: int) -> int:
    """Return the number of words of an array: its address, extents and strides."""
    return 1 + 2 * ndim


def check_size(views: Iterable[View]) -> None:
    """Raise TypeError if the arrays need more than `STATE_WORDS` words."""
    words = sum(num_words(len(view.shape)) for view in views)
    if words > STATE_WORDS:
        raise TypeError(
            f"op captures arrays of {words} words (an address, extents and strides each), but the "
            f"limit is {STATE_WORDS}; capture fewer arrays or of fewer dimensions"
        )


def pack(views: Iterable[View]) -> bytes:
    """Return the arrays' words as bytes."""
    words: list[int] = []
    for view in views:
        words += [view.ptr, *view.shape, *view.strides]
    signed = [word - (1 << 64) if word >> 63 == 1 else word for word in words]
    return struct.pack(f"<{len(signed)}q", *signed)


def check_on_cpu(views: Iterable[View]) -> None:
    """Raise TypeError for an array on a GPU."""
    for view in views:
        if view.device != CPU:
            raise TypeError(
                f"op captures {describe(view)}, but the call runs on the CPU; capture a NumPy copy "
                "of it, or pass arrays on that GPU"
            )


def ownerless(views: Iterable[View]) -> tuple[View, ...]:
    """Return the views without references to the arrays."""
    return tuple(view._replace(library=None, owner=None) for view in views)


def check_no_overlap(
    views: Iterable[View], out: View, where: str, name: str = "out", op_name: str = "op"
) -> None:
    """Raise ValueError if a result would be written into an array that op reads."""
    if any(overlap(out, view) for view in views):
        raise ValueError(
            f"{where}: {name} shares memory with an array that {op_name} captures; "
            "pass a separate array"
        )


def describe(view: View) -> str:
    """Return an array's library, device, dtype and shape as text."""
    location = "on the CPU" if view.device == CPU else f"on cuda:{view.device}"
    name = type(view.owner).__module__.partition(".")[0]
    return f"an array of {name} {location} ({view.dtype}, shape {view.shape})"


class Binding:
    """The live arrays at some addresses: their owners, and the streams that write them."""

    __slots__ = ("__weakref__", "_owners", "places")

    def __init__(self, places: Places) -> None:
        self.places = places
        self._owners: list[tuple[Callable[[], Any], View]] = []

    def add(self, views: tuple[View, ...]) -> None:
        """Remember arrays weakly; several arrays may use the same memory one after another."""
        with _lock:
            owners = [pair for pair in self._owners if pair[0]() is not None]
            known = {id(reference()) for reference, _ in owners}
            owners += [
                (_reference(view.owner), view.without_owner())
                for view in views
                if id(view.owner) not in known
            ]
            self._owners = owners

    def owners(self) -> list[tuple[Any, View]]:
        """Return the live arrays, each with a view that does not own it."""
        alive = [(reference(), view) for reference, view in self._owners]
        return [pair for pair in alive if pair[0] is not None]


_lock = threading.RLock()  # a finalizer may run while it is held


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


_bindings: weakref.WeakValueDictionary[Places, Binding] = weakref.WeakValueDictionary()


def _reference(owner: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(owner)
    except TypeError:  # without weak references the array lives as long as its binding
        return lambda: owner


def note(views: tuple[View, ...]) -> Places:
    """Return the addresses and layouts of arrays for a call's key; remember their owners."""
    addresses = tuple((view.ptr, view.shape, view.strides, view.device) for view in views)
    binding = _bindings.get(addresses)
    if binding is not None:
        binding.add(views)
    return addresses


def binding_of(views: tuple[View, ...]) -> Binding:
    """Return the binding of the arrays' addresses, one for equal addresses."""
    addresses = note(views)
    binding = Binding(addresses)
    binding = _bindings.setdefault(addresses, binding)
    binding.add(views)
    return binding
