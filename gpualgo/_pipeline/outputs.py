"""Results: out= checked against a problem, or new arrays in the caller's library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gpualgo._arrays.view import View, address_of, as_bytes_view, as_view, is_contiguous, overlap
from gpualgo._base import dtypes, records
from gpualgo._base.strides import inverse, ordered
from gpualgo._driver.default_device import CPU
from gpualgo._operators.captured import check_no_overlap
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Problem

_NUMBERS = {2: "two", 3: "three", 4: "four"}


def check(problem: Problem, views: tuple[View, ...], init: Any, out: Any) -> tuple[View, ...]:
    """Return the views of out= after checking shapes, dtypes and overlap with other arrays."""
    where, results = problem.where, problem.results
    given_outs = out if len(results) > 1 else (out,)
    if not isinstance(given_outs, tuple) or len(given_outs) != len(results):
        raise TypeError(
            f"{where}: out must be a tuple of {_NUMBERS.get(len(results), len(results))} arrays, "
            "one for each result"
        )
    names = names_of(problem)
    viewer = as_bytes_view if problem.takes_any_items else as_view
    targets = tuple(
        checks.output(
            array, views[0], result.shape, result.dtype, where, name, viewer, result.is_upper_bound
        )
        for array, result, name in zip(given_outs, results, names, strict=True)
    )
    bounds = [pair for pair, one in zip(zip(targets, names, strict=True), results, strict=True)
              if one.is_upper_bound]  # fmt: skip
    for target, name in bounds[1:]:
        if target.shape != bounds[0][0].shape:
            raise ValueError(
                f"{where}: {bounds[0][1]} has shape {bounds[0][0].shape} and {name} "
                f"{target.shape}; pass arrays of the same length"
            )
    for target, name, result in zip(targets, names, results, strict=True):
        for i, source in enumerate(views):
            may_be_same = i in result.in_place_of
            if not (may_be_same and is_same(target, source)) and overlap(target, source):
                hint = f", or {problem.inputs[i]} itself to work in place" if may_be_same else ""
                raise ValueError(
                    f"{where}: {name} overlaps {problem.inputs[i]}; pass a separate array{hint}"
                )
        if type(init) is View and overlap(target, init):
            raise ValueError(f"{where}: {name} shares memory with init; pass a separate array")
        check_no_overlap(problem.arrays, target, where, name, problem.op_name)
    for (name, first), (other, second) in combinations(zip(names, targets, strict=True), 2):
        if overlap(first, second):
            raise ValueError(f"{where}: {name} and {other} share memory; pass two separate arrays")
    return targets


def names_of(problem: Problem) -> Sequence[str]:
    count = len(problem.results)
    if count == 1:
        return ("out",)
    if problem.output_names:
        return problem.output_names
    suffixes = [f"[{i}]" for i in range(count)] if problem.form is None else problem.form.subscripts
    return [f"out{suffix}" for suffix in suffixes]


def is_same(out: View, x: View) -> bool:
    """Return whether out and x have the same elements at the same addresses."""
    if address_of(out) != address_of(x) or out.dtype != x.dtype:
        return False
    if out.shape == x.shape and out.strides == x.strides:
        return True
    is_as_large = math.prod(out.shape) == math.prod(x.shape)
    return is_as_large and is_contiguous(out) and is_contiguous(x)


def new(problem: Problem, like: View, stream: int | None) -> tuple[View, ...]:
    """Return new results in an input's library and on its device."""
    library, device = like.library, like.device
    targets = []
    for result in problem.results:
        shape, dtype, _, order, _ = result
        x = library.empty(ordered(shape, order), dtype, device, stream)
        if order:
            x = library.transposed(x, inverse(order))
        pointer, strides = library.pointer(x), result.strides()
        targets.append(View(pointer, shape, strides, dtype, device, library, False, x))
    return tuple(targets)


# --- Results of a call, and the dtype that an operator returns, found by compiling it.


def dtype_of(
    op: Operator, arguments: tuple[records.Argument, ...], wanted: Any, device: int, where: str
) -> np.dtype[Any]:
    """Return the dtype of op's results; op is compiled to find out."""
    if device == CPU:
        from gpualgo._cpu.kernels import compile_operator

        def infer(requested: np.dtype[Any] | None) -> np.dtype[Any]:
            return compile_operator(op, arguments, requested).result_dtype
    else:
        from gpualgo._cuda import build
        from gpualgo._driver import device as gpu

        def infer(requested: np.dtype[Any] | None) -> np.dtype[Any]:
            return build.result_dtype(op, arguments, requested, gpu.get(device).capability)

    if wanted is None:
        return infer(None)
    if not isinstance(wanted, tuple) and getattr(wanted, "names", None) is None:
        try:
            return infer(dtypes.as_dtype(wanted, where))
        except records.ReturnsTuple:  # apply the dtype to each field
            pass
    return infer(checks.requested_dtype(infer(None), wanted, where))
