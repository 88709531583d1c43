"""A problem: the checked arguments of a call, without memory; cached and shared by equal calls.

This file exceeds 300 lines: what equal calls share and how it is looked up are read together.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from gpualgo._arrays.forms import Form, flatten_tuple, is_tuple, structure_of
from gpualgo._arrays.view import NumPy, View, alignment_of, layout_of, view_of
from gpualgo._base import dtypes, records
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._base.memo import Memo
from gpualgo._base.strides import dense_strides, ordered_strides
from gpualgo._driver import default_device
from gpualgo._driver.default_device import AUTO, CPU
from gpualgo._operators.captured import ownerless
from gpualgo._operators.operator import (
    Operator,
    as_operator,
    check_associativity,
    operator_key,
    packed_numbers_of,
    retried,
)
from gpualgo._pipeline import checks
from gpualgo._pipeline.checks import RowInit

if TYPE_CHECKING:
    from gpualgo._cpu.plan import Plan as CPUPlan
    from gpualgo._cuda.plan import Launch, Plan
    from gpualgo._pipeline.auto import Choice

# --- Per-row initial values: init as arrays that are extra inputs, so that no call waits for them.
#
# An algorithm's problem is made as for one initial value, and gets the arrays of init as its last
# inputs. Its class gives the rows' shape (`row_shape`), its planners apply the arrays.

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]
Views = tuple[View, ...]


def are_arrays(init: Any, where: str, *, one_is_value: bool) -> bool:
    """Return whether init holds arrays of more than one value.

    `one_is_value`: arrays of one element that are not NumPy's count as one value.
    """
    if isinstance(init, tuple):
        return any(are_arrays(item, where, one_is_value=one_is_value) for item in init)
    if isinstance(init, np.ndarray):
        return init.size != 1
    if isinstance(init, np.generic) or not _is_foreign(init):
        return False
    view = view_of(init, f"{where}: init")
    return len(view.shape) > 0 and not (one_is_value and set(view.shape) == {1})


def _is_foreign(init: Any) -> bool:
    return hasattr(init, "__cuda_array_interface__") or hasattr(init, "__dlpack__")


def parse(
    init: Any, views: Views, params: tuple[Any, ...], where: str, *, one_is_value: bool = False
) -> tuple[Any, Views, tuple[Any, ...]]:
    """Return init, the inputs and params; arrays of init are moved to the others."""
    if not are_arrays(init, where, one_is_value=one_is_value):
        return init, views, params
    init_views, row_init = init_arrays(init, where)
    return None, (*views, *init_views), (*params, row_init)


def init_arrays(init: Any, where: str) -> tuple[Views, RowInit]:
    """Return the views of init's arrays, and their structure and dtypes."""
    name, form = f"{where}: init", None
    leaves = [(init, name)]
    if is_tuple(init):
        leaves, form = flatten_tuple(init, name)
    for x, name in leaves:
        if isinstance(x, np.generic) or not (isinstance(x, np.ndarray) or _is_foreign(x)):
            raise TypeError(
                f"{name} is a {type(x).__name__} next to arrays; pass an array of one number "
                "for each row"
            )
    views = tuple([view_of(x, name) for x, name in leaves])
    return views, RowInit(form, tuple([view.dtype for view in views]))


def check(
    views: Views, like: View, shape: tuple[int, ...], acc: Dtype, form: Form | None, where: str
) -> tuple[str, ...]:
    """Raise unless init's arrays fit rows of this shape; return their names for messages."""
    names = ("init",) if form is None else tuple(f"init[{path}]" for path in form.names)
    for view, leaf, name in zip(views, records.field_dtypes(acc), names, strict=True):
        dtypes.check(view.dtype, f"{where}: {name}")
        checks.dimensions(view, name, where)
        if not shape and set(view.shape) == {1}:
            raise TypeError(
                f"{where}: {name} is an array of one element; pass a Python or NumPy scalar"
            )
        if view.shape != shape and not shape:
            raise ValueError(f"{where}: {name} must be one value, got shape {view.shape}; pass one")
        if view.shape != shape:
            raise ValueError(
                f"{where}: {name} must be one value, or one for each row in shape {shape}, got "
                f"shape {view.shape}; reshape it"
            )
        if view.dtype != leaf:
            raise TypeError(
                f"{where}: {name} has dtype {view.dtype}, the accumulator {leaf}; convert it first"
            )
    checks.same_place([like, *views], where)
    return names


