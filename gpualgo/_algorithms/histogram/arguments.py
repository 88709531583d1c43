"""Checks and parsing of histogram's bins, range and dtype."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gpualgo._arrays.view import View, as_view
from gpualgo._base import dtypes, recording
from gpualgo._base.errors import shown
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks

Array = np.ndarray[Any, Any]

MAX_BINS = (1 << 31) - 2  # kernels use 32-bit bin numbers, and a few beyond the last bin
_MAX_KEY_BYTES = 1 << 20  # longer edges are not hashable: their problems are not cached


class Edges:
    """A private copy of edges, compared and hashed by dtype and bytes."""

    __slots__ = ("_key", "array")

    def __init__(self, array: Array) -> None:
        self.array = array
        is_short = array.nbytes <= _MAX_KEY_BYTES
        self._key = (array.dtype, array.tobytes()) if is_short else None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Edges) and self._key is not None and self._key == other._key
        )

    def __hash__(self) -> int:
        if self._key is None:
            raise TypeError("edges this long cannot be hashed")
        return hash(self._key)


def check_samples(view: View, name: str = "x") -> None:
    """Raise TypeError unless x holds real numbers that kernels support."""
    checks.element(view, name, "histogram")
    if dtypes.kind(view.dtype) == "c":
        raise TypeError(
            f"histogram: {name} has dtype {view.dtype}, which has no order; "
            "pass x.real, x.imag or numpy.abs(x)"
        )


def bins_of(bins: Any, range: Any, view: View, stream: Any, computed: Any = None) -> Any:
    """Return even bins (number, types and values of the ends, is_detected) or edges.

    They are hashable, unless edges are long. `computed`: see `detect_range`.
    """
    is_number = type(bins) is int and 0 < bins <= MAX_BINS
    parsed = bins if is_number else parse_bins(bins, stream)
    return _bins_of(parsed, range, lambda: detect_range(view, stream, "x", computed))


def even_bins(number: int, lo: Any, hi: Any, is_detected: bool = False) -> tuple[Any, ...]:
    """Return even bins as a key with the ends' types, which edges have: 1.0 differs from 1."""
    return number, type(lo), lo, type(hi), hi, is_detected


def parse_bins(bins: Any, stream: Any) -> int | Array:
    """Return a number of bins, or a private host copy of the edges."""
    number = _number_of(bins)
    if number is None:
        return _parse_edges(bins, stream)
    if not 1 <= number <= MAX_BINS:
        raise ValueError(
            f"histogram: bins is {number}, but their number must be from 1 to {MAX_BINS}"
        )
    return number


def _number_of(bins: Any) -> int | None:
    try:
        return None if isinstance(bins, (bool, np.bool_)) else operator.index(bins)
    except TypeError:
        return None


def _bad_bins(bins: Any) -> TypeError:
    shown = repr(bins) if isinstance(bins, (str, bytes, bool, float)) else type(bins).__name__
    return TypeError(
        f"histogram: bins must be an int or a sequence of edges, got {shown}; "
        "pass a number of bins or a list of numbers"
    )


def _parse_edges(bins: Any, stream: Any) -> Array:
    is_foreign = hasattr(bins, "__cuda_array_interface__") or hasattr(bins, "__dlpack__")
    if is_foreign and not isinstance(bins, (np.ndarray, np.generic)):
        edges = to_host(as_view(bins, "histogram: bins"), stream)
    else:
        is_text = isinstance(bins, (str, bytes))
        if is_text or not (isinstance(bins, np.ndarray) or hasattr(bins, "__len__")):
            raise _bad_bins(bins)
        if isinstance(bins, np.ma.MaskedArray):
            as_view(bins, "histogram: bins")
        try:
            edges = np.array(bins)
        except ValueError:  # lists of several lengths
            raise _bad_bins(bins) from None
    if edges.ndim != 1:
        if edges.ndim == 0:
            raise _bad_bins(bins)
        raise ValueError(f"histogram: bins has shape {edges.shape}; pass edges in one dimension")
    dtypes.check(edges.dtype, "histogram: bins")
    if dtypes.kind(edges.dtype) == "c":
        raise TypeError(f"histogram: bins has dtype {edges.dtype}; pass edges that are real")
    if not 2 <= edges.size <= MAX_BINS:
        raise ValueError(
            f"histogram: bins has {edges.size} edges, but their number must be from 2 to {MAX_BINS}"
        )
    return edges


def check_edges(edges: Array) -> None:
    """Raise ValueError unless the edges are numbers that do not decrease."""
    if dtypes.kind(edges.dtype) == "f" and np.isnan(edges).any():
        raise ValueError("histogram: bins holds NaN; pass edges that are numbers")
    decreases = np.flatnonzero(edges[:-1] > edges[1:])
    if decreases.size:
        i = int(decreases[0])
        raise ValueError(
            f"histogram: bins decreases from {edges[i]} to {edges[i + 1]} at index {i + 1}; "
            "pass edges in ascending order"
        )


