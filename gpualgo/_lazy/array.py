"""Lazy arrays: their elements' expression, the arrays that it reads, and their shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import NumPy, NumPyOnCPU, View
from gpualgo._base import dtypes, records
from gpualgo._base.errors import CompileError
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import LAZY, expression
from gpualgo._lazy.conversions import cast
from gpualgo._lazy.expression import Item, Node, Value
from gpualgo._lazy.hooks import hooks
from gpualgo._lazy.leaf import Array, Leaf, Place, whole_shape
from gpualgo._lazy.operators import Operators
from gpualgo._operators.operator import Operator, hot_key
from gpualgo._pipeline import checks, refusals, results, settled

_SHOWN = 80  # characters of what is told of how one came to be


class LazyArray(Operators):
    """An array that is computed where it is read: what `gpualgo.lazy` makes.

    It goes wherever an input goes, and takes no memory. Python's operators and NumPy's elementwise
    functions give lazy arrays again; ``numpy.asarray`` and `gpualgo.copy` make it real. Arrays in
    it are read when it is; numbers, and what functions capture of them, are those of the moment
    when it was made.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
        Of elements that are tuples a structured one.
    """

    __slots__ = (
        "__weakref__", "_dtype", "_function", "_views", "forms", "is_kept", "leaves", "marked",
        "node", "shape", "text",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], node: Node, leaves: Sequence[Leaf], text: str,
        forms: tuple[Form, ...] = (),
    ) -> None:  # fmt: skip
        """`leaves` have the shape, there is one at least. `text` says how it came to be.

        `forms` are of the tuples that it was made of: elements with the same fields are such.
        """
        if len(shape) > checks.MAX_DIMS:
            raise ValueError(
                f"a lazy array has at most {checks.MAX_DIMS} dimensions, not {len(shape)}; reshape "
                "it to fewer"
            )
        self.shape, self.node, self.forms = shape, node, forms
        self.text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        self.leaves = tuple(leaves)
        self._function: Any = None
        self._views: tuple[View, ...] | None = None
        self._dtype: np.dtype[Any] | None = None
        self.is_kept = False  # its function is the package's own, and one of many calls
        self.marked: Any = None  # how selections of it go, by an array of bool

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What an element is; compiling its function may be needed to find out."""
        if self._dtype is None:
            self._dtype = self._plain_dtype()
        if self._dtype is None:
            self._dtype = self._compiled_dtype()
        return self._dtype

    def _compiled_dtype(self) -> np.dtype[Any]:
        """Return what its function gives; numbers whose values that depends on are compiled in."""
        op = Operator(self.function)
        hot = hot_key(op)
        try:
            found = op.as_of(hot, "lazy")
            return results.dtype_of(found, self.arguments, None, self.place[0], "lazy")
        except (TypeError, CompileError) as error:
            with settled.retried(op, hot, error) as is_another:
                if is_another:
                    return self._compiled_dtype()
            refusals.name(error, op, "lazy")
            raise

    def _plain_dtype(self) -> np.dtype[Any] | None:
        """Return the dtype where no function tells it."""
        if isinstance(self.node, expression.Leaf):
            return self.arguments[self.node.index]
        if isinstance(self.node, Value) and isinstance(self.node.value, np.generic):
            return np.dtype(self.node.value.dtype)
        return None

    @property
    def form(self) -> Form | None:
        """How elements are built that are tuples."""
        dtype = self.dtype
        return forms.form_of(dtype.names or (), self.forms) if dtype.names else None

    def __repr__(self) -> str:
        dtype = self._dtype or self._plain_dtype()
        shown = "" if dtype is None else f", dtype={records.shown(dtype)}"
        return f"LazyArray({self.text}, shape={self.shape}{shown})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a lazy array without axes")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Make it real, for NumPy; what reads arrays of a GPU stays there."""
        if self.place[0] != CPU:
            raise TypeError(
                "a lazy array that reads arrays of a GPU does not become NumPy's unasked; "
                "use gpualgo.copy(x), whose result is in the library of the arrays"
            )
        if copy is False:
            raise ValueError("a lazy array has no memory that a NumPy array could share")
        found = hooks.copy(self)
        made: Array = np.asarray(found) if not isinstance(found, tuple) else self._records(found)
        return made if dtype is None else made.astype(dtype, copy=False)

    def _records(self, found: tuple[Any, ...]) -> Array:
        """Return the arrays of tuples' items as the one array that NumPy has for them."""
        made = np.empty(self.shape, self.dtype)
        for name, item in zip(self.dtype.names or (), _leaves_of(found), strict=True):
            made[name] = item
        return made

    # What algorithms take.

    @property
    def function(self) -> Any:
        """The function of its leaves' numbers that computes an element."""
        if self._function is None:
            self._function = expression.function_of(self.node, len(self.leaves))
        return self._function

    @property
    def place(self) -> tuple[int, Any]:
        """The device and the library of what it reads."""
        device, library = self.wish
        return device, NumPy if library is None else library

    @property
    def wish(self) -> Place:
        """The same, without a library where nothing that it reads has one."""
        found: Place = (CPU, None)
        is_read = False
        for one in self.leaves:
            if one.library is NumPyOnCPU:
                return one.device, one.library
            if one.library is not None and not is_read:
                is_read = not one.is_position
                if is_read or found[1] is None:
                    found = one.device, one.library
        return found

    @property
    def reads_arrays(self) -> bool:
        """Whether it reads an array: then it is computed where that lies."""
        return not all(one.is_position for one in self.leaves)

    @property
    def views(self) -> tuple[View, ...]:
        """The arrays that it reads, positions among them, as algorithms take arrays."""
        if self._views is None:
            device, library = self.place
            self._views = tuple([one.view(device, library) for one in self.leaves])
        return self._views

    @property
    def arguments(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the numbers that its function takes."""
        return tuple([records.number_of(one.dtype) for one in self.leaves])

    # Other arrays of the same elements.

    def rearranged(self, change: Callable[[Array], Array], text: str) -> LazyArray:
        """Return it with all that it reads sliced or turned alike."""
        arrays = [change(one.array) for one in self.leaves]
        leaves = [one.with_array(a) for one, a in zip(self.leaves, arrays, strict=True)]
        return LazyArray(arrays[0].shape, self.node, leaves, text, self.forms)

    def __getitem__(self, index: Any) -> LazyArray:
        """Slice it by integers, slices, ``...`` and ``None``, or take a field by its name."""
        if isinstance(index, str):
            return self._field(index)
        given = index if isinstance(index, tuple) else (index,)
        for one in given:
            is_plain = one is None or one is Ellipsis or isinstance(one, slice)
            if not is_plain and (isinstance(one, (bool, np.bool_)) or not _is_integer(one)):
                raise TypeError(
                    f"a lazy array is indexed by integers, slices, ... and None, not by "
                    f"{type(one).__name__}; use gpualgo.lazy.take(x, indices)"
                )
        if Ellipsis not in [one for one in given if one is Ellipsis]:
            given = (*given, ...)  # of which NumPy makes an array, whatever is left
        shown = ", ".join(map(_shown_index, given if index is given else given[:-1]))
        return self.rearranged(lambda array: array[given], f"{self.text}[{shown}]")

    def _field(self, name: str) -> LazyArray:
        names = self.dtype.names or ()
        keys = list(dict.fromkeys(one.partition(".")[0] for one in names))
        if name not in keys:
            has = f"fields {', '.join(keys)}" if keys else "no fields"
            raise KeyError(f"a lazy array of dtype {self.dtype} has {has}, not {name!r}")
        node = Item(keys.index(name), self.node)
        return LazyArray(self.shape, node, self.leaves, f"{self.text}[{name!r}]", self.forms)

    def reshape(self, *shape: Any) -> LazyArray:
        """Return it in another shape of as many elements; one extent may be -1."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            (shape,) = shape
        extents = tuple([checks.integer(n, "an extent", "reshape") for n in shape])
        wanted = whole_shape(extents, self.size, self.shape)
        made: LazyArray = hooks.reshaped(self, wanted, f"{self.text}.reshape{wanted}")
        return made

    def ravel(self) -> LazyArray:
        """Return it with one axis, in C order."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> LazyArray:
        """Return it with its axes in another order, without `axes` in the reverse one."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            (axes,) = axes
        order = axes or None
        shown = "" if order is None else ", ".join(map(str, order))
        return self.rearranged(lambda a: a.transpose(order), f"{self.text}.transpose({shown})")

    @property
    def T(self) -> LazyArray:
        """The array with its axes in the reverse order."""
        return self.rearranged(lambda array: array.T, f"{self.text}.T")

    def astype(self, dtype: Any) -> LazyArray:
        """Return it converted to a dtype, as NumPy converts numbers; tuples number by number."""
        wanted = dtypes.as_dtype(dtype, "astype")
        node = cast(self.node, self.dtype, wanted, "astype")
        text = f"{self.text}.astype({wanted})"
        return LazyArray(self.shape, node, self.leaves, text, self.forms)

    def broadcast_to(self, shape: tuple[int, ...]) -> LazyArray:
        """Return it broadcast to a shape."""
        if shape == self.shape:
            return self
        leaves = [one.broadcast_to(shape) for one in self.leaves]
        return LazyArray(shape, self.node, leaves, self.text, self.forms)


def _leaves_of(found: Any) -> Iterator[Any]:
    items = found if isinstance(found, tuple) else [found[name] for name in found.dtype.names or ()]
    if not items:
        yield found
    for item in items:
        yield from _leaves_of(item)


def _is_integer(value: Any) -> bool:
    is_like_one = hasattr(type(value), "__index__") and not hasattr(value, "shape")
    return is_like_one or isinstance(value, np.integer)


def _shown_index(one: Any) -> str:
    if isinstance(one, slice):
        parts = ["" if part is None else str(part) for part in (one.start, one.stop, one.step)]
        return ":".join(parts if parts[2] else parts[:2])
    return "..." if one is Ellipsis else str(one)


LAZY.add(LazyArray)


def is_number(x: Any) -> bool:
    """Return whether an argument is one number."""
    return isinstance(x, (bool, int, float, complex, np.generic)) and not isinstance(x, np.void)