def host_values(acc: Dtype, count: int, arrays: Sequence[Array]) -> Array:
    """Return initial values as a contiguous array of the accumulator's dtype, never empty."""
    starts = np.zeros(max(1, count), acc)
    fields = [starts] if acc.names is None else [starts[name] for name in acc.names]
    for field, array in zip(fields, arrays, strict=True):
        field[:count] = array
    return starts


Extent = tuple[int, int]
Start: TypeAlias = tuple[bytes, int, int, int]
"""The initial value: its bytes, 1 if given, its device address or 0, and 0."""
NO_INIT: Start = (b"", 0, 0, 0)
_UNKNOWN = object()
_CHECKED = "GPUALGO_CHECK"
_environ: Any = os.environ
# Looked up directly, as os.environ.get takes ten times as long.
ENVIRON = getattr(_environ, "_data", _environ)
CHECKED_KEY = _environ.encodekey(_CHECKED) if ENVIRON is not _environ else _CHECKED
PLAIN = frozenset((type(None), bool, int, float, complex))  # immutable


def is_plain(init: Any) -> bool:
    """Return whether an init is immutable, so that the same object always has the same value."""
    return type(init) in PLAIN or (type(init) is tuple and PLAIN.issuperset(map(type, init)))


class Result(NamedTuple):
    """One output: shape, dtype, and the indices of inputs that it may overwrite in place.

    `order`: axes of a new result in memory, outermost first; empty for C order.
    `is_upper_bound`: the shape is an upper bound, see `counted`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_place_of: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    is_upper_bound: bool = False

    def strides(self) -> tuple[int, ...]:
        return ordered_strides(self.shape, self.dtype.itemsize, self.order)


class Call(NamedTuple):
    """The parsed arguments of a call, from which its problem is made.

    `params` holds all arguments but arrays, operator and initial value in canonical form: hashable,
    and equal only if they mean the same (never 1.0 or True for 1).
    """

    device: int
    views: tuple[View, ...]  # of the inputs
    op: Any  # an `Operator` or None
    init: Any
    params: Any
    where: str  # the public function's name


class Problem:
    """The specification of a call; each algorithm has a subclass.

    __init__ checks the arguments and sets `results` and, for inputs without elements, `is_empty`.
    """

    max_kept: ClassVar[int] = 4096  # cached problems of one algorithm
    # The attributes that hold the length or the shape of inputs that are contiguous and have one
    # shape, if nothing else of a problem depends on it; None: something does. Each class declares
    # its own.
    shape_attributes: ClassVar[tuple[str, ...] | None] = None
    takes_any_ndim: ClassVar[bool] = False  # such inputs may have several dimensions
    input_shape: tuple[int, ...] = ()  # of such inputs
    is_of_any_shape = False  # `of_shape` gave what a first call did, for another shape
    problems: ClassVar[Memo[Problem]]
    num_bytes = 0  # of memory held between calls
    inputs: Sequence[str] = ("x",)  # names of the inputs, for messages
    needs_alignment = True  # kernels load whole items, so addresses are multiples of the item size
    copies_page_locked = False  # on a GPU, page-locked arrays are copied, never used in place
    returns_scalars = False  # 0-d NumPy results are returned as scalars
    reads_data = False  # the problem depends on the values of elements, which each call reads
    takes_any_items = False  # outputs may have any dtype of plain bytes
    spreads_tuples = False  # arrays within a tuple are broadcast against each other
    op_name: ClassVar[str] = "op"  # the operator's parameter name in the public function
    needs_associativity = False  # results depend on how elements are grouped otherwise
    has_names = True  # the operator accesses tuple fields by name
    broadcasts_arguments = False  # later arguments are broadcast to the first one's shape
    composes_operator = False  # each call composes its operator anew, also for a prepared plan
    row_init: checks.RowInit | None = None  # if init consists of arrays: the last inputs
    row_shape: tuple[int, ...] = ()  # of those arrays
    is_checked = False  # GPUALGO_CHECK=1, so that the operator is tried on elements of each call
    has_dynamic_length = (
        False  # the last result is the number of elements of the others (see `counted`)
    )
    output_names: tuple[str, ...] = ()  # of several results, unless they are items of `out`

    results: tuple[Result, ...]
    is_empty = False  # no input element is read
    forms: tuple[Form | None, ...] = ()  # one for each argument, None if it is no tuple
    form: Form | None = None  # how results are packed into a tuple
    structure: np.dtype[Any] | None = None  # if results are fields of one structured array
    acc: np.dtype[Any] | None = None  # the accumulator's dtype, if it is not the first result's
    choice: Choice | None = None  # why this device, if `auto` chose it
    warm: Any = None  # `host_warm.Warm` or `host_small.Small` once prepared
    small: Any = None  # `host_small.Small`, after small host arrays ran on a GPU

    def __init_subclass__(cls) -> None:
        cls.problems = Memo(cls.max_kept)

    def __init__(self, call: Call) -> None:
        device, views, op, init, params, where = call
        for view, name in zip(views, self.inputs, strict=False):
            checks.dimensions(view, name, where)
        self.device, self.params, self.where = device, params, where
        self.num_arguments = 2  # number of arguments of the operator
        self.op_key: Any = None  # the operator's key when the first call began
        self.arrays = () if op is None else ownerless(op.arrays)  # captured by op
        self.has_numbers = op is not None and bool(op.key.numbers)  # passed at run time
        self._kept = None if op is None else op.identity  # kept alive, as its id is part of the key
        library, self.views_on_host = views[0].library, views[0].device == CPU
        # All arrays are device arrays of one library with a current stream: no stream order needed.
        read = (*views, init) if type(init) is View else views
        self.is_direct = not (self.views_on_host or library.has_producers) and all(
            view.library is library for view in read
        )
        if self.is_direct:
            self.stream: Callable[[int], int] = library.stream
            self.pointer: Callable[[Any], int] = library.pointer
        self.out_name = f"{where}: out"
        self.plans: dict[int, Plan] = {}  # for new results, by the inputs' alignment
        # For out=; each entry also has the extents of the inputs and the outputs.
        self.plans_into: dict[Any, tuple[Plan, tuple[Extent, ...]]] = {}
        self.cpu_plans: dict[Any, CPUPlan] = {}  # by the results' layout, None for new results
        self.default_start: Array | None = None  # the initial value if no init is given
        self.last_start: tuple[Any, Start] = (_UNKNOWN, NO_INIT)
        self.makers: list[Callable[[], Any]] = []  # allocate new results, once a plan exists
        # Launches of its plans, which problems that differ only in shape share.
        self.launches: dict[Any, Launch] = {}

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        """Return the problem of the same call for contiguous inputs of another shape.

        None if the shape has to be checked, or decides more than `shape_attributes` says.
        """
        problem: Problem = object.__new__(type(self))
        vars(problem).update(vars(self))
        problem.input_shape = shape
        for name in self.shape_attributes or ():
            value = getattr(self, name)
            if name == "results":
                value = tuple([r._replace(shape=shape) if r.shape else r for r in value])
            else:
                value = shape if type(value) is tuple else math.prod(shape)
            setattr(problem, name, value)
        problem.plans, problem.plans_into, problem.cpu_plans, problem.makers = {}, {}, {}, []
        problem.warm = problem.small = None
        problem.num_bytes = 0
        return problem

    # Defined by each algorithm.

    def of_empty(self, op: Any, init: Any) -> Array:
        """Return the 0-d value that all results hold if no element is read."""
        raise NotImplementedError

    def parse_arrays(
        self, arguments: tuple[Any, ...]
    ) -> tuple[Views, tuple[Form | None, ...]] | None:
        """Return the views and forms of arguments; None if each argument is parsed by itself."""
        return None

    def for_data(self, views: tuple[View, ...], stream: Any) -> Problem:
        """Return the problem for arrays with other values, if `reads_data`."""
        return self

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        """Return the call's row in the table of `auto`, and the arrays whose elements count."""
        return "one pass", views[:1]

    # Shared by all algorithms.

    def hold(self, num_bytes: int) -> None:
        """Add to the bytes that are held between calls."""
        if num_bytes:  # an attribute more makes each problem a KiB larger
            self.num_bytes += num_bytes
        if self.num_bytes:
            self.problems.weigh(self, self.num_bytes)

    @staticmethod
    def key_of_outputs(views: Views, targets: Sequence[View]) -> tuple[Any, ...]:
        """Return what a plan for out= depends on: alignments, layouts, and equal addresses."""
        arrays = [*views]
        key: list[Any] = []
        for target in targets:
            pointer = target.ptr
            key.append(layout_of(target))
            for array in arrays:  # faster than a comprehension for few arrays
                key.append(array.ptr == pointer)
            arrays.append(target)
        return alignment_of(views), alignment_of(targets), *key

    def encode(self, init: Any) -> Array | None:
        """Return init as a 0-d array of the accumulator's dtype; None without init."""
        if init is None:
            return self.default_start
        return checks.encoded(init, self.acc or self.results[0].dtype, self.where)

    def start(self, init: Any) -> Start:
        """Return init as a kernel argument; the last one is cached."""
        if type(init) is View:
            return b"", 0, init.ptr, 0
        encoded = self.encode(init)
        start: Start = NO_INIT if encoded is None else (encoded.tobytes(), 1, 0, 0)
        if is_plain(init):
            self.last_start = (init, start)
        return start

    def identity(self, op: Operator, hint: str) -> Array:
        """Return op's identity in the accumulator's dtype; raise ValueError with a hint if none."""
        dtype = self.acc or self.results[0].dtype
        identity = op.identity_for(dtype)
        if identity is None:
            raise ValueError(f"{self.where}: {hint}; pass init= or ga.Operator(op, identity=...)")
        if op.identity is None:  # identities of recognised operators: 0, 1 and -1 fit every dtype
            return np.array(identity).astype(dtype)
        return checks.encoded(identity, dtype, self.where, "identity")

    def parts_of(self, content: Array) -> list[Array]:
        """Return the value of each result, given the common value of all."""
        names = content.dtype.names
        return [content] * len(self.results) if names is None else [content[n] for n in names]

    def respecialized(self, views: tuple[View, ...], op: Any, init: Any) -> Problem:
        """Return the problem of the same call for op's current captured values."""
        return self.of_same_kind(views, op, init, self.params)

    def of_same_kind(
        self, views: tuple[View, ...], op: Any, init: Any, params: tuple[Any, ...]
    ) -> Problem:
        """Return a problem of this kind on this device, whatever the default device is now."""
        device = self.choice or self.device
        return problem_of(
            type(self), views, op, init, params, self.where, self.num_arguments, device
        )

    def on_gpu(self, views: tuple[View, ...], op: Any, init: Any) -> Problem:
        """Return the problem for a call with stream=: on the GPU if only "auto" chose the CPU."""
        if self.choice is None or self.device != CPU or not auto_module().is_usable():
            return self
        choice = auto_module().Choice(auto_module().GPU, "stream= is given, which only GPUs have")
        return problem_of(
            type(self), views, op, init, self.params, self.where, self.num_arguments, choice
        )

    def captured_scalars(self, op: Any) -> bytes:
        """Return the current values of op's captured numbers; may raise `CapturesChanged`."""
        return packed_numbers_of(op, self.op_key, self.where)

    def operator(self, op: Any) -> Operator | None:
        """Return the operator as it was when the call began."""
        if not self.num_arguments:
            return None
        return as_operator(op, self.where, self.num_arguments, self.op_key)