def parse_range(given: Any) -> tuple[Any, Any]:
    """Return the ends of even bins as Python or NumPy scalars."""
    if type(given) is tuple and len(given) == 2:
        lo, hi = given
        if type(lo) is float and type(hi) is float and -math.inf < lo < hi < math.inf:
            return lo, hi  # fast path: nothing to check
    try:
        ends = () if isinstance(given, (str, bytes, dict, set)) else tuple(given)
    except TypeError:
        ends = ()
    if len(ends) != 2:
        got, kind = (len(ends), ValueError) if ends else (f"{shown(given)}; pass both", TypeError)
        raise kind(f"histogram: range must be two numbers (lo, hi), got {got}")
    lo, hi = _end(ends[0]), _end(ends[1])
    if lo > hi:
        raise ValueError(f"histogram: range ({lo}, {hi}) decreases; pass the smaller number first")
    return widen(lo, hi)


def _end(value: Any) -> Any:
    """Return a finite end of the range: a Python number, or a NumPy scalar that kernels support."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    kind = type(value)
    if isinstance(value, np.generic):
        is_supported = dtypes.name_of(value.dtype) is not None and value.dtype.kind != "b"
        is_supported = is_supported and dtypes.kind(value.dtype) != "c"
    else:
        is_supported = kind is not bool and isinstance(value, (int, float))
    if not is_supported:
        raise TypeError(
            f"histogram: range holds {shown(value)} of type {kind.__name__}; pass two real numbers"
        )
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # an int beyond every float
        is_finite = False
    if not is_finite:
        raise ValueError(f"histogram: range holds {shown(value)}; pass two finite numbers")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return float(value)  # as an int it would become an object array
    return value


def widen(lo: Any, hi: Any) -> tuple[Any, Any]:
    """Return the ends of a range, moved by -0.5 and 0.5 if they are equal."""
    return (lo - 0.5, hi + 0.5) if lo == hi else (lo, hi)


def detect_range(view: View, stream: Any, name: str = "x", computed: Any = None) -> tuple[Any, Any]:
    """Return the widened minimum and maximum of the samples; synchronises with a device array.

    `computed`: the lazy array of computed samples, whose dtype and device the view has.
    """
    check_samples(view, name)
    if 0 in view.shape:
        return 0, 1
    _refuse_graph("range= was not given, so the host reads the values of x", "pass range=")
    if view.device == CPU and computed is None:
        from gpualgo._pipeline import host_whole

        why = "range= was not given, so the host reads x"
        lo, hi = _ends_of(host_whole.host_values(view, "histogram", stream, why))
    else:
        lo, hi = _ends_by_kernel(view.owner if computed is None else computed, view, stream)
    return widen(*finite_ends(lo, hi, name))


def finite_ends(lo: Any, hi: Any, name: str, where: str = "histogram") -> tuple[Any, Any]:
    """Return the extremes of samples, bools as uint8; raise ValueError unless they are finite."""
    if isinstance(lo, np.bool_):
        lo, hi = np.uint8(lo), np.uint8(hi)
    if not (math.isfinite(lo) and math.isfinite(hi)):
        raise ValueError(
            f"{where}: the range [{lo}, {hi}] of {name} is not finite; "
            "pass range=, outside of which samples are not counted"
        )
    return lo, hi


def _ends_of(x: Array) -> tuple[Any, Any]:
    """Return the minimum and maximum, or a non-finite element if there is one."""
    if dtypes.kind(x.dtype) != "f" or x.dtype.itemsize > 2:
        return x.min(), x.max()
    # NumPy is slow with 16-bit floats: compare their bits as integers. NaNs are at both ends.
    bits = x.view(np.int16)
    keys = bits ^ ((bits >> 15) & 0x7FFF)
    ends = np.array([keys.min(), keys.max()], np.int16)
    lo, hi = (ends ^ ((ends >> 15) & 0x7FFF)).view(x.dtype)
    return lo, hi


def _ends_by_kernel(x: Any, view: View, stream: Any) -> tuple[Any, Any]:
    """Return the minimum and maximum of an array by a kernel; synchronises with a device array."""
    from gpualgo._algorithms.extremes import minmax

    if view.device != CPU:
        from gpualgo._arrays import ordering
        from gpualgo._driver import driver

        own = (view.library.stream(view.device),)
        reason = "histogram: range= was not given, so the host reads the values of x"
        driver.refuse_capture(ordering.handle_for(stream, view, "histogram", own), reason)
    with recording.suspended():  # preparing a plan needs the range now
        lo, hi = minmax(x, stream=stream)
    if not isinstance(lo, np.generic):  # 0-d arrays
        lo, hi = (to_host(as_view(end, "histogram: x"), stream)[()] for end in (lo, hi))
    return lo, hi


def _refuse_graph(reason: str, cure: str) -> None:
    """Raise RuntimeError while a graph is recorded: the host would read the data only once."""
    if recording.is_in_graph():
        raise RuntimeError(f"histogram: {reason}, which cannot be recorded in a graph; {cure}")


def to_host(view: View, stream: Any) -> Array:
    """Return a NumPy copy of a small array; synchronises if it is on a device."""
    if view.device == CPU:
        return np.array(view.library.to_numpy(view.owner))
    from gpualgo._pipeline import checks

    _refuse_graph("the host reads edges that lie on the GPU", "prepare the plan before")
    why = "the host reads edges or a range that lie on the GPU"
    return checks.device_values(view, "histogram", stream, why).copy()


def counter_dtype(dtype: Any, num_samples: int) -> np.dtype[Any]:
    """Return the counters' dtype, which must hold the number of samples."""
    counter = np.dtype(np.int64) if dtype is None else dtypes.as_dtype(dtype, "histogram")
    if counter.kind not in "iu":
        raise TypeError(
            f"histogram: dtype {counter} cannot count; pass an integer dtype such as np.int64"
        )
    if num_samples > np.iinfo(counter).max:
        raise ValueError(
            f"histogram: dtype {counter} cannot hold the count of {num_samples} samples; "
            "pass a wider dtype="
        )
    return counter


