"""Algorithms by key on CPU cores: parts are folded, joined in order, and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.by_key import problem as at
from gpualgo._algorithms.by_key.problem import EXCLUSIVE, REDUCE, ByKey
from gpualgo._algorithms.select import cpu as selection
from gpualgo._algorithms.select import problem as table_at
from gpualgo._base import records, threads
from gpualgo._cpu.kernels import Applied, Kernel, get_code, get_kernel, scratch
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import table as in_words
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Plan, bytes_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array


@planners.for_cpu.register(ByKey)
def _(problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    if 0 in problem.shape:
        return Plan(lambda arrays, results, _: results[-1].fill(0), ())
    arrays = [np.broadcast_to(array, problem.shape) for array in arrays]  # at the same addresses
    reduces = problem.has_dynamic_length
    job, extra = _job_of(problem, arrays, results[:-1] if reduces else results, op)
    hidden = 0 if reduces else problem.num_keys
    first, at_once = len(job.table({})), [extra.get(i, 0) for i in range(at.EXTRA)]
    in_turn = list(at_once)
    in_turn[at.IN_TURN] = 1
    slots = [first + at.INIT, first + at.PARTS, *job.input_slots, *job.output_slots[hidden:]]
    if reduces:
        slots.append(first + at.TOTAL)
    parts, record, routines = job.tasks, extra[at.RECORD], [job.routine("by key")]
    if parts == 1:  # its record is in scratch memory
        launch = job.launch(walk(), slots, 1, {}, in_turn)
        return Plan(lambda arrays, results, init: launch((init, 0, *arrays, *results)), routines)
    counting = job.launch(walk(), slots, parts, {table_at.COUNTS: 1}, at_once)
    writing = job.launch(walk(), slots, parts, {}, at_once)
    join_table = in_words([extra[at.FOLD], 0, parts - 1, record])
    join = Launch(joining(), join_table, [1], 0, 1, 0, job.held)
    table = job.table({}, in_turn)

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        state = np.zeros((parts, record), np.uint8)
        if threads.num_threads() > 1:
            counting((init, state, *arrays, *results))
            join((state,))  # stores in each part the run that is open before it
            writing((init, state, *arrays, *results))
        else:
            arguments, memory = table.copy(), scratch(job.room.size)
            arguments[slots] = [init, *map(address, (state, *arrays, *results))]
            walk()(address(arguments), address(memory), 0, parts)

    return Plan(run, routines)


def _job_of(
    problem: ByKey, arrays: Sequence[Array], outs: Sequence[Array], op: Operator
) -> tuple[selection.Job, dict[int, int]]:
    """Return a selection's job with keys and values as inputs, and the words after its table."""
    reduces, num_keys, acc = problem.has_dynamic_length, problem.num_keys, problem.acc
    kinds = (*records.field_dtypes(problem.key), *records.field_dtypes(acc))
    element = records.record(map(str, range(len(kinds))), kinds)
    job = selection.Job(problem.source, arrays, element, op)
    job.work += bytes_of(outs)
    differs = [0] * len(kinds)
    if problem.has_eq:
        job.head[table_at.MARK] = job.code(selection.equality_code(op.source, problem.key))
    else:
        differs[:num_keys] = [job.code(selection.differing(kind)) for kind in kinds[:num_keys]]
    hidden = 0 if reduces else num_keys  # keys of a scan are read only
    job.writes = [[0, kinds[k].itemsize, 0, 0, 0, 0, differs[k]] for k in range(hidden)]
    job.writes += [
        selection.written(out, differ) for out, differ in zip(outs, differs[hidden:], strict=True)
    ]
    room = job.room
    job.head |= {
        table_at.COMPARES: 1, table_at.MARKS: room.take(at.CHUNK),
        table_at.PACKED: room.take(16 * at.CHUNK),
    }  # fmt: skip
    record = at.VALUE + 2 * at.value_bytes(acc.itemsize)
    acc_bytes = sum(number.itemsize for number in records.field_dtypes(acc))
    return job, {
        at.FOLD: job.code(_fold_code(problem, op)), at.RECORD: record,
        at.STATE: room.take(record), at.XS: room.take(table_at.SLOTS),
        at.YS: room.take(table_at.SLOTS), at.RESULTS: room.take(at.CHUNK * acc_bytes),
        at.KEYS: num_keys, at.REDUCES: reduces, at.NUM_PARTS: job.tasks,
    }  # fmt: skip


def _fold_code(problem: ByKey, op: Operator) -> Any:
    mode, acc, has_init = problem.mode, problem.acc, problem.has_init

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.by_key import cpu_kernels

        if mode == REDUCE:
            return cpu_kernels.reduce_kernel(fn, acc, has_init)
        return cpu_kernels.scan_kernel(fn, acc, has_init, mode == EXCLUSIVE)

    return get_code(("by key", mode, acc, has_init), write, Applied(op, (acc, acc), acc))


def walk() -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._algorithms.by_key.cpu_kernels import by_key_kernel

        return by_key_kernel

    return get_kernel(("by key",), write)


def joining() -> Kernel:
    """Return the kernel that passes open runs from part to part."""

    def write() -> Callable[..., None]:
        from gpualgo._algorithms.by_key.cpu_kernels import join_kernel

        return join_kernel

    return get_kernel(("by key", "join"), write)