class Request(NamedTuple):
    """A call with everything decided but the memory; used by plans and graphs."""

    problem: Problem
    views: tuple[View, ...]
    op: Any
    init: Any
    out: Any
    stream: Any

    def respecialized(self) -> Request:
        """Return the same call for op's current captured values."""
        return self._replace(problem=self.problem.respecialized(self.views, self.op, self.init))


def _is_check_on() -> bool:
    from gpualgo._base.log import flag

    return flag(_CHECKED) is True


@functools.cache
def auto_module() -> Any:
    """Return the module `auto`; machines without a GPU never import it."""
    from gpualgo._pipeline import auto

    return auto


def _problem_of_rows(kind: type[Problem], call: Call, row_init: checks.RowInit) -> Problem:
    """Return the problem of a call whose last inputs are initial values for each row."""
    zeros, count = [np.zeros((), dtype) for dtype in row_init.dtypes], row_init.num_arrays
    init = zeros[0] if row_init.form is None else row_init.form.packed(zeros)
    views, inits, where = call.views[:-count], call.views[-count:], call.where
    problem = kind(call._replace(views=views, init=init, params=call.params[:-1]))
    shape, acc, form = problem.row_shape, problem.acc, problem.form
    assert acc is not None
    names = check(inits, views[0], shape, acc, form, where)
    problem.params, problem.row_init = call.params, row_init
    problem.inputs = (*problem.inputs, *names)
    problem.forms = (*problem.forms, None) if problem.forms else ()
    problem.is_empty = False  # rows without elements return their initial values
    return problem


