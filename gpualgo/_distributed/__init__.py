"""What algorithms on pieces of an array have in common; pieces are dask's chunks, or shards.

Results of pieces are combined in the order of the pieces. These functions decide what each piece
contributes; `gpualgo.dask` and `gpualgo.shards` run the calls and move data.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Self, TypeAlias

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.radix_sort.cuts import Spans, Table, borders, narrowed
from gpualgo._arrays.forms import Form
from gpualgo._base import recording
from gpualgo._pipeline import checks

# --- Elements are arrays of their fields: of NumPy or CuPy.

Parts: TypeAlias = Sequence[Any]
"""An array for each field of an element; one array if the element is no tuple."""


def packed(form: Form | None, parts: Parts) -> Any:
    """Return the elements that parts form."""
    return parts[0] if form is None else form.packed(parts)


def library_of(array: Any) -> str:
    return "numpy" if isinstance(array, np.ndarray) else type(array).__module__.partition(".")[0]


def namespace_of(array: Any) -> Any:
    """Return the array's module: NumPy or CuPy."""
    return np if isinstance(array, (np.ndarray, np.generic)) else sys.modules[library_of(array)]


def on_host(array: Any) -> Any:
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


def concatenate(several: Sequence[Parts], axis: int = 0) -> Parts:
    """Concatenate parts along an axis."""
    if len(several) == 1:
        return several[0]
    fields = zip(*several, strict=True)
    return tuple(
        namespace_of(each[0]).concatenate(each, axis=axis, dtype=each[0].dtype) for each in fields
    )


# --- Arguments.


@dataclass(frozen=True)
class Argument:
    """An argument: an array in pieces for each field of an element, all cut alike."""

    arrays: tuple[Any, ...]
    form: Form | None
    where: str  # the function called
    name: str

    @property
    def first(self) -> Any:
        """One of the arrays: all have its shape and pieces."""
        return self.arrays[0]

    def of(self, arrays: Iterable[Any]) -> Self:
        """Return the argument with other arrays."""
        return replace(self, arrays=tuple(arrays))

    def packed(self, parts: Parts) -> Any:
        """Return the elements that parts form."""
        return packed(self.form, parts)

    def flat(self) -> Self:
        """Return the argument flattened in C order."""
        raise NotImplementedError

    def line(self, axis: Any) -> tuple[Self, int]:
        """Return the argument and the axis to work along; None flattens it."""
        line = checks.axis_of(checks.plain_axis(axis, self.where), self.first.ndim, self.where)
        return (self.flat(), 0) if line is None else (self, line)

    def axes(self, axis: Any) -> tuple[int, ...]:
        """Return the axes that a call reduces."""
        return checks.axes_of(checks.plain_axes(axis, self.where), self.first.ndim, self.where)


def refuse_recording(where: str, name: str, kind: str, instead: str) -> None:
    """Raise TypeError for an array in pieces while a call is only recorded."""
    if recording.active and recording.current() is not None:
        raise TypeError(
            f"{where}: {name} is a {kind}, which prepare, explain and graphs do not accept; "
            f"pass arrays {instead}"
        )


# --- Sorted runs, one of each piece. Elements are ordered by key, equal keys by run and index: the
# order of a stable sort of all runs, one after the other.


