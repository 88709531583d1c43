"""The public function `prepare`: an algorithm with its arguments checked and its kernels built."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpualgo._arrays.view import View, as_bytes_view, byte_bounds, is_contiguous, overlap
from gpualgo._base import recording
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import hot_key

if TYPE_CHECKING:
    from gpualgo._api.prepared import Prepared
    from gpualgo._base import annotations as ty


class Plan:
    """An algorithm prepared for arrays of one layout: what `gpualgo.prepare` makes.

    Call it as ``plan(*arrays, out=None, temp_storage=None, stream=None)``. It may be called from
    several threads.

    Attributes
    ----------
    temp_storage_bytes : int
        What a call needs as `temp_storage`; 0 for arrays on the host.
    """

    __slots__ = ("_found", "_function", "_key", "_last", "_layouts", "_op", "temp_storage_bytes")

    def __init__(self, function: Callable[..., Any], found: Prepared) -> None:
        self._function, self._found = function, found
        self._layouts = [view[1:6] for view in found.views]
        self.temp_storage_bytes = found.temp_storage_bytes
        # A function whose key may change; a recognised operator's does not.
        self._op = None if found.op is None or found.op.name is not None else found.op.fn
        self._key = None if self._op is None else hot_key(self._op)
        # Two weak references, addresses, shapes, a launch, where its stream comes from, the device.
        self._last: tuple[Any, ...] | None = None

    def __repr__(self) -> str:
        arrays = ", ".join(f"{view.dtype}{list(view.shape)}" for view in self._found.views)
        return f"Plan({self._function.__name__}, {arrays})"

    def __call__(
        self,
        *arrays: ty.AnyArray,
        out: ty.AnyArray | tuple[ty.AnyArray, ty.AnyArray] | None = None,
        temp_storage: ty.AnyArray | None = None,
        stream: ty.Stream | None = None,
    ) -> Any:
        """Run the algorithm on arrays of the layout that it was prepared for.

        Parameters
        ----------
        *arrays : array
            In the order in which the function takes them: of the shape, strides, dtype, library
            and device of those given to `prepare`.
        out : array or tuple of arrays, optional
            Where to write, as for the function.
        temp_storage : array, optional
            At least `temp_storage_bytes` bytes on the GPU, without gaps, from a multiple of 256 on.
            Nothing is allocated or kept for the call then. What is in it does not matter, before or
            after; no other work may use it until the call's is done.
        stream : stream, optional
            As for the function.

        Raises
        ------
        TypeError, ValueError
            An array has another layout, `temp_storage` is too small, or as the function raises.
        """
        last = self._last
        if (
            last is not None and out is not None and temp_storage is None and stream is None
            and len(arrays) == 1
        ):  # fmt: skip
            x = arrays[0]
            # The same two arrays, where they were and as they were.
            if (
                x is not None and last[0]() is x and last[1]() is out and x.data.ptr == last[2]
                and out.data.ptr == last[3] and x.shape == last[4] and out.shape == last[5]
                and not recording.active
                and (self._op is None or hot_key(self._op) == self._key)
            ):  # fmt: skip
                last[6](last[7](last[8]))
                return out
        found = self._found
        views = [found.view_of(x) for x in arrays]
        if [view[1:6] for view in views] != self._layouts:
            self._refuse(views)
        run = found.run
        if (
            run is not None and temp_storage is None and stream is None and not recording.active
            and (self._op is None or hot_key(self._op) == self._key)
        ):  # fmt: skip
            ran, result = run(views, out)
            if ran:
                if run.pack is not None and out is not None:
                    self._remember(run.pack, arrays[0], views[0], out)
                return result
        return self._call(arrays, views, out, temp_storage, stream)

    def _remember(
        self, pack: Callable[[int, int], Callable[[int], None]], x: Any, view: View, out: Any
    ) -> None:
        """Keep a call's parameters for a call with the same two arrays of CuPy."""
        from gpualgo._driver import driver

        if view.library.name != "cupy" or not driver.is_simple:
            return
        target = out.data.ptr
        launch = pack(view.ptr, target)
        self._last = (
            weakref.ref(x), weakref.ref(out), view.ptr, target, view.shape, out.shape, launch,
            view.library.stream, view.device,
        )  # fmt: skip

    def _call(
        self, arrays: tuple[Any, ...], views: list[View], out: Any, temp_storage: Any, stream: Any
    ) -> Any:
        """Go through the function, which looks at everything again."""
        given: Any = contextlib.nullcontext()
        if temp_storage is not None:
            given = self._supplied(views, out, temp_storage)
        with given:
            return self._found.call(arrays, out, stream)

    def _supplied(self, views: list[View], out: Any, temp_storage: Any) -> Any:
        """Return the context in which temporary storage is the caller's."""
        name = self._function.__name__
        storage = as_bytes_view(temp_storage, f"{name}: temp_storage")
        place = views[0].device
        if recording.active and recording.current() is not None:
            raise ValueError(f"{name}: a graph has storage of its own; leave temp_storage out")
        if place == CPU or storage.device != place:
            raise ValueError(
                f"{name}: temp_storage must be on the arrays' GPU; leave it out for host arrays"
            )
        low, high = byte_bounds(storage)
        if not is_contiguous(storage) or storage.readonly or low % 256:
            raise ValueError(
                f"{name}: temp_storage must be writable, without gaps, from a multiple of 256 on"
            )
        if high - low < self.temp_storage_bytes:
            raise ValueError(
                f"{name}: temp_storage has {high - low} bytes, {self.temp_storage_bytes} are needed"
            )
        outs = out if isinstance(out, tuple) else () if out is None else (out,)
        others = [*views, *(as_bytes_view(x, f"{name}: out") for x in outs)]
        if any(overlap(storage, view) for view in others):
            raise ValueError(f"{name}: temp_storage shares memory with an array; pass memory apart")
        from gpualgo._driver import workspace

        return workspace.supplied(workspace.Given(low, high - low))

    def _refuse(self, views: list[View]) -> None:
        """Raise unless the views have the prepared layouts but for their streams at home."""
        name, wanted = self._function.__name__, self._found.views
        if len(views) != len(wanted):
            raise TypeError(f"{name}: the plan takes {len(wanted)} array(s), got {len(views)}")
        for view, prepared in zip(views, wanted, strict=True):
            if (view.library.name, view.device) != (prepared.library.name, prepared.device):
                raise TypeError(
                    f"{name}: the plan is for arrays of {prepared.library.name} on device "
                    f"{prepared.device}, got one of {view.library.name} on {view.device}; "
                    "prepare another"
                )
            if view.dtype != prepared.dtype:
                raise TypeError(
                    f"{name}: the plan is for dtype {prepared.dtype}, got {view.dtype}; "
                    "prepare another"
                )
            if (view.shape, view.strides) != (prepared.shape, prepared.strides):
                raise ValueError(
                    f"{name}: the plan is for shape {prepared.shape} with strides "
                    f"{prepared.strides}, got {view.shape} with {view.strides}; prepare another"
                )


