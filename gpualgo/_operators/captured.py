"""Arrays that operators capture: compiled code depends on their layouts, calls pass addresses.

Compiled code depends on an array's dtype, number of dimensions and C-contiguity. Each call passes
the address, shape and strides as 64-bit words.
"""

from __future__ import annotations

import struct
import threading
import types
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from gpualgo._arrays.view import View, address_of, as_view, is_contiguous, overlap
from gpualgo._base import dtypes, forks
from gpualgo._base.errors import CompileError
from gpualgo._driver.default_device import CPU

STATE_NAME, STATE_WORDS = "gpualgo_state", 64  # must match parts/operator.cuh
_WHERE = "op: a captured array"
_PROTOCOLS = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")

Addresses: TypeAlias = tuple[tuple[int, tuple[int, ...], tuple[int, ...], int], ...]


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


class Resolved(NamedTuple):
    """What an operator computes at one moment: its key, its captured arrays in the order of its
    variables, and the packed captured numbers that are passed as data.
    """

    key: Key
    arrays: tuple[View, ...] = ()
    captured: bytes = b""


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
    view = as_view(array, _WHERE)
    view = View(
        address_of(view), view.shape, view.strides, view.dtype, view.device, view.library,
        view.readonly, array,
    )  # fmt: skip
    if view.device != CPU and not _is_aligned(view):
        raise ValueError(
            f"{_WHERE} of dtype {view.dtype} has elements at addresses that are no multiples of "
            f"{view.dtype.alignment}; copy it to aligned memory"
        )
    return view


def _is_aligned(view: View) -> bool:
    strides = (s for n, s in zip(view.shape, view.strides, strict=True) if n > 1)
    return 0 in view.shape or not any(n % view.dtype.alignment for n in (view.ptr, *strides))


def token_of(view: View) -> tuple[Any, ...]:
    """Return the part of an array that compiled code depends on: dtype, dimensions, contiguity.

    Instead of the contiguity None, if elements are misaligned: those of host arrays may be.
    """
    layout = is_contiguous(view) if _is_aligned(view) else None
    return "array", dtypes.name_of(view.dtype), len(view.shape), layout


def num_words(ndim: int) -> int:
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
    words = [word for view in views for word in (view.ptr, *view.shape, *view.strides)]
    return struct.pack(f"<{len(words)}Q", *(word % (1 << 64) for word in words))


def check_on_cpu(views: Iterable[View]) -> None:
    for view in views:
        if view.device != CPU:
            raise TypeError(
                f"op captures {describe(view)}, but the call runs on the CPU; capture a NumPy copy "
                "of it, or pass arrays on that GPU"
            )


def ownerless(views: Iterable[View]) -> tuple[View, ...]:
    return tuple(view._replace(library=None, owner=None) for view in views)


def check_no_overlap(
    views: Iterable[View], out: View, where: str, name: str = "out", op_name: str = "op"
) -> None:
    if any(overlap(out, view) for view in views):
        raise ValueError(
            f"{where}: {name} shares memory with an array that {op_name} captures or that "
            "a lazy array gathers from; pass a separate array"
        )


def describe(view: View) -> str:
    location = "on the CPU" if view.device == CPU else f"on cuda:{view.device}"
    name = type(view.owner).__module__.partition(".")[0]
    return f"an array of {name} {location} ({view.dtype}, shape {view.shape})"


class Binding:
    """The live arrays at some addresses: their owners, and the streams that write them."""

    __slots__ = ("__weakref__", "_owners", "places")

    def __init__(self, places: Addresses) -> None:
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
        alive = [(reference(), view) for reference, view in self._owners]
        return [pair for pair in alive if pair[0] is not None]


_lock = forks.Lock()
_bindings: weakref.WeakValueDictionary[Addresses, Binding] = weakref.WeakValueDictionary()


