"""The public function `prepare`: an algorithm with its arguments checked and its kernels built."""

from __future__ import annotations

import inspect
import itertools
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

import gpualgo as ga
from gpualgo._api.explain import compiled_on_cpu, cuda_plan, describe
from gpualgo._api.memory_resource import lent
from gpualgo._arrays.view import (
    View,
    as_bytes_view,
    byte_bounds,
    is_contiguous,
    layout_of,
    overlap,
    view_of,
)
from gpualgo._base import log, recording
from gpualgo._driver import default_device, driver
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo._operators.captured import is_array
from gpualgo._operators.operator import Operator, as_operator, operator_key
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import Problem, Request
from gpualgo._pipeline.run import known_plan, remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


# --- Requests that each call of a plan creates anew: for lazy arrays and for changing operators.

# Parameters that are input arrays.
_INPUTS = (
    "x", "keys", "values", "arrays", "weights", "predicate", "a", "b", "a_values", "b_values",
    "offsets", "indices",
)  # fmt: skip
Relook = Callable[[tuple[Any, ...]], Request]


def request_factory(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], problem: Problem
) -> Relook | None:
    """Return a function that creates the request for other arrays; None if no argument is lazy."""
    named = dict(zip(_positions(function), args, strict=False))
    inputs = (*_INPUTS, "init") if problem.row_init else _INPUTS
    slots = [slot for slot, x in named.items() if slot[1] in inputs and _is_data(x)]
    keywords = [name for name in inputs if _is_data(kwargs.get(name))]
    are_lazy = map(is_lazy, (*(named[slot] for slot in slots), *map(kwargs.get, keywords)))
    if not (problem.composes_operator or any(are_lazy)):
        return None
    count = len(slots) + len(keywords)

    def relook(arrays: tuple[Any, ...]) -> Request:
        if len(arrays) != count:
            raise TypeError(f"{problem.where}: the plan takes {count} array(s), got {len(arrays)}")
        new_args = list(args)
        for (i, _), x in zip(slots, arrays, strict=False):
            new_args[i] = x
        new_kwargs = dict(zip(keywords, arrays[len(slots) :], strict=True))
        if not problem.views_on_host:
            return describe("prepare", function, tuple(new_args), {**kwargs, **new_kwargs})
        with default_device.Fixed(problem.device, "the plan was prepared for this device"):
            return describe("prepare", function, tuple(new_args), {**kwargs, **new_kwargs})

    return relook


def _positions(function: Callable[..., Any]) -> Iterator[tuple[int, str]]:
    count = itertools.count()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from zip(count, itertools.repeat(name), strict=False)
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            yield next(count), name


def _is_data(x: Any) -> bool:
    """Return whether an argument is an array, lazy or not, or a tuple that contains one."""
    if isinstance(x, tuple):
        return any(map(_is_data, x))
    return is_lazy(x) or is_array(x)


def changeable(op: Any, problem: Problem) -> Any:
    """Return the function whose captured values may change between calls; None if they cannot."""
    if op is None:
        return None
    operator: Operator = as_operator(op, problem.where, problem.num_arguments)
    return None if operator.name is not None else operator.fn


def _operator_key_of_function(op_key: Any) -> Any:
    """Return the operator key that an operator's bare function would have."""
    if type(op_key) is not tuple or len(op_key) == 2:
        return op_key
    return op_key[0] if len(op_key) == 3 else op_key[:2]


# --- The last call of a plan, for launching it again with the same two arrays.


class Repeat:
    """A packed launch on two CuPy arrays, valid while both keep their address and shape."""

    __slots__ = ("device", "launch", "out", "out_ptr", "out_shape", "stream", "x", "x_ptr",
                 "x_shape")  # fmt: skip

    def __init__(self, x: Any, out: Any, view: View, launch: Callable[[int], None]) -> None:
        self.x: Callable[[], Any] = weakref.ref(x)
        self.out: Callable[[], Any] = weakref.ref(out)
        self.x_ptr, self.x_shape = x.data.ptr, x.shape
        self.out_ptr, self.out_shape = out.data.ptr, out.shape
        self.launch, self.stream, self.device = launch, view.library.stream, view.device


