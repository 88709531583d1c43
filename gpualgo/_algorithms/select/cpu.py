"""Selection on CPU cores: tasks count their kept elements, then write them at the right offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.select import problem as at
from gpualgo._algorithms.select.problem import BOOL, HEADS, IF, MARKED, NO_OPERATOR, Selecting
from gpualgo._base import records, threads
from gpualgo._cpu.kernels import (
    Applied,
    Kernel,
    compute_code,
    get_entry,
    get_kernel,
    named,
)
from gpualgo._cpu.launch import Launch, run_tasks
from gpualgo._cpu.layout import Dims, ScratchLayout, field_arguments, merge, packer
from gpualgo._cpu.layout import table as in_words
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import START, Plan, Routine, bytes_of, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]
_FIRST_LOOK, _GROWTH = 1, 4  # tasks in a search's first batch; factor between batches


@planners.for_cpu.register(Selecting)
def _(
    problem: Selecting, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> Plan:
    if 0 in problem.shape:
        return Plan(lambda arrays, results, _: results[-1].fill(0), ())
    source, picks = problem.source, problem.picks
    arrays = [np.broadcast_to(array, problem.shape) for array in arrays]  # at the same addresses
    if picks is not None and isinstance(source, records.Computed):  # inputs are not computed again
        names = records.register_dtype(source).names or ()
        source = records.record(names, [source.numbers[i] for i in picks])
        arrays = [arrays[i] for i in picks]
    options = {"keeps_rest": problem.keeps_rest, "gives_lengths": problem.gives_lengths}
    return plan_of(source, arrays, results, op, problem.criterion, picks, **options)


def plan_of(
    source: records.Source, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None,
    criterion: str, picks: tuple[int, ...] | None = None, *, keeps_rest: bool, gives_lengths: bool,
) -> Plan:  # fmt: skip
    """Return the plan that writes the kept elements, up to the results' length, and their number.

    `arrays` are those of the fields of source, of one shape with at least one element, any strides.
    The last of `results` is the number; the others have one length and any stride, and overlap
    none. op decides what is kept, or (if `criterion` is MARKED) the last field, which is not
    written. Of runs (HEADS) op decides which elements are equal, without it their values; with
    `gives_lengths` the runs' lengths are an additional result. With `keeps_rest` the other elements
    follow. `picks` are the indices of the arrays among those of a call.
    """
    outs, num_starts = list(results[:-1]), 1 + min(arrays[0].size, len(results[0]))
    if gives_lengths:
        outs[-1] = np.empty(num_starts, np.int64)
    job = _job_of(source, arrays, outs, op, criterion)
    count_whole = _counting(job, walk(), is_whole=True) if keeps_rest else None
    write_whole = _writing(job, is_whole=True)
    count_tasks = write_tasks = None
    if job.tasks > 1:
        count_tasks, write_tasks = _counting(job, walk()), _writing(job)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        *outs, count = results
        if picks is not None:
            arrays = [arrays[i] for i in picks]
        if gives_lengths:
            lengths = outs[-1]
            starts = outs[-1] = np.empty(num_starts, np.int64)
        total = -1
        if count_tasks is None or write_tasks is None or threads.num_threads() == 1:
            if count_whole is not None:
                count_whole((count, *arrays))
                total = int(count)
            count[...] = 0  # index of the first kept element
            write_whole((count, *arrays, *outs, total))
        else:
            counts = np.empty(job.tasks, np.int64)
            count_tasks((counts, *arrays))
            ends = counts.cumsum()
            count[...] = total = int(ends[-1])
            write_tasks((ends - counts, *arrays, *outs, total if keeps_rest else -1))
        if gives_lengths:
            num_runs = int(count)
            if num_runs < num_starts:
                starts[num_runs] = job.num_items
            else:
                num_runs = num_starts - 1
            np.subtract(starts[1 : num_runs + 1], starts[:num_runs], lengths[:num_runs])

    return Plan(run, [job.routine("select")])


def count_of(source: records.Source, arrays: Sequence[Array], op: Operator | None) -> Plan:
    """Return the plan that writes how many elements the last field of source marks.

    Arrays are as for `plan_of`. The result has one element.
    """
    job = _job_of(source, arrays, [], op, MARKED)
    launch, routine = _counting(job, walk()), job.routine("select")
    if job.tasks == 1:
        return Plan(lambda arrays, outs, _: launch((outs[0], *arrays)), [routine])

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        counts = np.empty(job.tasks, np.int64)
        launch((counts, *arrays))
        outs[0][...] = counts.sum()

    return Plan(run, [routine])


def first_of(source: records.Source, arrays: Sequence[Array], op: Operator | None) -> Plan:
    """Return the plan that writes the least index that source gives, or -1.

    Indices rise in C order; those of unmarked elements are NOWHERE. Arrays are as for `plan_of`.
    Reading stops soon after the first marked element.
    """
    job = _job_of(source, arrays, [], op, MARKED)
    routine = job.routine("select")
    if job.tasks == 1:
        launch = _counting(job, seek())
        return Plan(lambda arrays, outs, _: launch((outs[0], *arrays)), [routine])
    table, slots = job.table({}), [at.TASK_OFFSETS, *job.input_slots]

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        arguments, found = table.copy(), np.empty(job.tasks, np.int64)
        arguments[slots] = [address(array) for array in (found, *arrays)]
        start, size, indices = 0, _FIRST_LOOK, found[:0]
        while start < job.tasks and not indices.size:  # each batch is _GROWTH times larger
            size = min(size, job.tasks - start)
            work = job.work * size // job.tasks
            run_tasks(seek(), arguments, size, work, job.room.size, start)
            indices = found[start : start + size]
            indices = indices[indices >= 0]
            start, size = start + size, size * _GROWTH
        outs[0][...] = indices[0] if indices.size else -1

    return Plan(run, [routine])


class Job:
    """The argument table of a kernel that reads elements by chunks, and the code that it calls.

    The table has no addresses of arrays, which each call adds.
    """

    def __init__(
        self, source: records.Source, arrays: Sequence[Array], element: np.dtype[Any],
        op: Operator | None, *, counts_positions: bool = False,
    ) -> None:  # fmt: skip
        """`element`: what the kernel reads, converted from source.

        `counts_positions`: of indices that rise by 1, only the first is read.
        """
        self.num_items, shape = arrays[0].size, arrays[0].shape
        self.tasks, self.work = -(-self.num_items // at.PIECE), bytes_of(arrays)
        strides = zip(*(array.strides for array in arrays), strict=True)
        dims = merge([(n, *steps) for n, steps in zip(shape, strides, strict=True)])
        self.lengths, self.room = [dim[0] for dim in dims], ScratchLayout()
        self.room.take(at.SLOTS)
        numbers, leaves = records.field_dtypes(source), records.field_dtypes(element)
        targets = leaves
        if isinstance(source, records.Computed):
            targets = tuple(map(records.operand_dtype, numbers))
        self.counts = [counts_positions and _is_range(n, dims, k) for k, n in enumerate(numbers)]
        self.reads = [
            [*self._entry(number, target, dims, k), *(d[1 + k] for d in dims)]
            for k, (number, target) in enumerate(zip(numbers, targets, strict=True))
        ]
        self.writes: list[list[int]] = []
        self.held: list[Any] = []  # keeps code alive that is called by address
        self.head = {
            at.LENGTH: self.num_items, at.NDIM: len(dims), at.INPUTS: len(self.reads),
            at.PER_TASK: at.PIECE, at.TOTAL: -1,
        }  # fmt: skip
        if isinstance(source, records.Computed):
            assert op is not None
            self.head[at.COMPUTE] = self.code(compute_code(op.source, source, element, at.CHUNK))
            size = sum(leaf.itemsize for leaf in leaves)
            self.head[at.COMPUTED] = self.room.take(at.CHUNK * size)

    def _entry(
        self, number: np.dtype[Any], element: np.dtype[Any], dims: Dims, k: int
    ) -> tuple[int, ...]:
        """Return the entry of an input in the kernel's table, without its address and strides."""
        if self.counts[k]:  # the slot holds an index, encoded as an address in bytes at ORIGIN
            return 0, 1, True, 0, 0, 0, 0
        source = target = number
        if not records.is_position(number):
            source, target = records.operand_dtype(number), element
        return field_arguments(source, target, dims, k, self.num_items, at.CHUNK, self.room)

    def code(self, loaded: Any) -> int:
        """Return the address of code, which stays loaded."""
        self.held.append(loaded)
        return int(loaded.address)

    def routine(self, name: str) -> Routine:
        return compiled(name, self.num_items, at.PIECE, self.work)

    def launch(
        self, kernel: Kernel, slots: Sequence[int], tasks: int, changes: dict[int, int],
        extra: Sequence[int] = (),
    ) -> Launch:  # fmt: skip
        """Return a launch of a kernel that is given words at these slots of its table."""
        table = self.table(changes, extra)
        return Launch(kernel, table, slots, self.room.size, tasks, self.work, self.held)

    def table(self, changes: dict[int, int], extra: Sequence[int] = ()) -> Array:
        """Return the table with some of its first words changed; `extra` words follow the rest."""
        head = self.head | {at.OUTPUTS: len(self.writes)} | changes
        first = [head.get(i, 0) for i in range(at.TAIL)]
        return in_words(first, self.lengths, *self.reads, *self.writes, extra)

    @property
    def input_slots(self) -> list[int]:
        step = at.READ + len(self.lengths)
        return [at.TAIL + len(self.lengths) + START + step * k for k in range(len(self.reads))]

    @property
    def output_slots(self) -> list[int]:
        first = at.TAIL + len(self.lengths) + len(self.reads) * (at.READ + len(self.lengths))
        return [first + at.OUT + at.WRITTEN * k for k in range(len(self.writes))]


