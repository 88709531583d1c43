"""A sample call of an algorithm, and the few ways in which contract tests make it."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from support import Array, Backend, random_array

import gpualgo as ga
from gpualgo._api.explain import describe

OPERATORS = {"op", "predicate", "eq", "less"}  # what parameters are called that are functions
TABLE = np.arange(3, 11, dtype=np.int32)  # what operators capture, besides a number


@dataclass(frozen=True)
class Case:
    """A call: the function, shapes and dtypes of its arrays, and its other arguments."""

    function: Callable[..., Any]
    about: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    options: dict[str, Any] = field(default_factory=dict)
    operator: Callable[[Array, int], Callable[..., Any]] | None = None
    captures: bool = False  # the operator reads the table and the number
    of_empty: Any = 0  # what results hold where no element is read; None: that is refused
    can_be_recorded: bool = True  # the host need not look at the elements
    is_reordered: bool = False  # elements are combined as memory lies: float sums depend on that
    is_tuple: bool = False  # the arrays are one argument
    last_are: tuple[str, ...] = ()  # the names of arguments of their own that the last arrays are
    is_merged: bool = False  # the first two arrays are in order, and become one
    is_searched: bool = False  # the first array is in order, and the last one tells the shape
    is_segmented: bool = False  # the last array, but for `last_are`, is offsets into the others
    is_lazy: bool = False  # what is read is computed of the arrays
    has_dynamic_length: bool = False  # how long results are depends on elements
    reads_last_alone: bool = False  # of arrays: the first tells the shape
    puts_together: bool = False  # its operator, by each call of a plan, which refuses by itself
    is_joined: bool = False  # what is compared is two results of a call, one behind the other

    def __str__(self) -> str:
        return f"{self.name}: {self.about}"

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def offsets_at(self) -> int | None:
        """Return which of the arrays is offsets."""
        return len(self.inputs) - 1 - len(self.last_are) if self.is_segmented else None

    @property
    def elements(self) -> list[tuple[tuple[int, ...], str]]:
        """Return the shapes and dtypes of the arrays that are no offsets."""
        return [each for i, each in enumerate(self.inputs) if i != self.offsets_at]

    def samples(self, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        """Return new arrays of the host, others for each seed."""
        found = [
            np.asarray(random_array(shape, np.dtype(dtype), 10 * seed + i))
            for i, (shape, dtype) in enumerate(self.inputs)
        ]
        num_sorted = 2 * self.is_merged + self.is_searched
        found = [np.sort(x) if i < num_sorted else x for i, x in enumerate(found)]
        at = self.offsets_at
        if at is not None:
            offsets = found[at].astype(np.int64) % (len(found[0]) + 1)
            found[at] = np.sort(offsets).astype(found[at].dtype)
        return found

    def in_any_order(self) -> Case:
        """Return a case whose results do not depend on the order in which elements are combined."""
        if not self.is_reordered:
            return self
        return replace(self, inputs=tuple((shape, "int32") for shape, _ in self.inputs))

    def given(self, arrays: Any) -> tuple[Any, ...]:
        """Return the arguments that arrays are."""
        arrays, apart = tuple(arrays), ()
        if self.last_are and len(arrays) > len(self.last_are):
            split = len(arrays) - len(self.last_are)
            arrays, apart = arrays[:split], arrays[split:]
        if self.is_segmented and len(arrays) > 1:
            arrays, apart = arrays[:-1], (*arrays[-1:], *apart)
        if self.is_lazy:
            arrays = tuple([ga.lazy.asarray(x) * 2 for x in arrays])
        return ((arrays,) if self.is_tuple else arrays) + apart

    def result(self, found: Any, out: Any) -> Any:
        """Return what is compared of a call's result."""
        if not self.is_joined or found is out:
            return found
        first, rest = found
        if out is not None:
            return out
        if isinstance(first, tuple):
            return tuple(map(_joined, first, rest))
        return _joined(first, rest)

    def arrays(self, backend: Backend, seed: int = 0) -> list[Array]:
        return [backend.to_device(x) for x in self.samples(seed)]

    def on(self, backend: Backend) -> Call:
        """Return the call, its operator's table an array of the backend's library."""
        return Call(self, backend.to_device(TABLE.copy()))


