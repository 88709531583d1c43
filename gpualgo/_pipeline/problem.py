"""A problem: an algorithm's arguments but for the memory, checked once; what equal calls share.

One file of more than 300 lines, as what equal calls share and how it is found are read together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from gpualgo._arrays.forms import Form, structure_of
from gpualgo._arrays.view import NumPy, View, layout_of
from gpualgo._base import dtypes
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._base.memo import Memo
from gpualgo._driver import default_device
from gpualgo._driver.default_device import AUTO, CPU
from gpualgo._operators.captured import ownerless
from gpualgo._operators.operator import Operator, as_operator, hot_key, words_as_of
from gpualgo._pipeline import checks, elements, refusals, settled

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.auto import Choice
    from gpualgo._pipeline.results import Result
    from gpualgo._pipeline.routines import Routine

Array = np.ndarray[Any, Any]
Extent = tuple[int, int]
Start: TypeAlias = tuple[bytes, int, int, int]
"""What comes before the first element: its bytes, 1 if there are any, its device address, and 0."""
NO_START: Start = (b"", 0, 0, 0)
_UNKNOWN = object()
PLAIN = frozenset((type(None), bool, int, float, complex))  # immutable: identity tells them


def is_plain(init: Any) -> bool:
    """Return whether a start value that is the same object is the same value."""
    return type(init) in PLAIN or (type(init) is tuple and PLAIN.issuperset(map(type, init)))


Prepared: TypeAlias = Callable[[Sequence[Array], Sequence[Array], int], None]
"""A call on the CPU: inputs, before they are broadcast, new results, and init's address or 0."""