# --- Parsing of bins and ranges for samples of several dimensions.

Found = TypeVar("Found")

_WHERE = "histogram"


def bins_of_each(
    bins: Any, ranges: Any, views: Sequence[View], names: Sequence[str], stream: Any,
    computed: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    bins_of_dims, ends = _bins_of_each(bins, len(views)), _ranges_of_each(ranges, len(views))

    def parse(i: int) -> Any:
        return named(i, lambda: parse_bins(bins_of_dims[i], stream))

    def parse_all(i: int) -> Any:
        return named(i, lambda: _bins_of(numbers[i], ends[i], lambda: detect(i)))

    def detect(i: int) -> tuple[Any, Any]:
        field = None if computed is None else computed[computed.dtype.names[i]]
        return detect_range(views[i], stream, names[i], field)

    numbers = [parse(i) for i in range(len(views))]
    total = math.prod(parsed if isinstance(parsed, int) else parsed.size - 1 for parsed in numbers)
    if total > MAX_BINS:
        raise ValueError(
            f"{_WHERE}: bins make {total} bins in all, at most {MAX_BINS} are possible; use fewer"
        )
    return tuple([parse_all(i) for i in range(len(views))])


def redetect_bins(
    bins: Sequence[Any], views: Sequence[View], names: Sequence[str], stream: Any
) -> tuple[Any, ...]:
    return tuple(
        even_bins(one[0], *detect_range(view, stream, name), True)
        if not isinstance(one, Edges) and one[-1]
        else one
        for one, view, name in zip(bins, views, names, strict=False)
    )


def _bins_of(parsed: Any, ends: Any, detect: Callable[[], tuple[Any, Any]]) -> Any:
    if isinstance(parsed, int):
        lo, hi = detect() if ends is None else parse_range(ends)
        return even_bins(parsed, lo, hi, ends is None)
    if ends is not None:
        raise ValueError(f"{_WHERE}: range is for a number of bins; pass None with edges")
    return Edges(parsed)


def _bins_of_each(bins: Any, dims: int) -> tuple[Any, ...]:
    if isinstance(bins, tuple):
        if len(bins) != dims:
            raise ValueError(
                f"{_WHERE}: bins is a tuple of {len(bins)} for samples of {dims} dimensions; "
                "pass an int, or a number or edges for each dimension"
            )
        return bins
    number = _number_of(bins)
    if number is None:
        got = repr(bins) if isinstance(bins, (str, bool, float)) else type(bins).__name__
        raise TypeError(
            f"{_WHERE}: bins must be an int or a tuple of {dims}, numbers or edges, where x is a "
            f"tuple, got {got}; pass one item for each dimension"
        )
    return (number,) * dims


def _ranges_of_each(given: Any, dims: int) -> tuple[Any, ...]:
    if given is None:
        return (None,) * dims
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{_WHERE}: range must be a tuple of {dims} pairs where x is a tuple, got {given!r}; "
            "pass (lo, hi) or None for each dimension"
        )
    if len(given) != dims:
        raise ValueError(
            f"{_WHERE}: range has {len(given)} items for samples of {dims} dimensions; "
            "pass (lo, hi) or None for each dimension"
        )
    return tuple(given)


_BEGIN = re.compile(rf"^{_WHERE}: (bins|range)\b")
_NUMBER = re.compile(rf"^{_WHERE}: (\d+ bins)\b")


def named(i: int, find: Callable[[], Found]) -> Found:
    """Return `find()` for dimension i; errors name the dimension."""
    try:
        return find()
    except (TypeError, ValueError) as error:
        text = _BEGIN.sub(rf"{_WHERE}: \1[{i}]", str(error))
        raise type(error)(_NUMBER.sub(rf"{_WHERE}: \1 of dimension {i}", text)) from None
