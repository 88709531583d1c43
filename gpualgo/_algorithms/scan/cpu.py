"""Scans on CPU cores: the layout decides between rows and columns, and how threads share them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.scan import problem as parameters
from gpualgo._algorithms.scan.problem import Scan, Step
from gpualgo._algorithms.transform import cpu as elementwise
from gpualgo._base import records
from gpualgo._cpu.image import Loaded
from gpualgo._cpu.kernels import Applied, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import Dims, ScratchLayout, field_arguments, merge, packer, table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import START, Plan, Routine, bytes_of
from gpualgo._operators.operator import Operator, mirrored
from gpualgo._pipeline import planners

# --- Tiling of a CPU scan: rows into links, or columns, depending on the layout.

Dtype: TypeAlias = np.dtype[Any]
Strides: TypeAlias = tuple[tuple[int, ...], ...]

_WIDE = 16  # neighbouring columns that make a scan down columns worthwhile
_MANY = 16  # independent tasks that occupy all cores without cutting rows
_LONG, _LONG_COLUMN = 1 << 15, 1 << 12  # lengths from which rows and columns are cut
# Elements of a tile. Long tiles prefetch best; interleaved rows share cache lines.
_TILE, _NEAR_TILE, _COLUMN_TILE = 1 << 14, 1 << 10, 256
_TILES = 256  # minimum number of tiles of a row that is cut


class Layout(NamedTuple):
    """Rows of n elements; x_steps and out_steps are the byte strides of their fields.

    An outer dimension is (length, stride of each leaf, of each out); the last one has the smallest
    strides.
    """

    source: Dtype
    acc: Dtype
    n: int
    x_steps: tuple[int, ...]
    out_steps: tuple[int, ...]
    outer: Dims
    in_place: tuple[bool, ...]


class Links(NamedTuple):
    """Tiling of rows into links, and the argument table without addresses."""

    kind: str  # "strips" or "columns"
    chains: int
    links: int
    is_cut: bool
    near: bool  # chains share cache lines, so link 0 of all chains comes first
    aggregate_bytes: int
    prefix_bytes: int
    scratch_bytes: int
    arguments: np.ndarray[Any, Any]
    starts: slice  # indices of addresses in `arguments`
    outs: slice


@lru_cache(256)
def _cut(
    shape: tuple[int, ...], strides: Strides, out_strides: Strides, axis: int,
    in_place: tuple[bool, ...], source: Dtype, acc: Dtype,
) -> Links:  # fmt: skip
    """Return the tiling of a scan along an axis."""
    dims, count = list(zip(shape, *strides, *out_strides, strict=True)), len(strides)
    n, *steps = dims.pop(axis)
    dims.sort(key=lambda dim: (-_gap(dim[1 + count :]), -_gap(dim[1 : 1 + count])))
    x_steps, out_steps = tuple(steps[:count]), tuple(steps[count:])
    layout = Layout(source, acc, n, x_steps, out_steps, merge(dims), in_place)
    return _cut_columns(layout) if _is_columns(layout) else _cut_strips(layout)


def _sizes(dtype: Dtype) -> tuple[int, ...]:
    return tuple(number.itemsize for number in records.field_dtypes(dtype))


def _gap(steps: Sequence[int]) -> int:
    """Return the sum of the distances between neighbours over all fields of an element."""
    return sum(map(abs, steps))


def _is_columns(layout: Layout) -> bool:
    """Return whether neighbouring rows are closer than the elements of a row."""
    if not layout.outer or layout.outer[-1][0] < _WIDE:
        return False
    if layout.n == 1:
        return True
    count, strides = len(layout.x_steps), layout.outer[-1][1:]
    near = not any(layout.x_steps) or _gap(strides[:count]) < _gap(layout.x_steps)
    return near and _gap(strides[count:]) < _gap(layout.out_steps)


def _cut_strips(layout: Layout) -> Links:
    """Cut rows that are long and few into tiles; ABREAST tiles make a link."""
    n, outer, count = layout.n, layout.outer, len(layout.x_steps)
    rows, size, abreast = prod(dim[0] for dim in outer), layout.acc.itemsize, parameters.ABREAST
    is_cut = n > _LONG and rows < abreast * _MANY
    near = is_cut and bool(outer) and _gap(outer[-1][1 : 1 + count]) < _gap(layout.x_steps)
    long = _TILE if size <= 16 else _TILE * 16 // size
    steps = *layout.x_steps, *layout.out_steps
    if is_cut:
        # An odd number of cache lines spreads the strips of a link over the sets of a cache.
        tile = min(n // _TILES, _NEAR_TILE if near else long) // 32 * 32 + 16
        strips, jumps = -(-n // tile), [tile * step for step in steps]
        span = abreast
    else:
        strips, *jumps = outer[-1] if outer else (1, *(0,) * len(steps))
        outer = outer[:-1]
        rows = prod(dim[0] for dim in outer)
        tile = n
        # Read adjacent rows as four long runs, if enough tasks remain.
        span = max(1, min(long // 2 // n, strips * rows // 256, strips // abreast)) * abreast
    head = (0,) * parameters.CHAIN_TAIL, (0, n, tile, len(outer), is_cut, strips, span)
    addresses = [0] * len(steps)
    first = sum(map(len, head))
    return Links(
        "strips", rows, -(-strips // span), is_cut, near, abreast * size,
        (abreast + 1) * size, 2 * parameters.SLOTS,
        table(*head, addresses, steps, jumps, *zip(*outer, strict=True)),
        slice(first, first + count), slice(first + count, first + 2 * count),
    )  # fmt: skip


def _cut_columns(layout: Layout) -> Links:
    """Cut columns that are long and few into links of `tile` rows."""
    n, width, outer = layout.n, layout.outer[-1][0], layout.outer[:-1]
    chains = prod(dim[0] for dim in outer) * -(-width // parameters.COLUMNS)
    is_cut = n > _LONG_COLUMN and chains < _MANY
    tile = _COLUMN_TILE if is_cut else n
    room = ScratchLayout()
    room.take(3 * parameters.SLOTS + parameters.COLUMNS * sum(_sizes(layout.acc)))
    lengths = [dim[0] for dim in outer]
    head = (0,) * parameters.CHAIN_TAIL, (0, n, tile, len(outer), width), lengths
    numbers = [_column(layout, k, room) for k in range(len(layout.x_steps))]
    first, step = sum(map(len, head)), len(numbers[0])
    row_bytes = min(width, parameters.COLUMNS) * sum(_sizes(layout.acc))
    return Links(
        "columns", chains, -(-n // tile), is_cut, False, row_bytes, 2 * row_bytes, room.size,
        table(*head, *numbers),
        slice(first + START, None, step), slice(first + parameters.OUT_AT, None, step),
    )  # fmt: skip


def _column(layout: Layout, k: int, room: ScratchLayout) -> list[int]:
    """Return the entries of field k in the functions' table."""
    x, out = records.field_dtypes(layout.source)[k], records.field_dtypes(layout.acc)[k]
    count = len(layout.x_steps)
    *outer, (across, out_across) = ((dim[1 + k], dim[1 + count + k]) for dim in layout.outer)
    # A row is packed if it has gaps, or if the scan is in place and would overwrite it.
    size, is_copied = layout.n * prod(dim[0] for dim in layout.outer), layout.in_place[k]
    read = x, out, layout.outer[-1:], k, size, parameters.COLUMNS, room
    return [
        *field_arguments(*read, is_copied=is_copied),
        0, layout.x_steps[k], layout.out_steps[k], across, out_across,
        0 if out_across == out.itemsize else packer(out.itemsize, out_across, size),
        *(stride for stride, _ in outer), *(stride for _, stride in outer),
    ]  # fmt: skip