def _key_of_any_shape(
    kind: type[Problem], views: Views, params: tuple[Any, ...], key: tuple[Any, ...]
) -> Any:
    """Return what a call shares with equal ones of other shapes; None if its plan is its own."""
    shape = views[0].shape
    if vars(kind).get("shape_attributes") is None or not shape or min(shape) < 2:
        return None
    if len(shape) > 1 and not kind.takes_any_ndim:
        return None
    if params and type(params[-1]) is checks.RowInit:
        return None
    for view in views:
        step = records.step_of(view.dtype)
        if view.shape != shape or view.strides != dense_strides(shape, step):
            return None
    return ("any shape", len(shape), *[view[3:6] for view in views]), *key[1:]


def _agree(other: Problem, problem: Problem) -> bool:
    """Return whether `of_shape` makes the problem of another shape from one that was made."""
    shape = problem.input_shape
    made = other.of_shape(shape) if other.input_shape != shape else None
    return made is not None and _sizes(made) == _sizes(problem)


def _sizes(problem: Problem) -> dict[str, Any]:
    """Return results, numbers and shapes of a problem."""
    return {
        name: value
        for name, value in vars(problem).items()
        if name == "results" or type(value) in (int, bool)
        or (type(value) is tuple and all(type(n) is int for n in value))
        if name not in ("input_shape", "is_of_any_shape", "num_bytes")
    }  # fmt: skip


