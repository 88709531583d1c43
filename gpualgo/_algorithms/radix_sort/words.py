"""Elements of several numbers, which are sorted as words: the numbers side by side, bit for bit.

A word is described by a structured dtype: where in it each number lies. Of a key the first number
lies highest, as it decides first; of values the widest lie first, so that none crosses 8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Dtype: TypeAlias = np.dtype[Any]
Ways: TypeAlias = "bool | tuple[bool, ...]"
"""Whether the largest come first; of a word, of each of its numbers."""

PARTS = (1, 2, 4, 8)  # sizes of what a word may hold
KEY_BYTES, VALUE_BYTES = 8, 16  # of the widest words


class Number(NamedTuple):
    """A number within a key."""

    dtype: Dtype
    shift: int  # of its lowest bit
    is_descending: bool

    @property
    def bits(self) -> int:
        return 8 * self.dtype.itemsize


def numbers(key: Dtype, descending: Ways) -> list[Number]:
    """Return the numbers of a key, the first to decide first; a key may be one alone."""
    if key.names is None:
        assert isinstance(descending, bool)
        return [Number(key, 0, descending)]
    assert key.fields is not None
    assert isinstance(descending, tuple)
    places = [key.fields[name] for name in key.names]
    return [
        Number(place[0], 8 * place[1], falls)
        for place, falls in zip(places, descending, strict=True)
    ]


def used_bits(key: Dtype) -> int:
    """Return how many bits of a key hold numbers, from the lowest on."""
    if key.names is None:
        return 8 * key.itemsize
    return 8 * sum(key[name].itemsize for name in key.names)


class Group(NamedTuple):
    """Neighbours among the numbers of an element that are sorted by at once."""

    first: int
    size: int  # how many
    dtype: Dtype  # of a key: the number's, or a word's that holds several
    descending: Ways

    @property
    def is_word(self) -> bool:
        return self.size > 1

    @property
    def places(self) -> range:
        """Return which numbers of the element they are."""
        return range(self.first, self.first + self.size)


def groups_of(dtypes: Sequence[Dtype], ways: Sequence[bool]) -> list[Group]:
    """Return the fewest groups that fit words, the first to decide first."""
    found: list[Group] = []
    first = 0
    for end in range(1, len(dtypes) + 1):
        if end < len(dtypes) and sum(d.itemsize for d in dtypes[first : end + 1]) <= KEY_BYTES:
            continue
        fields = tuple(dtypes[first:end])
        if len(fields) == 1:
            found.append(Group(first, 1, fields[0], ways[first]))
        else:
            found.append(Group(first, len(fields), _key(fields), tuple(ways[first:end])))
        first = end
    return found


@cache
def _key(fields: tuple[Dtype, ...]) -> Dtype:
    end = sum(field.itemsize for field in fields)
    size = next(size for size in PARTS if end <= size)
    offsets = []
    for field in fields:
        end -= field.itemsize
        offsets.append(end)
    return _word(fields, offsets, size)


def value_word(dtypes: Sequence[Dtype]) -> Dtype | None:
    """Return the word that holds values of several arrays; None if there is none, or no need."""
    sizes = [dtype.itemsize for dtype in dtypes]
    if len(sizes) < 2 or sum(sizes) > VALUE_BYTES or not set(sizes) <= set(PARTS):
        return None
    return _values(tuple(sizes))


@cache
def _values(sizes: tuple[int, ...]) -> Dtype:
    offsets, end = [0] * len(sizes), 0
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        offsets[i] = end
        end += sizes[i]
    size = next(size for size in (*PARTS, VALUE_BYTES) if end <= size)
    return _word([np.dtype(f"u{size}") for size in sizes], offsets, size)


def _word(fields: Sequence[Dtype], offsets: Sequence[int], size: int) -> Dtype:
    given: Any = {
        "names": [f"f{i}" for i in range(len(fields))], "formats": list(fields),
        "offsets": list(offsets), "itemsize": size,
    }  # fmt: skip
    made: Dtype = np.dtype(given)
    return made