Array: TypeAlias = np.ndarray[Any, Any]

_MOST_POLLS = 1 << 14  # polls of an aggregate before it is recomputed


@planners.for_cpu.register(Scan)
def _(problem: Scan, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    axis, is_reverse, source, acc = problem.axis, problem.is_reverse, problem.source, problem.acc
    if not problem.has_steps:
        return plan_of(arrays, results, op, axis, problem.is_exclusive, is_reverse, source, acc)
    last = len(problem.buffer_shape)
    transformations = {
        parameters.ELEMENTS: elementwise.elements_of(source, op, acc),
        parameters.COPY: elementwise.elements_of(acc, op, acc),
        parameters.COMBINE: Applied(op, (records.argument_of(acc),) * 2, acc),
    }
    scans: dict[int, tuple[Operator, int | None, bool, records.Source]] = {
        parameters.SCAN: (op, axis, is_reverse, source),
        parameters.SUFFIXES: (mirrored(op), last, True, acc),
        parameters.PREFIXES: (op, last, False, acc),
    }

    def planned(step: Step) -> Plan:
        if step.kind in transformations:
            return elementwise.plan_of(transformations[step.kind], step.inputs, step.outs)
        function, axis, is_reverse, read = scans[step.kind]
        return plan_of(step.inputs, step.outs, function, axis, False, is_reverse, read, acc)

    def steps(arrays: Sequence[Array], results: Sequence[Array]) -> list[Step]:
        buffers = [np.empty(problem.buffer_shape, leaf) for leaf in problem.buffers]
        return [x for x in problem.steps(arrays, results, buffers, True) if x.outs[0].size]

    plans = [planned(step) for step in steps(arrays, results)]

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        for plan, step in zip(plans, steps(arrays, results), strict=True):
            plan.run(step.inputs, step.outs, 0)

    return Plan(run, [routine for plan in plans for routine in plan.routines])


def plan_of(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, axis: int | None,
    is_exclusive: bool, is_reverse: bool, source: records.Source, acc: Dtype,
) -> Plan:  # fmt: skip
    """Return the plan that writes the scan of leaves along axis to outs; acc accumulates.

    `leaves` are the arrays of the fields of source, or of the inputs from which op's source
    computes elements; `outs` are those of the fields of acc. Leaves have one shape, at least one
    element and any strides. Outs have that shape, or one dimension if axis is None; each is the
    leaf of the same index or overlaps no leaf, unless elements are computed. An exclusive scan
    needs an initial value. All arguments have been checked. The association depends on shapes,
    strides and dtypes only, so the bits do not depend on the number of threads.
    """
    if axis is None or isinstance(source, records.Computed):
        return _in_results(leaves, outs, op, (axis, is_exclusive, is_reverse), source, acc)
    arrays = (*leaves, *outs)
    strides, shifts = [array.strides for array in arrays], [0] * len(arrays)
    if is_reverse:
        shifts = [(leaves[0].shape[axis] - 1) * steps[axis] for steps in strides]
        strides = [(*s[:axis], -s[axis], *s[axis + 1 :]) for s in strides]
    sides = tuple(strides[: len(leaves)]), tuple(strides[len(leaves) :])
    in_place = tuple([address(x) == address(out) for x, out in zip(leaves, outs, strict=True)])
    links = _cut(leaves[0].shape, *sides, axis, in_place, source, acc)
    functions = _functions(links, op, is_exclusive, source, acc)
    arguments, tasks = links.arguments.copy(), links.chains * links.links
    work = bytes_of(arrays)
    emit, aggregate, fold = (*(f.address for f in functions), 0, 0)[:3]
    arguments[: parameters.CHAIN_TAIL] = (
        aggregate, fold, emit, 0, tasks, links.chains, links.links, links.near, 0, 0,
        links.aggregate_bytes, links.prefix_bytes, links.scratch_bytes, _MOST_POLLS,
    )  # fmt: skip
    indices, num_bytes, name = range(len(arguments)), links.scratch_bytes, "emit_all"
    places = [parameters.CHAIN_TAIL + parameters.INIT, *indices[links.starts], *indices[links.outs]]
    if links.is_cut:
        name = "take_links"
        places += parameters.NEXT, parameters.FLAGS, parameters.AGGREGATES
        num_bytes += links.aggregate_bytes + links.chains * (8 + links.prefix_bytes)
    kernel = get_kernel(*named("scan", name))
    launch = Launch(kernel, arguments, places, num_bytes, tasks, work, functions)
    routine = Routine("scan", True, -(-leaves[0].size // tasks), tasks, work)
    if not (links.is_cut or any(shifts)):
        return launch.plan(routine)

    def run(leaves: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        pairs = zip((*leaves, *outs), shifts, strict=True)
        words: list[Any] = [init, *[address(x) + shift for x, shift in pairs]]
        if links.is_cut:
            words += 0, np.zeros(tasks, np.int64), np.empty(tasks * links.aggregate_bytes, np.uint8)
        launch(words)

    return Plan(run, [routine])


def _in_results(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator,
    options: tuple[int | None, bool, bool], source: records.Source, acc: Dtype,
) -> Plan:  # fmt: skip
    """Scan elements that are first computed into the results' memory, or flattened ones.

    Of elements that are flattened, in C order, only fields with gaps are copied to the results.
    `options`: the axis, whether the scan is exclusive, and whether it is reversed.
    """
    axis, is_exclusive, is_reverse = options
    shape, scanned, first = leaves[0].shape, list(leaves), list[tuple[slice, Plan]]()
    if isinstance(source, records.Computed):
        written = [(slice(None), elementwise.elements_of(source, op, acc))]
        source = acc
    else:
        written = [
            (slice(i, i + 1), elementwise.elements_of(x.dtype, op, out.dtype))
            for i, (x, out) in enumerate(zip(leaves, outs, strict=True))
            if len(merge(list(zip(x.shape, x.strides, strict=True)))) > 1
        ]
    for part, applied in written:
        shaped = [out.reshape(shape) for out in outs[part]]  # results may have one dimension
        first.append((part, elementwise.plan_of(applied, leaves[part], shaped)))
        scanned[part] = outs[part]
    if axis is None:
        axis, scanned = 0, [x.reshape(-1) for x in scanned]  # views
    read = records.with_fields(source, [x.dtype for x in scanned])
    scan = plan_of(scanned, outs, op, axis, is_exclusive, is_reverse, read, acc)
    if not first:  # the addresses are those of the views
        return scan

    def run(leaves: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        scanned = list(leaves)
        for part, plan in first:
            plan.run(leaves[part], [out.reshape(shape) for out in outs[part]], 0)
            scanned[part] = outs[part]
        scan.run(scanned, outs, init)

    return Plan(run, [routine for _, plan in (*first, (None, scan)) for routine in plan.routines])


def _functions(
    links: Links, op: Operator, is_exclusive: bool, source: Dtype, acc: Dtype
) -> list[Loaded]:
    """Return the code of emit, and of aggregate and fold if rows are cut."""
    options: tuple[Any, ...] = acc, is_exclusive
    if links.kind == "strips":  # column functions convert through the packing table
        options = *options, source
    names = ("emit", "aggregate", "fold") if links.is_cut else ("emit",)
    codes = [named("scan", f"{links.kind}_kernel", name, *options) for name in names]
    return [get_kernel(*code, Applied(op, (acc, acc), acc)) for code in codes]
