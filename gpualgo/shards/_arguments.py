"""Arguments: sharded arrays, or tuples of them; result dtypes of a call; sharded results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from gpualgo import _distributed
from gpualgo._api.explain import describe
from gpualgo._arrays.forms import flatten_tuple, is_tuple
from gpualgo._distributed import fields_of, map_fields
from gpualgo._operators.operator import is_function
from gpualgo.shards._devices import Device, contiguous, one_after_another
from gpualgo.shards._shards import ShardedArray

Dtypes = tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Argument(_distributed.Argument):
    """An argument: a sharded array for each field of an element, all sharded alike."""

    @property
    def places(self) -> tuple[Device, ...]:
        """The device of each shard."""
        return self.first.places  # type: ignore[no-any-return]

    @property
    def seats(self) -> range:
        """The indices of all shards."""
        return range(len(self.places))

    @property
    def full(self) -> list[int]:
        """The indices of the shards that are not empty along the axis."""
        return [i for i, length in enumerate(self.first.lengths) if length]

    def on(self, index: int) -> Any:
        """Return a shard, as the functions of one device take it."""
        return self.packed([x.shards[index] for x in self.arrays])

    def run(self, call: Callable[[int], Any], seats: Sequence[int] | None = None) -> list[Any]:
        """Call a function for some shards, or all, each on its device, without waiting."""
        results = []
        for i in self.seats if seats is None else seats:
            with self.places[i].running():
                try:
                    results.append(call(i))
                except MemoryError as error:
                    raise MemoryError(f"shard {i} on {self.places[i]}: {error}") from error
        return results

    def mapped(self, call: Callable[[int], Any]) -> Any:
        """Return the sharded results of a call for each shard, which keeps the axes."""
        return self.built(self.run(call), self.first.axis)

    def built(self, results: Sequence[Any], axis: int = 0) -> Any:
        """Return sharded arrays of the results that a call gave on each device."""
        unpacked = [fields_of(result) for result in results]
        form = unpacked[0][1]
        arrays = [
            ShardedArray(shards, self.places, axis)
            for shards in zip(*(fields for fields, _ in unpacked), strict=True)
        ]
        return arrays[0] if form is None else form.packed(arrays)

    def reduced(self, results: Sequence[Any], axes: Sequence[int], keepdims: bool) -> Any:
        """Return the sharded results of a call that reduced axes which are not sharded."""
        axis = self.first.axis
        return self.built(results, axis if keepdims else axis - sum(a < axis for a in axes))

    def stacked(self, parts: Sequence[Any]) -> list[Any]:
        """Stack the results of shards on the first device, along a new axis; one for each field."""
        fields = zip(*(fields_of(part)[0] for part in parts), strict=True)
        rows = ([x.reshape((1, *x.shape)) for x in arrays] for arrays in fields)
        return [one_after_another(arrays, self.places[0], self.first.library) for arrays in rows]

    def moved(self, value: Any, index: int) -> Any:
        """Return a value, as an initial one, with its arrays on the device of a shard."""

        def at_place(x: Any) -> Any:
            is_torch = type(x).__module__.startswith("torch")
            is_array = is_torch or hasattr(x, "__cuda_array_interface__")
            return self.places[index].moved(x, self.first.library) if is_array else x

        return map_fields(at_place, value)

    def with_shards(self, parts: Sequence[Sequence[Any]]) -> Argument:
        """Return the argument whose shards are lists of fields, sharded along the first axis."""
        fields = zip(*parts, strict=True)
        return self.of(ShardedArray(shards, self.places, 0) for shards in fields)

    def flat(self) -> Argument:
        """Return the argument flattened in C order, which must be the order of shards."""
        x = self.first
        if x.ndim == 1:
            return self
        if math.prod(x.shape[: x.axis]) != 1:
            refuse(
                self.where, f"{self.name} is sharded along axis {x.axis}, but C order is needed",
                f"pass gpualgo.distribute({self.name}, axis=0)",
            )  # fmt: skip
        return self.with_shards(
            [[contiguous(x.shards[i]).reshape(-1) for x in self.arrays] for i in self.seats]
        )

    def require_one_row(self, line: int) -> None:
        """Raise ValueError unless there is a single row along the sharded axis."""
        if self.first.ndim > 1:
            refuse(
                self.where,
                f"the rows along axis {line} are sharded, in shape {self.first.shape}",
                "pass gpualgo.distribute(x, axis=…) with another axis",
            )


def refuse(where: str, what: str, instead: str) -> NoReturn:
    """Raise ValueError for an operation that sharded arrays do not support."""
    raise ValueError(f"{where}: {what}; {instead}, or x.gather() if it fits on one device")


def parse_argument(
    x: Any, where: str, name: str = "x", like: ShardedArray | None = None
) -> Argument:
    """Parse an argument; its arrays must be sharded like `like`, or like the first of them."""
    _distributed.refuse_recording(where, name, "ShardedArray", "of one device")
    fields, form = flatten_tuple(x, name) if is_tuple(x) else ([(x, name)], None)
    first = like
    for field, label in fields:
        if not isinstance(field, ShardedArray):
            raise TypeError(
                f"{where}: {label} must be a ShardedArray like the other arguments, got "
                f"{type(field).__name__}; pass it to gpualgo.distribute"
            )
        first = field if first is None else first
        check_alike(field, first, f"{where}: {label}")
    return Argument(tuple(field for field, _ in fields), form, where, name)


def parse_predicate(
    where: str, x: Any, predicate: Any, is_flat: bool = False
) -> tuple[Argument, Callable[[int], tuple[Any, Any]]]:
    """Return x as an argument, and what a call on a shard takes for x and the predicate."""
    x_arg, mask = parse_argument(x, where), None
    if not is_function(predicate, where):
        mask = parse_argument(predicate, where, "predicate", x_arg.first)
    if is_flat:
        mask, x_arg = mask and mask.flat(), x_arg.flat()
    return x_arg, lambda i: (x_arg.on(i), predicate if mask is None else mask.on(i))


def check_alike(x: ShardedArray, like: ShardedArray, what: str) -> None:
    """Raise ValueError unless two arrays have the same shape and sharding."""
    if x is like:
        return
    if x.shape != like.shape:
        raise ValueError(
            f"{what} has shape {x.shape} and another argument {like.shape}; sharded arrays do not "
            "broadcast: pass equal shapes"
        )
    ordinals = [device.number for device in x.places], [device.number for device in like.places]
    if x.axis != like.axis or x.lengths != like.lengths or ordinals[0] != ordinals[1]:
        raise ValueError(
            f"{what} is sharded differently from another argument: {x!r} and {like!r}; pass "
            f"gpualgo.distribute(x, {list(like.devices)}, axis={like.axis}) for both"
        )


def infer_result(function: Callable[..., Any], place: Device, *args: Any, **options: Any) -> Dtypes:
    """Check a call and return the dtypes of its results, without running it."""
    with place.running():
        request = describe(function.__name__, function, args, options)
    return tuple(result.dtype for result in request.problem.results)


def is_sharded(value: Any) -> bool:
    """Return whether a value is a sharded array, or a tuple with one."""
    values = value if isinstance(value, tuple) else (value,)
    return any(isinstance(each, ShardedArray) for each in values)


def refuse_sharded(value: Any, where: str, name: str) -> None:
    """Raise TypeError for a sharded array where only a value is allowed."""
    if is_sharded(value):
        raise TypeError(
            f"{where}: {name} is a ShardedArray; pass {name}.gather(), which is on the first device"
        )