class Plan:
    """A call that is checked and compiled for arrays of one layout; returned by `gpualgo.prepare`.

    Call it as ``plan(*arrays, out=None, out_count=None, temp_storage=None, stream=None)``, from any
    thread. Host arrays run on the device that `prepare` chose, whatever the default device is later
    and whether or not they are page-locked.

    Attributes
    ----------
    temp_storage_bytes : int
        The size of `temp_storage` that a call needs; 0 for host arrays.
    """

    __slots__ = (
        "_has_tuples", "_key", "_known", "_layouts", "_may_repeat", "_name", "_op", "_relook",
        "_repeat", "_request", "temp_storage_bytes",
    )  # fmt: skip

    def __copy__(self) -> Plan:
        return self  # immutable

    def __deepcopy__(self, memo: Any) -> Plan:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a plan cannot be pickled; call gpualgo.prepare in the other process")

    def __init__(self, request: Request, relook: Relook | None = None) -> None:
        """`relook`: returns the request for other arrays, if some arguments are lazy."""
        self._relook = relook
        request = compiled_on_cpu(request)
        kernel_plan = cuda_plan(request)
        self.temp_storage_bytes = 0 if kernel_plan is None else kernel_plan.temp_storage_bytes
        if request.problem.has_numbers:  # some may have been compiled in by now
            problem = request.problem.respecialized(request.views, request.op, request.init)
            request = request._replace(problem=problem)
        # The example arrays are released.
        views = tuple(view.without_owner() for view in request.views)
        self._request = request._replace(views=views, out=None, stream=None)
        self._name = f"{request.problem.where}: an argument of the plan"
        self._layouts = [layout_of(view) for view in views]
        self._op = changeable(request.op, request.problem)
        self._key = _operator_key_of_function(request.problem.op_key)
        self._repeat: Repeat | None = None
        self._known: dict[Any, Problem] = {}  # of calls on NumPy arrays, see `run_remembered`
        self._has_tuples = request.problem.broadcasts_arguments or any(
            form is not None for form in request.problem.forms
        )
        self._may_repeat = (
            len(views) == 1 and request.problem.form is None and not self._has_tuples
            and relook is None
            and request.problem.is_direct and driver.is_simple
            and views[0].library.name == "cupy" and not request.problem.arrays
            and not request.problem.has_numbers
            and not request.problem.reads_data
            and not isinstance(request.init, np.ndarray)  # its value may change
        )  # fmt: skip

    def __repr__(self) -> str:
        arrays = ", ".join(f"{view.dtype}{list(view.shape)}" for view in self._request.views)
        return f"Plan({self._request.problem.where}, {arrays})"

    @log.each(lambda plan, *_: f"plan of {plan._request.problem.where}")
    def __call__(
        self, *arrays: ty.AnyArray,
        out: ty.AnyArray | tuple[ty.AnyArray, ty.AnyArray] | None = None,
        out_count: ty.AnyArray | None = None, temp_storage: ty.AnyArray | None = None,
        stream: ty.Stream | None = None,
    ) -> Any:  # fmt: skip
        """Run the algorithm on arrays of the prepared layout.

        Parameters
        ----------
        *arrays : array
            In the order of the function's parameters, with the shape, strides, dtype, library and
            device of the arrays given to `prepare`.
        out : array or tuple of arrays, optional
            Array for the result, as for the function.
        out_count : array, optional
            Array for the number of results, for functions that take it.
        temp_storage : array, optional
            At least `temp_storage_bytes` contiguous bytes: on the GPU, aligned to 256 bytes, or on
            the host for the CPU. On a GPU nothing is then allocated or kept for the call. Its
            contents do not matter; no other work may use it until the call's work is done.
        stream : stream, optional
            As for the function.

        Raises
        ------
        TypeError, ValueError
            An array has another layout, or `temp_storage` is too small; otherwise as for the
            function.
        """
        problem, _, op, init, _, _ = self._request
        is_usual = temp_storage is None and stream is None and not problem.has_dynamic_length
        is_usual = is_usual and out_count is None
        if is_usual and self._known and arrays:
            result = run_remembered(self._known.get, op, init, out, None, arrays)
            if result is not None:
                return result
        repeat = self._repeat
        if (
            repeat is not None and out is not None and temp_storage is None and stream is None
            and len(arrays) == 1
        ):  # fmt: skip
            x = arrays[0]
            if (
                x is not None and repeat.x() is x and repeat.out() is out
                and x.data.ptr == repeat.x_ptr and out.data.ptr == repeat.out_ptr
                and x.shape == repeat.x_shape and out.shape == repeat.out_shape
                and not recording.active
                and (self._op is None or operator_key(self._op) == self._key)
            ):  # fmt: skip
                repeat.launch(repeat.stream(repeat.device))
                return out
        try:
            if self._relook is not None:
                views, op, problem = self._request_for_lazy(self._relook, arrays)
            elif self._has_tuples:
                views = inputs.parse_prepared(problem, arrays, self._name)
            else:
                views = tuple([view_of(x, self._name) for x in arrays])
            if [layout_of(view) for view in views] != self._layouts:
                self._refuse(views)
            if (
                self._op is not None
                and self._relook is None
                and operator_key(self._op) != self._key
            ):
                problem = problem.respecialized(views, op, init)  # captured values have changed
        except TypeError as error:
            checks.name(error, self._op, problem.where, problem.op_name)
            if self._relook is None:
                inputs.several(arrays, self._name)  # raises the error if it is about an argument
            raise
        if is_usual and problem.warm is not None and self._relook is None:
            if len(self._known) > 8:  # operators with captured values
                self._known = {}
            remember(problem, views, op, init, None, arrays, self._known.__setitem__)
        if problem.reads_data:
            problem = problem.for_data(views, stream)
        solve: Callable[..., Any] = run
        if problem.has_dynamic_length:
            from gpualgo._pipeline import counted

            solve = partial(counted.solve, out_count=out_count)
        elif out_count is not None:
            raise TypeError(f"{problem.where}: out_count is given, and results have known lengths")
        if temp_storage is not None:
            with self._supplied(views, out, out_count, temp_storage, stream):
                return solve(problem, views, op, init, out, stream)
        if (
            out is not None and stream is None and self._may_repeat and not recording.active
            and problem is self._request.problem  # `_key` belongs to these values
        ):  # fmt: skip
            self._remember(problem, arrays[0], views, init, out)
        return solve(problem, views, op, init, out, stream)

    def _request_for_lazy(
        self, relook: Relook, arrays: tuple[Any, ...]
    ) -> tuple[tuple[View, ...], Any, Problem]:
        """Return the views that new lazy arrays read, the operator for them, and the problem."""
        request = relook(arrays)
        if type(request.problem) is not type(self._request.problem):
            raise TypeError(
                f"{self._name} is an array, but the plan is for a lazy array; prepare another plan"
            )
        if len(request.views) != len(self._layouts):
            raise TypeError(
                f"{self._name} reads {len(request.views)} arrays, the plan is for one that reads "
                f"{len(self._layouts)}; prepare another plan"
            )
        return request.views, request.op, request.problem

    def _remember(
        self, problem: Problem, x: Any, views: tuple[View, ...], init: Any, out: Any
    ) -> None:
        """Cache the launch parameters of a call, for the next call with the same two CuPy arrays.

        If the plan for this output is not cached yet, the next call does it.
        """
        if (entry := known_plan(problem, views, init, out)) is None or len(entry[1]) > 1:
            return
        plan, (pointer,) = entry
        launch = plan.packed((*problem.start(init), b"", views[0].ptr, pointer))
        if launch is None:
            self._may_repeat = False
        else:
            self._repeat = Repeat(x, out, views[0], launch)

    def _supplied(
        self, views: tuple[View, ...], out: Any, out_count: Any, temp_storage: Any, stream: Any
    ) -> Any:
        """Return the context in which the call uses the caller's temporary storage."""
        name = self._request.problem.where
        storage = as_bytes_view(temp_storage, f"{name}: temp_storage")
        device = views[0].device
        if recording.active and recording.current() is not None:
            raise ValueError(f"{name}: a graph has its own storage; leave temp_storage out")
        on_cpu = self._request.problem.device == CPU
        if storage.device != device or (device == CPU and not on_cpu):
            raise ValueError(
                f"{name}: temp_storage must be on the arrays' device; leave it out for host arrays "
                "that are copied to a GPU"
            )
        low, high = byte_bounds(storage)
        if not is_contiguous(storage) or storage.readonly or (low % 256 and not on_cpu):
            raise ValueError(
                f"{name}: temp_storage must be writable, contiguous and aligned to 256 bytes"
            )
        if high - low < self.temp_storage_bytes:
            raise ValueError(
                f"{name}: temp_storage has {high - low} bytes, {self.temp_storage_bytes} are needed"
            )
        outs = () if out is None else inputs.outputs(self._request.problem, out)
        outs = outs if out_count is None else (*outs, out_count)
        others = [*views, *(as_bytes_view(x, f"{name}: out") for x in outs)]
        if any(overlap(storage, view) for view in others):
            raise ValueError(f"{name}: temp_storage shares memory with an array; pass other memory")
        if on_cpu:
            return nullcontext()
        return lent(storage, low, high, views[0], stream, name)

    def _refuse(self, views: tuple[View, ...]) -> None:
        """Raise if the views' layouts differ from the prepared ones (producer streams may)."""
        name, expected = self._request.problem.where, self._request.views
        if len(views) != len(expected):
            raise TypeError(f"{name}: the plan takes {len(expected)} array(s), got {len(views)}")
        for i, (view, prepared) in enumerate(zip(views, expected, strict=True), 1):
            nth = f" as array {i}" if len(views) > 1 else ""
            if (view.library.name, view.device) != (prepared.library.name, prepared.device):
                raise TypeError(
                    f"{name}: the plan is for arrays of {prepared.library.name} on device "
                    f"{prepared.device}, got one of {view.library.name} on {view.device}{nth}; "
                    "prepare another plan"
                )
            if view.dtype != prepared.dtype:
                raise TypeError(
                    f"{name}: the plan is for dtype {prepared.dtype}, got {view.dtype}{nth}; "
                    "prepare another plan"
                )
            if (view.shape, view.strides) != (prepared.shape, prepared.strides):
                raise ValueError(
                    f"{name}: the plan is for shape {prepared.shape} with strides "
                    f"{prepared.strides}, got {view.shape} with {view.strides}{nth}; prepare "
                    "another plan"
                )


