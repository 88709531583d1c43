"""Kernel parameters and tuning table of differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.templates import (
    DIVISOR,
    VECTOR_BYTES,
    Access,
    functor,
    is_aligned,
    layout_of,
    layout_type,
)
from gpualgo._operators.operator import Operator

# --- Parameter structs of the adjacent difference kernel (adjacent_difference/kernel.cuh).

DENSE_RESULTS_PARAMS = Parameters("DenseResults")


@cache
def spaced_results_params(leaves: int, is_even: bool) -> Parameters:
    """Return SpacedResults of elements with `leaves` fields; is_even: one dimension."""
    return Parameters("SpacedResults", places=layout_of(leaves, is_even))


@cache
def adjacent_params(inputs: int, outputs: int, reads: Parameters, writes: Parameters) -> Parameters:
    """Return AdjacentParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "AdjacentParams",
        input=POINTER[inputs], output=POINTER[outputs], num_items=I64, inner=DIVISOR,
        length=DIVISOR, reads=reads, writes=writes,
    )  # fmt: skip


# --- Tuning table of adjacent differences: kernels and template arguments.

# As for a transformation: the same loads and stores, plus the element before each pack.
BLOCK_THREADS = 256
BYTES_IN_FLIGHT, MOST_LOADS = 16, 8  # that a thread loads before it stores
MAX_PACK_BYTES = 32  # of the widest number; the narrowest then fills a vector

DENSE = Access("gpualgo::DenseResults", DENSE_RESULTS_PARAMS)


def spaced(leaves: int, is_even: bool) -> Access:
    """Return the access to results of any strides."""
    layout = f"gpualgo::{layout_type(is_even)}<{leaves}>"
    cpp = f"gpualgo::SpacedResults<{layout}, {leaves}>"
    return Access(cpp, spaced_results_params(leaves, is_even))


def pack_items(numbers: Sequence[np.dtype[Any]], inner: int, alignment: int) -> int:
    """Return the elements of a pack, for contiguous numbers of these dtypes.

    The elements of a pack have one index along the axis, unless that is the innermost one.
    """
    sizes = [number.itemsize for number in numbers if not records.is_position(number)]
    sizes = sizes or [VECTOR_BYTES]
    items = max(1, min(VECTOR_BYTES // min(sizes), MAX_PACK_BYTES // max(sizes)))
    while items > 1 and not (
        (inner == 1 or inner % items == 0) and is_aligned(numbers, items, alignment)
    ):
        items //= 2
    return items


def loads_in_flight(numbers: Sequence[np.dtype[Any]], items: int) -> int:
    """Return how many packs of input a thread loads before it stores."""
    size = sum(number.itemsize for number in numbers if not records.is_position(number))
    loads = BYTES_IN_FLIGHT // (items * max(size, 1))
    return min(MOST_LOADS, 1 << max(1, loads).bit_length() - 1)


@dataclass(frozen=True)
class Kind:
    """Parameters that determine the kernel."""

    op: Operator
    source: records.Source
    result: np.dtype[Any]
    reads: Access
    writes: Access
    items: int
    loads: int
    is_along: bool  # the axis is the innermost one

    @property
    def spec(self) -> Spec:
        op, source, result = self.op, self.source, self.result
        element = records.register_dtype(source)
        sizes = BLOCK_THREADS, self.loads, self.items, str(self.is_along).lower()
        types = (
            f"gpualgo::AdjacentPolicy<{', '.join(map(str, sizes))}>",
            functor(op, (element, element), result), records.cpp_name(source),
            records.cpp_name(result), self.reads.cpp, self.writes.cpp,
        )  # fmt: skip
        expression = f"gpualgo::adjacent_difference_kernel<{', '.join(types)}>"
        counts = len(records.field_dtypes(source)), len(records.field_dtypes(result))
        params = adjacent_params(*counts, self.reads.fields, self.writes.fields)
        header, arguments = "adjacent_difference/kernel.cuh", (element, element)
        computed = source if isinstance(source, records.Computed) else None
        if computed is None and build.is_functor(op, arguments, result):
            return Spec(header, expression, params)
        return Spec(header, expression, params, op, arguments, result, computed)
