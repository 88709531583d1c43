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

from gpualgo._api.derivatives import Framework, numbers
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
        are_inexact = list(map(framework.is_inexact, arrays))
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


class _Jax(Framework):
    """Functions of jax.numpy by the names of computations."""

    name, array, module, vjp = "jax", jax.Array, jnp, staticmethod(jax.vjp)
    detach = "apply jax.lax.stop_gradient"
    erf, erfc = staticmethod(special.erf), staticmethod(special.erfc)
    gamma, lgamma = staticmethod(special.gamma), staticmethod(special.gammaln)
    logaddexp = staticmethod(_logaddexp)

    def __getattr__(self, does: str) -> Any:
        does = does.removeprefix("whole_")
        if does in ("max", "min"):
            both = jnp.maximum if does == "max" else jnp.minimum
            return lambda *xs: functools.reduce(both, xs)
        return getattr(jnp, does)

    def is_inexact(self, x: Any) -> bool:
        return bool(jnp.issubdtype(x.dtype, jnp.inexact))

    def is_complex(self, dtype: Any) -> bool:
        return bool(jnp.issubdtype(dtype, jnp.complexfloating))

    def typed(self, x: Any, like: Any, dtype: Any) -> Any:
        return jnp.broadcast_to(jnp.asarray(x).astype(dtype), like.shape)


framework = _Jax()


# --- Scans and reductions.


class Scan(NamedTuple):
    """A scan along an axis, or with offsets a segmented scan of one axis."""

    where: str  # the public function
    name: str  # what is called
    init: Any  # None or a number
    op: Operator
    vjp: Any  # None to derive it
    dtypes: tuple[np.dtype[Any], ...]  # of the accumulators
    axis: int = -1
    reverse: bool = False

    @property
    def known(self) -> str | None:
        """Name of an operator whose derivatives are known."""
        return self.op.name if self.vjp is None else None

    @property
    def options(self) -> dict[str, Any]:
        """Options of calls with the accumulators: of tuples they are those of the arrays."""
        count = len(self.dtypes)
        return {"dtype": self.dtypes[0]} if count == 1 else {"count": count}

    @property
    def is_sum_or_extreme(self) -> bool:
        return len(self.dtypes) == 1 and self.known in ("add", "maximum", "minimum")

    def shared(self, x: Any, y: Any, g: Any, total: Callable[[Any], Any]) -> Any:
        """Return the cotangent of x of a reduction that is a sum, a maximum or a minimum.

        `y` and `g` are each element's result and its cotangent; `total` sums over the elements of a
        result. Equal extremes share the cotangent equally.
        """
        if self.known == "add":
            return jnp.broadcast_to(g, x.shape)
        is_extreme = x.astype(y.dtype) == y
        wide = jnp.promote_types(g.dtype, jnp.float32)  # half precision counts to 256 only
        count = total(is_extreme.astype(wide))
        return jnp.where(is_extreme, g.astype(wide) / jnp.maximum(count, 1), 0)

    def __call__(self, xs: Arrays, *offsets: Any) -> Any:
        def forward(*arrays: Any) -> Any:
            options = {} if offsets else {"axis": self.axis, "reverse": self.reverse}
            results = [(x.shape, n) for x, n in zip(arrays, self.dtypes, strict=False)]
            args = self.init, self.op
            return call(self.name, arrays, results, *args, **self.options, **options)

        return differentiable(forward, self._pull, *xs, *offsets)

    def _pull(self, arrays: Any, ys: Any, g: Any) -> Any:
        count, outside = len(ys), False
        xs, offsets = arrays[:count], arrays[count:]
        axis, reverse = self.axis, self.reverse
        if offsets:
            begun, heads = starts(offsets[0], xs[0].shape[0])
            outside = (begun == 0) | (begun >= offsets[0].shape[0])
        elif self.known == "add":
            return self._replace(init=0, reverse=not reverse)(g)
        else:
            heads = first_of(ys[0].shape, axis, reverse)
        dtype = jnp.result_type(*ys)
        g = [each.astype(dtype) if framework.is_inexact(y) else jnp.zeros(y.shape, dtype)
             for y, each in zip(ys, g, strict=True)]  # fmt: skip
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
        xs = [x.astype(y.dtype) for x, y in zip(xs, ys, strict=True)]
        left = [jnp.where(copied, x, y) for x, y in zip(xs, before, strict=True)]
        p, q = framework.partials(self.op.fn, self.vjp, left, xs, self.where)
        a = [shifted(jnp.where(first, 0, x), axis, not reverse) for row in p for x in row]
        h = recurrence(a, g, axis, not reverse)
        gx = [sum(jnp.where(copied, i == k, q[i][k]) * h[i] for i in range(count))
              for k in range(count)]  # fmt: skip
        return *gx, *[None] * len(offsets)


def starts(offsets: Any, n: int) -> tuple[Any, Any]:
    """Return how many segments have begun at each of n elements, and whether one begins there."""
    marks = jnp.zeros(n, int).at[jnp.clip(offsets.astype(int), 0, n)].add(1, mode="drop")
    return marks.cumsum(), marks > 0


# --- Bins of histograms.


def pulled_weights(g: Any, x: Any, bins: Any, range: Any) -> Any:
    """Return the cotangent of a histogram's weights."""
    if isinstance(bins, int):
        if range is None:
            raise ValueError(
                "histogram: the gradient of weights in bins of equal width needs range="
            )
        bins = np.histogram_bin_edges(np.empty(0, x.dtype), bins, range)
    is_whole = not framework.is_inexact(x)
    if is_whole and x.dtype.itemsize < 4:  # edges may be beyond its limits
        x = x.astype(jnp.int32)
    edges, last, reached = bins, bins[-1], None
    if isinstance(bins, jax.Array):
        if is_whole and framework.is_inexact(bins):
            edges, reached = framework.whole_edges(bins, x.dtype)
    elif is_whole:
        edges, last = _least_integers(np.asarray(bins).tolist(), np.iinfo(x.dtype)), -np.inf
        if not len(edges):  # no integer reaches the first bin
            return jnp.zeros(x.shape, g.dtype)
    else:
        wide = np.array(bins, np.float64)
        edges = wide.astype(x.dtype)
        edges = np.where(edges < wide, np.nextafter(edges, edges.dtype.type(np.inf)), edges)
        last = wide[-1]
    return framework.pulled_weights(g, x, edges, last, reached)


def _least_integers(edges: list[Any], limits: Any) -> Any:
    """Return the least integer of each bin and the one behind the last, if the dtype has them."""
    low, high = int(limits.min), int(limits.max)
    found = [math.ceil(max(edge, low)) for edge in edges[:-1] if edge <= high]
    if edges[-1] < high:
        found.append(math.floor(max(edges[-1], low - 1)) + 1)
    return np.array(found, limits.dtype)
