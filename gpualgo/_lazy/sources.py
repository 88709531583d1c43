"""Lazy arrays as inputs of algorithms; their modules are imported on first use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import View, known_viewer
from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._base.records import Computed
from gpualgo._lazy import is_lazy
from gpualgo._operators.key import resolve
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._operators.tokens import same
from gpualgo._pipeline import checks, inputs, outputs

# Operators fused with lazy arrays' functions, if both are the package's own, by ELEMENT or RESULT,
# the operator and the function. They are cached from their second call on, when the captured
# numbers that must be constants are known.
_fused: Memo[Operator] = Memo(1 << 10)
_seen: Memo[bool] = Memo(1 << 10)
ELEMENT, RESULT = "element", "result"  # op combines elements, op is applied to each


def _cache_fusion(key: tuple[str, Any, Any], fused_op: Operator) -> None:
    from gpualgo._lazy.expression import is_own

    op = key[1]
    if not is_own(op.fn if isinstance(op, Operator) else op):
        return
    if _seen.get(key) is None:
        _seen.add(key, True)
        return
    resolved = resolve(fused_op.fn)
    if not resolved.arrays:
        fused_op._resolved = resolved
        _fused.add(key, fused_op)


class Source(NamedTuple):
    """Marks an input as lazy; `forms` are the structures of tuples in it."""

    forms: tuple[Form, ...]


def parse_input(
    x: Any, op: Any, where: str, has_names: bool = True, num_arguments: int = 2,
    beside: tuple[Any, ...] = (),
) -> tuple[tuple[View, ...], Any, Form | Source | None]:  # fmt: skip
    """Return the views of an input's arrays, the operator, and the structure of its elements.

    `beside` are the call's other arrays, which give a device to a lazy array that reads none.
    """
    viewer = known_viewer(type(x))
    if viewer is not None:  # most warm calls
        view = viewer(x)
        if view.dtype.names is None:
            return (view,), op, None
    if not is_lazy(x):
        try:
            views, form = inputs.spread(x, f"{where}: x", has_names)
        except inputs.NumberOnGPU:
            pass
        else:
            return views, op, form
    return input_of(x, op, where, num_arguments, beside)


def input_of(
    x: Any, op: Any, where: str, num_arguments: int = 2, beside: tuple[Any, ...] = ()
) -> tuple[tuple[View, ...], Operator, Source]:
    """Return the views that a lazy input reads, and the operator fused with its function."""
    from gpualgo._lazy import combining
    from gpualgo._operators.operator import fuse

    (x,) = combining.place_lazy((x,), beside, where)
    lazy = combining.zipped(x, f"{where}: x")
    key = (ELEMENT, op, lazy.function) if lazy.is_kept else None
    if key is not None and (cached := _fused.get(key)) is not None:
        return lazy.views, cached, Source(lazy.forms)
    combining.check_count(lazy.leaves, records.MAX_FIELDS, f"{where}: x reads")
    fused_op = fuse(as_operator(op, where, num_arguments), lazy.function)
    if key is not None:
        _cache_fusion(key, fused_op)
    return lazy.views, fused_op, Source(lazy.forms)


def tried(problem: Any, x: Any, op: Any, init: Any, stream: Any) -> None:
    """Raise ValueError if op does not associate for some elements of x; for GPUALGO_CHECK=1."""
    from gpualgo._lazy import associativity

    associativity.check(problem, x, op, init, stream)


def arguments_of(
    views: tuple[View, ...], form: Form | Source | None
) -> tuple[tuple[str, ...], tuple[Form | None, ...]]:
    """Return the names of an input's arrays in messages, and the structure of its tuples."""
    if isinstance(form, Source):
        return ("x",) * len(views), ()
    return inputs.names(views, form, "x"), (form,)


def elements_of(
    op: Operator, views: tuple[View, ...], form: Form | Source | None, device: int, where: str
) -> tuple[records.Source, Form | None, tuple[View, ...]]:
    """Return an input's elements, the structure of its tuples, and views of its fields."""
    if isinstance(form, Source):
        return computed(op, views, form, device, where)
    for view, name in zip(views, inputs.names(views, form, "x"), strict=True):
        checks.element(view, name, where)
    return checks.element_of(views, form), form, views


def fused(
    op: Any, arguments: tuple[Any, ...], where: str, out: Any = None
) -> tuple[Any, tuple[View, ...], tuple[Form | None, ...], tuple[Form, ...]]:
    """Return op fused with its lazy arguments, the views that it reads, and their structures."""
    from gpualgo._lazy import combining, expression_cache

    if out is not None:
        arguments = combining.place_lazy(arguments, (out,), where)
    first = arguments[0]
    is_one = len(arguments) == 1 and not isinstance(first, tuple)
    is_kept = is_one and first.is_kept
    if op is same and is_one and not is_kept:
        is_cached = type(first) is expression_cache.CachedExpression  # it looks up elements
        if is_cached or first.node.kind == "call":
            return first.function, first.views, (None,) * len(first.views), first.forms
    key = (RESULT, op, first.function) if is_kept else None
    if key is not None and (cached := _fused.get(key)) is not None:
        return cached, first.views, (None,) * len(first.views), first.forms
    lazy = combining.applied(op, arguments, where)
    if key is not None and len(lazy.views) == len(first.views):
        _cache_fusion(key, as_operator(lazy.function, where, len(lazy.views)))
    return lazy.function, lazy.views, (None,) * len(lazy.views), lazy.forms


def computed(
    op: Operator, views: tuple[View, ...], source: Source, device: int, where: str
) -> tuple[Computed, Form | None, tuple[View, ...]]:
    """Return the elements that op's source computes, the structure of their tuples, and views with
    the fields' dtypes for checks.
    """
    numbers = tuple(view.dtype for view in views)
    arguments = tuple(map(records.operand_dtype, numbers))
    result = outputs.dtype_of(op.source, arguments, None, device, where)
    form = form_of(result.names, source.forms) if result.names else None
    field_views = tuple(views[0]._replace(dtype=leaf) for leaf in records.field_dtypes(result))
    return Computed(numbers, result), form, field_views


def may_be_array(init: Any, form: Form | Source | None) -> bool:
    """Return whether init may be a device array: elements may be numbers."""
    return form is None or (isinstance(form, Source) and not isinstance(init, (tuple, np.void)))
