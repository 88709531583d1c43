"""Check that an operator associates, on triples of the call's elements (GPUALGO_CHECK=1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, parts_of
from gpualgo._arrays.view import View
from gpualgo._base import dtypes, recording, records
from gpualgo._base.errors import CompileError
from gpualgo._driver import default_device
from gpualgo._lazy import combining, hooks
from gpualgo._lazy.construction import arange_of
from gpualgo._lazy.expression import is_own
from gpualgo._lazy.operators import finfo
from gpualgo._operators import operator
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Problem

Fields = list[np.ndarray[Any, Any]]  # one array for each field of an element

_ELEMENTS, _TRIPLES, _COPIES = 48, 64, 8
_SPREAD = 0.6180339887498949  # elements that are this part of the length apart are spread evenly
_MODERATE = 1e-70, 1e70  # products of four such numbers neither overflow nor underflow in float64


class _Triples(NamedTuple):
    """Triples of elements, and what both groupings give; the rows after the first are nudged.

    `kinds` are the dtypes of the call's fields, whose precision counts; the arrays may be wider.
    """

    kinds: Sequence[np.dtype[Any]]
    elements: tuple[Fields, Fields, Fields]
    pairs: tuple[Fields, Fields]
    results: tuple[Fields, Fields]


def check(problem: Problem, x: Any, op: Any, init: Any, stream: Any) -> None:
    """Raise ValueError if op clearly depends on grouping for some elements of x, or init.

    Integers must agree exactly. Floats may differ by the square root of their precision, relative
    to the largest value of the field in the triple, by a few of their smallest numbers, and by what
    rounding errors in the elements would cause. Narrower floats have to differ as float64, too, and
    float64 is tried for numbers of moderate size only: an overflow or underflow proves nothing.
    Built-in operators associate, and are not tried. Where the call itself raises an error about op,
    nothing is raised here.
    """
    fn = op.shown if isinstance(op, Operator) else op
    if isinstance(fn, str) or operator.name_of(fn) is not None:
        return
    if python_function(fn) is not None and is_own(fn):
        return
    if recording.active and recording.current() is not None:
        return
    with np.errstate(all="ignore"):
        _check(problem, x, fn, init, stream)


def _check(problem: Problem, x: Any, fn: Any, init: Any, stream: Any) -> None:
    where, dtype = problem.where, problem.acc or problem.results[0].dtype
    kinds = records.field_dtypes(dtype)
    try:
        with default_device.Fixed(problem.device, f"{where} is checked where it runs"):
            form, samples = _sampled(x, kinds, where, stream)
            start = None if init is None or type(init) is View else problem.encode(init)
            if start is not None:
                starts = [start] if form is None else [start[name] for name in dtype.names or ()]
                samples = [np.append(*pair) for pair in zip(starts, samples, strict=True)]
            if len(samples[0]) < 3:
                return
            triples = _tried(fn, form, samples, kinds, start is not None, where)
            wrong = _violations(triples)
            wide_samples = [_wide(array) for array in samples]
            is_wider = [a.dtype for a in samples] != [a.dtype for a in wide_samples]
            if wrong.any() and is_wider:
                wide = _tried(fn, form, wide_samples, kinds, start is not None, where)
                wrong &= _violations(wide)
    except (TypeError, ValueError, CompileError):  # the call itself raises it
        return
    if wrong.any():
        raise _refusal(triples, form, int(np.argmax(wrong)), where, fn)


def _sampled(
    x: Any, kinds: Sequence[np.dtype[Any]], where: str, stream: Any
) -> tuple[Form | None, Fields]:
    """Return the form of x's elements, and some of them in order, in the accumulator's dtypes."""
    lazy = combining.zipped(x, where)
    size = lazy.size
    step = 1 if size <= _ELEMENTS else int(size * _SPREAD)
    while math.gcd(step, size) > 1:  # so that no element is taken twice
        step += 1
    count = min(size, _ELEMENTS)
    if not count:
        return lazy.form, [np.empty(0, kind) for kind in kinds]
    indices = arange_of(0, count * step, step, np.int64, None)
    (indices,) = combining.place_lazy((indices,), (lazy,), where)
    found = hooks.copy(combining.gathered(lazy, indices, None, "wrap", where), stream=stream)
    order = np.argsort(np.arange(count) * step % size)
    fields = [
        checks.values_on_host(array, where, stream)[order] for array in _parts(found, lazy.form)
    ]
    return lazy.form, [array.astype(kind) for array, kind in zip(fields, kinds, strict=True)]


def _parts(x: Any, form: Form | None) -> list[Any]:
    """Return the fields of elements; raise TypeError if they have another structure."""
    parts = parts_of(x, form) if form is not None else None if isinstance(x, tuple) else [x]
    if parts is None:
        raise TypeError("op returns elements of another structure")
    return parts


def _tried(
    fn: Any, form: Form | None, samples: Fields, kinds: Sequence[np.dtype[Any]], has_init: bool,
    where: str,
) -> _Triples:  # fmt: skip
    """Apply op in both groupings to random triples, whose elements keep their order."""
    random = np.random.default_rng(0)
    rows = np.tile(np.arange(len(samples[0])), (_TRIPLES, 1))
    chosen = np.sort(random.permuted(rows, axis=1)[:, :3], axis=1)
    if has_init:  # begins a quarter of the triples
        chosen[::4, 0] = 0

    def nudged(fields: Fields, is_rounded: bool) -> Fields:
        pairs = zip(fields, kinds, strict=True)
        return [_nudged(array, kind, is_rounded, random) for array, kind in pairs]

    def combined(left: Fields, right: Fields) -> Fields:
        pair = [fields[0] if form is None else form.packed(fields) for fields in (left, right)]
        parts = _parts(hooks.copy(combining.applied(fn, pair, where)), form)
        return [_fitted(part, like.dtype) for part, like in zip(parts, samples, strict=True)]

    a, b, c = (
        nudged([np.tile(array[column], (_COPIES + 1, 1)) for array in samples], False)
        for column in chosen.T
    )
    ab, bc = combined(a, b), combined(b, c)
    results = combined(nudged(ab, True), c), combined(a, nudged(bc, True))
    return _Triples(kinds, (a, b, c), (ab, bc), results)


def _fitted(part: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    array = np.asarray(part)
    if not dtypes.can_cast(array.dtype, dtype):
        raise TypeError(f"op returns {array.dtype}, which does not fit {dtype}")
    return array.astype(dtype)


def _nudged(
    array: np.ndarray[Any, Any], kind: np.dtype[Any], is_rounded: bool, random: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return floats with rounding errors of a few units of `kind` in all rows but the first.

    A zero changes only if it `is_rounded`, so that it may be an underflow.
    """
    if dtypes.kind(kind) not in "fc":
        return array
    wide = _wide(array)
    steps = random.integers(-4, 5, array.shape)
    steps[0] = 0
    precision, tiny = _limits(kind)
    is_small = np.abs(wide) < tiny / precision
    is_changed = is_small if is_rounded else is_small & (wide != 0)
    relative, least = wide * (1 + steps * precision), wide + steps * tiny
    result: np.ndarray[Any, Any] = np.where(is_changed, least, relative).astype(array.dtype)
    return result


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return a dtype's relative precision and its smallest number."""
    limits = finfo(dtype)
    return float(limits.eps), float(limits.smallest_subnormal)


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kind = dtypes.kind(array.dtype)
    return array if kind not in "fc" else array.astype(np.complex128 if kind == "c" else float)


