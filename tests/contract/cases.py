"""Sample calls of every registered algorithm, and the few ways in which contract tests make them.

A new algorithm is under all tests of this folder once `CASES` holds some of its calls. They are
few and share dtypes and operators, as each new combination is compiled. Longer than other files, as
it is one table.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from contract.operators import combined, crossed, divided, doubled, looked_up, paired, shifted
from support import Array, Backend, is_emulated, random_array, scaled

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS
from gpualgo._api.describe import describe

TABLE = np.arange(3, 11, dtype=np.int32)  # what operators capture, besides a number
LONG = (scaled(100_003, emulated=20_003),)
# Of several tiles, too; a digit takes long on the emulated GPU.
KEYS = ((17_003,), "int16") if is_emulated else ((100_003,), "float32")
PAIRS = (
    (KEYS, (KEYS[0], "float64")) if is_emulated else (((30_011,), "int32"), ((30_011,), "float64"))
)
EDGES = [-9.0, -1.0, 0.0, 0.5, 12.0]


PAIR = (((37, 1), "int32"), ((1, 211), "float64"))


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
    last_is: str = ""  # the name of an argument of its own that the last array is
    is_lazy: bool = False  # what is read is computed of the arrays

    def __str__(self) -> str:
        return f"{self.name}: {self.about}"

    @property
    def name(self) -> str:
        return self.function.__name__

    def samples(self, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        """Return new arrays of the host, others for each seed."""
        return [
            np.asarray(random_array(shape, np.dtype(dtype), 10 * seed + i))
            for i, (shape, dtype) in enumerate(self.inputs)
        ]

    def in_any_order(self) -> Case:
        """Return a case whose results do not depend on the order in which elements are combined."""
        if not self.is_reordered:
            return self
        return replace(self, inputs=tuple((shape, "int32") for shape, _ in self.inputs))

    def given(self, arrays: Any) -> tuple[Any, ...]:
        """Return the arguments that arrays are."""
        arrays, apart = tuple(arrays), ()
        if self.is_lazy:
            arrays = tuple([ga.lazy.asarray(x) * 2 for x in arrays])
        if self.last_is and arrays:
            arrays, apart = arrays[:-1], arrays[-1:]
        return ((arrays,) if self.is_tuple else arrays) + apart

    def arrays(self, backend: Backend, seed: int = 0) -> list[Array]:
        return [backend.to_device(x) for x in self.samples(seed)]

    def on(self, backend: Backend) -> Call:
        """Return the call, its operator's table an array of the backend's library."""
        return Call(self, backend.to_device(TABLE.copy()))


class _TuplePlan:
    """A plan whose arrays are one argument."""

    def __init__(self, plan: Any, case: Case) -> None:
        self._plan, self._case = plan, case

    def __call__(self, *arrays: Array, **more: Any) -> Any:
        return self._plan(*self._case.given(arrays), **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def __repr__(self) -> str:
        return repr(self._plan)


class Call:
    """A case whose operator captures a table that is there: called with arrays."""

    def __init__(self, case: Case, table: Array) -> None:
        self.case = case
        self.op = None if case.operator is None else case.operator(table, 1)

    def arguments(self, arrays: Any, **more: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        options = {**self.case.options, **more}
        arrays = self.case.given(arrays)
        if self.case.last_is:
            *arrays, options[self.case.last_is] = arrays
        if self.op is None:
            return tuple(arrays), options
        if next(iter(inspect.signature(self.case.function).parameters)) == "op":
            return (self.op, *arrays), options
        return tuple(arrays), {"op": self.op, **options}

    def __call__(self, *arrays: Array, **more: Any) -> Any:
        args, options = self.arguments(arrays, **more)
        return self.case.function(*args, **options)

    def prepare(self, *arrays: Array) -> Any:
        args, options = self.arguments(arrays)
        plan = ga.prepare(self.case.function, *args, **options)
        is_wrapped = self.case.is_tuple or self.case.is_lazy
        return _TuplePlan(plan, self.case) if is_wrapped else plan

    def in_place_of(self, *arrays: Array) -> list[tuple[int, ...]]:
        """Return for each result the inputs in whose place it may be written."""
        args, options = self.arguments(arrays)
        request = describe("contract", self.case.function, args, options)
        return [result.in_place_of for result in request.problem.results]

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


def _reductions() -> list[Case]:
    f = ga.reduce
    return [
        Case(f, "several tiles", ((LONG, "float32"),), is_reordered=True),
        Case(f, "rows", (((37, 211), "float32"),), {"axis": 1}, is_reordered=True),
        Case(
            f, "columns", (((211, 37), "float32"),), {"axis": 0, "keepdims": True},
            is_reordered=True,
        ),
        Case(f, "two axes", (((5, 7, 6), "int16"),), {"axis": (0, 2), "dtype": "int64"}),
        Case(f, "no axes", (((), "float32"),), {"init": 0.5}, of_empty=0.5),
        Case(
            f, "an operator", (((3001,), "int32"),), {}, shifted, captures=True, of_empty=None
        ),
        Case(
            f, "an operator down columns", (((211, 37), "int32"),), {"axis": 0, "init": 7},
            shifted, captures=True, of_empty=7,
        ),
        Case(f, "empty rows", (((3, 0), "float32"),), {"axis": 1, "init": 0.5}, of_empty=0.5),
        Case(
            f, "tuples", ((LONG, "int32"), (LONG, "float64")), {}, paired, captures=True,
            of_empty=None, is_tuple=True,
        ),
        Case(
            f, "tuples in rows", (((37, 211), "int32"), ((37, 1), "float64")),
            {"axis": 1, "init": (5, 0.5)}, paired, captures=True, of_empty=(5, 0.5), is_tuple=True,
        ),
        Case(
            f, "lazy rows", (((37, 211), "float32"),), {"axis": 1}, is_reordered=True, is_lazy=True,
        ),
    ]  # fmt: skip


def _scans(f: Callable[..., Any]) -> list[Case]:
    backwards = {"axis": 1, "reverse": True, "init": 5}
    return [
        Case(f, "several tiles", ((LONG, "float32"),)),
        # Exact, as a turned output may be walked another way.
        Case(f, "rows backwards", (((37, 211), "int32"),), backwards),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "dtype": "int64"}),
        Case(f, "flattened", (((6, 35), "float32"),)),
        Case(f, "no axes", (((), "float32"),)),
        Case(f, "an operator", (((3001,), "int32"),), {"init": 7}, shifted, captures=True),
        Case(f, "empty", (((0,), "float32"),)),
        Case(
            f, "tuples", ((LONG, "int32"), (LONG, "float64")), {"init": (1, -9.5)}, paired,
            captures=True, is_tuple=True,
        ),
        Case(
            f, "tuples in columns", (((211, 37), "int16"), ((1, 37), "float32")),
            {"axis": 0, "init": (1, 2.5), "dtype": ("int64", "float32")}, paired, captures=True,
            is_tuple=True,
        ),
        Case(f, "lazy columns", (((211, 37), "int32"),), {"axis": 0}, is_lazy=True),
    ]  # fmt: skip


def _transformations() -> list[Case]:
    f = ga.transform
    columns, rows = ((37, 1), "int32"), ((1, 11), "int32")
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {}, doubled),
        Case(f, "two arrays", (((3001,), "int32"), ((3001,), "int32")), {}, combined),
        Case(f, "broadcast", (columns, rows), {}, combined),
        Case(f, "another dtype", (((5, 7, 6), "int16"),), {"dtype": "float64"}, doubled),
        Case(f, "no axes", (((), "float32"),), {}, doubled),
        Case(f, "an operator", (((3001,), "int32"),), {}, looked_up, captures=True),
        Case(f, "empty", (((4, 0), "float32"),), {}, doubled),
        Case(f, "a tuple", PAIR, {}, crossed, is_tuple=True),
        Case(f, "two results", (((3001,), "int32"),), {}, divided, captures=True),
        Case(f, "lazy ones", (((3001,), "int32"),), {}, doubled, is_lazy=True),
    ]


def _sorts() -> list[Case]:
    f = ga.radix_sort
    return [
        Case(f, "several tiles", (KEYS,)),
        Case(f, "pairs", PAIRS),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "descending": True}),
        Case(f, "bits", (((3001,), "uint32"),), {"begin_bit": 4, "end_bit": 20}),
        Case(f, "flattened pairs", (((6, 35), "int32"), ((6, 35), "float64")), {"axis": None}),
        Case(f, "narrow keys", (((3001,), "int8"),)),
        Case(f, "no axes", (((), "float32"),), {"axis": None}),
        Case(f, "empty", (((0,), "float32"),)),
        Case(
            f, "tuples", (((3001,), "int8"), ((3001,), "float32")),
            {"descending": (False, True)}, is_tuple=True,
        ),
        Case(
            f, "tuples in columns", (((211, 37), "int8"), ((211, 1), "float64")), {"axis": 0},
            is_tuple=True,
        ),
    ]  # fmt: skip


def _argsorts() -> list[Case]:
    f = ga.argsort
    return [
        Case(f, "several tiles", (KEYS,)),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "descending": True}),
        Case(f, "flattened", (((6, 35), "float32"),), {"axis": None, "dtype": "int32"}),
        Case(f, "narrow keys", (((3001,), "int8"),)),
        Case(f, "no axes", (((), "float32"),), {"axis": None}),
        Case(f, "empty", (((0,), "float32"),)),
        Case(f, "tuples", (((3001,), "int8"), ((3001,), "float32")), is_tuple=True),
        Case(
            f, "tuples in rows", (((37, 211), "int8"), ((37, 1), "float64")),
            {"descending": True}, is_tuple=True,
        ),
    ]  # fmt: skip


def _extremes(f: Callable[..., Any]) -> list[Case]:
    none: dict[str, Any] = {"of_empty": None}
    return [
        Case(f, "several tiles", ((LONG, "float32"),), **none),
        Case(f, "rows", (((37, 211), "int32"),), {"axis": 1}, **none),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "keepdims": True}, **none),
        Case(f, "no axes", (((), "float32"),), **none),
        Case(f, "empty", (((0, 5), "float32"),), {"axis": 1}, **none),
        Case(f, "lazy ones", (((37, 211), "int32"),), {"axis": 1}, is_lazy=True, **none),
        *([Case(f, "two axes", (((5, 7, 6), "int16"),), {"axis": (0, 2)}, **none)]
          if f is ga.minmax else []),
    ]  # fmt: skip


def _histograms() -> list[Case]:
    f = ga.histogram
    even: dict[str, Any] = {"bins": 300, "range": (-10, 10)}
    many = {"bins": 9000, "range": (-(2**31), 2**31 - 1), "dtype": "int32"}
    return [
        Case(f, "several tiles", ((LONG, "float32"),), even),
        Case(f, "edges in rows", (((37, 211), "float32"),), {"bins": EDGES, "axis": 1}),
        Case(f, "many bins", (((30_011,), "int32"),), many),
        Case(f, "its own range", (((3001,), "float32"),), {"bins": 12}, can_be_recorded=False),
        Case(
            f,
            "two axes",
            (((5, 7, 6), "int16"),),
            {"bins": 4, "axis": (0, 2)},
            can_be_recorded=False,
        ),
        Case(f, "no axes", (((), "float32"),), even),
        Case(f, "empty rows", (((3, 0), "float32"),), {**even, "axis": 1}),
        Case(
            f, "tuples", PAIR, {"bins": (5, EDGES), "range": ((-(2**31), 2**31 - 1), None)},
            is_tuple=True,
        ),
        Case(
            f, "tuples in columns", (((211, 37), "int16"), ((1, 37), "float32")),
            {"bins": (200, 70), "range": ((-(2**15), 2**15), (-20, 20)), "axis": 0}, is_tuple=True,
        ),
        Case(f, "weights", (((3001,), "float32"), ((3001,), "float64")), even, last_is="weights"),
        Case(
            f, "tuples with weights in rows",
            (((37, 211), "float32"), ((37, 1), "float64"), ((211,), "complex64")),
            {"bins": (7, 3), "range": ((-10, 10), (-9, 9)), "axis": 1}, is_tuple=True,
            last_is="weights",
        ),
    ]  # fmt: skip


CASES = [
    *_reductions(), *_scans(ga.inclusive_scan), *_scans(ga.exclusive_scan), *_transformations(),
    *_sorts(), *_argsorts(), *_histograms(), *_extremes(ga.argmin), *_extremes(ga.argmax),
    *_extremes(ga.minmax),
]  # fmt: skip


def cases_of(function: Callable[..., Any]) -> list[Case]:
    return [case for case in CASES if case.function is function]


each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_capturing = pytest.mark.parametrize("case", [c for c in CASES if c.captures], ids=str)
each_function = pytest.mark.parametrize("function", ALGORITHMS, ids=lambda f: f.__name__)
