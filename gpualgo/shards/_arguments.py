"""Arguments: sharded arrays, or tuples of them; what a call would give; results put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gpualgo._api.describe import describe
from gpualgo._arrays.forms import Form, is_tuple, taken_apart
from gpualgo._arrays.view import view_of
from gpualgo._base import recording
from gpualgo._driver.default_device import CPU
from gpualgo.shards._devices import Place, dense, write_all
from gpualgo.shards._shards import ShardedArray

Dtypes = tuple[np.dtype[Any], ...]


class Argument(NamedTuple):
    """An argument: a sharded array for each number of an element, all cut alike."""

    arrays: tuple[ShardedArray, ...]
    form: Form | None
    name: str

    @property
    def first(self) -> ShardedArray:
        """An array with the shape, the places and the cuts of all."""
        return self.arrays[0]

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the shards lie."""
        return self.first.places

    @property
    def seats(self) -> range:
        """All seats: which of the devices, counted from 0."""
        return range(len(self.places))

    @property
    def full(self) -> list[int]:
        """The seats of the shards that have elements along the axis."""
        return [seat for seat, length in enumerate(self.first.lengths) if length]

    @property
    def is_on_host(self) -> bool:
        """Whether shards are arrays of the host."""
        return self.places[0].number == CPU

    def on(self, seat: int) -> Any:
        """Return the shard of a seat, as the functions of one device take it."""
        return self.packed([x.shards[seat] for x in self.arrays])

    def packed(self, parts: Sequence[Any]) -> Any:
        """Return an argument that is built alike of other arrays."""
        return parts[0] if self.form is None else self.form.packed(parts)

    def each(self, change: Callable[[Any], Any]) -> Argument:
        """Return the argument with another array for each shard, cut along its first axis."""
        arrays = [ShardedArray(map(change, x.shards), x.places, 0) for x in self.arrays]
        return self._replace(arrays=tuple(arrays))

    def flat(self, where: str) -> Argument:
        """Return it in one dimension, in C order, which is the order of shards."""
        x = self.first
        if x.ndim == 1:
            return self
        if math.prod(x.shape[: x.axis]) != 1:
            refuse(
                where, f"{self.name} is cut along axis {x.axis}, and is to be taken in C order",
                f"pass gpualgo.distribute({self.name}, axis=0)",
            )  # fmt: skip
        return self.each(_flat)


def _flat(x: Any) -> Any:
    return dense(x).reshape(-1)


def refuse(where: str, what: str, instead: str) -> NoReturn:
    """Raise the ValueError of what several devices do not do."""
    raise ValueError(f"{where}: {what}; {instead}, or x.gather() if one device holds it")


def taken(x: Any, where: str, name: str = "x", like: ShardedArray | None = None) -> Argument:
    """Return an argument, whose arrays are cut as `like` is, or as the first of them."""
    if recording.active and recording.current() is not None:
        raise TypeError(
            f"{where}: {name} is a ShardedArray, which prepare, explain and graphs do not take; "
            "pass arrays of one device"
        )
    form: Form | None = None
    leaves: list[tuple[Any, str]] = [(x, name)]
    if is_tuple(x):
        leaves, form = taken_apart(x, name)
    first = like
    for leaf, what in leaves:
        if not isinstance(leaf, ShardedArray):
            raise TypeError(
                f"{where}: {what} must be a ShardedArray, as other arguments are, got "
                f"{type(leaf).__name__}; pass it to gpualgo.distribute"
            )
        first = leaf if first is None else first
        check_alike(leaf, first, f"{where}: {what}")
    return Argument(tuple(leaf for leaf, _ in leaves), form, name)


def check_alike(x: ShardedArray, like: ShardedArray, what: str) -> None:
    """Raise ValueError unless two arrays have one shape and are cut alike."""
    if x is like:
        return
    if x.shape != like.shape:
        raise ValueError(
            f"{what} has shape {x.shape} and another argument {like.shape}; sharded arrays do not "
            "broadcast: pass equal shapes"
        )
    places = [place.number for place in x.places], [place.number for place in like.places]
    if x.axis != like.axis or x.lengths != like.lengths or places[0] != places[1]:
        raise ValueError(
            f"{what} is cut otherwise than another argument: {x!r} and {like!r}; pass "
            f"gpualgo.distribute(x, {list(like.devices)}, axis={like.axis}) for both"
        )


def asked(
    function: Callable[..., Any], place: Place, *args: Any, **options: Any
) -> tuple[Dtypes, Form | None]:
    """Return the dtypes of a call's results and how they are built; all is checked, nothing run."""
    with place.running():
        request = describe(function.__name__, function, args, options)
    found = tuple(result.dtype for result in request.problem.results)
    return found, request.problem.form


def on_each(places: Sequence[Place], seats: Iterable[int], call: Callable[[int], Any]) -> list[Any]:
    """Return what a call gives for each of some seats, where its shard lies; none is waited for."""
    found = []
    for seat in seats:
        with places[seat].running():
            try:
                found.append(call(seat))
            except MemoryError as error:
                raise MemoryError(f"shard {seat} on {places[seat]}: {error}") from error
    return found


def leaves_of(result: Any) -> tuple[list[Any], Form | None]:
    """Return the arrays of a result, and how they are built."""
    if not isinstance(result, tuple):
        return [result], None
    leaves, form = taken_apart(result, "a result", has_names=False)
    return [leaf for leaf, _ in leaves], form


def built(results: Sequence[Any], places: Sequence[Place], axis: int) -> Any:
    """Return the sharded arrays of a call's results on each device."""
    apart = [leaves_of(result) for result in results]
    form = apart[0][1]
    made = [
        ShardedArray(shards, places, axis)
        for shards in zip(*(leaves for leaves, _ in apart), strict=True)
    ]
    return made[0] if form is None else form.packed(made)


def stacked(parts: Sequence[Any], place: Place, library: Any) -> Any:
    """Return new arrays of one shape one after another along a new first axis, at a place."""
    first = view_of(np.asarray(parts[0]) if np.isscalar(parts[0]) else parts[0], "a part")
    whole = place.empty((len(parts), *first.shape), first.dtype, library)
    write_all([(place, whole[i : i + 1], part) for i, part in enumerate(parts)], are_ours=True)
    return whole


def together(parts: Sequence[Any], place: Place, library: Any) -> list[Any]:
    """Return results of several devices, each of their arrays stacked at a place."""
    apart = [leaves_of(part)[0] for part in parts]
    return [stacked(arrays, place, library) for arrays in zip(*apart, strict=True)]


def refuse_sharded(value: Any, where: str, name: str) -> None:
    """Raise TypeError for a sharded array where a value is wanted."""
    if isinstance(value, ShardedArray) or (
        isinstance(value, tuple) and any(isinstance(item, ShardedArray) for item in value)
    ):
        raise TypeError(
            f"{where}: {name} is a ShardedArray; pass {name}.gather(), which lies on the first "
            "device"
        )
