"""Check that an operator associates, on triples of the call's elements (GPUALGO_CHECK=1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, parts_of
from gpualgo._arrays.view import View, as_view
from gpualgo._base import dtypes, recording, records
from gpualgo._base.errors import CompileError
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import combining, places
from gpualgo._lazy.construction import arange_of
from gpualgo._lazy.expression import is_own
from gpualgo._lazy.hooks import hooks
from gpualgo._operators import operator
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, device_checks

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Problem

Fields = list[np.ndarray[Any, Any]]  # one array for each field of an element

_ELEMENTS, _TRIPLES, _COPIES = 48, 64, 8
_SPREAD = 0.6180339887498949  # elements that are this part of the length apart are spread evenly


class _Triples(NamedTuple):
    """Triples of elements, and what both groupings give; the rows after the first are nudged."""

    elements: tuple[Fields, Fields, Fields]
    pairs: tuple[Fields, Fields]
    results: tuple[Fields, Fields]


def check(problem: Problem, x: Any, op: Any, init: Any, stream: Any) -> None:
    """Raise ValueError if op clearly depends on grouping for some elements of x, or init.

    Integers must agree exactly. Floats may differ by the square root of their precision, relative
    to the largest value of the field in the triple, and by what rounding errors in the elements
    would cause. An overflow proves nothing. Built-in operators associate, and are not tried.
    """
    fn = op.shown if isinstance(op, Operator) else op
    if isinstance(fn, str) or operator.name_of(fn) is not None:
        return
    if python_function(fn) is not None and is_own(fn):
        return
    if recording.active and recording.current() is not None:
        return
    where, dtype = problem.where, problem.acc or problem.results[0].dtype
    kinds = records.field_dtypes(dtype)
    try:
        with default_device.fixed(problem.device, f"{where} is checked where it runs"):
            form, samples = _sampled(x, kinds, where, stream)
            start = None if init is None or type(init) is View else problem.encode(init)
            if start is not None:
                starts = [start] if form is None else [start[name] for name in dtype.names or ()]
                samples = [np.append(*pair) for pair in zip(starts, samples, strict=True)]
            if len(samples[0]) < 3:
                return
            triples = _tried(fn, form, samples, start is not None, where)
    except (TypeError, ValueError, CompileError):  # the call itself raises it
        return
    if (wrong := _violations(triples)).any():
        _refuse(triples, form, int(np.argmax(wrong)), where, fn)


def _sampled(
    x: Any, kinds: Sequence[np.dtype[Any]], where: str, stream: Any
) -> tuple[Form | None, Fields]:
    """Return the form of x's elements, and some of them in order, in the accumulator's dtypes."""
    lazy = places.aligned(x, where)
    size = lazy.size
    step = 1 if size <= _ELEMENTS else int(size * _SPREAD) | 1
    count = min(size, _ELEMENTS)
    if not count:
        return lazy.form, [np.empty(0, kind) for kind in kinds]
    indices = arange_of(0, count * step, step, np.int64, None)
    (indices,) = combining.place_lazy((indices,), (lazy,), where)
    found = hooks.copy(places.taken(lazy, indices, None, "wrap", where), stream=stream)
    order = np.argsort(np.arange(count) * step % size)
    fields = [_on_host(array, where, stream)[order] for array in _parts(found, lazy.form)]
    return lazy.form, [array.astype(kind) for array, kind in zip(fields, kinds, strict=True)]


def _parts(x: Any, form: Form | None) -> list[Any]:
    """Return the fields of elements; raise TypeError if they have another structure."""
    parts = parts_of(x, form) if form is not None else None if isinstance(x, tuple) else [x]
    if parts is None:
        raise TypeError("op returns elements of another structure")
    return parts


def _on_host(array: Any, where: str, stream: Any) -> np.ndarray[Any, Any]:
    view = as_view(array, where)
    return np.asarray(array) if view.device == CPU else device_checks.values(view, where, stream)


def _tried(fn: Any, form: Form | None, samples: Fields, has_init: bool, where: str) -> _Triples:
    """Apply op in both groupings to random triples, whose elements keep their order."""
    random = np.random.default_rng(0)
    rows = np.tile(np.arange(len(samples[0])), (_TRIPLES, 1))
    chosen = np.sort(random.permuted(rows, axis=1)[:, :3], axis=1)
    if has_init:  # begins a quarter of the triples
        chosen[::4, 0] = 0
    kinds = [array.dtype for array in samples]

    def nudged(fields: Fields) -> Fields:
        return [_nudged(array, random) for array in fields]

    def combined(left: Fields, right: Fields) -> Fields:
        pair = [fields[0] if form is None else form.packed(fields) for fields in (left, right)]
        parts = _parts(hooks.copy(combining.applied(fn, pair, where)), form)
        return [np.asarray(array).astype(kind) for array, kind in zip(parts, kinds, strict=True)]

    with np.errstate(all="ignore"):
        a, b, c = (
            nudged([np.tile(array[column], (_COPIES + 1, 1)) for array in samples])
            for column in chosen.T
        )
        ab, bc = combined(a, b), combined(b, c)
        return _Triples((a, b, c), (ab, bc), (combined(nudged(ab), c), combined(a, nudged(bc))))


def _nudged(array: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return floats with rounding errors of a few units in all rows but the first."""
    if dtypes.kind(array.dtype) not in "fc":
        return array
    errors = random.integers(-4, 5, array.shape) * _precision(array.dtype)
    errors[0] = 0
    result: np.ndarray[Any, Any] = (_wide(array) * (1 + errors)).astype(array.dtype)
    return result


