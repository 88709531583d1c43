"""Gradients: scans are pulled back by one linear recurrence in the other direction.

A scan computes ``y[i] = op(y[i-1], x[i])``. With the operator's derivatives p[i] (left) and q[i]
(right) there, y[i] has the cotangent ``t[i] = g[i] + p[i+1] * t[i+1]``, and x[i] ``q[i] * t[i]``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from gpualgo._api.derivatives import Framework, is_holomorphic
from gpualgo._base.errors import shown
from gpualgo._operators.operator import Operator
from gpualgo.jax._ffi import call, vary_alike

Arrays = Sequence[Any]


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


def recurrence(a: Arrays, b: Arrays, axis: int, reverse: bool) -> Arrays:
    """Return row vectors h with ``h[i] = h[i-1] a[i] + b[i]`` along a negative axis.

    `a` has the numbers of matrices, row after row; dtypes are equal.
    """
    count = len(b)

    def forward(*arrays: Any) -> Any:
        results = [(x.shape, x.dtype) for x in arrays]  # the first have products of a
        return call("linear_recurrence", arrays, results, axis=axis, reverse=reverse)[-count:]

    def pull(arrays: Any, h: Any, g: Any) -> Any:
        heads = first_of(h[0].shape, axis, reverse)
        transposed = [arrays[i * count + k] for k in range(count) for i in range(count)]
        following = [shifted(jnp.where(heads, 0, x), axis, not reverse) for x in transposed]
        g = recurrence(following, g, axis, not reverse)
        before = [jnp.where(heads, 0, shifted(x, axis, reverse)) for x in h]
        return [x * y for x in before for y in g] + list(g)

    return differentiable(forward, pull, *a, *b)  # type: ignore[no-any-return]


def first_of(shape: tuple[int, ...], axis: int, reverse: bool) -> Any:
    """Return which elements are the first of a scan."""
    first = shape[axis] - 1 if reverse else 0
    dtype = jax.dtypes.canonicalize_dtype(int)
    return jax.lax.broadcasted_iota(dtype, shape, len(shape) + axis) == first


def shifted(x: Any, axis: int, reverse: bool) -> Any:
    """Return the element before each in the order of a scan; the first gets the last."""
    return jnp.roll(x, -1 if reverse else 1, axis)


# --- Derivatives of operators.


MOST_NUMBERS = 2  # of an element that has a gradient


def element(xs: Arrays) -> Any:
    return xs[0] if len(xs) == 1 else tuple(xs)


def numbers(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class Derived(NamedTuple):
    """An operator and its derivatives ``(d_left, d_right)``, None to derive them."""

    op: Operator
    vjp: Any

    @property
    def name(self) -> str | None:
        """Name of an operator whose derivatives are known."""
        return self.op.name if self.vjp is None else None

    def at(self, left: Arrays, right: Arrays) -> Any:
        """Return both derivatives: [i][k] is of number i of the result by number k of a side."""
        count, dtype, shape = len(left), jnp.result_type(*left), left[0].shape
        if self.vjp is not None:
            both = [element([x.astype(dtype) for x in side]) for side in (left, right)]
            sides = [derivative(*both) for derivative in self.vjp]
            sides = [[[side]] if count == 1 else side for side in sides]
            if any([len(numbers(row)) for row in numbers(side)] != [count] * count
                   for side in sides if count > 1):  # fmt: skip
                raise TypeError(f"vjp must return a tuple of {count} rows, tuples of {count}")
            return sides
        try:
            fn = _jax.of(self.op.fn)
            if jnp.issubdtype(dtype, jnp.complexfloating) and not is_holomorphic(self.op.fn):
                raise TypeError("it is no holomorphic function")
            given = [*left, *right]  # integers keep their dtype, and have no derivatives
            wanted = [i for i, x in enumerate(given) if jnp.issubdtype(x.dtype, jnp.inexact)]

            def computed(*numbers_wanted: Any) -> list[Any]:
                xs = list(given)
                for i, x in zip(wanted, numbers_wanted, strict=True):
                    xs[i] = x
                found = numbers(fn(element(xs[:count]), element(xs[count:])))
                return [jnp.broadcast_to(jnp.asarray(x).astype(dtype), shape) for x in found]

            results, pull = jax.vjp(computed, *[given[i] for i in wanted])
            rows = [[jnp.zeros(shape, dtype)] * len(given) for _ in results]
            for k, row in enumerate(rows):
                found = pull([jnp.full_like(x, i == k) for i, x in enumerate(results)])
                for i, x in zip(wanted, found, strict=True):
                    row[i] = x
            return [row[:count] for row in rows], [row[count:] for row in rows]
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise TypeError(
                f"op {shown(self.op.fn)} cannot be differentiated by jax ({reason}); pass "
                "vjp=(d_left, d_right), functions of (left, right) in jax.numpy"
            ) from error


@jax.custom_jvp  # type: ignore[untyped-decorator]
def _logaddexp(a: Any, b: Any) -> Any:
    """`jax.numpy.logaddexp` with derivatives of equal infinities too, as of masked numbers."""
    return jnp.logaddexp(a, b)


@_logaddexp.defjvp  # type: ignore[untyped-decorator]
def _push_logaddexp(primals: Any, tangents: Any) -> Any:
    a, b = primals
    difference = jnp.where((a == b) & jnp.isinf(a), 0, a - b)
    left, right = jax.nn.sigmoid(difference), jax.nn.sigmoid(-difference)
    return _logaddexp(a, b), left * tangents[0] + right * tangents[1]


class _Jax:
    """Functions of jax.numpy by the names of computations."""

    erf, erfc = staticmethod(special.erf), staticmethod(special.erfc)
    gamma, lgamma = staticmethod(special.gamma), staticmethod(special.gammaln)
    logaddexp = staticmethod(_logaddexp)

    def __getattr__(self, does: str) -> Any:
        does = does.removeprefix("whole_")
        if does in ("max", "min"):
            both = jnp.maximum if does == "max" else jnp.minimum
            return lambda *xs: functools.reduce(both, xs)
        return getattr(jnp, does)


_jax = Framework(jax.Array, _Jax())


# --- Scans and reductions.


class Scan(NamedTuple):
    """A scan along an axis, or with offsets a segmented scan of one axis."""

    name: str
    init: Any  # None or a number
    derived: Derived
    dtypes: tuple[np.dtype[Any], ...]  # of the accumulators
    axis: int = -1
    reverse: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Options of calls with the accumulators: of tuples they are those of the arrays."""
        count = len(self.dtypes)
        return {"dtype": self.dtypes[0]} if count == 1 else {"count": count}

    def __call__(self, xs: Arrays, *offsets: Any) -> Any:
        def forward(*arrays: Any) -> Any:
            options = {} if offsets else {"axis": self.axis, "reverse": self.reverse}
            results = [(x.shape, n) for x, n in zip(arrays, self.dtypes, strict=False)]
            args = self.init, self.derived.op
            return call(self.name, arrays, results, *args, **self.options, **options)

        return differentiable(forward, self._pull, *xs, *offsets)

    def _pull(self, arrays: Any, ys: Any, g: Any) -> Any:
        count, outside = len(ys), False
        xs, offsets = arrays[:count], arrays[count:]
        axis, reverse = self.axis, self.reverse
        if count > MOST_NUMBERS:
            raise TypeError(
                f"{self.name}: elements of {count} numbers have no gradient, only those of one or "
                "two; apply jax.lax.stop_gradient"
            )
        if offsets:
            begun, heads = starts(offsets[0], xs[0].shape[0])
            outside = (begun == 0) | (begun >= offsets[0].shape[0])
        elif self.derived.name == "add":
            return self._replace(init=0, reverse=not reverse)(g)
        else:
            heads = first_of(ys[0].shape, axis, reverse)
        # Integers have no gradient: their derivatives are zero.
        are_real, dtype = [jnp.issubdtype(y.dtype, jnp.inexact) for y in ys], jnp.result_type(*ys)
        g = [each.astype(dtype) if is_real else jnp.zeros(y.shape, dtype)
             for y, each, is_real in zip(ys, g, are_real, strict=True)]  # fmt: skip
        # Elements outside of segments are copied, and so are first ones without init.
        first, copied = heads | outside, outside
        if "exclusive" in self.name:
            before = ys
            g = [jnp.where(outside, x, shifted(jnp.where(first, 0, x), axis, not reverse))
                 for x in g]  # fmt: skip
        else:
            before = [shifted(y, axis, reverse) for y in ys]
            if self.init is None:
                copied = first
            else:
                before = [jnp.where(heads, jnp.asarray(init, y.dtype), y)
                          for init, y in zip(numbers(self.init), before, strict=True)]  # fmt: skip
        xs = [x.astype(dtype if is_real else y.dtype)
              for x, y, is_real in zip(xs, ys, are_real, strict=True)]  # fmt: skip
        left = [jnp.where(copied, x, y) for x, y in zip(xs, before, strict=True)]
        p, q = (
            [[jnp.where(are_real[i] and are_real[k], x, 0) for k, x in enumerate(row)]
             for i, row in enumerate(side)]
            for side in self.derived.at(left, xs)
        )  # fmt: skip
        a = [shifted(jnp.where(first, 0, x), axis, not reverse).astype(dtype) for row in p
             for x in row]  # fmt: skip
        h = recurrence(a, g, axis, not reverse)
        gx = [sum(jnp.where(copied, i == k, q[i][k]).astype(dtype) * h[i] for i in range(count))
              for k in range(count)]  # fmt: skip
        return *gx, *[None] * len(offsets)


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
    x = x.astype(jnp.uint8) if x.dtype == bool else x
    is_whole = jnp.issubdtype(x.dtype, jnp.integer)
    if isinstance(bins, jax.Array):
        edges = bins
        if is_whole and jnp.issubdtype(bins.dtype, jnp.inexact):
            limits = jnp.iinfo(x.dtype)
            has_them = bins < limits.max + 1.0
            least = jnp.ceil(jnp.maximum(bins, float(limits.min)))
            most = np.array(limits.max, x.dtype)
            edges = jnp.where(has_them, jnp.where(has_them, least, 0).astype(x.dtype), most)
        is_last = (x == edges[-1]) & (bins[-1] >= edges[-1])
        return jnp.where(is_last, len(bins) - 2, jnp.searchsorted(edges, x, side="right") - 1)
    if is_whole:
        edges = _least_integers(np.asarray(bins).tolist(), np.iinfo(x.dtype))
    else:  # the least values of x that reach the edges
        wide = np.array(bins, np.float64)
        edges = wide.astype(x.dtype)
        edges = np.where(edges < wide, np.nextafter(edges, edges.dtype.type(np.inf)), edges)
        if edges[-1] == wide[-1]:  # the last bin has its end
            found = jnp.searchsorted(edges, x, side="right") - 1
            return jnp.where(x == edges[-1], len(wide) - 2, found)
    return jnp.searchsorted(edges, x, side="right") - 1


def _least_integers(edges: list[Any], limits: Any) -> Any:
    """Return the least integer of each bin and the one behind the last, if the dtype has them."""
    low, high = int(limits.min), int(limits.max)
    found = [math.ceil(max(edge, low)) for edge in edges[:-1] if edge <= high]
    if edges[-1] < high:
        found.append(math.floor(max(edges[-1], low - 1)) + 1)
    return np.array(found, limits.dtype)
