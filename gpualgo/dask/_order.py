"""Orders of keys: what a sort goes by, and how splitters are compared with a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask._inputs import Input
from gpualgo.dask._values import (
    Parts,
    Pattern,
    namespace_of,
    on_host,
    packed,
    parts_of,
    pattern_of_value,
)

Plain = tuple[Pattern, tuple[Pattern, tuple[bool, ...]], tuple[int, int | None]]
"""How a key is built; which numbers are descending, and how that is built; the bits that decide."""


class Order(NamedTuple):
    """What a sort goes by, as plain data."""

    plain: Plain

    @property
    def is_whole(self) -> bool:
        """Whether all bits decide."""
        return self.plain[2] == (0, None)


def order_of(descending: Any, begin_bit: Any, end_bit: Any, keys: Input) -> Order:
    """Return the order of keys that a call asks for."""
    begin = checks.integer(begin_bit, "begin_bit", keys.source[0])
    end = None if end_bit is None else checks.integer(end_bit, "end_bit", keys.source[0])
    return Order(
        (keys.source[2], (pattern_of_value(descending), parts_of(descending)), (begin, end))
    )


def options(order: Plain) -> dict[str, Any]:
    """Return the arguments of a sort."""
    _, descending, (begin, end) = order
    found = {"descending": packed(*descending)}
    return found if (begin, end) == (0, None) else {**found, "begin_bit": begin, "end_bit": end}


def comparable(keys: Parts, order: Plain) -> tuple[Any, Any]:
    """Return keys whose whole value decides, and which numbers are descending."""
    pattern, descending, (begin, end) = order
    if (begin, end) != (0, None):
        keys = (_bits(keys[0], begin, end),)
    return packed(pattern, keys), packed(*descending)


def _bits(keys: Any, begin: int, end: int | None) -> Any:
    """Return some bits of integers as unsigned ones, the sign bit turned over."""
    width = 8 * keys.dtype.itemsize
    words = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        words = words ^ words.dtype.type(1 << (width - 1))
    last = width if end is None else end
    mask = (1 << (last - begin)) - 1
    return (words >> words.dtype.type(begin)) & words.dtype.type(mask)


def before(run: int, keys: Parts, splitters: tuple[Any, Any, Any], order: Plain) -> Any:
    """Return how many keys of a sorted run are at each of the splitters or before.

    A splitter is a key, its run and its place there; of equal keys those of earlier runs, and
    earlier places, come first.
    """
    values, runs, places = splitters
    sorted_keys, descending = comparable(keys, order)
    wanted, _ = comparable(values, order)
    left, right = (
        on_host(ga.searchsorted(sorted_keys, wanted, side=side, descending=descending))
        for side in ("left", "right")
    )
    xp = namespace_of(left)
    return xp.where(run < runs, right, xp.where(run > runs, left, places + 1))


def up_to(keys: Parts, splitters: Parts, order: Plain) -> Any:
    """Return how many keys of a sorted run are equal to each of some keys or before."""
    sorted_keys, descending = comparable(keys, order)
    wanted, _ = comparable(splitters, order)
    options = {"side": "right", "descending": descending}
    return on_host(ga.searchsorted(sorted_keys, wanted, **options))


def ranks(keys: Parts, order: Plain) -> Any:
    """Return integers of the host that are ordered as keys are, equal where these are."""
    wanted, descending = comparable(keys, order)
    in_order = ga.radix_sort(wanted, descending=descending)
    return on_host(ga.searchsorted(in_order, wanted, descending=descending))


def sorted_places(keys: Parts, order: Plain) -> Any:
    """Return the stable order of keys."""
    wanted, descending = comparable(keys, order)
    return ga.argsort(wanted, descending=descending)
