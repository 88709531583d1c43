"""What calls return, by NumPy and by loops in Python."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Host = np.ndarray[Any, Any]
Op = Callable[..., Any]


def fold(op: Op, values: Any, init: Any = None) -> Any:
    """Fold rows of values from the first on; ValueError where there is none."""
    values = list(values)
    if init is None and not values:
        raise ValueError("nothing to fold")
    start = values[0] if init is None else init
    return functools.reduce(op, values[init is None :], start)


def reduced(x: Host, op: Op, axis: int | None = None, init: Any = None) -> Host:
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    start = None if init is None else np.full(rows.shape[1:], init, x.dtype)[()]
    return np.asarray(fold(lambda a, b: op(a, b).astype(x.dtype), rows, start), x.dtype)


def scanned(
    x: Host, op: Op = np.add, *, axis: int | None = None, init: Any = None,
    exclusive: bool = False, reverse: bool = False,
) -> Host:  # fmt: skip
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    found = np.zeros_like(rows)
    running = None if init is None else np.full(rows.shape[1:], init, x.dtype)[()]
    for i, value in enumerate(rows):
        if exclusive:
            found[i] = 0 if running is None else running
        running = value if running is None else np.asarray(op(running, value), x.dtype)[()]
        if not exclusive:
            found[i] = running
    found = found[::-1] if reverse else found
    return found.reshape(x.shape) if axis is None else np.moveaxis(found, 0, axis)


def windows(x: Host, window: int, op: Op = np.add) -> Host:
    views = np.lib.stride_tricks.sliding_window_view(x, window, -1)
    return scanned(views, op, axis=-1)[..., -1]


def groups(keys: Host, *, consecutive: bool) -> tuple[Host, list[Host]]:
    """Return each group's key and the places of its elements."""
    keys = keys.reshape(-1)
    if consecutive:
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
        return keys[starts], np.split(np.arange(keys.size), starts[1:]) if keys.size else []
    found, number = np.unique(keys, return_inverse=True)
    return found, [np.flatnonzero(number == i) for i in range(found.size)]


def reduced_by_key(keys: Host, x: Host, op: Op, *, consecutive: bool) -> tuple[Host, Host]:
    found, places = groups(keys, consecutive=consecutive)
    x = x.reshape(-1)
    return found, np.array([reduced(x[at], op) for at in places], x.dtype)


def scanned_by_key(keys: Host, x: Host, op: Op, *, consecutive: bool, **how: Any) -> Host:
    found, flat = np.empty(x.size, x.dtype), x.reshape(-1)
    for at in groups(keys, consecutive=consecutive)[1]:
        found[at] = scanned(flat[at], op, **how)
    return found


def by_index(indices: Host, x: Host, size: int, op: Op, init: Any) -> Host:
    return np.array(
        [reduced(x[indices == i], op, init=x.dtype.type(init)) for i in range(size)], x.dtype
    )


def by_segment(x: Host, offsets: Host, change: Callable[[Host], Host]) -> Host:
    """Change each segment; what lies in none stays."""
    found = x.copy()
    for a, b in itertools.pairwise(offsets):
        found[a:b] = change(x[a:b])
    return found


def of_segments(x: Host, offsets: Host, op: Op, init: Any) -> Host:
    pairs = itertools.pairwise(offsets)
    return np.array([reduced(x[a:b], op, init=x.dtype.type(init)) for a, b in pairs], x.dtype)


def argsorted(x: Host, axis: int = -1, *, descending: bool = False) -> Host:
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis, kind="stable")  # equal ones stay in order
    return x.shape[axis] - 1 - np.flip(turned, axis)


def taken(x: Host, order: Host, axis: int = -1) -> Host:
    return np.take_along_axis(x, order, axis)


def merged(a: Host, b: Host) -> Host:
    return np.sort(np.concatenate([a, b]), kind="stable")


def run_lengths(x: Host, eq: Op) -> tuple[Host, Host]:
    """Return the first of each run and how long it is."""
    flat = x.reshape(-1)
    is_start = [i == 0 or not eq(flat[i - 1], flat[i]) for i in range(flat.size)]
    starts = np.flatnonzero(is_start)
    return flat[starts], np.diff(np.append(starts, flat.size))


def found_first(mask: Host) -> np.int64:
    return np.int64(np.argmax(mask.reshape(-1)) if mask.any() else -1)
