"""Gradients: scans are pulled back by one linear recurrence in the other direction.

A scan computes ``y[i] = op(y[i-1], x[i])``. With the operator's derivatives p[i] (left) and q[i]
(right) there, y[i] has the cotangent ``t[i] = g[i] + p[i+1] * t[i+1]``, and x[i] ``q[i] * t[i]``.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gpualgo._api.derivatives import rebound
from gpualgo._base.errors import shown
from gpualgo._operators.operator import Operator
from gpualgo.jax._ffi import call, vary_alike


def differentiable(
    forward: Callable[..., Any], pull: Callable[..., Sequence[Any]], *arrays: Any
) -> Any:
    """Return ``forward(*arrays)``, with ``pull(arrays, result, g)`` as its vector-Jacobian product.

    Neither function may capture traced arrays. Arrays that are not inexact have no cotangent, and
    one of None is zero.
    """

    def keep(*arrays: Any) -> tuple[Any, Any]:
        result = function(*arrays)  # not forward: it is differentiated for second derivatives
        return result, (arrays, result)

    def backward(kept: Any, g: Any) -> tuple[Any, ...]:
        arrays, result = kept
        are_inexact = [jnp.issubdtype(x.dtype, jnp.inexact) for x in arrays]
        found = pull(arrays, result, g) if any(are_inexact) else [None] * len(arrays)
        return tuple(
            None if gx is None or not is_inexact else _typed_as(x, gx)
            for x, gx, is_inexact in zip(arrays, found, are_inexact, strict=True)
        )

    function = jax.custom_vjp(forward)
    function.defvjp(keep, backward)
    return function(*vary_alike(*arrays))


def _typed_as(x: Any, gx: Any) -> Any:
    """Return a cotangent with the dtype of x, and its sharding along explicit axes of a mesh."""
    gx, wanted = gx.astype(x.dtype), jax.typeof(x).sharding
    is_typed = wanted.mesh.empty or jax.typeof(gx).sharding == wanted
    return gx if is_typed else jax.sharding.reshard(gx, wanted)


def recurrence(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """Return h with ``h[i] = a[i] * h[i-1] + b[i]`` along a negative axis; dtypes are equal."""

    def forward(a: Any, b: Any) -> Any:
        results = [(b.shape, b.dtype)] * 2  # the first has products of a
        return call("linear_recurrence", [a, b], results, axis=axis, reverse=reverse)[1]

    def pull(arrays: Any, h: Any, g: Any) -> Any:
        heads = first_of(h.shape, axis, reverse)
        following = shifted(jnp.where(heads, 0, arrays[0]), axis, not reverse)
        g = recurrence(following, g, axis, not reverse)
        return g * jnp.where(heads, 0, shifted(h, axis, reverse)), g

    return differentiable(forward, pull, a, b)


def first_of(shape: tuple[int, ...], axis: int, reverse: bool) -> Any:
    """Return which elements are the first of a scan."""
    first = shape[axis] - 1 if reverse else 0
    dtype = jax.dtypes.canonicalize_dtype(int)
    return jax.lax.broadcasted_iota(dtype, shape, len(shape) + axis) == first


def shifted(x: Any, axis: int, reverse: bool) -> Any:
    """Return the element before each in the order of a scan; the first gets the last."""
    return jnp.roll(x, -1 if reverse else 1, axis)


# --- Derivatives of operators.


class Derived(NamedTuple):
    """An operator and its derivatives ``(d_left, d_right)``, None to derive them."""

    op: Operator
    vjp: Any

    @property
    def name(self) -> str | None:
        """Name of an operator whose derivatives are known."""
        return self.op.name if self.vjp is None else None

    def at(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Return both derivatives, element by element."""
        if self.vjp is not None:
            return self.vjp[0](left, right), self.vjp[1](left, right)
        try:
            result, pull = jax.vjp(_in_jax(self.op.fn), left, right)
            if result.shape != left.shape:
                raise TypeError(f"elements of shape {left.shape} give {result.shape}")
            return pull(jnp.ones_like(result))  # type: ignore[no-any-return]
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise TypeError(
                f"op {shown(self.op.fn)} cannot be differentiated by jax ({reason}); pass "
                "vjp=(d_left, d_right), functions of (left, right) in jax.numpy"
            ) from error


_IN_JAX: dict[Any, Any] = {
    np: jnp, math: jnp, max: jnp.maximum, min: jnp.minimum, pow: jnp.power, round: jnp.round,
}  # fmt: skip
_BUILTINS = {"max": jnp.maximum, "min": jnp.minimum, "pow": jnp.power, "round": jnp.round}


