"""Which device takes host arrays while the default device is "auto" and there is a GPU: one table.

A call is placed by what it is, never by a clock, the number of cores or free memory: the same
program makes the same choices again, and so gives the same bits.
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

GPU = 0  # the one that takes them
MEMORY_SHARE = 16  # arrays take at most this part of the GPU's memory: a sort needs 7 times as much


class Row(NamedTuple):
    """From where to where a kind of algorithm runs on the GPU: between these bounds, both in."""

    name: str
    algorithms: tuple[str, ...]
    least_keys: int | None = None  # of all rows of an array together; None: never
    least_key_bytes: int = 0  # of all fields of a key that is a tuple
    most_bytes: int = 0  # of keys and values together
    counted: str = "keys"

    @property
    def rule(self) -> str:
        """Say where they run."""
        if self.least_keys is None:
            return "cpu"
        of = f" of {self.least_key_bytes} bytes or more" if self.least_key_bytes > 1 else ""
        return (
            f"{name_of(GPU)} from {self.least_keys} {self.counted}{of} on, up to "
            f"{self.most_bytes >> 30} GiB or 1/{MEMORY_SHARE} of the GPU's memory; "
            "else cpu"
        )


# Measured on three H200s (PCIe 5) with 16 cores each, pageable arrays of 2^10 to 2^27 elements: the
# CPU is 1.3 to 7 times as fast at one pass, whose copy takes the time. The GPU is as fast at sorts
# of 4-byte keys from 2^16 on and 2 to 5 times from 2^18 on; with values, or for their order, as
# fast from 2^13 on and 4 times from 2^15 on; at histograms 1.2 to 5 times from 2^16 to 2^22 and 0.8
# to 1.3 beyond. Narrow keys are counted.
TABLE = (
    Row(
        "one pass",
        ("reduce", "inclusive_scan", "exclusive_scan", "transform", "copy", "argmin", "argmax",
         "minmax", "merge", "searchsorted", "select", "stable_partition", "find", "count",
         "run_length_encode", "adjacent_difference", "segmented_reduce",
         "segmented_inclusive_scan", "segmented_exclusive_scan", "top_k", "kth_value",
         "reduce_by_key", "inclusive_scan_by_key", "exclusive_scan_by_key", "reduce_by_index"),
    ),
    Row("histogram", ("histogram",), 1 << 16, 1, 16 << 30, "samples"),
    Row("sort", ("radix_sort",), 1 << 16, 4, 16 << 30),
    Row("merge sort", ("merge_sort", "sort with less"), 1 << 16, 1, 16 << 30),
    Row(
        "order", ("radix_sort with values or of tuples", "argsort", "segmented_sort"), 1 << 13, 4,
        16 << 30,
    ),
)  # fmt: skip
_rows = {row.name: row for row in TABLE}


class Choice(NamedTuple):
    """A device, and why that one."""

    device: int
    why: str


PAGEABLE, PAGE_LOCKED, LOST = range(3)


def choose(
    row_name: str, keys: Sequence[View], views: Sequence[View], op: Operator | None, lie: int
) -> Choice:
    """Return where a call on host arrays runs; `lie` is what `where_they_lie` says of them."""
    if lie == LOST:
        return Choice(CPU, "the GPU of the parent cannot be used in a forked process")
    for view in () if op is None else op.arrays:
        if view.device != CPU:
            return Choice(view.device, "op captures an array there")
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
        return Choice(GPU, "all its arrays are page-locked, and count as the GPU's")
    found = GPU if fits and is_worth_it else CPU
    return Choice(found, f"the default device is 'auto', whose row for it is: {row.rule}")


# --- page-locked arrays -------------------------------------------------------------------------


# What NumPy arrays that own memory, or stand for it, were when they first came by: to ask the
# driver takes longer than all else. Arrays that are registered later stay what they were.
_known: dict[int, tuple[weakref.ref[Any], bool | None]] = {}


def where_they_lie(views: Sequence[View]) -> int:
    """Return PAGE_LOCKED if all arrays are, as a part of the key of a call."""
    if _is_lost:
        return LOST
    found = PAGEABLE
    for view in views:
        owner = view.owner
        if type(owner) is np.ndarray:
            base = owner.base
            root = base if type(base) is np.ndarray else owner
            known = _known.get(id(root))
            is_locked = (
                known[1] if known is not None and known[0]() is root else _remember(root, view)
            )
        else:
            is_locked = _ask(view)
        if is_locked:
            found = PAGE_LOCKED
        elif is_locked is not None and view.shape and 0 not in view.shape:
            return PAGEABLE
    return found


def is_known_pageable(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array of NumPy's own class is known not to be page-locked."""
    base = array.base
    root = base if type(base) is np.ndarray else array
    known = _known.get(id(root))
    return known is not None and known[1] is False and known[0]() is root


def _remember(root: np.ndarray[Any, Any], view: View) -> bool | None:
    whole = view if records.is_position(view.dtype) else NumPy.view(root)
    found, key = _ask(whole), id(root)
    _known[key] = weakref.ref(root, functools.partial(_forget, key)), found
    return found


def _forget(key: int, reference: Any) -> None:
    known = _known.get(key)
    if known is not None and known[0] is reference:
        _known.pop(key, None)


def _ask(view: View) -> bool | None:
    """Return whether an array is page-locked; None if it goes with any other: it is a number."""
    if view.device != CPU or records.is_position(view.dtype):
        return None
    low, high = byte_bounds(view)
    if low == high:
        return None
    started = next(filter(_is_started, range(driver.device_count())), None)
    if started is not None:  # else no memory can be page-locked, and no context need be made
        with gpu.get(started).current():
            if page_locked.is_within(low, high):
                return True
    return None if not view.shape else False


def _is_started(ordinal: int) -> bool:
    """Return whether a GPU has its primary context."""
    status, _, is_active = driver.api().cuDevicePrimaryCtxGetState(ordinal)
    return not status and bool(is_active)


def is_usable() -> bool:
    """Return whether this process can use the GPU."""
    return not _is_lost


@forks.in_child
def _lose() -> None:
    global _is_lost
    _is_lost = driver.is_lost()


_is_lost = driver.is_lost()
