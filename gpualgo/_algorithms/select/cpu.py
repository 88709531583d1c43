"""Selection on the CPU's cores: pieces are counted, then written where they belong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.select import cpu_parameters as at
from gpualgo._base import records, threads
from gpualgo._base.records import Apart
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, computing, get_code, get_entry, get_kernel, scratch
from gpualgo._cpu.layout import Dims, Room, address, is_dense, leaf, merge, packer
from gpualgo._cpu.layout import table as in_words
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator, known
from gpualgo._pipeline.routines import Routine, compiled

Array: TypeAlias = np.ndarray[Any, Any]
_BOOL = np.dtype(np.bool_)
_NOBODY = known("no_operator")
_FIRST_LOOK, _GROWTH = 1, 4  # tasks of a search; each further look is at so many times more
IF, MARKED, HEADS = "if", "marked", "heads"  # what is kept


def select(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    kept: str, *, keeps_rest: bool,
) -> int:  # fmt: skip
    """Write the elements that are kept to outs, as far as these reach; return how many they are.

    Arrays are those of the numbers of source, in one shape of at least one element, any strides;
    outs are of one length and any stride, and lie apart. What is kept op says, or the last number
    marks it (`kept` is MARKED), which is not written. With `keeps_rest` the others follow.
    """
    with bound(_NOBODY if op is None else op):
        return Job(source, arrays, outs, op, kept).run(keeps_rest)


def count(source: records.Source, arrays: Sequence[Array], op: Operator | None) -> int:
    """Return how many elements the last number of source marks; arrays as for `select`."""
    with bound(_NOBODY if op is None else op):
        return Job(source, arrays, [], op, MARKED).count()


def first(source: records.Source, arrays: Sequence[Array], op: Operator | None) -> int:
    """Return the least of the places that source gives, or -1: the first element that is marked.

    Places rise in C order; those of elements that are not marked are NOWHERE. Arrays as for
    `select`. Reads no further than some way behind the element that is found.
    """
    with bound(_NOBODY if op is None else op):
        return Job(source, arrays, [], op, MARKED).first()


def heads(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], starts: Array | None,
    op: Operator | None,
) -> int:  # fmt: skip
    """Write the first elements of runs to outs, and where they stand to starts; return the runs.

    Arrays and outs as for `select`. op says which elements are equal, without one their values do.
    """
    with bound(_NOBODY if op is None else op):
        return Job(source, arrays, outs, op, HEADS, starts).run(keeps_rest=False)


def routine(items: int, work: int, name: str = "select") -> Routine:
    """Return what a selection, or a search ("seek"), would run."""
    return compiled(name, items, at.PIECE, work)


class Job:
    """A selection: its table of arguments, and the code that it calls."""

    def __init__(
        self, source: records.Source, arrays: Sequence[Array], outs: Sequence[Array],
        op: Operator | None, kept: str, starts: Array | None = None,
    ) -> None:  # fmt: skip
        self.num_items, self.outs = arrays[0].size, outs
        shape = arrays[0].shape
        strides = zip(*(array.strides for array in arrays), strict=True)
        dims = merge([(n, *by) for n, by in zip(shape, strides, strict=True)])
        element, room = records.held(source), Room()
        room.take(at.SLOTS)
        numbers = records.leaves(source)
        is_plain = kept == MARKED and not isinstance(source, records.Computed)
        self.counts = [is_plain and _rises(number, dims, k) for k, number in enumerate(numbers)]
        self.reads = [
            [*_read(array, number, dims, k, room, self.counts[k]), *(dim[1 + k] for dim in dims)]
            for k, (array, number) in enumerate(zip(arrays, numbers, strict=True))
        ]
        self.held: list[Any] = []  # code that is called by its address
        self.compute = self.computed = self.mark = 0
        if isinstance(source, records.Computed):
            assert op is not None
            self.compute = self._code(computing(op.source, source, element, at.CHUNK))
            self.computed = room.take(
                at.CHUNK * sum(number.itemsize for number in records.leaves(element))
            )
        self.compares, self.starts, self.numbers = kept == HEADS, starts, 0
        self.differs = [0] * len(outs)
        if kept == IF or (kept == HEADS and op is not None and op.name != _NOBODY.name):
            assert op is not None
            self.mark = self._code((_marking if kept == IF else _heading)(op, element))
        elif kept == HEADS:
            self.differs = [self._code(differing(leaf)) for leaf in records.leaves(element)]
        if starts is not None:
            self.numbers = room.take(8 * at.CHUNK)
        self.marks, self.packed = room.take(at.CHUNK), room.take(16 * at.CHUNK)
        self.num_bytes, self.dims = room.size, dims
        self.work = self.num_items * sum(array.itemsize for array in arrays)

    def _code(self, loaded: Any) -> int:
        self.held.append(loaded)
        return int(loaded.address)

    def run(self, keeps_rest: bool) -> int:
        """Run all passes; return how many elements are kept."""
        per_task = at.PIECE
        count = -(-self.num_items // per_task)
        is_alone = count == 1 or threads.num_threads() == 1
        if is_alone:
            per_task, count = self.num_items, 1
        places = np.zeros(count, np.int64)
        if is_alone and not keeps_rest:
            self._pass(places, per_task, is_counting=False, total=-1)
            return int(places[0])
        self._pass(places, per_task, is_counting=True, total=-1)
        total = int(places.sum())
        places = np.concatenate(([0], np.cumsum(places)[:-1]))
        self._pass(places, per_task, is_counting=False, total=total if keeps_rest else -1)
        return total

    def count(self) -> int:
        """Return how many elements are kept, without writing any."""
        places = np.zeros(-(-self.num_items // at.PIECE), np.int64)
        self._pass(places, at.PIECE, is_counting=True, total=-1)
        return int(places.sum())

    def first(self) -> int:
        """Return the first place that is any, or -1."""
        places = np.zeros(-(-self.num_items // at.PIECE), np.int64)
        arguments = self.table(address(places), at.PIECE, is_counting=True, total=-1)
        kernel, place, begin, size = seek(), address(arguments), 0, _FIRST_LOOK
        while begin < len(places):  # each further look is at so many times more
            size = min(size, len(places) - begin)
            self._run(kernel, place, begin, size, self.work * size // len(places))
            found = places[begin : begin + size]
            if (found >= 0).any():
                return int(found[found >= 0][0])
            begin, size = begin + size, size * _GROWTH
        return -1

    def _pass(self, places: Array, per_task: int, is_counting: bool, total: int) -> None:
        arguments = self.table(address(places), per_task, is_counting, total)
        self._run(walk(), address(arguments), 0, len(places), self.work)

    def _run(self, kernel: Kernel, arguments: int, begin: int, count: int, work: int) -> None:
        """Run some tasks on all cores."""
        num_bytes = self.num_bytes

        def body(first: int, last: int) -> None:
            memory = scratch(num_bytes)
            kernel(arguments, address(memory), begin + first, begin + last)

        threads.run(body, count, work)

    def table(self, places: int, per_task: int, is_counting: bool, total: int) -> Array:
        """Return the kernels' arguments."""
        writes = [
            written(out, differs, counts)
            for out, differs, counts in zip(self.outs, self.differs, self.counts, strict=False)
        ]
        if self.starts is not None:
            writes.append(written(self.starts, 0))
        head = {
            at.LENGTH: self.num_items, at.NDIM: len(self.dims), at.INPUTS: len(self.reads),
            at.OUTPUTS: len(writes), at.PER_TASK: per_task, at.PLACES: places,
            at.COUNTS: is_counting, at.TOTAL: total, at.COMPUTE: self.compute,
            at.COMPUTED: self.computed, at.MARK: self.mark, at.MARKS: self.marks,
            at.PACKED: self.packed, at.COMPARES: self.compares, at.NUMBERS: self.numbers,
        }  # fmt: skip
        lengths = [dim[0] for dim in self.dims]
        return in_words([head[i] for i in range(at.TAIL)], lengths, *self.reads, *writes)


