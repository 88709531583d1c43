"""The public function `transform`: checks, then the backend."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gpualgo._arrays.view import View, address_of, as_view, overlap
from gpualgo._base import dtypes as _dtypes
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._operators.captured import check_apart
from gpualgo._operators.operator import MAX_ARITY, Operator, as_operator, check_dtype, hot_key
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "transform"


@overload
def transform(
    op: ty.Function | Operator, x: ty.Same, /, *arrays: ty.Same,
    dtype: ty.DType | None = None, out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.Foreign, /, *arrays: ty.Foreign,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def transform(
    op: ty.Function | Operator, x: ty.Host, /, *arrays: ty.Host,
    dtype: ty.DType | None = None, out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
def transform(op: Any, *arrays: Any, dtype: Any = None, out: Any = None, stream: Any = None) -> Any:
    """Apply a function to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters
    ----------
    op : callable
        A function of as many scalars as there are arrays.
    *arrays : array
        One to eight arrays of one library and device, broadcast against each other as NumPy
        does; any strides.
    dtype : dtype, optional
        The result's dtype. Without it out's, else what NumPy 2 gives for `op`: a Python literal
        never widens its partner, so ``lambda a: a * 2.0 + 1`` on float32 gives float32.
    out : array, optional
        Where to write the result. It may be one of the arrays, and may not overlap otherwise.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the arrays' library.

    Returns
    -------
    array
        In the library of the arrays; a device array is returned without waiting for it.

    Raises
    ------
    TypeError
        An argument is no array, a dtype has no kernel, `op` takes another number of arguments,
        or its result does not fit.
    ValueError
        The shapes do not broadcast, out has another shape or overlaps, or arrays are on
        different devices.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Reads each input and writes the result once, in one kernel launch, with no temporary storage.
    See docs/transform.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.transform(lambda a, b: a * 2 + b, np.arange(3), np.array([[10], [20]]))
    array([[10, 12, 14],
           [20, 22, 24]])
    """
    if recording.active and (graph := recording.current()) is not None:
        return graph.call(transform, op, *arrays, dtype=dtype, out=out, stream=stream)
    views = [as_view(x, "transform: an argument") for x in arrays]
    target = None if out is None else as_view(out, "transform: out")
    try:
        plan = plans.get(plan_key(op, views, dtype, target))
    except TypeError:  # an unhashable dtype
        plan = None
    # The warm call on a device: nothing is left to decide, and all was checked for this layout.
    if plan is not None and stream is None and (target is None or plan.is_apart(target, views)):
        library, device = views[0].library, views[0].device
        if target is None:
            out = library.empty(plan.shape, plan.dtype, device, None)
        if plan.num_items:
            pointer = library.pointer(out) if target is None else target.ptr
            plan.launch(library.stream(device), pointer, *[view.ptr for view in views])
        return out
    if not arrays:
        raise TypeError("transform: pass at least one array after op")
    if len(arrays) > MAX_ARITY:
        raise TypeError(f"transform: at most {MAX_ARITY} arrays, got {len(arrays)}")
    checks.same_place(views, _WHERE)
    if views[0].device == CPU:
        operator_ = as_operator(op, _WHERE, len(views))
        return _transform_host(operator_, views, _broadcast(views), dtype, out, stream)
    return _cuda_run()(op, views, _broadcast(views), dtype, out, stream)


plans: dict[Any, Any] = {}  # of the CUDA backend, by plan_key


def plan_key(op: Any, views: list[View], dtype: Any, out: View | None) -> Any:
    """Return what decides a plan: the operator, and every layout and alignment."""
    place = None if out is None else (out[1:7], out.ptr & 15)
    return (hot_key(op), dtype, place, *[(v[1:6], v.ptr & 15) for v in views])


@cache
def _cuda_run() -> Any:
    from gpualgo._algorithms.transform import cuda

    return cuda.run


def _broadcast(views: list[View]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(view.shape for view in views))
    except ValueError:
        shapes = ", ".join(str(view.shape) for view in views)
        raise ValueError(f"transform: shapes {shapes} do not broadcast together") from None


def check_meaning(op: Operator, views: list[View]) -> None:
    """Raise TypeError if a recognised operator has no meaning on an argument's dtype."""
    for view in views:
        check_dtype(op, view.dtype, _WHERE)


def strides_for(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a view's byte strides once it is broadcast to shape."""
    if view.shape == shape:
        return view.strides
    missing = len(shape) - len(view.shape)
    fitted = tuple(
        0 if n == 1 and m != 1 else s
        for n, s, m in zip(view.shape, view.strides, shape[missing:], strict=True)
    )
    return (0,) * missing + fitted


def wanted_dtype(dtype: Any, out: View | None) -> np.dtype[Any] | None:
    """Return the dtype that the caller asks the result to have, None to infer it."""
    wanted = None if dtype is None else _dtypes.as_dtype(dtype, _WHERE)
    if out is None:
        return wanted
    if wanted is not None and out.dtype != wanted:
        raise TypeError(
            f"transform: out has dtype {out.dtype} but dtype={wanted}; pass one of them"
        )
    return out.dtype


def check_output(out: Any, views: list[View], shape: tuple[int, ...]) -> View:
    """Return the view of out= once shape, place and overlap are right; its dtype is free."""
    raw = as_view(out, "transform: out")
    view = checks.output(out, views[0], shape, raw.dtype, _WHERE)
    for x in views:
        exact = (
            x.shape == view.shape and x.strides == view.strides and x.dtype == view.dtype
            and address_of(x) == address_of(view)
        )  # fmt: skip
        if not exact and overlap(x, view):
            raise ValueError(
                "transform: out overlaps an input partly; pass that input itself or another array"
            )
    return view


def _transform_host(
    op: Operator, views: list[View], shape: tuple[int, ...], dtype: Any, out: Any, stream: Any
) -> Any:
    device = default_device.current()
    library = views[0].library
    check_meaning(op, views)
    target = None if out is None else check_output(out, views, shape)
    if target is not None:
        check_apart(op.arrays, target, _WHERE)
    wanted = wanted_dtype(dtype, target)
    arrays = [np.broadcast_to(library.to_numpy(view.owner), shape) for view in views]
    dtypes = tuple(view.dtype for view in views)
    if device == CPU:
        checks.no_stream(stream, _WHERE)
        from gpualgo._algorithms.transform import cpu
        from gpualgo._cpu.operator import compile_operator

        result_dtype = compile_operator(op, dtypes, wanted).result_dtype
        backend: Any = cpu.transform
    else:
        from gpualgo._pipeline import host

        result_dtype = host.result_dtype(op, dtypes, wanted, device)
        backend = host.transform_on(device, stream)
    result = np.empty(shape, result_dtype) if target is None else library.to_numpy(target.owner)
    if result.size:
        backend(op, arrays, result)
    return library.from_numpy(result, arrays[0]) if target is None else out