def _job_of(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    criterion: str,
) -> Job:  # fmt: skip
    """Return the job of a selection; the last output may take indices of the first of each run."""
    element = records.register_dtype(source)
    is_plain = criterion == MARKED and not isinstance(source, records.Computed)
    job = Job(source, arrays, element, op, counts_positions=is_plain)
    if criterion == IF:
        assert op is not None
        job.head[at.MARK] = job.code(_predicate_code(op, element))
    elif criterion == HEADS:
        job.head[at.MARK] = job.code(equality_code(op, element))
        job.head[at.COMPARES] = 1
        if len(outs) > len(records.field_dtypes(element)):
            job.head[at.NUMBERS] = job.room.take(8 * at.CHUNK)
    job.head[at.MARKS], job.head[at.PACKED] = job.room.take(at.CHUNK), job.room.take(16 * at.CHUNK)
    # Inputs are the outputs' fields, then marks, unless elements are computed.
    counts = job.counts if is_plain else [False] * len(outs)
    job.writes = [written(*each) for each in zip(outs, counts, strict=False)]
    return job


def _counting(job: Job, kernel: Kernel, *, is_whole: bool = False) -> Launch:
    """Return a launch that is given one word for each task, and the inputs.

    There is one task if it `is_whole`.
    """
    slots, changes = [at.TASK_OFFSETS, *job.input_slots], {at.COUNTS: 1}
    if is_whole:
        changes[at.PER_TASK] = job.num_items
    return job.launch(kernel, slots, 1 if is_whole else job.tasks, changes)