class _CasePlan:
    """A plan whose arrays are one argument, or whose results are joined."""

    def __init__(self, plan: Any, case: Case) -> None:
        self._plan, self._case = plan, case

    def __call__(self, *arrays: Array, **more: Any) -> Any:
        return self._case.result(self._plan(*self._case.given(arrays), **more), more.get("out"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def __repr__(self) -> str:
        return repr(self._plan)


def _joined(first: Array, rest: Array) -> Array:
    """Return two arrays of one library, one behind the other, as a new array."""
    xp = np if isinstance(first, np.ndarray) else sys.modules["cupy"]
    whole = xp.zeros(first.size + rest.size, first.dtype)
    whole[: first.size], whole[first.size :] = first, rest
    return whole


class Call:
    """A case whose operator captures a table that is there: called with arrays."""

    def __init__(self, case: Case, table: Array) -> None:
        self.case, self.table = case, table
        self.counts: list[Array] = []  # that calls have yet to write, maybe
        self.op = None if case.operator is None else case.operator(table, 1)

    def arguments(self, arrays: Any, **more: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        options = {**self.case.options, **more}
        arrays = self.case.given(arrays)
        if self.case.last_are:
            split = len(arrays) - len(self.case.last_are)
            options.update(zip(self.case.last_are, arrays[split:], strict=True))
            arrays = arrays[:split]
        if self.op is None:
            return tuple(arrays), options
        parameters = list(inspect.signature(self.case.function).parameters)
        if parameters[0] == "op":
            return (self.op, *arrays), options
        name = next(filter(OPERATORS.__contains__, parameters))
        return tuple(arrays), {name: self.op, **options}

    def __call__(self, *arrays: Array, **more: Any) -> Any:
        args, options = self.arguments(arrays, **more)
        if self.case.has_dynamic_length and more.get("out") is not None:
            options["out_count"] = (self.table[:1] * 0).astype(np.int64)
            self.counts.append(options["out_count"])
        return self.case.result(self.case.function(*args, **options), more.get("out"))

    def prepare(self, *arrays: Array) -> Any:
        args, options = self.arguments(arrays)
        plan = ga.prepare(self.case.function, *args, **options)
        is_wrapped = self.case.is_tuple or self.case.is_lazy or self.case.is_joined
        return _CasePlan(plan, self.case) if is_wrapped else plan

    def in_place_of(self, *arrays: Array) -> list[tuple[int, ...]]:
        """Return for each result the inputs in whose place it may be written."""
        args, options = self.arguments(arrays)
        request = describe("contract", self.case.function, args, options)
        count = len(request.problem.results) - self.case.has_dynamic_length
        return [result.in_place_of for result in request.problem.results[:count]]

    def capture(self, **values: Any) -> None:
        """Let the operator capture other values under these names."""
        assert self.op is not None
        cells = dict(zip(self.op.__code__.co_freevars, self.op.__closure__ or (), strict=True))
        for name, value in values.items():
            cells[name].cell_contents = value


def hosts(backend: Backend, result: Any) -> list[np.ndarray[Any, Any]]:
    """Return a call's results as arrays of the host that nobody else writes."""
    results = result if isinstance(result, tuple) else (result,)
    return [np.array(backend.to_host(array)) for array in results]


def assert_bits(got: list[np.ndarray[Any, Any]], want: list[np.ndarray[Any, Any]]) -> None:
    """Assert the same results bit for bit."""
    assert [(x.shape, x.dtype) for x in got] == [(x.shape, x.dtype) for x in want]
    for mine, other in zip(got, want, strict=True):
        if mine.tobytes() != other.tobytes():
            np.testing.assert_array_equal(mine, other)  # says where
            raise AssertionError("equal values of different bits: NaN, or the sign of a zero")


def outputs_like(want: list[np.ndarray[Any, Any]], make: Callable[..., Array]) -> Any:
    """Return what out= is for such results, made by ``make(shape, dtype)``."""
    made = tuple(make(x.shape, x.dtype) for x in want)
    return made if len(made) > 1 else made[0]


def used(backend: Backend) -> Callable[..., Array]:
    """Return a maker of arrays that hold something already."""
    return lambda shape, dtype: backend.to_device(np.ones(shape, dtype))


def bytes_view(base: Array, at: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array that lies in an array of bytes, from a place on."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    return base[at : at + nbytes].view(dtype).reshape(shape)


class Shown:
    """A device array that shows `__cuda_array_interface__` alone, with its stream."""

    def __init__(self, array: Array, stream: Any = None, *, readonly: bool = False) -> None:
        self.array = array
        interface = dict(array.__cuda_array_interface__)
        interface["data"] = (interface["data"][0], readonly)
        interface["stream"] = None if stream is None else stream.ptr
        self.__cuda_array_interface__ = interface
