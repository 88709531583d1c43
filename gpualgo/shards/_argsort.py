"""Argsort of sharded keys: a sort by key, with indices of which each merge makes global ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo.shards._arguments import build_result, infer_result, on_each
from gpualgo.shards._sort import Order, line_of, long_row, one_row


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort sharded keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with sharded arrays for arrays; along the
    sharded axis the result holds indices into the whole array. Cost and memory are those of
    `radix_sort` with indices as values.
    """
    func_name, order = "argsort", Order(descending, (0, None))
    key_arg, sort_axis = line_of(keys, func_name, "keys", axis)
    first = key_arg.first
    options = {"descending": descending, "axis": sort_axis, "dtype": dtype}
    (dtype_,), _ = infer_result(ga.argsort, key_arg.places[0], key_arg.on(0), **options)
    length = first.shape[sort_axis]
    if length > int(np.iinfo(dtype_).max) + 1:
        raise ValueError(
            f"argsort: dtype {dtype_} is too narrow for indices below {length}; pass a wider dtype="
        )
    if sort_axis != first.axis:
        rows = on_each(
            first.places, key_arg.seats,
            lambda i: ga.argsort(key_arg.on(i), **options),
        )  # fmt: skip
        return build_result(rows, first.places, first.axis)
    one_row(key_arg, sort_axis, func_name)
    pieces = long_row(key_arg, None, order, dtype_)
    return build_result([indices for _, (indices,) in pieces], first.places, 0)
