"""A segmented sort on the CPU's cores: a sort of pairs, of where a segment begins and a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import view_of

if TYPE_CHECKING:
    from gpualgo._algorithms.segmented_sort.problem import SegmentedSort

Array: TypeAlias = np.ndarray[Any, Any]


def sort(
    problem: SegmentedSort, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write each segment's elements in order; what is in none is copied."""
    *items, offsets = arrays
    n, ends = len(items[0]), offsets.astype(np.int64)
    begins = np.arange(n, dtype=np.uint64)
    begins[ends[0] : ends[-1]] = np.repeat(ends[:-1], np.diff(ends))
    keys = (begins, *items[: problem.num_keys])
    values = items[problem.num_keys :]
    views = tuple(map(view_of, (*keys, *values), ["x"] * (len(keys) + len(values))))
    form = Form(tuple, (None,) * len(keys))
    forms = (form, Form(tuple, (None,) * len(values))) if values else (form,)
    rest = (False, *order.ways), 0, None, 0, None, forms
    TupleSort(problem.device, views, None, None, rest, problem.where).cpu(
        [*keys, *values], [np.empty_like(begins), *results], None, None
    )
