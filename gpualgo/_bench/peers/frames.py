"""polars on the CPU's cores, on series that share NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._bench.support import Contender, polars

NAME = "polars"


def series(x: Any, call: Callable[[Any], Any]) -> dict[str, Contender]:
    """Return a function of a series whose result becomes an array of NumPy's."""
    if polars() is None:
        return {}
    held = polars().Series(x)
    return {NAME: lambda: call(held).to_numpy()}


def sums_by_key(keys: Any, x: Any) -> dict[str, Contender]:
    """Return the sums of each key's numbers, in the order of the keys."""
    pl = polars()
    if pl is None:
        return {}
    table = pl.DataFrame({"key": keys, "x": x})

    def call() -> Any:
        return table.group_by("key").agg(pl.col("x").sum()).sort("key")["x"].to_numpy()

    return {NAME: call}