def problem_of(
    kind: type[Problem], views: tuple[View, ...], op: Any, init: Any, params: tuple[Any, ...],
    where: str, num_arguments: int = 2, host_device: int | Choice | None = None,
) -> Problem:  # fmt: skip
    """Return the cached problem of a call, or check the arguments and create it.

    Equal problems have equal operators, layouts and `params`, and inits of one type. A problem
    without operator has num_arguments 0. Host arrays go to `host_device`, else to the default
    device; with "auto", the key also holds whether the arrays are page-locked.
    """
    first, op_key = views[0], None
    try:
        op_key = operator_key(op) if num_arguments else None
    except (TypeError, ValueError, CompileError) as error:
        checks.name(error, op, where, kind.op_name)
        raise
    init_kind: Any = type(init)
    if init_kind not in PLAIN:
        is_view = init_kind is View
        init_kind = (init.dtype, init.device, init.library) if is_view else checks.kinds_of(init)
    layouts = layout_of(first) if len(views) == 1 else tuple([layout_of(view) for view in views])
    # An invalid operator has the key None; a marker keeps it apart from "no operator".
    key: tuple[Any, ...] = (
        layouts,
        op_key if num_arguments else _UNKNOWN,
        init_kind,
        params,
        where,
    )
    device: Any = first.device
    memory_kind = 0
    if device == CPU:
        if host_device is None:
            library = first.library
            host_device = None if library is NumPy else getattr(library, "host_device", None)
        device = default_device.current() if host_device is None else host_device
        if device == AUTO:
            memory_kind = auto_module().memory_kind(views)
        key = (*key, device, memory_kind)
    is_checked = CHECKED_KEY in ENVIRON and num_arguments == 2 and _is_check_on()
    if is_checked:
        key = (*key, _CHECKED)
    try:
        cached = kind.problems.look(key)
    except TypeError:  # an argument is unhashable
        cached = None
    if cached is not None:
        return cached
    like = _key_of_any_shape(kind, views, params, key) if device != AUTO else None
    other = None if like is None else kind.problems.get(like)
    if other is not None and other.is_of_any_shape:
        cached = other.of_shape(first.shape)
        if cached is not None:
            kind.problems.add(key, cached)
            cached.hold(0)
            return cached
    if first.device == CPU:
        from gpualgo._base import threads

        threads.check_environment()
    try:
        operator = as_operator(op, where, num_arguments, op_key) if num_arguments else None
        if operator is not None and kind.needs_associativity:
            check_associativity(operator, where)
        choice: Choice | None = device if type(device) is not int else None
        if device == AUTO:
            choice = auto_module().choose(*kind.row_of(views, params), views, operator, memory_kind)
        if choice is not None:
            device = choice.device
        call = Call(device, views, operator, init, params, where)
        if params and type(params[-1]) is checks.RowInit:
            problem = _problem_of_rows(kind, call, params[-1])
        else:
            problem = kind(call)
        problem.choice = choice
    except (CapturesChanged, TypeError, ValueError, CompileError) as error:
        checks.name(error, op, where, kind.op_name)
        # a closure would make each call's variables slower
        arguments = kind, views, op, init, params, where, num_arguments, host_device
        return retried(error, op, op_key, functools.partial(problem_of, *arguments))
    problem.num_arguments, problem.op_key = num_arguments, op_key
    if is_checked:
        problem.is_checked = True
    # Equal dtypes can have several names on a platform; results use one of them.
    problem.results = tuple([r._replace(dtype=dtypes.as_named(r.dtype)) for r in problem.results])
    if problem.form is not None and device == CPU:
        count = len(problem.results) - problem.has_dynamic_length
        problem.structure = structure_of(problem.form, [r.dtype for r in problem.results[:count]])
    kind.problems.add(key, problem)
    if like is not None and choice is None:
        problem.input_shape = first.shape
        problem.is_of_any_shape = other is not None and _agree(other, problem)
        kind.problems.add(like, problem)
    problem.hold(0)  # register what __init__ allocated
    return problem
