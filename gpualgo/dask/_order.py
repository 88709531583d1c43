"""Sort orders of keys, and binary search of splitters in sorted runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask._inputs import Input
from gpualgo.dask._values import (
    Parts,
    Structure,
    namespace_of,
    on_host,
    pack,
    pattern_of_value,
    unpack,
)

OrderArgs = tuple[Structure, tuple[Structure, tuple[bool, ...]], tuple[int, int | None]]
"""The keys' pattern; descending flags and their pattern; the range of bits that is compared."""


class Order(NamedTuple):
    """A sort order, as plain data."""

    plain: OrderArgs

    @property
    def is_whole(self) -> bool:
        """True if all bits are compared."""
        return self.plain[2] == (0, None)


def order_of(descending: Any, begin_bit: Any, end_bit: Any, keys: Input) -> Order:
    begin = checks.integer(begin_bit, "begin_bit", keys.source[0])
    end = None if end_bit is None else checks.integer(end_bit, "end_bit", keys.source[0])
    return Order((keys.source[2], (pattern_of_value(descending), unpack(descending)), (begin, end)))


def options(order: OrderArgs) -> dict[str, Any]:
    """Return an order as keyword arguments of a sort."""
    _, descending, (begin, end) = order
    arguments = {"descending": pack(*descending)}
    return (
        arguments
        if (begin, end) == (0, None)
        else {**arguments, "begin_bit": begin, "end_bit": end}
    )


def comparable(keys: Parts, order: OrderArgs) -> tuple[Any, Any]:
    """Return keys reduced to the compared bits, and their descending flags."""
    pattern, descending, (begin, end) = order
    if (begin, end) != (0, None):
        keys = (_bits(keys[0], begin, end),)
    return pack(pattern, keys), pack(*descending)


def _bits(keys: Any, begin: int, end: int | None) -> Any:
    """Return the given bits as unsigned integers that sort like the keys (sign bit flipped)."""
    width = 8 * keys.dtype.itemsize
    unsigned = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        unsigned = unsigned ^ unsigned.dtype.type(1 << (width - 1))
    stop = width if end is None else end
    mask = (1 << (stop - begin)) - 1
    return (unsigned >> unsigned.dtype.type(begin)) & unsigned.dtype.type(mask)


def count_up_to_splitters(
    run: int, keys: Parts, splitters: tuple[Any, Any, Any], order: OrderArgs
) -> Any:
    """Return how many keys of a sorted run are at each splitter or before it.

    A splitter is a key, its run and its index there; equal keys are ordered by run, then by index.
    """
    values, runs, indices = splitters
    sorted_keys, descending = comparable(keys, order)
    wanted, _ = comparable(values, order)
    left, right = (
        on_host(ga.searchsorted(sorted_keys, wanted, side=side, descending=descending))
        for side in ("left", "right")
    )
    xp = namespace_of(left)
    return xp.where(run < runs, right, xp.where(run > runs, left, indices + 1))


def up_to(keys: Parts, splitters: Parts, order: OrderArgs) -> Any:
    """Return how many keys of a sorted run are less than or equal to each splitter."""
    sorted_keys, descending = comparable(keys, order)
    wanted, _ = comparable(splitters, order)
    options = {"side": "right", "descending": descending}
    return on_host(ga.searchsorted(sorted_keys, wanted, **options))


def ranks(keys: Parts, order: OrderArgs) -> Any:
    """Return host integers that sort like the keys."""
    values, descending = comparable(keys, order)
    sorted_values = ga.radix_sort(values, descending=descending)
    return on_host(ga.searchsorted(sorted_values, values, descending=descending))


def sort_indices(keys: Parts, order: OrderArgs) -> Any:
    """Return the indices that sort keys stably."""
    values, descending = comparable(keys, order)
    return ga.argsort(values, descending=descending)