def _reference(owner: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(owner)
    except TypeError:  # without weak references the array lives as long as its binding
        return lambda: owner


def remember_owners(views: tuple[View, ...]) -> Addresses:
    """Return the addresses and layouts of arrays for a call's key; remember their owners."""
    addresses = tuple((view.ptr, view.shape, view.strides, view.device) for view in views)
    binding = _bindings.get(addresses)
    if binding is not None:
        binding.add(views)
    return addresses


def binding_of(views: tuple[View, ...]) -> Binding:
    addresses = remember_owners(views)
    binding = Binding(addresses)
    binding = _bindings.setdefault(addresses, binding)
    binding.add(views)
    return binding


# --- Captured numbers that calls pass as data, so that another value needs no compilation.
#
# See docs/adr/0014-numbers-as-data.md.

NUMBER_WORDS = 16  # for each operator, as in parts/operator.cuh; further numbers are constants

Location: TypeAlias = tuple[Any, ...]
"""Location of a captured number: the function of the operator, and its cell, global, default, …"""

# A Python integer passed as data stays within one of these ranges. NumPy's checks of Python
# integers have the same result for all values of a range.
_EDGES = sorted({0, *(-(2**n) for n in (7, 15, 31, 63)),
                 *(2**n for n in (7, 8, 15, 16, 31, 32, 63))})  # fmt: skip


def extend_to_range(low: int, high: int) -> tuple[int, int]:
    """Return bounds extended to the ends of ranges; bounds beyond 64 bits are unchanged."""
    num_below, num_above = bisect_right(_EDGES, low), bisect_right(_EDGES, high)
    return (
        _EDGES[num_below - 1] if num_below else low,
        _EDGES[num_above] - 1 if num_above < len(_EDGES) else high,
    )


class Number(NamedTuple):
    """A number passed as data: its type, and the index of its first word."""

    kind: str  # int, float or complex for Python numbers, the dtype name for NumPy scalars
    type: type
    bounds: tuple[int, int] | None  # for Python integers
    first_word: int
    is_exponent: bool = False  # its value is not in `SHORT_POWERS`

    @property
    def token(self) -> Token:
        """Part of the number that compiled code depends on."""
        return "number", self.kind, self.bounds, self.first_word, self.is_exponent

    @property
    def num_words(self) -> int:
        return 2 if self.kind in ("complex", "complex128") else 1


WHOLE_POWERS = range(1, 17)  # computed by multiplications
SHORT_POWERS = frozenset((-1, 0.5, *WHOLE_POWERS))
"""Exponents with special code, which are compiled in as constants."""


class DataPlaceholder:
    """Placeholder of a data number in an operator's copy.

    numba evaluates constants to prune branches, which affects the type of the result: a comparison
    raises `ConstantNeeded`, and the number is compiled in as a constant.
    """

    __slots__ = ("number",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: Number) -> None:
        self.number = number

    def __bool__(self) -> bool:
        self._compare(self)

    def _compare(self, other: object) -> NoReturn:
        pair = [side for side in (self, other) if isinstance(side, DataPlaceholder)]
        words = [side.number.first_word for side in pair]
        requested.note(words)  # numba may catch the exception and continue
        raise ConstantNeeded("op branches on the value of a number", words)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare


class ConstantNeeded(CompileError):
    """Code depends on the values of the numbers at `words`, which must become constants.

    With `is_exponent` it depends only on whether the value is in `SHORT_POWERS`.
    """

    def __init__(self, message: str, words: Iterable[int], is_exponent: bool = False) -> None:
        super().__init__(message)
        self.words, self.is_exponent = frozenset(words), is_exponent


def number_of(value: Any, first_word: int) -> Number | None:
    """Return the description of a value to pass as data, None if it must be a constant."""
    kind = type(value)
    if kind is float or kind is complex:
        number = Number(kind.__name__, kind, None, first_word)
    elif kind is int:
        index = bisect_right(_EDGES, value)
        if not 0 < index < len(_EDGES):  # beyond 64 bits
            return None
        number = Number("int", int, (_EDGES[index - 1], _EDGES[index] - 1), first_word)
    elif isinstance(value, np.generic) and (name := dtypes.name_of(value.dtype)) is not None:
        number = Number(name, dtypes.from_name(name).type, None, first_word)
    else:
        return None
    return number if first_word + number.num_words <= NUMBER_WORDS else None


class Policy:
    """Decides which captured numbers of a code object are data.

    All are, unless code needs their values. Integers, which may bound loops, are constants until
    their value changes for the first time.
    """

    __slots__ = ("_first_values", "_varied", "constants", "exponents")

    def __init__(self) -> None:
        self.constants: set[Location] = set()
        self.exponents: set[Location] = set()
        self._varied: set[Location] = set()
        self._first_values: dict[Location, Any] = {}

    def is_data(self, place: Location, value: Any) -> bool:
        if place in self.constants:
            return False
        if place in self._varied or not isinstance(value, (int, np.integer, np.bool_)):
            return True
        if self._first_values.setdefault(place, value) == value:
            return False
        self._varied.add(place)
        return True


class FixedPolicy(Policy):
    __slots__ = ("_data_places",)

    def __init__(self, numbers: Iterable[tuple[Number, Location]]) -> None:
        super().__init__()
        self._data_places = {place for _, place in numbers}
        self.exponents = {place for number, place in numbers if number.is_exponent}

    def is_data(self, place: Location, value: Any) -> bool:
        return place in self._data_places


class _Requested(threading.local):
    """What this thread's compilation met, even if numba caught the exception and went on.

    `words`: the data numbers whose values it needs. `sentence`: why it refuses the operator.
    """

    words: frozenset[int] = frozenset()
    is_exponent = False
    sentence: str | None = None

    def forget(self) -> None:
        self.words, self.sentence = frozenset(), None

    def note(self, words: Iterable[int], is_exponent: bool = False) -> None:
        self.words, self.is_exponent = frozenset(words), is_exponent


requested = _Requested()


class Packer:
    __slots__ = ("_bounded", "_convert", "_exponents", "_pack", "_types")

    def __init__(self, numbers: Sequence[Number]) -> None:
        self._types = [number.type for number in numbers]
        codes = {"float": "d", "int": "q", "complex": "dd"}
        parts = [codes.get(number.kind, f"{8 * number.num_words}s") for number in numbers]
        self._pack = struct.Struct("<" + "".join(parts)).pack
        bounds = [(i, *number.bounds) for i, number in enumerate(numbers) if number.bounds]
        self._bounded = tuple(bounds)
        self._exponents = [i for i, number in enumerate(numbers) if number.is_exponent]
        self._convert = any(kind is not float and kind is not int for kind in self._types)

    def __call__(self, values: Sequence[Any]) -> bytes | None:
        """Return the packed values, None if one has another type or range."""
        if [*map(type, values)] != self._types and [*map(_type_of, values)] != self._types:
            return None
        for i, low, high in self._bounded:
            if not low <= values[i] <= high:
                return None
        for i in self._exponents:
            if values[i] in SHORT_POWERS:
                return None
        if self._convert:
            values = [part for value in values for part in _parts(value)]
        return self._pack(*values)


def _type_of(value: Any) -> type:
    """Return a number's type; numpy.longlong and numpy.int64 are one."""
    name = dtypes.name_of(value.dtype) if isinstance(value, np.generic) else None
    return type(value) if name is None else dtypes.from_name(name).type


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.generic):
        return (value.tobytes(),)
    return (value.real, value.imag) if type(value) is complex else (value,)