def _writing(job: Job, *, is_whole: bool = False) -> Launch:
    """Return a launch that is given the tasks' offsets, inputs, outputs, and where a rest begins.

    The last word is -1 without a rest.
    """
    slots = [at.TASK_OFFSETS, *job.input_slots, *job.output_slots, at.TOTAL]
    changes = {at.PER_TASK: job.num_items} if is_whole else {}
    return job.launch(walk(), slots, 1 if is_whole else job.tasks, changes)


def _is_range(number: np.dtype[Any], dims: Dims, k: int) -> bool:
    """Return whether a field is an index that rises by 1, so that the first index is enough."""
    if not records.is_position(number):
        return False
    return len(dims) == 0 or (len(dims) == 1 and dims[0][1 + k] == 1)


def written(out: Array, counts: bool = False) -> list[int]:
    """Return the entry of an output in the kernel's table, without its address."""
    size, stride = out.itemsize, out.strides[0]
    pack = 0 if stride == size else packer(size, stride, out.size)
    pick = ("place_kernel", records.ORIGIN) if counts else ("pick_kernel", size)
    return [0, size, stride, out.shape[0], get_entry(*named("select", *pick)), pack]


def _predicate_code(op: Operator, element: np.dtype[Any]) -> Any:
    """Return the code of f(marks, slots, count), which applies a predicate."""
    numbers = records.field_dtypes(element)
    applied = Applied(op, (records.argument_of(element),), BOOL)
    return get_kernel(*named("select", "mark_kernel", numbers), applied)


def equality_code(op: Operator | None, element: np.dtype[Any]) -> Any:
    """Return the code of f(marks, slots, count), which marks the first elements of runs.

    Without op elements are equal by value.
    """
    if op is None or op.name == NO_OPERATOR.name:
        return get_kernel(*named("select", "head_kernel", None, element))
    applied = Applied(op, (element, element), BOOL)
    return get_kernel(*named("select", "head_kernel", element), applied)


def walk() -> Kernel:
    return get_kernel(*named("select", "select_kernel"))


def seek() -> Kernel:
    return get_kernel(*named("select", "seek_kernel"))
