"""Selection on CPU cores: tasks count their kept elements, then write them at the right offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.select import cpu_parameters as at
from gpualgo._base import records, threads
from gpualgo._base.records import Separate
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.kernels import Kernel, compute_code, get_code, get_entry, get_kernel, scratch
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import Dims, ScratchLayout, field_arguments, is_dense, merge, packer
from gpualgo._cpu.layout import table as in_words
from gpualgo._cpu.operator import Applied
from gpualgo._cpu.parameters import START
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline.routines import Routine, compiled

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared


Array: TypeAlias = np.ndarray[Any, Any]
_BOOL = np.dtype(np.bool_)
_NO_OPERATOR = builtin("no_operator")
_FIRST_LOOK, _GROWTH = 1, 4  # tasks in a search's first batch; factor between batches
IF, MARKED, HEADS = "if", "marked", "heads"  # selection criteria


def select(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    kept: str, *, keeps_rest: bool,
) -> int:  # fmt: skip
    """Write the kept elements to outs, up to their length; return their number.

    `arrays` are those of the fields of source, of one shape with at least one element, any strides;
    `outs` have one length and any stride, and overlap none. op decides which elements are kept, or
    (if `kept` is MARKED) the last field, which is not written. With `keeps_rest` the others follow.
    """
    with captures_bound(_NO_OPERATOR if op is None else op):
        return Job(source, arrays, outs, op, kept).run(keeps_rest)


def count(source: records.Source, arrays: Sequence[Array], op: Operator | None) -> int:
    """Return how many elements the last field of source marks; arrays as for `select`."""
    with captures_bound(_NO_OPERATOR if op is None else op):
        return Job(source, arrays, [], op, MARKED).count()


def first(source: records.Source, arrays: Sequence[Array], op: Operator | None) -> int:
    """Return the least index that source gives, or -1: that of the first marked element.

    Indices rise in C order; those of unmarked elements are NOWHERE. Arrays as for `select`. Stops
    reading soon after the first marked element.
    """
    with captures_bound(_NO_OPERATOR if op is None else op):
        return Job(source, arrays, [], op, MARKED).first()


def heads(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], starts: Array | None,
    op: Operator | None,
) -> int:  # fmt: skip
    """Write the first elements of runs to outs and their indices to starts; count the runs.

    Arrays and outs as for `select`. op decides which elements are equal; without it, their values.
    """
    with captures_bound(_NO_OPERATOR if op is None else op):
        return Job(source, arrays, outs, op, HEADS, starts).run(keeps_rest=False)


def routine(items: int, work: int, name: str = "select") -> Routine:
    """Return what a selection or a search ("seek") would run, for `explain`."""
    return compiled(name, items, at.PIECE, work)


class Job:
    """A selection: its argument table and the functions that it calls."""

    def __init__(
        self, source: records.Source, arrays: Sequence[Array], outs: Sequence[Array],
        op: Operator | None, kept: str, starts: Array | None = None,
    ) -> None:  # fmt: skip
        self.num_items, self.outs = arrays[0].size, outs
        shape = arrays[0].shape
        strides = zip(*(array.strides for array in arrays), strict=True)
        dims = merge([(n, *steps) for n, steps in zip(shape, strides, strict=True)])
        element, room = records.register_dtype(source), ScratchLayout()
        room.take(at.SLOTS)
        numbers = records.field_dtypes(source)
        is_plain = kept == MARKED and not isinstance(source, records.Computed)
        self.counts = [is_plain and _is_range(number, dims, k) for k, number in enumerate(numbers)]
        self.reads = [
            [*_entry(array, number, dims, k, room, self.counts[k]), *(dim[1 + k] for dim in dims)]
            for k, (array, number) in enumerate(zip(arrays, numbers, strict=True))
        ]
        # For each output. Inputs are the outputs' fields, then marks, unless elements are computed.
        self.out_counts = self.counts[: len(outs)] if is_plain else [False] * len(outs)
        self.held: list[Any] = []  # keeps code alive that is called by address
        self.compute = self.computed = self.mark = 0
        if isinstance(source, records.Computed):
            assert op is not None
            self.compute = self._code(compute_code(op.source, source, element, at.CHUNK))
            self.computed = room.take(
                at.CHUNK * sum(number.itemsize for number in records.field_dtypes(element))
            )
        self.compares, self.starts, self.numbers = kept == HEADS, starts, 0
        self.differs = [0] * len(outs)
        if kept == IF or (kept == HEADS and op is not None and op.name != _NO_OPERATOR.name):
            assert op is not None
            self.mark = self._code((_predicate_code if kept == IF else _equality_code)(op, element))
        elif kept == HEADS:
            self.differs = [self._code(differing(leaf)) for leaf in records.field_dtypes(element)]
        if starts is not None:
            self.numbers = room.take(8 * at.CHUNK)
        self.marks, self.packed = room.take(at.CHUNK), room.take(16 * at.CHUNK)
        self.num_bytes, self.dims = room.size, dims
        self.work = self.num_items * sum(array.itemsize for array in arrays)

    def _code(self, loaded: Any) -> int:
        self.held.append(loaded)
        return int(loaded.address)

    def run(self, keeps_rest: bool) -> int:
        """Run all passes; return the number of kept elements."""
        per_task = at.PIECE
        count = -(-self.num_items // per_task)
        is_alone = count == 1 or threads.num_threads() == 1
        if is_alone:
            per_task, count = self.num_items, 1
        offsets = np.zeros(count, np.int64)
        if is_alone and not keeps_rest:
            self._pass(offsets, per_task, is_counting=False, total=-1)
            return int(offsets[0])
        self._pass(offsets, per_task, is_counting=True, total=-1)
        total = int(offsets.sum())
        offsets = np.concatenate(([0], np.cumsum(offsets)[:-1]))
        self._pass(offsets, per_task, is_counting=False, total=total if keeps_rest else -1)
        return total

    def count(self) -> int:
        """Return the number of kept elements without writing them."""
        counts = np.zeros(-(-self.num_items // at.PIECE), np.int64)
        self._pass(counts, at.PIECE, is_counting=True, total=-1)
        return int(counts.sum())

    def first(self) -> int:
        """Return the first index that is not NOWHERE, or -1."""
        results = np.zeros(-(-self.num_items // at.PIECE), np.int64)
        arguments = self.table(address(results), at.PIECE, is_counting=True, total=-1)
        kernel, table_address, start, size = seek(), address(arguments), 0, _FIRST_LOOK
        while start < len(results):  # each batch is _GROWTH times larger
            size = min(size, len(results) - start)
            self._run(kernel, table_address, start, size, self.work * size // len(results))
            batch = results[start : start + size]
            if (batch >= 0).any():
                return int(batch[batch >= 0][0])
            start, size = start + size, size * _GROWTH
        return -1

    def _pass(self, offsets: Array, per_task: int, is_counting: bool, total: int) -> None:
        arguments = self.table(address(offsets), per_task, is_counting, total)
        self._run(walk(), address(arguments), 0, len(offsets), self.work)

    def _run(self, kernel: Kernel, arguments: int, start: int, count: int, work: int) -> None:
        """Run some tasks on all cores."""
        num_bytes = self.num_bytes

        def body(first: int, last: int) -> None:
            memory = scratch(num_bytes)
            kernel(arguments, address(memory), start + first, start + last)

        threads.run(body, count, work)

    def table(self, places: int, per_task: int, is_counting: bool, total: int) -> Array:
        """Return the kernels' argument table."""
        writes = [
            written(out, differs, counts)
            for out, differs, counts in zip(self.outs, self.differs, self.out_counts, strict=True)
        ]
        if self.starts is not None:
            writes.append(written(self.starts, 0))
        head = {
            at.LENGTH: self.num_items, at.NDIM: len(self.dims), at.INPUTS: len(self.reads),
            at.OUTPUTS: len(writes), at.PER_TASK: per_task, at.TASK_OFFSETS: places,
            at.COUNTS: is_counting, at.TOTAL: total, at.COMPUTE: self.compute,
            at.COMPUTED: self.computed, at.MARK: self.mark, at.MARKS: self.marks,
            at.PACKED: self.packed, at.COMPARES: self.compares, at.NUMBERS: self.numbers,
        }  # fmt: skip
        lengths = [dim[0] for dim in self.dims]
        return in_words([head[i] for i in range(at.TAIL)], lengths, *self.reads, *writes)


