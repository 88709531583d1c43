"""Algorithms by key on CPU cores: parts are folded, joined in order, and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.by_key import cpu_parameters as at
from gpualgo._algorithms.select import cpu as selection
from gpualgo._algorithms.select import cpu_parameters as table_at
from gpualgo._base import records, threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.kernels import Kernel, compute_code, get_code, get_kernel, scratch
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import Dims, ScratchLayout, field_arguments, is_dense, merge
from gpualgo._cpu.layout import table as in_words
from gpualgo._cpu.operator import Applied
from gpualgo._cpu.parameters import START
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.by_key.problem import ByKey
    from gpualgo._pipeline.problem import Prepared


Array: TypeAlias = np.ndarray[Any, Any]
_BOOL = np.dtype(np.bool_)


class Job:
    """A reduction or scan by key: its argument table and the functions that it calls.

    `arrays` are those of the fields of a problem's source, of one shape with at least one element,
    any strides. `outs` have one dimension and any stride, and overlap no input, unless an out has
    the memory of the input it is computed from.
    """

    def __init__(
        self, problem: ByKey, arrays: Sequence[Array], outs: Sequence[Array], op: Operator
    ) -> None:
        self.problem, self.outs, self.op = problem, outs, op
        self.num_items, shape = arrays[0].size, arrays[0].shape
        self.num_keys, self.reduces = problem.num_keys, problem.has_dynamic_length
        strides = zip(*(array.strides for array in arrays), strict=True)
        self.dims: Dims = merge([(n, *s) for n, s in zip(shape, strides, strict=True)])
        self.held: list[Any] = []  # keeps code alive that is called by address
        self.room = ScratchLayout()
        self.room.take(table_at.SLOTS)
        with captures_bound(op):
            self._prepare_inputs(arrays)
        self.xs, self.ys = self.room.take(table_at.SLOTS), self.room.take(table_at.SLOTS)
        self.marks, self.packed = self.room.take(at.CHUNK), self.room.take(16 * at.CHUNK)
        acc_bytes = sum(number.itemsize for number in records.field_dtypes(problem.acc))
        self.results = self.room.take(at.CHUNK * acc_bytes)
        self.record = at.VALUE + 2 * at.value_bytes(problem.acc.itemsize)
        self.state = self.room.take(self.record)
        self.work = sum(array.nbytes for array in (*arrays, *outs))

    def _prepare_inputs(self, arrays: Sequence[Array]) -> None:
        """Set the table entries of the inputs and the code that reads them."""
        problem, op, room, source = self.problem, self.op, self.room, self.problem.source
        numbers = records.field_dtypes(source)
        kinds = [*records.field_dtypes(problem.key), *records.field_dtypes(problem.acc)]
        element = records.record(map(str, range(len(kinds))), kinds)
        is_computed = isinstance(source, records.Computed)
        loaded = list(map(records.operand_dtype, numbers)) if is_computed else kinds
        self.reads = [
            [*_entry(array, number, kind, self.dims, k, room), *(dim[1 + k] for dim in self.dims)]
            for k, (array, number, kind) in enumerate(zip(arrays, numbers, loaded, strict=True))
        ]
        self.compute = self.computed = self.mark = 0
        if isinstance(source, records.Computed):
            self.compute = self._code(compute_code(op.source, source, element, at.CHUNK))
            self.computed = room.take(at.CHUNK * sum(kind.itemsize for kind in kinds))
        self.differs = [0] * len(kinds)
        if problem.has_eq:
            self.mark = self._code(_equality_code(op.source, problem.key))
        else:
            for k, kind in enumerate(kinds[: self.num_keys]):
                self.differs[k] = self._code(selection.differing(kind))
        self.fold = self._code(_fold_code(problem, op))
        self.kinds = kinds

    def _code(self, loaded: Any) -> int:
        self.held.append(loaded)
        return int(loaded.address)

    def run(self, init: Array | None) -> int:
        """Run all passes; return the number of runs of a reduction."""
        num_parts, total = -(-self.num_items // at.PIECE), np.zeros((), np.int64)
        state = np.zeros((num_parts, self.record), np.uint8)
        start = 0 if init is None else address(init)
        is_alone = num_parts == 1 or threads.num_threads() == 1
        common: dict[str, Any] = {"parts": address(state), "init": start, "total": address(total)}
        with captures_bound(self.op):
            if is_alone:
                self._pass(self.table(num_parts, in_turn=True, **common), 0, num_parts, 1)
            else:
                counting = self.table(num_parts, is_counting=True, **common)
                self._pass(counting, 0, num_parts, num_parts)
                self._join(state, num_parts)
                self._pass(self.table(num_parts, **common), 0, num_parts, num_parts)
        return int(total)

    def _join(self, state: Array, num_parts: int) -> None:
        """Store in each part the run that is open before it, from left to right."""
        join_table = in_words([self.fold, address(state), num_parts - 1, self.record])
        joining()(address(join_table), 0, 0, 1)

    def _pass(self, arguments: Array, start: int, end: int, tasks: int) -> None:
        """Process parts on all cores, or in order as one task."""
        num_bytes, kernel, step = self.room.size, walk(), (end - start) // tasks

        def body(first: int, last: int) -> None:
            memory = scratch(num_bytes)
            kernel(address(arguments), address(memory), start + first * step, start + last * step)

        threads.run(body, tasks, self.work)

    def table(
        self, num_parts: int, *, parts: int = 0, init: int = 0, total: int = 0,
        is_counting: bool = False, in_turn: bool = False,
    ) -> Array:  # fmt: skip
        """Return the kernel's arguments."""
        outs = [None] * (0 if self.reduces else self.num_keys) + list(self.outs)
        writes = [
            _output_entry(out, kind, differs)
            for out, kind, differs in zip(outs, self.kinds, self.differs, strict=True)
        ]
        head = {
            table_at.LENGTH: self.num_items, table_at.NDIM: len(self.dims),
            table_at.INPUTS: len(self.reads), table_at.OUTPUTS: len(writes),
            table_at.PER_TASK: at.PIECE, table_at.COUNTS: is_counting, table_at.TOTAL: -1,
            table_at.COMPUTE: self.compute, table_at.COMPUTED: self.computed,
            table_at.MARK: self.mark, table_at.MARKS: self.marks, table_at.PACKED: self.packed,
            table_at.COMPARES: 1,
        }  # fmt: skip
        extra = {
            at.FOLD: self.fold, at.INIT: init, at.PARTS: parts, at.RECORD: self.record,
            at.STATE: self.state, at.XS: self.xs, at.YS: self.ys, at.RESULTS: self.results,
            at.KEYS: self.num_keys, at.REDUCES: self.reduces, at.IN_TURN: in_turn,
            at.NUM_PARTS: num_parts, at.TOTAL: total,
        }  # fmt: skip
        lengths = [dim[0] for dim in self.dims]
        words = [head.get(i, 0) for i in range(table_at.TAIL)]
        return in_words(words, lengths, *self.reads, *writes, [extra[i] for i in range(at.EXTRA)])


