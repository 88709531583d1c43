"""Plans for lazy arrays: what another one reads is found by the call itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._api.describe import describe
from gpualgo._lazy import is_lazy
from gpualgo._operators.captured import is_array
from gpualgo._pipeline.problem import Request

Relook = Callable[[tuple[Any, ...]], Request]


def relook_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], where: str
) -> Relook | None:
    """Return what gives the request of other arrays; None if no argument is lazy."""
    places = [i for i, x in enumerate(args) if _is_data(x)]
    if not any(is_lazy(args[i]) for i in places):
        return None

    def relook(arrays: tuple[Any, ...]) -> Request:
        if len(arrays) != len(places):
            raise TypeError(f"{where}: the plan takes {len(places)} array(s), got {len(arrays)}")
        given = list(args)
        for i, x in zip(places, arrays, strict=True):
            given[i] = x
        return describe("prepare", function, tuple(given), kwargs)

    return relook


def _is_data(x: Any) -> bool:
    """Return whether an argument is an array, lazy or not, or a tuple that holds some."""
    if isinstance(x, tuple):
        return any(map(_is_data, x))
    return is_lazy(x) or is_array(x)
