"""The public function `segmented_sort`, put together from a segmented scan and a sort of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.merge_sort.comparison import plain_ways
from gpualgo._algorithms.radix_sort import radix_sort
from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._algorithms.segments import offsets as of_segments
from gpualgo._algorithms.segments import segmented_inclusive_scan
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._lazy.real import made
from gpualgo._pipeline import checks, inputs

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "segmented_sort"
_NARROW = 1 << 32  # elements whose places fit 32 bits


def segmented_sort(
    keys: ty.AnyArray | ty.Arrays, offsets: ty.AnyArray, *,
    values: ty.AnyArray | ty.Arrays | None = None, descending: ty.Ways = False,
    out: ty.Outs | ty.OutPair | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Sort each segment of keys stably, and values along, between ``offsets[i]`` and ``[i+1]``.

    Parameters
    ----------
    keys : array, or tuple of arrays
        Of one dimension, dtypes as for `radix_sort`. A tuple or namedtuple of arrays, which are
        broadcast together, is an array of tuples of up to 7 numbers: the first decides, where it is
        equal the next.
    offsets : array
        Where segments begin and end, as for `segmented_reduce`. Elements in no segment are copied.
    values : array, or tuple of arrays, optional
        Moved as the keys are: as for `radix_sort`.
    descending : bool, or tuple of bools
        Largest first, NaN last; equal keys keep their order here, too. A tuple, built as `keys` is,
        says it of each number.
    out : array or tuple of two arrays, optional
        Where to write the sorted keys, with `values` the keys and the values, as for `radix_sort`:
        each may be its input itself.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array or tuple of two arrays
        The sorted keys, with `values` the tuple (keys, values); `out` itself if given. Tuples give
        the same kind of tuple. Device arrays are returned without waiting for them.

    Raises
    ------
    TypeError
        An argument is no array, or of a dtype that cannot be sorted or moved; keys is a structured
        array; offsets are no integers; descending or out is built otherwise.
    ValueError
        An argument has not one dimension; offsets of the host fall or lie outside; shapes differ;
        out overlaps partly.

    Notes
    -----
    Offsets on a GPU mean what they mean for `segmented_inclusive_scan`: a segment begins wherever
    one is.

    The order of keys is `radix_sort`'s, in each segment. A segmented scan finds where each one's
    segment begins, and one sort takes pairs of that place and the key: its passes go over all
    elements, so that the time depends neither on the lengths of segments nor on how they differ.
    Takes 4 bytes per element (8 from 2^32 on) besides what these take. See docs/segments.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> keys, offsets = np.array([3, 1, 4, 1, 5, 9, 2, 6]), np.array([0, 3, 3, 7])
    >>> ga.segmented_sort(keys, offsets)
    array([1, 3, 4, 1, 2, 5, 9, 6])
    >>> ga.segmented_sort(keys, offsets, values=np.arange(8), descending=True)[1]
    array([2, 0, 1, 5, 4, 6, 3, 7])
    """
    keys = made(keys, False, f"{_WHERE}: keys", stream)
    values = made(values, False, f"{_WHERE}: values", stream)
    views, form = inputs.spread(keys, f"{_WHERE}: keys")
    _check_keys(keys, views, form)
    ways = plain_ways(descending, form, None, _WHERE)
    place = of_segments.view(offsets, _WHERE, stream)
    checks.same_place([*views, place], _WHERE)
    of_segments.check(place, _WHERE)
    of_segments.check_values(place, views[0].shape[0], _WHERE, stream)
    begins = _begins(_first_array(keys), views[0].shape[0], offsets, stream)
    flags = ways[0] if form is None else form.packed(list(ways))
    target = _target(begins, values, out)
    pairs: Any = (begins, keys)
    try:
        found: Any = radix_sort(pairs, values, descending=(False, flags), out=target, stream=stream)
    except (TypeError, ValueError) as error:
        error.args = (_own(str(error), values is None),)
        raise
    if out is not None:
        return out
    return found[1] if values is None else (found[0][1], found[1])


def _own(text: str, is_alone: bool) -> str:
    """Return what is said of a sort of pairs, as of its keys."""
    out = ("out[1]", "out") if is_alone else ("out[0][1]", "out[0]")
    for old, new in (("keys[1.", "keys["), ("keys[1]", "keys"), out):
        text = text.replace(old, new)
    return text.replace("radix_sort:", f"{_WHERE}:", 1)


def _check_keys(keys: Any, views: tuple[View, ...], form: Form | None) -> None:
    """Raise unless keys can be sorted in one dimension."""
    if form is not None and not isinstance(keys, tuple):
        raise TypeError(
            f"{_WHERE}: keys is a structured array; pass a tuple of its fields, and the array "
            "itself as values="
        )
    if form is not None and any(item is not None for item in form.items):
        raise TypeError(f"{_WHERE}: keys holds a tuple within a tuple; pass one tuple of arrays")
    names = inputs.names(views, form, "keys")
    for view, name in zip(views, names, strict=True):
        key_dtype_of(view.dtype, _WHERE, name)
        if len(view.shape) != 1:
            raise ValueError(f"{_WHERE}: {name} has {len(view.shape)} dimensions; pass one of one")


def _first_array(keys: Any) -> Any:
    """Return an array of keys; None where there are numbers alone."""
    if isinstance(keys, tuple):
        return next((a for a in map(_first_array, keys) if a is not None), None)
    return None if isinstance(keys, (bool, int, float, np.generic)) else keys


def _begins(first: Any, count: int, offsets: Any, stream: Any) -> Any:
    """Return where the segment of each element begins; of one in no segment its own place."""
    number = _place if count < _NARROW else _wide_place
    places = lazy.transform(number, lazy.arange(count), first)
    return segmented_inclusive_scan(places, offsets, None, min, stream=stream)


def _place(i: Any, key: Any) -> Any:
    return np.uint32(i)


def _wide_place(i: Any, key: Any) -> Any:
    return np.uint64(i)


def _target(begins: Any, values: Any, out: Any) -> Any:
    """Return out= of a sort of pairs."""
    if out is None:
        return None
    if values is None:
        return begins, out
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(f"{_WHERE}: out must be a tuple of two, for keys and values")
    return (begins, out[0]), out[1]
