"""Numbers that operators capture, as data: code reads a word, and each call gives its value.

So a number whose value changes compiles nothing again; see docs/adr/0014-numbers-as-data.md.
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

NUMBER_WORDS = 16  # of an operator, as in parts/operator.cuh; what is beyond is compiled in

Place: TypeAlias = tuple[Any, ...]
"""Where an operator reads a number: in which function of it, in a cell, a global, a default, …"""

# A Python integer is data within one of these ranges: code for it is refused where NumPy refuses
# the value, which of all integers of a range it does or does not.
_EDGES = sorted({0, *(-(2**n) for n in (7, 15, 31, 63)),
                 *(2**n for n in (7, 8, 15, 16, 31, 32, 63))})  # fmt: skip


def widened(low: int, high: int) -> tuple[int, int]:
    """Return bounds that end where ranges do; those beyond 64 bits stay."""
    below, above = bisect_right(_EDGES, low), bisect_right(_EDGES, high)
    return (
        _EDGES[below - 1] if below else low,
        _EDGES[above] - 1 if above < len(_EDGES) else high,
    )


class Number(NamedTuple):
    """What stands for a number while an operator is compiled: its type, and where its words are."""

    kind: str  # of a Python number: int, float or complex; of a NumPy scalar its dtype's name
    type: type
    bounds: tuple[int, int] | None  # of a Python integer
    first_word: int
    is_exponent: bool = False  # none of `SHORT_POWERS`

    @property
    def token(self) -> Token:
        """What compiled code depends on."""
        return "number", self.kind, self.bounds, self.first_word, self.is_exponent

    @property
    def num_words(self) -> int:
        return 2 if self.kind in ("complex", "complex128") else 1


WHOLE_POWERS = range(1, 17)  # products
SHORT_POWERS = frozenset((-1, 0.5, *WHOLE_POWERS))
"""Exponents for which there is other code than for all others: they are compiled in."""


class Data:
    """What an operator's copy holds in the place of a number; has no value to be asked for.

    numba asks what it takes for constants, to drop branches: the number is compiled in then, as a
    branch that is dropped has no part in the type of the result.
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
        asked.note(words)  # numba may go on
        raise ConstantNeeded("op branches on the value of a number", words)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare


class ConstantNeeded(CompileError):
    """Code depends on the value of a number: those that begin at these words are compiled in.

    `is_exponent`: on whether it is one of `SHORT_POWERS`.
    """

    def __init__(self, message: str, words: Iterable[int], is_exponent: bool = False) -> None:
        super().__init__(message)
        self.words, self.is_exponent = frozenset(words), is_exponent


def number_of(value: Any, first_word: int) -> Number | None:
    """Return what stands for a value; None if it is compiled in."""
    kind = type(value)
    if kind is float or kind is complex:
        number = Number(kind.__name__, kind, None, first_word)
    elif kind is int:
        place = bisect_right(_EDGES, value)
        if not 0 < place < len(_EDGES):  # beyond 64 bits
            return None
        number = Number("int", int, (_EDGES[place - 1], _EDGES[place] - 1), first_word)
    elif isinstance(value, np.generic) and (name := dtypes.name_of(value.dtype)) is not None:
        number = Number(name, kind, None, first_word)
    else:
        return None
    return number if first_word + number.num_words <= NUMBER_WORDS else None


class Policy:
    """Which numbers of a code object are data: whatever code can do without their values.

    Integers, which may bound loops, are compiled in until they have changed.
    """

    __slots__ = ("_seen", "_varied", "constants", "exponents")

    def __init__(self) -> None:
        self.constants: set[Place] = set()
        self.exponents: set[Place] = set()
        self._varied: set[Place] = set()
        self._seen: dict[Place, Any] = {}

    def is_data(self, place: Place, value: Any) -> bool:
        """Return whether a number is data, as far as is known now."""
        if place in self.constants:
            return False
        if place in self._varied or not isinstance(value, (int, np.integer, np.bool_)):
            return True
        if self._seen.setdefault(place, value) == value:
            return False
        self._varied.add(place)
        return True


class AsDecided(Policy):
    """Numbers as a key has them, whatever has been learnt of their code since."""

    __slots__ = ("_data",)

    def __init__(self, numbers: Iterable[tuple[Number, Place]]) -> None:
        super().__init__()
        self._data = {place for _, place in numbers}
        self.exponents = {place for number, place in numbers if number.is_exponent}

    def is_data(self, place: Place, value: Any) -> bool:
        return place in self._data


class _Asked(threading.local):
    """What this thread's compilation has asked the values of, whatever became of the question."""

    words: frozenset[int] = frozenset()
    is_exponent = False

    def note(self, words: Iterable[int], is_exponent: bool = False) -> None:
        self.words, self.is_exponent = frozenset(words), is_exponent


asked = _Asked()


class Packer:
    """Makes the words of numbers."""

    __slots__ = ("_bounded", "_convert", "_exponents", "_pack", "_types")

    def __init__(self, numbers: Sequence[Number]) -> None:
        self._types = [number.type for number in numbers]
        self._pack = struct.Struct("<" + "".join(map(_code, numbers))).pack
        bounds = [(i, *number.bounds) for i, number in enumerate(numbers) if number.bounds]
        self._bounded = tuple(bounds)
        self._exponents = [i for i, number in enumerate(numbers) if number.is_exponent]
        self._convert = any(kind is not float and kind is not int for kind in self._types)

    def __call__(self, values: Sequence[Any]) -> bytes | None:
        """Return the words of values, None if one is of another type or range."""
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