def _is_range(number: np.dtype[Any], dims: Dims, k: int) -> bool:
    """Return whether a field is an index that rises by 1, so that the first index is enough."""
    if not records.is_position(number):
        return False
    return len(dims) == 0 or (len(dims) == 1 and dims[0][1 + k] == 1)


def _entry(
    array: Array, number: np.dtype[Any], dims: Dims, k: int, room: ScratchLayout, counts: bool
) -> tuple[int, ...]:
    """Return the entry of an input array in the kernel's table, without strides."""
    if counts:  # the slot holds an index, encoded as an address in a byte array at ORIGIN
        return address(array), 1, True, 0, 0, 0, 0
    value_dtype = records.operand_dtype(number)
    is_direct = is_dense(dims, k, number.itemsize)
    source = number if records.is_position(number) else value_dtype
    return field_arguments(address(array), source, source, is_direct, at.CHUNK, room)


def written(out: Array, differs: int, counts: bool = False) -> list[int]:
    """Return the entry of an output array in the kernel's table."""
    size, stride = out.itemsize, out.strides[0]
    pack = 0 if stride == size else packer(size)
    pick = _index_picker() if counts else _picker(size)
    return [address(out), size, stride, out.shape[0], pick, pack, differs]


def _index_picker() -> int:
    """Return the address of the function that writes the marked indices."""

    def write() -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import place_kernel

        return place_kernel(records.ORIGIN)

    return get_entry(("pick places",), write)


