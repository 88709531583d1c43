"""Lazy arrays as inputs of algorithms. What knows them is loaded when the first comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import NumPy, View
from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._base.records import Computed
from gpualgo._lazy import is_lazy
from gpualgo._operators.key import examine
from gpualgo._operators.markers import same
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks, elements, inputs, results

# Operators with functions that are kept, which are the package's own: what they compute is known
# from their second call on, when numbers that have to be compiled in are so.
_joints: Memo[Operator] = Memo(1 << 9)
_fused: Memo[Operator] = Memo(1 << 9)
_seen: Memo[bool] = Memo(1 << 10)


def settled_of(known: Memo[Operator], op: Any, function: Any) -> Operator | None:
    """Return an operator with a function as they were put together before; None: not yet."""
    return known.get((op, function))


def settle(known: Memo[Operator], op: Any, function: Any, found: Operator) -> None:
    """Keep an operator with a function, if it is the package's own, and was here before."""
    from gpualgo._lazy.expression import is_own

    key = (op, function)
    if not is_own(op.fn if isinstance(op, Operator) else op):
        return
    if _seen.get((id(known), key)) is None:
        _seen.add((id(known), key), True)
        return
    captured = examine(found.fn)
    if not captured.views:
        found._captured = captured
        known.add(key, found)


class Source(NamedTuple):
    """That an input is computed, of elements that are tuples of these classes."""

    forms: tuple[Form, ...]


def taken(
    x: Any, op: Any, where: str, has_names: bool = True, num_arguments: int = 2,
    beside: tuple[Any, ...] = (),
) -> tuple[tuple[View, ...], Any, Form | Source | None]:  # fmt: skip
    """Return the views of an input's arrays, the operator, and how its elements are built.

    `beside`: the call's other arrays, in whose place it is where it is lazy and reads none.
    """
    if type(x) is np.ndarray and x.dtype.names is None:  # most inputs, and in warm calls
        return (NumPy.view(x),), op, None
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
    """Return what is read for an input, and the operator with the function that computes it."""
    from gpualgo._lazy import combining
    from gpualgo._operators.joint import joint

    (x,) = combining.place_lazy((x,), beside, where)
    whole = combining.zipped(x, f"{where}: x")
    if whole.is_kept and (known := settled_of(_joints, op, whole.function)) is not None:
        return whole.views, known, Source(whole.forms)
    combining.check_count(whole.leaves, records.MAX_FIELDS, f"{where}: x reads")
    found = joint(as_operator(op, where, num_arguments), whole.function)
    if whole.is_kept:
        settle(_joints, op, whole.function, found)
    return whole.views, found, Source(whole.forms)


def arguments_of(
    views: tuple[View, ...], form: Form | Source | None
) -> tuple[tuple[str, ...], tuple[Form | None, ...]]:
    """Return what is read for an input, as messages name it, and how its tuples are built."""
    if isinstance(form, Source):
        return ("x",) * len(views), ()
    return inputs.names(views, form, "x"), (form,)


def elements_of(
    op: Operator, views: tuple[View, ...], form: Form | Source | None, device: int, where: str
) -> tuple[records.Source, Form | None, tuple[View, ...]]:
    """Return the elements that are read or computed, and how their tuples are built.

    Besides views of the elements' numbers, as if in arrays where they are computed, for checks.
    """
    if isinstance(form, Source):
        return computed(op, views, form, device, where)
    for view, name in zip(views, inputs.names(views, form, "x"), strict=True):
        checks.element(view, name, where)
    return elements.element_of(views, form), form, views


def fused(
    op: Any, arguments: tuple[Any, ...], where: str, out: Any = None
) -> tuple[Any, tuple[View, ...], tuple[Form | None, ...], tuple[Form, ...]]:
    """Return one function of what is read, and that, where some of op's arguments are computed."""
    from gpualgo._lazy import combining, kept

    if out is not None:
        arguments = combining.place_lazy(arguments, (out,), where)
    first = arguments[0]
    if op is same and type(first) is kept.Again and not first.is_kept:  # which looks up elements
        return first.function, first.views, (None,) * len(first.views), first.forms
    is_kept = len(arguments) == 1 and not isinstance(first, tuple) and first.is_kept
    if is_kept and (known := settled_of(_fused, op, first.function)) is not None:
        return known, first.views, (None,) * len(first.views), first.forms
    whole = combining.applied(op, arguments, where)
    if is_kept and len(whole.views) == len(first.views):
        settle(_fused, op, first.function, as_operator(whole.function, where, len(whole.views)))
    return whole.function, whole.views, (None,) * len(whole.views), whole.forms


def computed(
    op: Operator, views: tuple[View, ...], source: Source, device: int, where: str
) -> tuple[Computed, Form | None, tuple[View, ...]]:
    """Return the elements that op's source makes of what is read, and how tuples are built.

    Besides views as if the elements' numbers were arrays, for checks of dtypes.
    """
    numbers = tuple(view.dtype for view in views)
    arguments = tuple(map(records.number_of, numbers))
    result = results.dtype_of(op.source, arguments, None, device, where)
    form = form_of(result.names, source.forms) if result.names else None
    typed = tuple(views[0]._replace(dtype=leaf) for leaf in records.leaves(result))
    return Computed(numbers, result), form, typed


def may_be_array(init: Any, form: Form | Source | None) -> bool:
    """Return whether init may be an array on the device: elements are numbers, for all we know."""
    return form is None or (isinstance(form, Source) and not isinstance(init, (tuple, np.void)))