def _entry(
    array: Array,
    number: np.dtype[Any],
    kind: np.dtype[Any],
    dims: Dims,
    k: int,
    room: ScratchLayout,
) -> tuple[int, ...]:
    """Return the entry of an input array in the kernel's table, without strides."""
    value_dtype = records.operand_dtype(number)
    is_direct = is_dense(dims, k, number.itemsize)
    if records.is_position(number):
        return field_arguments(address(array), number, number, is_direct, at.CHUNK, room)
    return field_arguments(address(array), value_dtype, kind, is_direct, at.CHUNK, room)


def _output_entry(out: Array | None, kind: np.dtype[Any], differs: int) -> list[int]:
    """Return the entry of an output array in the kernel's table; None: a key of a scan."""
    if out is None:
        return [0, kind.itemsize, 0, 0, 0, 0, differs]
    return selection.written(out, differs)


def _equality_code(op: Operator, key: np.dtype[Any]) -> Any:
    """Return the code that compares neighbouring keys by eq."""

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.select.cpu_kernels import head_kernel

        return head_kernel(fn, key)

    return get_code(("head", key), write, Applied(op, (key, key), _BOOL))


def _fold_code(problem: ByKey, op: Operator) -> Any:
    """Return the code that folds runs."""
    mode, acc, has_init = problem.way, problem.acc, problem.has_init

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.by_key import cpu_kernels

        if mode == "reduce":
            return cpu_kernels.reduce_kernel(fn, acc, has_init)
        return cpu_kernels.scan_kernel(fn, acc, has_init, mode == "exclusive")

    return get_code(("by key", mode, acc, has_init), write, Applied(op, (acc, acc), acc))


def walk() -> Kernel:
    """Return the kernel that processes parts."""

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


# --- Algorithms by key on the CPU, prepared once for arrays of known layouts.
#
# Only for input that fits one part.


def prepared(
    problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Any
) -> Prepared | None:
    """Return a call of `cpu.Job` for arrays of these layouts, with new results."""
    outs = results[:-1] if problem.has_dynamic_length else results
    if arrays[0].size > at.PIECE:
        return None
    job = Job(problem, arrays, outs, op)
    arguments = job.table(1, in_turn=True)
    step = table_at.READ + len(job.dims)
    first = table_at.TAIL + len(job.dims)
    reads = [first + k * step + START for k in range(len(job.reads))]
    base = first + len(job.reads) * step
    skipped = 0 if job.reduces else job.num_keys
    writes = [base + (skipped + k) * table_at.WRITTEN + table_at.OUT for k in range(len(outs))]
    extra = base + (skipped + len(outs)) * table_at.WRITTEN
    slots = (extra + at.INIT, extra + at.TOTAL, *reads, *writes)
    launch = Launch(walk(), arguments, slots, job.room.size, 1, job.work)
    reduces, unused = job.reduces, np.zeros((), np.int64)

    def run(
        arrays: Sequence[Array], outs: Sequence[Array], init: int, held: Any = job.held
    ) -> None:
        *targets, count = outs if reduces else (*outs, unused)
        launch((init, count, *arrays, *targets))

    return run