def _rises(number: np.dtype[Any], dims: Dims, which: int) -> bool:
    """Return whether an array is of positions that rise by 1: the first tells all."""
    if not records.is_position(number):
        return False
    return len(dims) == 0 or (len(dims) == 1 and dims[0][1 + which] == 1)


def _read(
    array: Array, number: np.dtype[Any], dims: Dims, which: int, room: Room, counts: bool
) -> tuple[int, ...]:
    """Return what the kernel's table has of an array that is read, but for strides."""
    if counts:  # a slot's address is then a position, of an array at ORIGIN of bytes
        return address(array), 1, True, 0, 0, 0, 0
    seen = records.number_of(number)
    is_direct = is_dense(dims, which, number.itemsize)
    source = number if records.is_position(number) else seen
    return leaf(address(array), source, source, is_direct, at.CHUNK, room)


def written(out: Array, differs: int, counts: bool = False) -> list[int]:
    """Return what the kernel's table has of an array that is written."""
    size, stride = out.itemsize, out.strides[0]
    pack = 0 if stride == size else packer(size)
    pick = _place_picker() if counts else _picker(size)
    return [address(out), size, stride, out.shape[0], pick, pack, differs]


def _place_picker() -> int:
    """Return the address of what writes down marked positions."""

    def write() -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_pick_kernels import place_kernel

        return place_kernel(records.ORIGIN)

    return get_entry(("pick places",), write)


def _picker(itemsize: int) -> int:
    """Return the address of what moves up the marked numbers of a size."""

    def write() -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_pick_kernels import pick_kernel

        return pick_kernel(itemsize)

    return get_entry(("pick", itemsize), write)


def _marking(op: Operator, element: np.dtype[Any]) -> Any:
    """Return the code of f(marks, slots, count), which asks a predicate."""
    numbers = records.leaves(element)
    argument = Apart(element) if element.names is not None else element

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import mark_kernel

        return mark_kernel(fn, numbers)

    return get_code(("mark", numbers), write, Applied(op, (argument,), _BOOL))


def _heading(op: Operator, element: np.dtype[Any]) -> Any:
    """Return the code of the same function, which asks an operator whether elements are equal."""

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import head_kernel

        return head_kernel(fn, element)

    return get_code(("head", element), write, Applied(op, (element, element), _BOOL))


def differing(number: np.dtype[Any]) -> Any:
    """Return the code of f(marks, numbers, count), which compares values of a dtype."""

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import differ_kernel

        return differ_kernel(fn, number)

    applied = Applied(Operator(same_value), (number, number), _BOOL)
    return get_code(("differ", number), write, applied)


def same_value(a: Any, b: Any) -> Any:
    """Return whether numbers are equal in the order of values: all NaN are."""
    return a == b or (a != a and b != b)


def walk() -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import select_kernel

        return select_kernel

    return get_kernel(("select",), write)


def seek() -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import seek_kernel

        return seek_kernel

    return get_kernel(("seek",), write)
