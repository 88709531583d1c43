"""Chooses CPU or GPU for host arrays while the default device is "auto", by one table.

The choice depends only on algorithm, sizes, dtypes and page-locking, never on timing, core counts
or free memory: the same program makes the same choices and gets the same bits.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays import page_locked
from gpualgo._arrays.view import NumPy, View, byte_bounds
from gpualgo._base import forks, records
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver.default_device import CPU, name_of
from gpualgo._operators.operator import Operator

GPU = 0  # the GPU that "auto" uses
MEMORY_SHARE = 16  # arrays may fill 1/16 of the GPU's memory: a sort needs 7 times as much


class Row(NamedTuple):
    """The size range in which a group of algorithms runs on the GPU (bounds inclusive)."""

    name: str
    algorithms: tuple[str, ...]
    least_keys: int | None = None  # summed over all rows; None: never on the GPU
    least_key_bytes: int = 0  # summed over the fields of a tuple key
    most_bytes: int = 0  # keys plus values
    counted: str = "keys"

    @property
    def rule(self) -> str:
        """Describe the row in words, for `explain`."""
        if self.least_keys is None:
            return "cpu"
        width = f" of {self.least_key_bytes} bytes or more" if self.least_key_bytes > 1 else ""
        return (
            f"{name_of(GPU)} from {self.least_keys} {self.counted}{width} on, up to "
            f"{self.most_bytes >> 30} GiB or 1/{MEMORY_SHARE} of the GPU's memory; "
            "else cpu"
        )


# Measured on three H200s (PCIe 5, 16 cores each) with pageable arrays of 2^10 to 2^27 elements.
# Speed of the GPU relative to the CPU:
#   one pass              1/7 to 1/1.3: the copy takes the time
#   sort of 4-byte keys   1 from 2^16 on, 2 to 5 from 2^18 on
#   with values, argsort  1 from 2^13 on, 4 from 2^15 on
#   histogram             1.2 to 5 from 2^16 to 2^22, 0.8 to 1.3 beyond
# The CPU sorts narrower keys by counting.
TABLE = (
    Row(
        "one pass",
        ("reduce", "inclusive_scan", "exclusive_scan", "transform", "copy", "argmin", "argmax",
         "minmax", "merge", "searchsorted", "select", "stable_partition", "find", "count",
         "run_length_encode", "adjacent_difference", "segmented_reduce",
         "segmented_inclusive_scan", "segmented_exclusive_scan", "top_k", "kth_value",
         "reduce_by_key", "inclusive_scan_by_key", "exclusive_scan_by_key", "reduce_by_index",
         "rolling"),
    ),
    Row("histogram", ("histogram",), 1 << 16, 1, 16 << 30, "samples"),
    Row("sort", ("radix_sort",), 1 << 16, 4, 16 << 30),
    Row("merge sort", ("merge_sort", "sort with less"), 1 << 16, 1, 16 << 30),
    Row("order", (
        "radix_sort with values or of tuples", "argsort", "segmented_sort",
        "reduce_by_key, inclusive_scan_by_key and exclusive_scan_by_key of any order",
    ), 1 << 13, 4, 16 << 30),
)  # fmt: skip
_rows = {row.name: row for row in TABLE}


class Choice(NamedTuple):
    device: int
    why: str


PAGEABLE, PAGE_LOCKED, LOST = range(3)


def choose(
    row_name: str, keys: Sequence[View], views: Sequence[View], op: Operator | None, lie: int
) -> Choice:
    """Return where a call on host arrays runs; `lie` is the result of `memory_kind`."""
    if lie == LOST:
        return Choice(CPU, "the GPU of the parent cannot be used in a forked process")
    for view in () if op is None else op.arrays:
        if view.device != CPU:
            return Choice(view.device, "op captures an array on this device")
    row = _rows[row_name]
    num_keys = math.prod(keys[0].shape)
    key_bytes = sum(view.dtype.itemsize for view in keys)
    num_bytes = sum(math.prod(view.shape) * view.dtype.itemsize for view in views)
    if row.least_keys is None:
        fits, is_worth_it = True, False
    else:
        fits = num_bytes <= min(row.most_bytes, gpu.get(GPU).memory_bytes // MEMORY_SHARE)
        is_worth_it = num_keys >= row.least_keys and key_bytes >= row.least_key_bytes
    if lie == PAGE_LOCKED and fits:
        return Choice(GPU, "all arrays are page-locked, so they are treated like arrays on the GPU")
    device = GPU if fits and is_worth_it else CPU
    return Choice(device, f"the default device is 'auto', whose rule for this call is: {row.rule}")


# --- page-locked arrays -------------------------------------------------------------------------


# Whether each NumPy base array is page-locked, asked once per array: the driver query takes longer
# than the rest of a warm call. Memory that is registered later is still treated as pageable.
_is_locked_by_id: dict[int, tuple[weakref.ref[Any], bool | None]] = {}


def memory_kind(views: Sequence[View]) -> int:
    """Return PAGE_LOCKED, PAGEABLE or LOST for a call's arrays; part of the call's cache key."""
    if _is_lost:
        return LOST
    result = PAGEABLE
    for view in views:
        owner = view.owner
        if type(owner) is np.ndarray:
            base = owner.base
            root = base if type(base) is np.ndarray else owner
            entry = _is_locked_by_id.get(id(root))
            is_locked = (
                entry[1] if entry is not None and entry[0]() is root else _remember(root, view)
            )
        else:
            is_locked = _query_page_locked(view)
        if is_locked:
            result = PAGE_LOCKED
        elif is_locked is not None and view.shape and 0 not in view.shape:
            return PAGEABLE
    return result


def is_known_pageable(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array of exactly NumPy's class is known not to be page-locked.

    False if the GPU is lost: then each call looks for its problem.
    """
    base = array.base
    root = base if type(base) is np.ndarray else array
    entry = _is_locked_by_id.get(id(root))
    return not _is_lost and entry is not None and entry[1] is False and entry[0]() is root


def _remember(root: np.ndarray[Any, Any], view: View) -> bool | None:
    whole = view if records.is_position(view.dtype) else NumPy.view(root)
    is_locked, key = _query_page_locked(whole), id(root)
    _is_locked_by_id[key] = weakref.ref(root, functools.partial(_forget, key)), is_locked
    return is_locked


def _forget(key: int, reference: Any) -> None:
    entry = _is_locked_by_id.get(key)
    if entry is not None and entry[0] is reference:
        _is_locked_by_id.pop(key, None)


def _query_page_locked(view: View) -> bool | None:
    """Return whether an array is page-locked; None for scalars and other arrays without memory."""
    if view.device != CPU or records.is_position(view.dtype):
        return None
    low, high = byte_bounds(view)
    if low == high:
        return None
    ordinal = next(filter(_is_started, range(driver.device_count())), None)
    if ordinal is not None:  # without a context no memory can be page-locked
        with gpu.get(ordinal).current():
            if page_locked.is_within(low, high):
                return True
    return None if not view.shape else False


def _is_started(ordinal: int) -> bool:
    status, _, is_active = driver.api().cuDevicePrimaryCtxGetState(ordinal)
    return not status and bool(is_active)


def is_usable() -> bool:
    return not _is_lost


@forks.in_child
def _update_is_lost() -> None:
    global _is_lost
    _is_lost = driver.is_lost()


_is_lost = driver.is_lost()