def _precision(dtype: np.dtype[Any]) -> float:
    return 2.0**-7 if dtypes.name_of(dtype) == "bfloat16" else float(np.finfo(dtype).eps)


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _violations(triples: _Triples) -> np.ndarray[Any, Any]:
    """Return which triples clearly give two results."""
    (a, b, c), (ab, bc), (left, right) = triples
    with np.errstate(all="ignore"):
        is_given = np.logical_and.reduce([_is_finite(x) for part in (a, b, c) for x in part])
        is_made = np.logical_and.reduce(
            [_is_finite(x) for part in (ab, bc, left, right) for x in part]
        )
        differs = [_differ(*fields) for fields in zip(a, b, c, ab, bc, left, right, strict=True)]
    found: np.ndarray[Any, Any] = np.logical_or.reduce(differs) & (is_made | ~is_given)
    return found


def _is_finite(array: np.ndarray[Any, Any]) -> Any:
    return np.isfinite(_wide(array[0]))


def _differ(*fields: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where the last two arrays, both groupings' results, differ by more than rounding."""
    left, right = fields[-2:]
    if dtypes.kind(left.dtype) not in "fc":
        is_steady = (left == left[0]).all(axis=0) & (right == right[0]).all(axis=0)
        steady: np.ndarray[Any, Any] = (left[0] != right[0]) & is_steady
        return steady
    wide = [_wide(array) for array in fields]
    sizes = [np.where(np.isfinite(array[0]), np.abs(array[0]), 0) for array in wide]
    spread = sum(np.abs(array - array[0]).max(axis=0) for array in wide[-2:])
    bound = np.sqrt(_precision(left.dtype)) * np.max(sizes, axis=0) + 4 * spread
    is_finite = np.isfinite(wide[-2][0]) & np.isfinite(wide[-1][0])
    result: np.ndarray[Any, Any] = is_finite & (np.abs(wide[-2][0] - wide[-1][0]) > bound)
    return result


def _refuse(triples: _Triples, form: Form | None, i: int, where: str, fn: Any) -> None:
    """Raise the error that shows a triple and both results."""

    def shown(fields: Fields) -> Any:
        values = [array[0, i].item() for array in fields]
        if form is None:
            return values[0]
        plain = form if not isinstance(form.cls, np.dtype) else form._replace(cls=tuple)
        return plain.packed(values)

    a, b, c = map(shown, triples.elements)
    left, right = map(shown, triples.results)
    error = ValueError(
        f"{where}: op is not associative, so results depend on how elements are grouped: with "
        f"a = {a!r}, b = {b!r}, c = {c!r}, op(op(a, b), c) is {left!r} and op(a, op(b, c)) is "
        f"{right!r}; pass an associative operator"
    )
    checks.name(error, fn, where)
    raise error
