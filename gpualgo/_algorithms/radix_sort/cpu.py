"""Radix sort on CPU cores: by digits, from the lowest to the highest, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_numpy
from gpualgo._algorithms.radix_sort import problem as at
from gpualgo._algorithms.radix_sort.problem import Descending, Dtype, Group, Sort
from gpualgo._base import dtypes, threads
from gpualgo._cpu.kernels import get_entry, named
from gpualgo._cpu.launch import Launch, run_tasks
from gpualgo._cpu.layout import merge, packer, table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Plan, Routine, bytes_of, compiled, of_numpy
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]
Words: TypeAlias = Sequence[Any]  # keys, values and outputs: arrays, 0 for one that is absent


@planners.for_cpu.register(Sort)
def _(problem: Sort, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    axis, (group, *others) = problem.axis, problem.groups
    rows, targets = rows_of(arrays, axis), rows_of(results, axis)
    if others or group.is_word or problem.value_word is not None:
        plan = _plan_of_words(problem, rows, targets)
    else:
        is_order = problem.index_dtype is not None
        plan = plan_of(rows, targets, _order_of(problem, group), is_order=is_order)
    if arrays[0].ndim == 1 or axis == arrays[0].ndim - 1:
        return plan
    return Plan(
        lambda xs, outs, _: plan.run(rows_of(xs, axis), rows_of(outs, axis), 0), plan.routines
    )


def rows_of(arrays: Sequence[Array], axis: int | None) -> Sequence[Array]:
    """Return arrays with the sorted axis last; flattened, in C order, if it is None."""
    if axis is None:  # as bytes, so that padding is copied where an array has gaps
        return [x if x.ndim == 1 else as_bytes(x).reshape(-1).view(x.dtype) for x in arrays]
    last = arrays[0].ndim - 1
    if axis == last:
        return arrays
    axes = [*range(axis), *range(axis + 1, last + 1), axis]
    return [array.transpose(axes) for array in arrays]


def as_bytes(array: Array) -> Array:
    """Return array viewed as raw bytes (void dtype) of the same item size."""
    return array.view(f"V{array.itemsize}")


def plan_of(
    arrays: Sequence[Array], results: Sequence[Array], order: Order, *, is_order: bool = False
) -> Plan:
    """Return the plan that sorts keys, and values with them, to results that may be the inputs.

    All arrays have one shape, with rows along the last axis, and any strides. If `is_order`, the
    result is the keys' stable order, in an integer dtype that holds it.
    """
    keys, work = arrays[0], bytes_of(arrays, results)
    length = keys.shape[-1]
    routine = routine_of(keys.size, length, work)
    if is_order:
        return _plan_of_order(keys, results[0], order, routine)
    if len(arrays) > 1:
        return Plan(_with_values(arrays, results, order), [routine])
    if order.is_whole and cpu_numpy.is_by_numpy(keys.dtype, length):
        return cpu_numpy.plan_of(keys, results[0], order.descending)
    digits = by_digits((keys, 0, results[0], 0), order)
    return Plan(lambda xs, outs, _: digits((xs[0], 0, outs[0], 0)), [routine])


def sort_rows(
    arrays: Sequence[Array], results: Sequence[Array], order: Order, *, is_order: bool = False
) -> None:
    """Run `plan_of` at once."""
    plan_of(arrays, results, order, is_order=is_order).run(arrays, results, 0)


def _plan_of_order(keys: Array, result: Array, order: Order, routine: Routine) -> Plan:
    descending, order_row = order.descending, cpu_numpy.order_of(order.descending)
    is_new_row = keys.ndim == 1 and result.dtype == np.intp

    def by_numpy(xs: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        cpu_numpy.order(xs[0], outs[0], descending)

    if cpu_numpy.is_ordered_by_numpy(keys, descending):
        num_rows = keys.size // max(1, keys.shape[-1])
        routine = of_numpy("argsort", keys.size, num_rows, routine.work)
        return Plan(by_numpy, [routine], (lambda *_: order_row) if is_new_row else None)
    digits = by_digits((keys, 0, 0, result), order)
    has_few_runs = cpu_numpy.has_few_runs(keys, descending)

    def run(xs: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        if has_few_runs(xs[0]):
            by_numpy(xs, outs, 0)
        else:
            digits((xs[0], 0, 0, outs[0]))

    def make(xs: Sequence[Array], _: int) -> Any:
        if has_few_runs(xs[0]):
            return order_row(xs, 0)
        new = np.empty(xs[0].shape, np.intp)
        digits((xs[0], 0, 0, new))
        return new

    return Plan(run, [routine], (lambda *_: make) if is_new_row else None)


def _with_values(
    arrays: Sequence[Array], results: Sequence[Array], order: Order
) -> Callable[[Sequence[Array], Sequence[Array], int], None]:
    (keys, *values), (out_keys, *out_values) = arrays, results
    is_word, shape = len(values) == 1 and values[0].itemsize in at.WORD_SIZES, keys.shape
    moved = (values[0], out_values[0]) if is_word else (0, np.empty(shape, np.int64))
    digits = by_digits((keys, moved[0], out_keys, moved[1]), order)
    # Few keys are sorted faster by digits even if they are in order.
    may_have_runs = order.is_whole and shape[-1] > at.SHORT
    has_few_runs = cpu_numpy.has_few_runs(keys, order.descending)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        keys, out_keys, first = arrays[0], results[0], 0
        is_by_numpy = may_have_runs and has_few_runs(keys)
        if is_word and not is_by_numpy:
            digits((keys, arrays[1], out_keys, results[1]))
            return
        indices = np.empty(shape, np.int64)
        if is_by_numpy:
            cpu_numpy.order(keys, indices, order.descending)
        else:
            digits((keys, 0, out_keys, indices))
            first = 1
        fetch(arrays[first:], results[first:], indices)

    return run


# --- The order of keys, as kernel parameters, and kernels.

_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000,
             "float64": 0x7FF0000000000000}  # fmt: skip


class Order:
    """Order of keys, which may be words of several numbers, and the bits compared."""

    def __init__(
        self, dtype: Dtype, descending: Descending, begin: int = 0, end: int | None = None
    ) -> None:
        numbers = at.numbers(dtype, descending)
        self.size, self.descending = dtype.itemsize, descending is True
        self.used = (1 << (at.used_bits(dtype) if end is None else end)) - (1 << begin)
        self.is_whole = self.used == (1 << 8 * self.size) - 1
        # Bits of a key that are inverted before its code is computed; of floats the sign.
        self.flip = at.flipped_bits(dtype, descending) | sum(
            1 << n.shift + n.bits - 1 for n in numbers if n.is_float and n.is_descending
        )
        self.floats = [
            (n.shift, n.bits, _INFINITY[str(dtypes.name_of(n.dtype))])
            for n in numbers if n.is_float
        ]  # fmt: skip

    def numbers(self) -> list[int]:
        """Return the kernels' parameters from slot CODES on, as signed words."""
        numbers = [entry("codes", self.size, *self.floats), self.size, self.flip, self.used]
        return [number - (number >> 63 << 64) for number in numbers]