def _in_jax(value: Any) -> Any:
    """Return a function, or a value that it reads, with jax.numpy instead of numpy and math."""
    if isinstance(value, np.ufunc) or getattr(value, "__module__", None) == "math":
        return getattr(jnp, value.__name__)
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
        return _IN_JAX.get(value, value)
    return rebound(value, _in_jax, _BUILTINS) if isinstance(value, types.FunctionType) else value


# --- Scans and reductions.


class Scan(NamedTuple):
    """A scan along an axis, or with offsets a segmented scan of one axis."""

    name: str
    init: Any  # None or a number
    derived: Derived
    dtype: np.dtype[Any]  # of the accumulator
    axis: int = -1
    reverse: bool = False

    def __call__(self, x: Any, *offsets: Any) -> Any:
        def forward(x: Any, *offsets: Any) -> Any:
            options = {} if offsets else {"axis": self.axis, "reverse": self.reverse}
            arrays, results = [x, *offsets], [(x.shape, self.dtype)]
            op = self.derived.op
            return call(self.name, arrays, results, self.init, op, dtype=self.dtype, **options)[0]

        return differentiable(forward, self._pull, x, *offsets)

    def _pull(self, arrays: Any, y: Any, g: Any) -> Any:
        (x, *offsets), outside = arrays, False
        axis, reverse = self.axis, self.reverse
        if offsets:
            begun, heads = starts(offsets[0], x.shape[0])
            outside = (begun == 0) | (begun >= offsets[0].shape[0])
        elif self.derived.name == "add":
            return (self._replace(init=0, reverse=not reverse)(g),)
        else:
            heads = first_of(y.shape, axis, reverse)
        # Elements outside of segments are copied, and so are first ones without init.
        x, first, copied = x.astype(y.dtype), heads | outside, outside
        if "exclusive" in self.name:
            before = y
            g = jnp.where(outside, g, shifted(jnp.where(first, 0, g), axis, not reverse))
        else:
            before = shifted(y, axis, reverse)
            if self.init is None:
                copied = first
            else:
                before = jnp.where(heads, jnp.asarray(self.init, y.dtype), before)
        p, q = self.derived.at(jnp.where(copied, x, before), x)
        p = shifted(jnp.where(first, 0, p), axis, not reverse).astype(g.dtype)
        gx = jnp.where(copied, 1, q).astype(g.dtype) * recurrence(p, g, axis, not reverse)
        return gx, *[None] * len(offsets)


def starts(offsets: Any, n: int) -> tuple[Any, Any]:
    """Return how many segments have begun at each of n elements, and whether one begins there."""
    marks = jnp.zeros(n, int).at[jnp.clip(offsets.astype(int), 0, n)].add(1, mode="drop")
    return marks.cumsum(), marks > 0


def pull_sum_or_extreme(
    name: str | None, x: Any, y: Any, g: Any, total: Callable[[Any], Any]
) -> Any:
    """Return the cotangent of x of a sum, maximum or minimum; None for another operator.

    `y` and `g` are each element's result and its cotangent; `total` sums over the elements of a
    result. Equal extremes share the cotangent equally.
    """
    if name == "add":
        return jnp.broadcast_to(g, x.shape)
    if name not in ("maximum", "minimum"):
        return None
    is_extreme = x.astype(y.dtype) == y
    wide = jnp.promote_types(g.dtype, jnp.float32)  # half precision counts to 256 only
    count = total(is_extreme.astype(wide))
    return jnp.where(is_extreme, g.astype(wide) / jnp.maximum(count, 1), 0)


# --- Bins of histograms.


def bins_of(x: Any, bins: Any, range: Any) -> Any:
    """Return the number of the bin of each sample; out of range for those in none."""
    if isinstance(bins, int):
        if range is None:
            raise ValueError(
                "histogram: the gradient of weights in bins of equal width needs range="
            )
        bins = np.histogram_bin_edges(np.empty(0, x.dtype), bins, range)
    if isinstance(bins, jax.Array):
        edges = bins.at[-1].set(
            jnp.nextafter(bins[-1], jnp.inf)
            if jnp.issubdtype(bins.dtype, jnp.inexact) else bins[-1] + 1
        )  # fmt: skip
    else:  # the least values of x that reach the edges
        wide = np.array(bins, np.float64)
        wide[-1] = np.nextafter(wide[-1], np.inf)
        edges = wide.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else np.ceil(wide)
        edges = np.where(edges < wide, np.nextafter(edges, edges.dtype.type(np.inf)), edges)
    return jnp.searchsorted(edges, x, side="right") - 1