class Problem:
    """What an algorithm tells the pipeline: a subclass for each algorithm.

    Its __init__ checks the arguments: the device that it runs on, the inputs' views, the operator
    (None: it has none), the start value, `rest` (all other arguments in plain form: hashable, and
    equal only where they mean the same, so never 1.0 or True for 1), and the public function's
    name. It sets `results` and, where inputs may hold nothing to combine, `is_empty`.
    """

    max_kept: ClassVar[int] = 4096  # problems of an algorithm
    problems: ClassVar[Memo[Problem]]
    num_bytes = 0  # of arrays and tables that it holds between calls, which few do
    inputs: Sequence[str] = ("x",)  # names of the inputs, for messages
    needs_alignment = True  # kernels load whole items
    copies_page_locked = False  # on a GPU: arrays of the host are never used in place
    gives_scalars = False  # for a result of no dimensions, in NumPy
    reads_data = False  # elements decide the problem: a plan's call looks at them
    takes_any_items = False  # of outputs: plain bytes of any dtype
    spreads_tuples = False  # the arrays of one are broadcast against each other, and no others
    op_name: ClassVar[str] = "op"  # what the public function calls its operator
    has_names = True  # of a tuple's fields, by which an operator knows them
    broadcasts_arguments = False  # others are broadcast to the first one's shape
    looks_again = False  # its operator is put together anew by each call, of a plan too
    has_starts = False  # init is arrays, which come last among the inputs
    is_counted = False  # the last result is a count, which elements decide (see `counted`)
    output_names: tuple[str, ...] = ()  # of several results, where they are not `out`'s items

    results: tuple[Result, ...]
    is_empty = False  # no element is read
    forms: tuple[Form | None, ...] = ()  # of arguments that are tuples
    form: Form | None = None  # of results that are put together to one
    structure: np.dtype[Any] | None = None  # of results that are made as fields of one array
    acc: np.dtype[Any] | None = None  # of init, where that is not the first result's
    choice: Choice | None = None  # of the device, where the table has made one
    warm: Any = None  # `host_warm.Warm`, if the first call on the CPU has prepared it
    is_asked = False  # whether it has been tried
    small: Any = None  # `host_small.Small`, once small arrays of the host were on a GPU

    def __init_subclass__(cls) -> None:
        cls.problems = Memo(cls.max_kept)

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        for view, name in zip(views, self.inputs, strict=False):
            checks.dimensions(view, name, where)
        self.device, self.rest, self.where = device, rest, where
        self.num_arguments = 2  # of the operator
        self.hot: Any = None  # what decides its kernel, as it was when the first call began
        self.arrays = () if op is None else ownerless(op.arrays)  # that op captures
        self.has_numbers = op is not None and bool(op.key.numbers)  # that are data
        self._kept = None if op is None else op.identity  # its id is in the key
        library, self.views_on_host = views[0].library, views[0].device == CPU
        # Device arrays of one library that has a current stream: no order between streams.
        read = (*views, init) if type(init) is View else views
        self.is_direct = not (self.views_on_host or library.has_producers) and all(
            view.library is library for view in read
        )
        if self.is_direct:
            self.stream: Callable[[int], int] = library.stream
            self.pointer: Callable[[Any], int] = library.pointer
        self.out_name = f"{where}: out"
        self.plans: dict[int, Plan] = {}  # into new results, by the inputs' alignment
        # Into outputs that were given, with how far the output and the inputs reach.
        self.plans_into: dict[Any, tuple[Plan, Extent, tuple[Extent, ...]]] = {}
        self.default_start: Array | None = None  # where no init is given
        self.last_start: tuple[Any, Start] = (_UNKNOWN, NO_START)
        self.makers: list[Callable[[], Any]] = []  # of new results, once there is a plan for them

    # What an algorithm defines.

    def of_empty(self, op: Any, init: Any) -> Array:
        """Return what all results hold where no element is read, 0-d."""
        raise NotImplementedError

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        """Return the plan for arrays of these layouts and alignments."""
        raise NotImplementedError

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        """Run on the CPU's cores."""
        raise NotImplementedError

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        """Return what `cpu` would run for these arguments, in order; runs and compiles nothing."""
        raise NotImplementedError

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        """Return what `cpu` does for arrays of these layouts, wherever they lie, and such results.

        None: each call goes by `cpu`. op captures no arrays; the numbers that it captures are there
        when it is called.
        """
        return None

    def taken(
        self, arguments: Sequence[Any], where: str
    ) -> tuple[tuple[View, ...], tuple[Form | None, ...]] | None:
        """Return the views of such arguments and their forms; None: each is taken by itself."""
        return None

    def for_data(self, views: tuple[View, ...], stream: Any) -> Problem:
        """Return the same call's problem for other arrays, where it `reads_data`."""
        return self

    def in_blocks(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        """Run arrays of the host on a GPU, one block at a time; False: they go there as a whole.

        `places`: arrays and results as kernels see them, None for pageable ones.
        """
        return False

    def without_room(
        self, arrays: list[Array], results: list[Array], op: Any, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        """Do as `in_blocks` with arrays that find no room on the GPU as a whole; False: nor so.

        Only for what has the same bits however it is cut.
        """
        return False

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        """Return a call's row of the table, and the arrays whose elements that counts."""
        return "one pass", views[:1]

    # What follows from that.

    def hold(self, num_bytes: int) -> None:
        """Count so many bytes more that are held between calls."""
        self.num_bytes += num_bytes
        if self.num_bytes:
            self.problems.weigh(self, self.num_bytes)

    def encode(self, init: Any) -> Array | None:
        """Return init as a 0-d array of the result's dtype; None: there is none, on the host."""
        if init is None:
            return self.default_start
        return elements.encoded(init, self.acc or self.results[0].dtype, self.where)

    def start(self, init: Any) -> Start:
        """Return init as kernels take it; the last one is remembered."""
        if type(init) is View:
            return b"", 0, init.ptr, 0
        encoded = self.encode(init)
        found: Start = NO_START if encoded is None else (encoded.tobytes(), 1, 0, 0)
        if is_plain(init):
            self.last_start = (init, found)
        return found

    def identity(self, op: Operator, hint: str) -> Array:
        """Return op's identity in the result's dtype; raise ValueError, with a hint, if none."""
        dtype = self.acc or self.results[0].dtype
        identity = op.identity_for(dtype)
        if identity is None:
            raise ValueError(f"{self.where}: {hint}; pass init= or ga.Operator(op, identity=...)")
        if op.identity is None:  # a recognised operator's: 0, 1 and -1 fit every dtype
            return np.array(identity).astype(dtype)
        return elements.encoded(identity, dtype, self.where, "identity")

    def parts_of(self, content: Array) -> list[Array]:
        """Return what each result holds of an element that all of them hold."""
        names = content.dtype.names
        return [content] * len(self.results) if names is None else [content[n] for n in names]

    def again(self, views: tuple[View, ...], op: Any, init: Any) -> Problem:
        """Return the same call's problem for op as it is now."""
        return self.like(views, op, init, self.rest)

    def like(self, views: tuple[View, ...], op: Any, init: Any, rest: tuple[Any, ...]) -> Problem:
        """Return a problem of this kind on this device, whatever the default one is now."""
        place = self.choice or self.device
        return problem_of(type(self), views, op, init, rest, self.where, self.num_arguments, place)

    def on_gpu(self, views: tuple[View, ...], op: Any, init: Any) -> Problem:
        """Return it with stream= given: on a GPU, where nobody but the table chose the CPU."""
        if self.choice is None or self.device != CPU or not _auto().is_usable():
            return self
        place = _auto().Choice(_auto().GPU, "stream= is given, and streams are a GPU's")
        return problem_of(
            type(self), views, op, init, self.rest, self.where, self.num_arguments, place
        )

    def words(self, op: Any) -> bytes:
        """Return the numbers that op captures, as they are now; raises `CapturesChanged`."""
        return words_as_of(op, self.hot, self.where)

    def operator(self, op: Any) -> Operator | None:
        """Return the operator of a call that has begun, as it was then."""
        if not self.num_arguments:
            return None
        return as_operator(op, self.where, self.num_arguments, self.hot)


class Request(NamedTuple):
    """A call with everything decided but the memory: what plans and graphs keep."""

    problem: Problem
    views: tuple[View, ...]
    op: Any
    init: Any
    out: Any
    stream: Any


def _where_they_lie(views: tuple[View, ...]) -> int:
    global _where_they_lie
    _where_they_lie = _auto().where_they_lie
    return _where_they_lie(views)


@functools.cache
def _auto() -> Any:
    """Return the module that places host arrays: no machine without a GPU loads it."""
    from gpualgo._pipeline import auto

    return auto


def problem_of(
    kind: type[Problem], views: tuple[View, ...], op: Any, init: Any, rest: tuple[Any, ...],
    where: str, num_arguments: int = 2, host_device: int | Choice | None = None,
) -> Problem:  # fmt: skip
    """Return the problem of a call; its arguments are checked when they are new.

    Equal problems have equal operators, layouts and `rest`, and inits of one kind. An algorithm
    whose operator takes no arguments has none. Arrays of the host are for `host_device`, without
    it for the default device: "auto" is a part of the key, and so is what the table asks of them.
    """
    first, hot = views[0], None
    try:
        hot = hot_key(op) if num_arguments else None
    except (TypeError, ValueError, CompileError) as error:
        refusals.name(error, op, where, kind.op_name)
        raise
    start: Any = type(init)
    if start not in PLAIN:
        on_device = start is View
        start = (init.dtype, init.device, init.library) if on_device else elements.kinds_of(init)
    layouts = layout_of(first) if len(views) == 1 else tuple([layout_of(view) for view in views])
    # An operator that is none has no key, as where there is none: it shall not find its problem.
    key: tuple[Any, ...] = (layouts, hot if num_arguments else _UNKNOWN, start, rest, where)
    device: Any = first.device
    lie = 0
    if device == CPU:
        if host_device is None:
            library = first.library
            host_device = None if library is NumPy else getattr(library, "host_device", None)
        device = default_device.current() if host_device is None else host_device
        if device == AUTO:
            lie = _where_they_lie(views)
        key = (*key, device, lie)
    try:
        found = kind.problems.look(key)
    except TypeError:  # an unhashable argument
        found = None
    if found is not None:
        return found
    if first.device == CPU:
        from gpualgo._base import threads

        threads.check_environment()
    try:
        operator = as_operator(op, where, num_arguments, hot) if num_arguments else None
        choice: Choice | None = device if type(device) is not int else None
        if device == AUTO:
            choice = _auto().choose(*kind.row_of(views, rest), views, operator, lie)
        if choice is not None:
            device = choice.device
        problem = kind(device, views, operator, init, rest, where)
        problem.choice = choice
    except CapturesChanged:
        return problem_of(kind, views, op, init, rest, where, num_arguments, host_device)
    except (TypeError, ValueError, CompileError) as error:
        with settled.retried(op, hot, error) as is_another:
            if is_another:
                return problem_of(kind, views, op, init, rest, where, num_arguments, host_device)
        refusals.name(error, op, where, kind.op_name)
        raise
    problem.num_arguments, problem.hot = num_arguments, hot
    # They are for all calls with equal dtypes, whichever of a platform's names these come under.
    problem.results = tuple([r._replace(dtype=dtypes.as_named(r.dtype)) for r in problem.results])
    if problem.form is not None and device == CPU:
        count = len(problem.results) - problem.is_counted
        problem.structure = structure_of(problem.form, [r.dtype for r in problem.results[:count]])
    kind.problems.add(key, problem)
    problem.hold(0)  # what it has held before it was kept
    return problem