def prepare(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """Check a call and build its kernels once, to run it many times on arrays of one layout.

    Parameters
    ----------
    function : callable
        One of this package's algorithms: `gpualgo.reduce`, say.
    *args, **kwargs
        What it would be called with: arrays that stand for those to come, and all else as it is to
        be. ``out`` and ``stream`` are given to the plan's calls instead.

    Returns
    -------
    Plan
        A callable, with `temp_storage_bytes`.

    Raises
    ------
    TypeError, ValueError, CompileError
        As the call itself would raise.

    Notes
    -----
    Nothing is launched, and no element is read (but for a histogram without `range`). On the CPU
    kernels are compiled by the plan's first call. The operator is looked at in each call: if what
    it captures has changed, so does what the plan computes.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> plan = ga.prepare(ga.reduce, np.zeros(3), 0.0, lambda a, b: a + b)
    >>> float(plan(np.array([1.0, 2.0, 3.0])))
    6.0
    """
    return Plan(function, describe("prepare", function, args, kwargs))


def describe(
    where: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Prepared:
    """Return a call with everything but the memory decided."""
    from gpualgo._api import prepared as _prepared

    find = _prepared.FINDERS.get(function)
    if find is None:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{where}: function must be an algorithm of gpualgo, got {name}")
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return find(function, bound.arguments)