@dataclass(frozen=True)
class Order:
    """An order of keys: their form, and the options of a sort."""

    form: Form | None
    descending: Any = False
    begin_bit: Any = 0
    end_bit: Any = None

    @property
    def has_all_bits(self) -> bool:
        return (self.begin_bit, self.end_bit) == (0, None)

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of a sort."""
        bits = {"begin_bit": self.begin_bit, "end_bit": self.end_bit}
        return {"descending": self.descending, **({} if self.has_all_bits else bits)}

    def indices(self, keys: Parts) -> np.ndarray[Any, Any]:
        """Return the indices that sort keys stably."""
        sort: Any = ga.radix_sort  # not argsort, which takes no bits
        numbers = namespace_of(keys[0]).arange(len(keys[0]))
        _, indices = sort(packed(self.form, keys), numbers, **self.options)
        return on_host(indices)  # type: ignore[no-any-return]

    def up_to(self, keys: Parts, wanted: Parts) -> np.ndarray[Any, Any]:
        """Return how many of sorted keys, by all bits, are no greater than each wanted one."""
        pair: Any = packed(self.form, keys), packed(self.form, wanted)
        counts: Any = ga.searchsorted(*pair, side="right", descending=self.descending)
        return on_host(counts)  # type: ignore[no-any-return]

    def brackets(
        self, samples: Sequence[Parts], lengths: Sequence[int], ranks: Sequence[int], width: int
    ) -> Spans:
        """Return bounds of the cuts at some ranks, from the last of every `width` keys of runs."""
        return narrowed(lengths, ranks, width, self.indices(concatenate(samples)))

    def borders(
        self, windows: Sequence[Sequence[Parts]], spans: Spans, lengths: Sequence[int],
        ranks: Sequence[int],
    ) -> Table:  # fmt: skip
        """Return where slices of each run begin: a row for each result piece, and one for the end.

        `windows` are each run's keys between the bounds of each cut.
        """
        orders = (self.indices(concatenate(keys)) for keys in zip(*windows, strict=True))
        return borders(lengths, ranks, spans, orders)

    def splitters(self, samples: Sequence[tuple[Parts, int]], outputs: int) -> Parts | None:
        """Return keys that split all keys into ranges of similar size; None if there are no keys.

        There are samples of each run, and the number of keys that each of them stands for.
        """
        counts = [len(parts[0]) for parts, _ in samples]
        if not sum(counts):
            return None
        keys = concatenate([parts for parts, _ in samples])
        chosen = splitters([w for _, w in samples], counts, self.indices(keys), outputs)
        return [part[namespace_of(part).asarray(chosen)] for part in keys]


def splitters(
    widths: Sequence[int], counts: Sequence[int], order: np.ndarray[Any, Any], outputs: int
) -> Any:
    """Return the indices of samples that split all elements into ranges of similar size.

    Of each run there are a number of samples, each of which stands for `width` elements; `order` is
    the stable argsort of all samples, run after run.
    """
    cumulative = np.cumsum(np.repeat(widths, counts)[order])
    wanted = cumulative[-1] * np.arange(1, outputs) // outputs
    return order[np.clip(np.searchsorted(cumulative, wanted), 0, len(cumulative) - 1)]


def check_index_dtype(dtype: np.dtype[Any], length: float) -> None:
    """Raise ValueError unless indices of an argsort fit."""
    if length > int(np.iinfo(dtype).max) + 1:
        raise ValueError(
            f"argsort: dtype {dtype} is too narrow for indices below {length}; pass a wider dtype="
        )


# --- `histogram`: ranges that depend on the data.


def unknown_ranges(bins: Any, ranges: Any, dims: int, is_joint: bool) -> tuple[Any, list[int]]:
    """Return the range of each dimension, and the dimensions whose range is that of the data.

    Without `is_joint` there is one dimension, and its range is no tuple of ranges.
    """
    if not is_joint:
        return ranges, [0] if ranges is None and _is_number(bins) else []
    if ranges is not None and (not isinstance(ranges, (tuple, list)) or len(ranges) != dims):
        return ranges, []  # the call raises an error
    dim_bins = bins if isinstance(bins, tuple) else (bins,) * dims
    dim_ranges = (None,) * dims if ranges is None else tuple(ranges)
    pairs = enumerate(zip(dim_bins, dim_ranges, strict=False))
    return dim_ranges, [i for i, (each, ends) in pairs if ends is None and _is_number(each)]


def _is_number(bins: Any) -> bool:
    try:
        return operator.index(bins) > 0
    except TypeError:
        return False


def with_ranges(ranges: Any, known: dict[int, Any], is_joint: bool) -> Any:
    """Return ranges with those of some dimensions replaced."""
    if not is_joint:
        return known.get(0, ranges)
    return tuple(known.get(i, each) for i, each in enumerate(ranges)) if known else ranges


# --- Scans: each piece but the first starts from the prefix of the pieces before it.


def scan_from(
    call: Callable[..., Any], form: Form | None, parts: Parts, prefix: Parts, op: Any, axis: int,
    **options: Any,
) -> Any:  # fmt: skip
    """Scan a piece, given an array for each field, and for each a prefix with one value per row."""
    shape = tuple(parts[0].shape)
    if len(shape) > 1:
        prefix = [part.reshape((*shape[:axis], *shape[axis + 1 :])) for part in prefix]
    elif isinstance(parts[0], np.ndarray):
        prefix = [part.reshape(-1)[0] for part in prefix]
    elif len(parts) > 1:
        # A tuple init of GPU arrays has one value per row, so scan one row of a 2-D array.
        row = packed(form, [part.reshape((1, -1)) for part in parts])
        found = call(row, packed(form, prefix), op, axis=1, **options)
        return map_fields(lambda part: part.reshape(-1), found)
    return call(packed(form, parts), packed(form, prefix), op, axis=axis, **options)


# --- Runs of equal neighbours that continue in the next pieces; a run is of the piece it begins in.

Edges = tuple[int, Any, Any, Any]
"""Of a piece: the number of runs, the first one's key and aggregate, and the last key."""
Joint = tuple[int, Any, int]
"""Of a piece: 1 if its first run began earlier, else 0; the aggregate of what continues its last
run, or None; how many runs began earlier."""


def joints(
    edges: Sequence[Edges], is_same_run: Callable[[Any, Any], bool],
    joined: Callable[[Any, Any], Any],
) -> list[Joint]:  # fmt: skip
    """Find where runs continue; `is_same_run`: whether a last key and a first one are of one."""
    starts, continuations = [0] * len(edges), list[Any]([None] * len(edges))
    behind: tuple[int, Any, Any] | None = None  # the next piece that has elements
    for i, (count, head, aggregate, last_key) in reversed(list(enumerate(edges))):
        if not count:
            continue
        if behind is not None and is_same_run(last_key, behind[1]):
            starts[behind[0]], continuations[i] = 1, behind[2]
            if count == 1:
                aggregate = joined(aggregate, behind[2])
        behind = i, head, aggregate
    counts = (each[0] - start for each, start in zip(edges, starts, strict=True))
    return list(zip(starts, continuations, accumulate(counts, initial=0), strict=False))


# --- `unique`: of equal elements of several pieces, the first index and the sum of counts.

MERGES: dict[tuple[bool, bool], Callable[[Any, Any], Any]] = {  # by what is wanted of the two
    (True, True): lambda a, b: (a[0], a[1] + b[1]),
    (True, False): lambda a, b: a,
    (False, True): operator.add,
    (False, False): operator.add,
}

# --- Results of calls, which may be tuples.


def fields_of(result: Any) -> tuple[list[Any], Form | None]:
    """Return the arrays of a call's result, of which structured ones stay whole, and its form."""
    if not isinstance(result, tuple):
        return [result], None
    parts, forms = zip(*map(fields_of, result), strict=True)
    cls = type(result) if hasattr(result, "_fields") else tuple
    return [field for part in parts for field in part], Form(cls, forms)


def map_fields(function: Callable[[Any], Any], x: Any) -> Any:
    """Return x, or the tuple x, with a function applied to each array of it."""
    if not isinstance(x, tuple):
        return function(x)
    items = [map_fields(function, item) for item in x]
    return getattr(type(x), "_make", tuple)(items)
