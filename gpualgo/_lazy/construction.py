"""Lazy arrays that read no arrays: arange, full, random numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gpualgo._arrays import protocols
from gpualgo._arrays.view import NumPyOnCPU
from gpualgo._base import dtypes, recording, records
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, hooks, is_lazy
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.combining import of_leaf, zipped
from gpualgo._lazy.expression import Call, Value
from gpualgo._operators.tokens import philox

_MOST = 2**63 - 1  # elements


def arange_of(start: Any, stop: Any, step: Any, dtype: Any, device: str | None) -> LazyArray:
    where = "lazy.arange"
    if stop is None:
        start, stop = 0, start
    given = (start, stop, step)
    for value, name in zip(given, ("start", "stop", "step"), strict=True):
        if not is_number(value):
            raise TypeError(f"{where}: {name} must be a number, got {type(value).__name__}")
    if not step:
        raise ValueError(f"{where}: step must not be zero")
    result_dtype = dtypes.as_dtype(dtype, where) if dtype is not None else _common_dtype(given)
    count = _count(*given, where)
    if count > _MOST:
        raise ValueError(f"{where}: {count} elements are more than an int64 holds")
    first = _number(start, result_dtype, where)
    text = f"arange({start}, {stop}, {step})"
    positions = _positions((count,), records.POSITION, device, where)
    if result_dtype.kind == "b":
        if count > 2:
            raise TypeError(f"{where}: bool holds no more than two numbers; pass another dtype")
        compare = operator.ge if first and start + step else operator.eq
        node: Any = Call(compare, positions.node, Value(0 if first else 1))
        return LazyArray((count,), node, positions.leaves, text)
    # A single element has no step, which may be infinite.
    second = _number(start + step, result_dtype, where) if count > 1 else first
    step_type: Any = result_dtype.type
    if result_dtype.itemsize == 2 and dtypes.kind(result_dtype) == "f":
        step_type = np.float32  # NumPy computes the steps in float32
    with np.errstate(over="ignore", invalid="ignore"):
        delta = step_type(step_type(second) - step_type(first))
    node = Call(_step, Value(step_type(first)), Value(delta), Call(step_type, positions.node))
    if step_type is not result_dtype.type:
        node = Call(result_dtype.type, node)
    if result_dtype == np.int64 and first == 0 and (delta == 1 or count < 2):
        node = positions.node
    return LazyArray((count,), node, positions.leaves, text)


def _step(first: Any, by: Any, i: Any) -> Any:
    return first + i * by


def _common_dtype(numbers: tuple[Any, ...]) -> np.dtype[Any]:
    for number in numbers:
        dtypes.check_number(np.asarray(number), "lazy.arange: a number")
    return dtypes.check(np.result_type("i8", *map(np.asarray, numbers)), "lazy.arange: a number")


def _count(start: Any, stop: Any, step: Any, where: str) -> int:
    if any(isinstance(value, (complex, np.complexfloating)) for value in (start, stop, step)):
        raise TypeError(f"{where}: complex numbers have no order; add 1j * arange to another")
    if all(isinstance(value, (int, np.integer)) for value in (start, stop, step)):
        low, high, by = int(start), int(stop), int(step)
        return max(0, -((low - high) // by) if by > 0 else -((high - low) // -by))
    count = (stop - start) / step
    if count == 0 and stop != start:  # rounded to zero: NumPy's length
        return int(not np.signbit(count))
    if not np.isfinite(count):
        raise ValueError(
            f"{where}: there is no finite number of steps from {start} to {stop} by {step}"
        )
    return max(0, int(np.ceil(count)))


def _number(value: Any, kind: np.dtype[Any], where: str) -> Any:
    try:
        with np.errstate(over="raise"):
            if isinstance(value, int):
                return np.array(value, kind)[()]
            return np.asarray(value).astype(kind)[()]
    except (OverflowError, FloatingPointError):
        raise ValueError(f"{where}: {value!r} does not fit {kind}; pass a wider dtype=") from None


def full_of(shape: Any, fill_value: Any, dtype: Any, device: str | None) -> LazyArray:
    where = "lazy.full"
    extents = _shape(shape, where)
    if not is_number(fill_value):
        raise TypeError(
            f"{where}: fill_value must be a number, got {type(fill_value).__name__}; "
            "use lazy.asarray(array)"
        )
    if dtype is None:
        dtypes.check_number(np.asarray(fill_value), f"{where}: fill_value")
    result_dtype = np.asarray(fill_value).dtype if dtype is None else dtypes.as_dtype(dtype, where)
    value = _number(fill_value, result_dtype, where)
    indices = _positions((1,) * len(extents), records.POSITION, device, where).broadcast_to(extents)
    return LazyArray(extents, Value(value), indices.leaves, f"full({extents}, {fill_value})")


def random_of(
    functions: dict[Any, Any], shape: Any, seed: Any, dtype: Any, device: str | None, where: str
) -> LazyArray:
    """Return a lazy array of random numbers; `functions` has the generator of each dtype."""
    kind = dtypes.as_dtype(dtype, where)
    if kind.type not in functions:
        first, second = (one.__name__ for one in functions)
        raise TypeError(f"{where}: dtype must be {first} or {second}, got {kind}")
    extents = _shape(shape, where)
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise TypeError(f"{where}: seed must be an int that is not negative, got {seed!r}")
    keys = np.random.SeedSequence(int(seed)).generate_state(2, np.uint64)
    positions = _positions(extents, records.BLOCK_POSITION, device, where)
    node = Call(functions[kind.type], positions.node, *(Value(key) for key in keys))
    text = f"{where.partition('.')[2]}({extents}, seed={seed}, dtype={kind})"
    return LazyArray(extents, node, positions.leaves, text)


def _random64(i: Any, first: Any, second: Any) -> Any:
    return np.float64(philox(i, first, second) >> 11) * 1.1102230246251565e-16


def _bits32(i: Any, first: Any, second: Any) -> Any:
    return np.uint32(philox(i >> 1, first, second) >> np.uint64((i & 1) << 5))


def _random32(i: Any, first: Any, second: Any) -> Any:
    return np.float32(_bits32(i, first, second) >> 8) * 5.9604644775390625e-08


RANDOM = {np.float64: _random64, np.float32: _random32}
RANDOM_BITS = {np.uint64: philox, np.uint32: _bits32}


def _positions(
    shape: tuple[int, ...], dtype: np.dtype[Any], device: str | None, where: str
) -> LazyArray:
    place: expression.Place = (CPU, None)
    if device is not None:
        device_number = default_device.parse(device, where)
        place = (CPU, NumPyOnCPU) if device_number == CPU else (device_number, protocols.at(0))
    return of_leaf(expression.positions(shape, dtype, place))


def _shape(shape: Any, where: str) -> tuple[int, ...]:
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    extents = []
    for extent in items:
        try:
            extents.append(operator.index(extent))
        except TypeError:
            raise TypeError(f"{where}: shape must be ints, got {shape!r}") from None
    if any(extent < 0 for extent in extents):
        raise ValueError(f"{where}: shape {shape!r} has a negative extent")
    if math.prod(extents) > _MOST:
        raise ValueError(f"{where}: shape {shape!r} has more elements than an int64 holds")
    return tuple(extents)


# --- Materializes lazy inputs of algorithms that move elements.


def made(x: Any, is_flat: bool, where: str, stream: Any) -> Any:
    """Return a lazy input materialized in new arrays, flattened if `is_flat`; others unchanged.

    It is not written to the call's output: arguments are unchecked yet, and inputs may overlap it.
    """
    if not is_lazy(x):
        return x
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph and not recorder.is_rough:
        raise TypeError(
            f"{where}: a lazy array must be materialized first, which a plan does not do; pass "
            "gpualgo.copy(x)"
        )
    lazy = zipped(x, where)
    if is_flat:
        lazy = lazy.ravel()
    if recorder is not None and recorder.is_rough:
        return _placeholder(lazy)
    return hooks.copy(lazy, stream=stream)


def _placeholder(x: LazyArray) -> Any:
    """Return uninitialised arrays with the layout that materializing x would give."""
    device, library = x.place

    def new(dtype: np.dtype[Any]) -> Any:
        if device == CPU:
            return np.empty(x.shape, dtype)  # never written, so it takes no physical memory
        return library.empty(x.shape, dtype, device, None)

    if x.form is None:
        return new(x.dtype)
    return x.form.packed([new(d) for d in records.field_dtypes(x.dtype)])
