"""Words: the fields of a tuple packed side by side, bit for bit, and sorted as one number.

A structured dtype describes a word. The first field of a key has the highest bits, because it is
compared first. A value word has its widest fields first, so that no field crosses 8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Dtype: TypeAlias = np.dtype[Any]
Descending: TypeAlias = "bool | tuple[bool, ...]"
"""Whether the order is descending; for a word, one flag per field."""

PARTS = (1, 2, 4, 8)  # sizes of a word's fields
KEY_BYTES, VALUE_BYTES = 8, 16  # sizes of the widest words


class Number(NamedTuple):
    """A field of a key."""

    dtype: Dtype
    shift: int  # of its lowest bit
    is_descending: bool

    @property
    def bits(self) -> int:
        return 8 * self.dtype.itemsize


def numbers(key: Dtype, descending: Descending) -> list[Number]:
    """Return the fields of a key, most significant first; a key may be a single number."""
    if key.names is None:
        assert isinstance(descending, bool)
        return [Number(key, 0, descending)]
    assert key.fields is not None
    assert isinstance(descending, tuple)
    fields = [key.fields[name] for name in key.names]
    return [
        Number(field[0], 8 * field[1], is_descending)
        for field, is_descending in zip(fields, descending, strict=True)
    ]


def used_bits(key: Dtype) -> int:
    """Return how many bits of a key hold fields, from the lowest on."""
    if key.names is None:
        return 8 * key.itemsize
    return 8 * sum(key[name].itemsize for name in key.names)


class Group(NamedTuple):
    """Neighbouring fields of an element that are sorted at once, as one word."""

    first: int
    size: int  # number of fields
    dtype: Dtype  # of the field, or of the word that packs several
    descending: Descending

    @property
    def is_word(self) -> bool:
        return self.size > 1

    @property
    def places(self) -> range:
        """Return the indices of the group's fields in the element."""
        return range(self.first, self.first + self.size)


def groups_of(dtypes: Sequence[Dtype], ways: Sequence[bool]) -> list[Group]:
    """Return the fewest groups that fit words, most significant first."""
    groups: list[Group] = []
    first = 0
    for end in range(1, len(dtypes) + 1):
        if end < len(dtypes) and sum(d.itemsize for d in dtypes[first : end + 1]) <= KEY_BYTES:
            continue
        fields = tuple(dtypes[first:end])
        if len(fields) == 1:
            groups.append(Group(first, 1, fields[0], ways[first]))
        else:
            groups.append(Group(first, len(fields), _key(fields), tuple(ways[first:end])))
        first = end
    return groups


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
    """Return the word that packs values of several arrays; None if impossible or not needed."""
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
    spec: Any = {
        "names": [f"f{i}" for i in range(len(fields))], "formats": list(fields),
        "offsets": list(offsets), "itemsize": size,
    }  # fmt: skip
    word: Dtype = np.dtype(spec)
    return word