def _picker(itemsize: int) -> int:
    """Return the address of the function that compacts the marked numbers of an item size."""

    def write() -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import pick_kernel

        return pick_kernel(itemsize)

    return get_entry(("pick", itemsize), write)


def _predicate_code(op: Operator, element: np.dtype[Any]) -> Any:
    """Return the code of f(marks, slots, count), which applies a predicate."""
    numbers = records.field_dtypes(element)
    argument = Separate(element) if element.names is not None else element

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import mark_kernel

        return mark_kernel(fn, numbers)

    return get_code(("mark", numbers), write, Applied(op, (argument,), _BOOL))


def _equality_code(op: Operator, element: np.dtype[Any]) -> Any:
    """Return the code of f(marks, slots, count), which marks the first elements of runs."""

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
    """Return whether numbers are equal by value; all NaN are equal."""
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


# --- Selection and search on the CPU, prepared once for arrays of known layouts.
#
# Only for input that fits one task.


def prepared_search(
    source: records.Source, arrays: Sequence[Array], op: Operator | None, *, is_counting: bool
) -> Prepared | None:
    """Return a call of `cpu.count` or `cpu.first` for these layouts; None above one task."""
    job = Job(source, arrays, [], op, MARKED)
    if job.num_items > at.PIECE:
        return None
    launch = _counting(job, walk() if is_counting else seek())

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        launch((outs[0], *arrays))

    return run


def prepared_select(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    kept: str, picks: tuple[int, ...] | None, *, keeps_rest: bool,
) -> Prepared | None:  # fmt: skip
    """Return a call of `cpu.select` for arrays of these layouts; None above one task.

    The count is the last output. `picks` are the indices of a call's arrays that are read.
    """
    job = Job(source, arrays, outs, op, kept)
    if job.num_items > at.PIECE:
        return None
    counting = _counting(job, walk()) if keeps_rest else None
    launch = _launch(job, counting is not None)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *out_addresses, count = [address(out) for out in outs]
        if picks is not None:
            arrays = [arrays[i] for i in picks]
        input_addresses, total = [address(array) for array in arrays], []
        if counting is not None:
            counting((count, *input_addresses))
            total = [int(outs[-1])]
        outs[-1][...] = 0  # index of the first kept element
        launch([count, *input_addresses, *out_addresses, *total])

    return run


def prepared_heads(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    gives_lengths: bool,
) -> Prepared | None:  # fmt: skip
    """Return a call of `cpu.heads`, with the runs' lengths as last output; None above one task."""
    num_items = arrays[0].size
    if num_items > at.PIECE:
        return None
    starts = np.empty(num_items, np.int64) if gives_lengths else None
    job = Job(source, arrays, outs, op, HEADS, starts)
    launch = _launch(job, False)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *targets, count = outs
        run_starts = np.empty(num_items + 1, np.int64)
        if gives_lengths:
            *targets, lengths = targets
            targets.append(run_starts)
        count[...] = 0
        launch((count, *arrays, *targets))
        if gives_lengths:
            num_runs = int(count)
            run_starts[num_runs] = num_items
            np.subtract(run_starts[1 : num_runs + 1], run_starts[:num_runs], lengths[:num_runs])

    return run


def _counting(job: Job, kernel: Kernel) -> Launch:
    """Return a launch of one task, given the addresses of its result and its inputs."""
    arguments = job.table(0, job.num_items, is_counting=True, total=-1)
    slots = (at.TASK_OFFSETS, *_input_slots(job))
    return Launch(kernel, arguments, slots, job.num_bytes, 1, job.work)


def _launch(job: Job, keeps_rest: bool) -> Launch:
    """Return a launch of one task, given count, inputs, outs and (with a rest) the total."""
    arguments = job.table(0, job.num_items, is_counting=False, total=-1)
    num_outs = len(job.outs) + (job.starts is not None)
    targets = range(len(arguments) - at.WRITTEN * num_outs + at.OUT, len(arguments), at.WRITTEN)
    slots = (at.TASK_OFFSETS, *_input_slots(job), *targets, *([at.TOTAL] if keeps_rest else []))
    return Launch(walk(), arguments, slots, job.num_bytes, 1, job.work)


def _input_slots(job: Job) -> list[int]:
    """Return the table indices of the input addresses."""
    ndim = len(job.dims)
    return [at.TAIL + ndim + k * (at.READ + ndim) + START for k in range(len(job.reads))]
