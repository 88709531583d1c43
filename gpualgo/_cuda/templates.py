"""Shared by the templates of all kernels: constants, functors, specs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element, Interleaved
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp, parameters_of, struct_of
from gpualgo._cuda.plan import GIVEN, VALUE, Launch
from gpualgo._operators.operator import SOURCE, Operator

WARP, VECTOR_BYTES, ROWS_PER_WARP = 32, 16, 2112


def tagged_bytes(dtype: np.dtype[Any]) -> int:
    """Return the size of a value that blocks exchange with tags (parts/tagged.cuh)."""
    return 8 * -(-dtype.itemsize // 4)


def functor(op: Operator, args: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> str:
    if build.is_functor(op, args, result):
        assert op.name is not None
        functor_name = "gpualgo::" + "".join(word.capitalize() for word in op.name.split("_"))
        return f"gpualgo::WithNumbers<{functor_name}>" if op.key.numbers else functor_name
    types = ", ".join(map(records.cpp_name, (result, *args)))
    has_numbers = str(bool(op.key.numbers)).lower()
    if op.part == SOURCE:
        return f"gpualgo::InputFunction<{has_numbers}, {types}>"
    return f"gpualgo::UserOperator<{str(op.commutative).lower()}, {has_numbers}, {types}>"


START = {"value": VALUE, "is_given": GIVEN}
"""The address indices that an Init takes."""


class Applied(NamedTuple):
    """An operator with the dtypes of its arguments and its result: numbers or records.

    As a template argument it is the functor that applies the operator.
    """

    op: Operator
    arguments: tuple[records.Argument, ...]
    result: np.dtype[Any]
    reads: tuple[np.dtype[Any], ...] = ()  # with index inputs, if there are any

    @property
    def inputs(self) -> tuple[np.dtype[Any], ...]:
        return self.reads or records.slots(self.arguments)

    @property
    def outputs(self) -> tuple[np.dtype[Any], ...]:
        return records.field_dtypes(self.result)

    @property
    def text(self) -> str:
        return functor(self.op, self.inputs, self.result)


def fold_of(op: Operator, acc: np.dtype[Any]) -> Applied:
    return Applied(op, (acc, acc), acc)


def kernel_spec(
    header: str, name: str, *args: Any, params: Cpp | None = None, call: Applied | None = None,
    computed: records.Computed | None = None,
) -> Spec:  # fmt: skip
    """Return a kernel with these template arguments (see `text_of`).

    It calls the operator of the arguments (`Applied`), or `call`, and what computes elements
    (`Computed`). `params`: the struct that it takes, if its declaration does not name it.
    """
    expression = cpp(name, *args).text
    parameters = parameters_of(header, name, args) if params is None else struct_of(header, params)
    for arg in _all_of(args):
        if isinstance(arg, Applied):
            call = call or arg
        elif isinstance(arg, records.Computed):
            computed = computed or arg
    if call is None or (computed is None and build.is_functor(*call[:3])):
        return Spec(header, expression, parameters)
    return Spec(header, expression, parameters, *call[:3], computed)


def _all_of(args: Iterable[Any]) -> Iterator[Any]:
    """Yield template arguments, and those of classes among them."""
    for arg in args:
        yield arg
        if isinstance(arg, Cpp):
            yield from _all_of(arg.args)


def launch(
    spec: Spec, device: int, grid: int, threads: int, takes: Mapping[str, Any], *,
    shared_bytes: int = 0, overlaps: bool = False, groups: int = 0, **fixed: Any,
) -> Launch:  # fmt: skip
    """Return the launch of a kernel; `fixed` are the values of its parameters (see `Launch`)."""
    kernel, packed = build.kernel(spec, device), spec.parameters.pack(**fixed)
    return Launch(
        kernel, grid, threads, packed, device, takes, shared_bytes=shared_bytes, overlaps=overlaps,
        groups=groups,
    )  # fmt: skip


def launch_again(
    launches: dict[Any, Launch] | None, key: Any, spec: Callable[[], Spec], device: int, grid: int,
    threads: int, takes: Mapping[str, Any], *, shared_bytes: int = 0, **fixed: Any,
) -> Launch:  # fmt: skip
    """Return the launch of a kernel, made from the one that `launches` has for the key, if any.

    The key says all that spec, threads, shared memory and `takes` depend on, among the problems
    that share `launches` (see `Problem.of_shape`).
    """
    known = None if launches is None else launches.get(key)
    if known is not None:
        return known.resized(grid, **fixed)
    own = spec()
    made = launch(own, device, grid, threads, takes, shared_bytes=shared_bytes, **fixed)
    # A kernel reads an operator's arrays where they are now; those of the host are copied anew.
    if launches is not None and (own.op is None or not own.op.arrays):
        launches[key] = made
    return made


def is_aligned(operands: Sequence[records.Element], items: int, alignment: int) -> bool:
    """Return whether vectors of so many elements can be loaded at multiples of `alignment`."""
    return all(
        alignment % math.gcd(VECTOR_BYTES, items * records.step_of(operand)) == 0
        for operand in operands
        if operand not in (records.POSITION, records.SHARED_POSITION)
    )


# --- Arrays that are fields of the same records in memory: kernels load whole records if
# possible.


def interleaved(
    source: Element, pointers: Sequence[int], strides: Iterable[Sequence[int]], step: int
) -> Interleaved | None:
    """Return the record layout of fields at these pointers; None if they do not share records.

    `strides`: for each dimension the strides of all fields. `step`: size of a record in bytes. The
    fields must cover at least half of the record.
    """
    if not isinstance(source, np.dtype) or source.names is None:
        return None
    sizes = [field.itemsize for field in records.memory_fields(source)]
    if len(sizes) < len(pointers) or any(len(set(axis_strides)) > 1 for axis_strides in strides):
        return None
    layout = records.in_one_piece(pointers, sizes)
    if layout is None or layout[1] != step:
        return None
    return Interleaved(source, step, layout[0])


def fitting(field: Element, unit: int) -> int:
    """Return how many neighbouring elements one access may load at multiples of `unit` bytes."""
    if not isinstance(field, Interleaved):
        return unit // records.step_of(field)
    most = 0
    while most < VECTOR_BYTES and unit % math.gcd(VECTOR_BYTES, max(1, 2 * most) * field.size) == 0:
        most = max(1, 2 * most)
    return most
