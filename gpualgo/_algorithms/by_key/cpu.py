"""Algorithms by key on CPU cores: parts are folded, joined in order, and written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.by_key import problem as at
from gpualgo._algorithms.by_key.problem import EXCLUSIVE, REDUCE, ByKey
from gpualgo._algorithms.radix_sort.cpu import each_part
from gpualgo._algorithms.radix_sort.problem import sort_problem
from gpualgo._algorithms.select import cpu as selection
from gpualgo._algorithms.select import problem as table_at
from gpualgo._arrays.view import NumPy
from gpualgo._base import records, threads
from gpualgo._cpu.kernels import Applied, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import ScratchLayout
from gpualgo._cpu.layout import table as in_words
from gpualgo._cpu.plan import Plan, bytes_of
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

# Memory of the last call's sort, for the next one: new pages would take longer than the sort.
KEPT_BYTES = 8 << 20  # at most
_kept: list[Array] = []


@planners.for_cpu.register(ByKey)
def planned(
    problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    if 0 in problem.shape:
        return Plan(lambda arrays, results, _: results[-1].fill(0), ())
    arrays = [np.broadcast_to(array, problem.shape) for array in arrays]  # at the same addresses
    if problem.in_any_order:
        return _by_sorting(problem, arrays, results, op)
    return _plan_of(problem, arrays, results, op)


def _by_sorting(
    problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    """Return the plan of keys in any order: a stable sort makes equal keys neighbours."""
    shape, count, is_scan = problem.shape, len(arrays), problem.mode != REDUCE
    size = math.prod(shape)

    def moved(arrays: Sequence[Array]) -> list[Array]:  # of scans the positions, too
        first, others = arrays[: problem.num_keys], arrays[problem.num_keys :]
        keys = [x.view(np.uint8) != 0 if x.dtype == bool else x for x in first]  # any byte is True
        return [*keys, *others, *[np.arange(size).reshape(shape)] * is_scan]

    def new(kinds: Sequence[np.dtype[Any]]) -> list[Array]:
        return [np.empty(size, kind) for kind in kinds]

    given, leaves = moved(arrays), records.field_dtypes(problem.acc)
    kinds, hosts = [array.dtype for array in given], [NumPy.view(array) for array in given]
    sorting = sort_problem(hosts, problem.num_keys, problem.where, CPU)
    sort = planners.cpu_plan(sorting, given, new(kinds), None)
    fold = _plan_of(problem, new(kinds[:count]), new(leaves) if is_scan else results, op)

    room = ScratchLayout()
    places = [(kind, room.take(size * kind.itemsize)) for kind in (*kinds, *leaves * is_scan)]

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        try:
            memory = _kept.pop()
        except IndexError:  # there is none yet, or another thread uses it
            memory = np.empty(0, np.uint8)
        if memory.size < room.size:
            memory = np.empty(room.size, np.uint8)
        temporaries = [np.ndarray((size,), kind, memory, start) for kind, start in places]
        ordered, scans = temporaries[: len(kinds)], temporaries[len(kinds) :] or results
        sort.run(moved(arrays), ordered, 0)
        fold.run(ordered[:count], scans, init)

        def move(part: Any) -> None:  # results to their elements' indices
            for scan, result in zip(scans, results, strict=True):
                result[ordered[-1][part]] = scan[part]

        if is_scan:
            each_part(results[0].shape, move)
        if memory.size <= KEPT_BYTES:
            _kept[:] = [memory]

    return Plan(run, (*sort.routines, *fold.routines))


def _plan_of(
    problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    """Return the plan of runs of equal neighbouring keys."""
    reduces = problem.has_dynamic_length
    job, extra = _job_of(problem, arrays, results[:-1] if reduces else results, op)
    hidden = 0 if reduces else problem.num_keys
    first, at_once = len(job.table({})), [extra.get(i, 0) for i in range(at.EXTRA)]
    in_turn = list(at_once)
    in_turn[at.IN_TURN] = 1
    slots = [first + at.INIT, first + at.PARTS, *job.input_slots, *job.output_slots[hidden:]]
    if reduces:
        slots.append(first + at.TOTAL)
    walk = get_kernel(*named("by_key", "by_key_kernel"))
    parts, record, routines = job.tasks, extra[at.RECORD], [job.routine("by_key")]
    if parts == 1:  # its record is in scratch memory
        launch = job.launch(walk, slots, 1, {}, in_turn)
        return Plan(lambda arrays, results, init: launch((init, 0, *arrays, *results)), routines)
    counting = job.launch(walk, slots, parts, {table_at.COUNTS: 1}, at_once)
    writing = job.launch(walk, slots, parts, {}, at_once)
    join_table = in_words([extra[at.FOLD], 0, parts - 1, record])
    join = Launch(get_kernel(*named("by_key", "join_kernel")), join_table, [1], 0, 1, 0, job.held)
    walking = Launch(walk, job.table({}, in_turn), slots, job.room.size, parts, 0, job.held)

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        state = np.zeros((parts, record), np.uint8)
        if threads.num_threads() > 1:
            counting((init, state, *arrays, *results))
            join((state,))  # stores in each part the run that is open before it
            writing((init, state, *arrays, *results))
        else:
            walking((init, state, *arrays, *results))

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
    eq = op.source if problem.has_eq else None
    job.head[table_at.MARK] = job.code(selection.equality_code(eq, problem.key))
    hidden = 0 if reduces else num_keys  # keys of a scan are read only
    job.writes = [[0, kinds[k].itemsize, 0, 0, 0, 0] for k in range(hidden)]
    job.writes += map(selection.written, outs)
    room = job.room
    job.head |= {
        table_at.MARKS: room.take(at.CHUNK), table_at.PACKED: room.take(16 * at.CHUNK),
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
    acc, options = problem.acc, (problem.acc, problem.has_init)
    if problem.mode == REDUCE:
        code = named("by_key", "reduce_kernel", *options)
    else:
        code = named("by_key", "scan_kernel", *options, problem.mode == EXCLUSIVE)
    return get_kernel(*code, Applied(op, (acc, acc), acc))