def _violations(triples: _Triples) -> np.ndarray[Any, Any]:
    kinds, (a, b, c), (ab, bc), (left, right) = triples
    given, made = (*a, *b, *c), (*ab, *bc, *left, *right)
    is_given, is_made = (
        np.logical_and.reduce([np.isfinite(_wide(x[0])) for x in part]) for part in (given, made)
    )
    is_moderate = np.logical_and.reduce([_is_moderate(_wide(x[0])) for x in (*given, *made)])
    fields = zip(kinds, a, b, c, ab, bc, left, right, strict=True)
    differs = np.logical_or.reduce([_differ(kind, *arrays) for kind, *arrays in fields])
    found: np.ndarray[Any, Any] = differs & (is_made | ~is_given) & is_moderate
    return found


def _is_moderate(wide: np.ndarray[Any, Any]) -> Any:
    if wide.dtype.kind not in "fc":
        return np.ones(wide.shape, np.bool_)
    size, (low, high) = np.abs(wide), _MODERATE
    return (size == 0) | ~np.isfinite(size) | ((low <= size) & (size <= high))


def _differ(kind: np.dtype[Any], *fields: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where the last two arrays, both groupings' results, differ by more than rounding."""
    left, right = fields[-2:]
    if dtypes.kind(kind) not in "fc":
        is_steady = (left == left[0]).all(axis=0) & (right == right[0]).all(axis=0)
        steady: np.ndarray[Any, Any] = (left[0] != right[0]) & is_steady
        return steady
    wide = [_wide(array) for array in fields]
    sizes = [np.where(np.isfinite(array[0]), np.abs(array[0]), 0) for array in wide]
    spread = sum(np.abs(array - array[0]).max(axis=0) for array in wide[-2:])
    precision, tiny = _limits(kind)
    bound = np.sqrt(precision) * np.max(sizes, axis=0) + 4 * spread + 8 * tiny
    is_finite = np.isfinite(wide[-2][0]) & np.isfinite(wide[-1][0])
    result: np.ndarray[Any, Any] = is_finite & (np.abs(wide[-2][0] - wide[-1][0]) > bound)
    return result


def _refusal(triples: _Triples, form: Form | None, i: int, where: str, fn: Any) -> ValueError:
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
    return error