def prepare(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """Return a call that is checked and compiled once, to be run on many arrays of one layout.

    Parameters
    ----------
    function : callable
        An algorithm of this package, such as `gpualgo.reduce`.
    *args, **kwargs
        The arguments of the call. Arrays are examples of the layout. ``out``, ``out_count`` and
        ``stream`` are passed to the plan instead.

    Returns
    -------
    Plan
        A callable, with the attribute `temp_storage_bytes`.

    Raises
    ------
    TypeError, ValueError, CompileError
        As the call itself would raise.

    Notes
    -----
    Launches nothing, and reads no elements, except the samples of a histogram without `range`. On
    the CPU `prepare` compiles the operator, and the first call of the plan compiles the kernel
    around it. Each call of the plan reads the operator's captured values: if they have changed, it
    computes with the new ones.

    >>> plan = ga.prepare(ga.reduce, np.zeros(3), 0.0, lambda a, b: a + b)
    >>> float(plan(np.array([1.0, 2.0, 3.0])))
    6.0
    """
    request = describe("prepare", function, args, kwargs)
    for name in ("out", "out_count", "stream"):
        if kwargs.get(name) is not None:
            raise TypeError(f"prepare: {name} is an argument of the plan's calls; pass it to them")
    return Plan(request, request_factory(function, args, kwargs, request.problem))


# --- The calls that `gpualgo warmup` makes: common operators, and a caller's operators.

DTYPES = ("float32", "float64", "int32", "int64")
SIZES = (1000, 1 << 20)  # short arrays use different kernels


class Recipe(NamedTuple):
    """A named set of calls.

    `is_tried`: the operator may refuse numbers of this dtype, which is no failure.
    """

    name: str
    calls: Callable[[], Any]
    is_tried: bool = False


def known() -> Iterator[Recipe]:
    """Yield the calls of common operators on common dtypes."""
    for dtype in DTYPES:
        for size in SIZES:
            x = numbers(dtype, size)
            for name, call in _known(x):
                yield Recipe(f"{name} of {size} {dtype}", call)


def of_operator(name: str, op: Any) -> Iterator[Recipe]:
    """Yield the calls with an operator; a callable without parameters makes its own calls."""
    count = _num_arguments(op)
    if count == 0:
        yield Recipe(name, op)
        return
    for dtype in DTYPES:
        for size in SIZES:
            x = numbers(dtype, size)
            yield Recipe(f"{name} of {dtype}", partial(_call_with, op, count, x), is_tried=True)


def numbers(dtype: str, size: int) -> np.ndarray[Any, Any]:
    """Return numbers from 0 to 99 in irregular order."""
    return (np.arange(size) * 37 % 100).astype(dtype)


def _num_arguments(op: Any) -> int:
    fn = op.fn if isinstance(op, ga.Operator) else op
    if isinstance(fn, np.ufunc):
        return fn.nin
    empty = inspect.Parameter.empty
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # `min` and similar have no signature; they are known as binary operators
        return 2
    return sum(p.kind in kinds and p.default is empty for p in parameters)


def _call_with(op: Any, count: int, x: np.ndarray[Any, Any]) -> None:
    """Make the calls that use an operator with so many arguments."""
    result = ga.transform(op, *[x] * count)
    is_test = not isinstance(result, tuple) and result.dtype == bool
    if count == 1 and is_test:
        ga.select(x, op)
        ga.count(x, op)
        ga.find(x, op)
    elif count == 2 and is_test:
        ga.merge_sort(x, less=op)
    elif count == 2:
        ga.reduce(x, None, op)
        ga.reduce(x, x[0], op)
        ga.inclusive_scan(x, None, op)
        ga.exclusive_scan(x, x[0], op)
        ga.segmented_reduce(x, _offsets(x), x[0], op)
        ga.reduce_by_key(_runs(x), x, None, op)


def _offsets(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.arange(0, len(x) + 1, len(x) // 4)


def _runs(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.repeat(np.arange(len(x) // 8, dtype=np.int64), 8)


def _known(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, op in (("sum", operator.add), ("minimum", min), ("maximum", max)):
        yield f"reduce ({name})", partial(ga.reduce, x, None, op)
        yield f"inclusive_scan ({name})", partial(ga.inclusive_scan, x, None, op)
    yield "exclusive_scan (sum)", partial(ga.exclusive_scan, x, x.dtype.type(0))
    for function in (ga.argmin, ga.argmax, ga.minmax, ga.radix_sort, ga.argsort):
        yield function.__name__, partial(function, x)
    yield "histogram", partial(ga.histogram, x, 256, (0, 100))
    yield "top_k", partial(ga.top_k, x, 10)
    yield "searchsorted", partial(ga.searchsorted, np.sort(x), x)
    yield "adjacent_difference", partial(ga.adjacent_difference, x)
    yield "run_length_encode", partial(ga.run_length_encode, x)
    yield "segmented_reduce (sum)", partial(ga.segmented_reduce, x, _offsets(x), x.dtype.type(0))
    yield "reduce_by_key (sum)", partial(ga.reduce_by_key, _runs(x), x)
    yield "reduce_by_index (sum)", partial(_by_index, x)


def _by_index(x: np.ndarray[Any, Any]) -> Any:
    return ga.reduce_by_index(np.arange(len(x)) % 64, x, 64, x.dtype.type(0))
