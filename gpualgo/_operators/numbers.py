"""Captured numbers that calls pass as data, so that another value needs no compilation.

See docs/adr/0014-numbers-as-data.md.
"""

from __future__ import annotations

import struct
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from gpualgo._base import dtypes
from gpualgo._base.errors import CompileError
from gpualgo._operators.content import Token

NUMBER_WORDS = 16  # for each operator, as in parts/operator.cuh; further numbers are constants

Place: TypeAlias = tuple[Any, ...]
"""Location of a captured number: the function of the operator, and its cell, global, default, …"""

# A Python integer passed as data stays within one of these ranges. NumPy's checks of Python
# integers have the same result for all values of a range.
_EDGES = sorted({0, *(-(2**n) for n in (7, 15, 31, 63)),
                 *(2**n for n in (7, 8, 15, 16, 31, 32, 63))})  # fmt: skip


def widened(low: int, high: int) -> tuple[int, int]:
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


class Data:
    """Placeholder of a data number in an operator's copy.

    numba evaluates constants to prune branches, which affects the type of the result. Comparing a
    placeholder therefore raises `ConstantNeeded`, and the number is compiled in as a constant.
    """

    __slots__ = ("number",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: Number) -> None:
        self.number = number

    def __bool__(self) -> bool:
        self._compare(self)

    def _compare(self, other: object) -> NoReturn:
        pair = [side for side in (self, other) if isinstance(side, Data)]
        words = [side.number.first_word for side in pair]
        asked.note(words)  # numba may catch the exception and continue
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
        number = Number(name, kind, None, first_word)
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
        self.constants: set[Place] = set()
        self.exponents: set[Place] = set()
        self._varied: set[Place] = set()
        self._first_values: dict[Place, Any] = {}

    def is_data(self, place: Place, value: Any) -> bool:
        if place in self.constants:
            return False
        if place in self._varied or not isinstance(value, (int, np.integer, np.bool_)):
            return True
        if self._first_values.setdefault(place, value) == value:
            return False
        self._varied.add(place)
        return True


class FixedPolicy(Policy):
    """A policy that repeats the decisions of a key."""

    __slots__ = ("_data_places",)

    def __init__(self, numbers: Iterable[tuple[Number, Place]]) -> None:
        super().__init__()
        self._data_places = {place for _, place in numbers}
        self.exponents = {place for number, place in numbers if number.is_exponent}

    def is_data(self, place: Place, value: Any) -> bool:
        return place in self._data_places


class _Requested(threading.local):
    """Data numbers whose values this thread's compilation requested, even if numba went on."""

    words: frozenset[int] = frozenset()
    is_exponent = False

    def note(self, words: Iterable[int], is_exponent: bool = False) -> None:
        self.words, self.is_exponent = frozenset(words), is_exponent


asked = _Requested()


class Packer:
    __slots__ = ("_bounded", "_convert", "_exponents", "_pack", "_types")

    def __init__(self, numbers: Sequence[Number]) -> None:
        self._types = [number.type for number in numbers]
        self._pack = struct.Struct("<" + "".join(map(_code, numbers))).pack
        bounds = [(i, *number.bounds) for i, number in enumerate(numbers) if number.bounds]
        self._bounded = tuple(bounds)
        self._exponents = [i for i, number in enumerate(numbers) if number.is_exponent]
        self._convert = any(kind is not float and kind is not int for kind in self._types)

    def __call__(self, values: Sequence[Any]) -> bytes | None:
        """Return the packed values, None if one has another type or range."""
        if [*map(type, values)] != self._types:
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


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.generic):
        return (value.tobytes(),)
    return (value.real, value.imag) if type(value) is complex else (value,)


_CODES = {"float": "d", "int": "q", "complex": "dd"}


def _code(number: Number) -> str:
    return _CODES.get(number.kind) or f"{8 * number.num_words}s"