def _order_of(problem: Sort, group: Group) -> Order:
    return Order(group.dtype, group.descending, problem.begin_bit, problem.end_bit)


def entry(name: str, *options: int | tuple[int, ...]) -> int:
    """Return the address of a kernel of `cpu_kernels`; `invoke` calls it without the GIL."""
    return get_entry(*named("radix_sort", f"{name}_kernel", *options))


# --- Sort by digits: one thread sorts a row within its caches, or all cores sort a long row.

LONG_ROW = 1 << 17  # from this many keys on, all cores sort one row together
_LONG_FOR_TWO = 1 << 19  # the same where each row would get at most two threads
_MOST_BITS = 9  # of a digit: a pass over a long row writes to up to 512 buckets
_PARTS_PER_THREAD = 4
_PART_KEYS = 1 << 15  # fewer keys do not repay separate counters


def routine_of(size: int, length: int, work: int) -> Routine:
    is_one_thread = _is_one_thread_per_row(length, size // max(1, length))
    return compiled("radix_sort", size, length if is_one_thread else _PART_KEYS, work)


def _is_one_thread_per_row(length: int, num_rows: int) -> bool:
    return length < LONG_ROW or (length < _LONG_FOR_TWO and 2 * num_rows >= threads.num_threads())


def by_digits(arrays: Words, order: Order) -> Callable[[Words], None]:
    """Return the function that sorts rows of these layouts along the last axis.

    `arrays`: keys, values, output keys, output values, of any dtypes of the right sizes and with
    any strides. Without values, positions in the row are moved; an absent output is not written.
    """
    if arrays[0].shape[-1] < LONG_ROW:
        return _launch(arrays, order)

    def sort(arrays: Words) -> None:
        *outer, length = arrays[0].shape
        if _is_one_thread_per_row(length, prod(outer)):
            _launch(arrays, order)(arrays)
            return
        for index in np.ndindex(*outer):
            rows = [as_bytes(a)[index] if isinstance(a, np.ndarray) else None for a in arrays]
            _LongRow(rows, order).sort()

    return sort


def _launch(arrays: Words, order: Order) -> Launch:
    """Return the launch that sorts rows, one thread each."""
    *outer, length = arrays[0].shape
    absent = (0,) * (len(outer) + 1)
    strides = [a.strides if isinstance(a, np.ndarray) else absent for a in arrays]
    key_size, _, _, value_size = [a.itemsize if isinstance(a, np.ndarray) else 0 for a in arrays]
    dims = merge(sorted(zip(outer, *strides, strict=False), key=lambda dim: -abs(dim[1])))
    packs = [
        packer(a.itemsize, a.strides[-1], a.size)
        if isinstance(a, np.ndarray) and a.strides[-1] != a.itemsize else 0
        for a in arrays
    ]  # fmt: skip
    entries = [entry(name) for name in ("survey", "count", "place")]
    entries += [entry(name, key_size, value_size) for name in ("scatter", "take")]
    head = [0] * at.CODES
    head[at.LENGTH], head[at.ENTRY] = length, entry("row")
    arguments = table(
        head, order.numbers(), entries, [value_size], packs, [s[-1] for s in strides], [len(dims)],
        *zip(*dims, strict=True),
    )  # fmt: skip
    item_bytes = key_size + value_size
    return Launch(
        cpu_numpy.kernel("invoke"), arguments, (at.KEYS, at.VALUES, at.OUT_KEYS, at.OUT_VALUES),
        at.BUFFERS + 2 * length * item_bytes + 4 * 64, prod(outer), arrays[0].size * item_bytes,
    )  # fmt: skip


class _Column:
    """Keys or values of a long row, and the two buffers that passes write in turn."""

    def __init__(self, source: Array | None, target: Array | None, size: int, length: int) -> None:
        self.source, self.target = source, target  # None: positions; the result is not wanted
        self.temp, self.out = (np.empty(length, f"V{size}") for _ in range(2))
        if target is not None and target.flags.c_contiguous:
            self.out = target
        if source is not None and not source.flags.c_contiguous:
            self._read_from(self.out)

    @property
    def first(self) -> int:
        """Return the address that the first pass reads; 0 if it generates positions."""
        return 0 if self.source is None else address(self.source)

    def _read_from(self, buffer: Array) -> None:
        assert self.source is not None
        cpu_numpy.copy_rows(buffer, self.source, 64 * buffer.nbytes)
        self.source = buffer

    def route(self, passes: int) -> list[int]:
        """Return the address where the first pass reads and those where each pass writes."""
        addresses = [address(self.temp if i % 2 else self.out) for i in reversed(range(passes))]
        if addresses[0] == self.first:  # in place, or copied there
            self._read_from(self.temp)
        if self.target is None:
            addresses[-1] = 0
        return [self.first, *addresses]

    def finish(self, is_sorted: bool) -> None:
        """Copy the result to the target; if `is_sorted`, the source is the result."""
        if self.target is None:
            return
        result = self.source if is_sorted else self.out
        if result is None:
            result = np.arange(len(self.out), dtype=f"u{self.out.itemsize}").view(self.out.dtype)
        if address(result) != address(self.target) or not self.target.flags.c_contiguous:
            cpu_numpy.copy_rows(self.target, result, 64 * self.target.nbytes)


class _LongRow:
    """One row, sorted by all cores pass by pass."""

    def __init__(self, arrays: list[Any], order: Order) -> None:
        keys, values, out_keys, out_values = arrays
        self.length, self.order, self.sizes = len(keys), order, (order.size, 0)
        self.columns = [_Column(keys, out_keys, order.size, self.length)]
        if out_values is not None:
            self.sizes = order.size, out_values.itemsize
            self.columns.append(_Column(values, out_values, out_values.itemsize, self.length))
        self.table = np.zeros(at.SIZE, np.int64)
        self.table[at.CODES :] = order.numbers()
        self.table[at.LENGTH] = self.length
        self._split(_PART_KEYS)

    def _split(self, part_keys: int) -> None:
        """Split the row into parts of at least `part_keys` keys."""
        parts = min(_PARTS_PER_THREAD * threads.num_threads(), self.length // part_keys)
        self.parts = max(1, parts, self.length >> 31)  # counters in a kernel have 32 bits
        self.table[at.PARTS] = self.parts

    def sort(self) -> None:
        order, is_sorted = self.order, False
        if order.size <= 2 and len(self.columns) == 1 and not order.floats and order.is_whole:
            self._count_and_fill()
        elif digits := _digits(self._survey()):
            routes = [column.route(len(digits)) for column in self.columns]
            for i, (shift, bits) in enumerate(digits):
                for k, route in enumerate(routes):
                    self.table[[at.KEYS + k, at.OUT_KEYS + k]] = route[i : i + 2]
                self._count(shift, bits)
                self._run(entry("scatter", *self.sizes), at.CODES_BYTES)
        else:
            is_sorted = True
        for column in self.columns:
            column.finish(is_sorted)

    def _run(self, kernel_address: int, scratch_bytes: int = 0) -> None:
        self.table[at.ENTRY] = kernel_address
        work = self.length * sum(self.sizes)
        run_tasks(cpu_numpy.kernel("invoke"), self.table, self.parts, work, scratch_bytes)

    def _survey(self) -> int:
        """Return the bits in which codes differ; 0 if the row is already in order."""
        survey = np.empty((self.parts, 2), np.uint64)
        self.table[[at.KEYS, at.SURVEY]] = self.columns[0].first, address(survey)
        self._run(entry("survey"), at.CODES_BYTES + 8)
        differ, falls = np.bitwise_or.reduce(survey)
        return int(differ) if falls else 0

    def _count(self, shift: int, bits: int) -> None:
        """Count digits and compute each part's first index in each bucket."""
        self.counts = np.empty((self.parts, 1 << bits), np.int64)
        self.table[[at.COUNTS, at.SHIFT, at.BUCKETS]] = address(self.counts), shift, 1 << bits
        self._run(entry("count"), at.CODES_BYTES + (8 << bits))
        self.table[at.ENTRY] = entry("place")
        run_tasks(cpu_numpy.kernel("invoke"), self.table, 1, 0)

    def _count_and_fill(self) -> None:
        """Counting sort of integers of one or two bytes."""
        (keys,), size = self.columns, self.order.size
        self._split(_PART_KEYS if size == 1 else _PART_KEYS << 4)
        self.table[[at.KEYS, at.OUT_KEYS]] = keys.first, address(keys.out)
        self._count(0, 8 * size)
        self._run(entry("fill", size))


def _digits(differ: int) -> list[tuple[int, int]]:
    """Return (shift, bits) of the fewest digits that cover all bits set in differ."""
    digits = []
    while differ:
        low = (differ & -differ).bit_length() - 1
        span = differ.bit_length() - low
        bits = -(-span // -(-span // _MOST_BITS))
        digits.append((low, bits))
        differ = differ >> low + bits << low + bits
    return digits


# --- Words. As on a GPU (cuda.py): fields that fit 8 bytes are packed into one key, sorted once and
# unpacked. More fields are sorted group by group, the last group first.

_CHUNK = 1 << 14  # elements whose words stay in cache while they are packed
_LONG_TAKE = 1 << 17  # from this many elements on, threads share a row that is gathered


def _plan_of_words(problem: Sort, arrays: Sequence[Array], results: Sequence[Array]) -> Plan:
    orders = [_order_of(problem, group) for group in problem.groups]
    sort = _find_order if problem.index_dtype is not None else _sort
    work = bytes_of(arrays, results)
    return Plan(
        lambda xs, outs, _: sort(problem, orders, xs, outs),
        [routine_of(arrays[0].size, arrays[0].shape[-1], work)],
    )


def _find_order(
    problem: Sort, orders: Sequence[Order], keys: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write the stable order of elements to an array whose integer dtype holds it."""
    (out,) = results
    if len(orders) == 1:
        sort_rows([_keys_of(problem.groups[0], keys)], [out], orders[0], is_order=True)
        return
    indices = np.empty(out.shape, np.int64)
    _order(problem, orders, keys, indices)
    each_part(out.shape, lambda part: np.copyto(out[part], indices[part], "unsafe"))


def _sort(
    problem: Sort, orders: Sequence[Order], arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write keys, and values with them, sorted, to results that may be the inputs."""
    count, word, first = problem.num_keys, problem.value_word, problem.groups[0]
    sources, targets = arrays[count:], results[count:]
    if len(orders) > 1:
        indices = np.empty(results[0].shape, np.int64)
        sorted_keys = _order(problem, orders, arrays[:count], indices)
        fetch(arrays[first.size :], results[first.size :], indices)
    else:
        keys = _keys_of(first, arrays)
        sorted_keys = keys if first.is_word else results[0]
        if word is not None:
            words = packed(sources, word)
            sort_rows([keys, words], [sorted_keys, words], orders[0])
            unpack(words, word, targets)
        else:
            sort_rows([keys, *sources], [sorted_keys, *targets], orders[0])
    if first.is_word:
        unpack(sorted_keys, first.dtype, results[: first.size])
    elif sorted_keys is not results[0]:
        _copy_each(results[:1], [sorted_keys])


def _order(problem: Sort, orders: Sequence[Order], keys: Sequence[Array], indices: Array) -> Array:
    """Write the order of elements; return the first group's sorted keys."""
    groups = problem.groups
    sort_rows([_keys_of(groups[-1], keys)], [indices], orders[-1], is_order=True)
    sorted_keys = indices
    for group, order in zip(groups[-2::-1], orders[-2::-1], strict=True):
        sorted_keys = np.empty(indices.shape, group.dtype)
        fetch([_keys_of(group, keys)], [sorted_keys], indices)
        moved = [sorted_keys, indices]
        sort_rows(moved, moved, order)
    return sorted_keys


def _keys_of(group: Group, keys: Sequence[Array]) -> Array:
    if not group.is_word:
        return keys[group.first]
    return packed([keys[i] for i in group.places], group.dtype)


def packed(arrays: Sequence[Array], word: Dtype) -> Array:
    words = np.empty(arrays[0].shape, word)
    _copy_each(_fields_of(words, word), arrays)
    return words


def unpack(words: Array, word: Dtype, targets: Sequence[Array]) -> None:
    _copy_each(targets, _fields_of(words, word))


def _fields_of(words: Array, word: Dtype) -> list[Array]:
    return [words[name] for name in word.names or ()]


def _copy_each(targets: Sequence[Array], sources: Sequence[Array]) -> None:
    """Copy field by field, part by part, so that words stay in cache between fields."""
    pairs = [*zip(map(_plain, targets), map(_plain, sources), strict=True)]

    def body(part: Any) -> None:
        for target, source in pairs:
            np.copyto(target[part], source[part])

    each_part(targets[0].shape, body)


def _plain(array: Array) -> Array:
    """Return items as unsigned integers of their size, which NumPy copies fastest."""
    return array.view(f"u{array.itemsize}") if array.itemsize in at.FIELD_SIZES else as_bytes(array)


def fetch(sources: Sequence[Array], targets: Sequence[Array], indices: Array) -> None:
    """Write sources, along the last axis in the order of indices, to targets."""
    for source, target in zip(sources, targets, strict=True):
        if np.may_share_memory(source, target):
            source = source.copy()
        _take(_plain(source), _plain(target), indices)


def _take(source: Array, target: Array, indices: Array) -> None:
    *outer, length = indices.shape
    if outer and length < _LONG_TAKE:

        def rows(part: Any) -> None:
            target[part] = np.take_along_axis(source[part], indices[part], -1)

        each_part(indices.shape, rows, axis=0)
        return
    for row in np.ndindex(*outer):

        def body(part: Any, row: Any = row) -> None:
            target[row][part] = source[row][indices[row][part]]

        each_part((length,), body)


def each_part(shape: tuple[int, ...], body: Callable[[Any], Any], axis: int | None = None) -> None:
    """Call body(index) for parts along an axis, by default the longest one, on all cores."""
    if not shape:
        body((...,))
        return
    if axis is None:
        axis = max(range(len(shape)), key=lambda i: shape[i])
    size = prod(shape)
    step = max(1, _CHUNK * shape[axis] // max(1, size))
    before = (slice(None),) * axis

    def parts(first: int, last: int) -> None:
        for part in range(first, last):
            body((*before, slice(part * step, (part + 1) * step)))

    threads.run(parts, -(-shape[axis] // step), 16 * size)
