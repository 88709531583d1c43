"""The class LazyArray: an expression graph, the arrays that it reads, and a shape."""

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
from gpualgo._base.strides import full_shape
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import LAZY, expression, hooks
from gpualgo._lazy.expression import Array, InputArray, Item, Node, Place, cast
from gpualgo._lazy.operators import Operators
from gpualgo._operators.operator import Operator, operator_key, retried
from gpualgo._pipeline import checks, outputs

_MAX_TEXT = 80  # most characters of an expression in repr


class LazyArray(Operators):
    """An array that is computed inside the kernel that reads it; returned by `gpualgo.lazy`.

    Every algorithm accepts it as an input; it takes no memory. Python's operators and NumPy's
    elementwise functions of it return lazy arrays. ``numpy.asarray`` and `gpualgo.copy` materialize
    it. Arrays in the expression are read when it is; scalars, and numbers that functions capture,
    are frozen when it is created.

    Attributes
    ----------
    shape : tuple of int
        The lengths of the axes.
    dtype : dtype
        The dtype of the elements; structured if they are tuples.
    """

    __slots__ = (
        "__weakref__", "_dtype", "_function", "_views", "forms", "is_kept", "leaves", "marked",
        "node", "shape", "text",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], node: Node, leaves: Sequence[InputArray], text: str,
        forms: tuple[Form, ...] = (),
    ) -> None:  # fmt: skip
        """`leaves` are one or more, all with the shape. `text` describes the expression.

        `forms` are the tuple structures of its inputs; elements with the same fields reuse them.
        """
        if len(shape) > checks.MAX_DIMS:
            raise ValueError(
                f"a lazy array has at most {checks.MAX_DIMS} dimensions, not {len(shape)}; reshape "
                "it to fewer"
            )
        self.shape, self.node, self.forms = shape, node, forms
        self.text = text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
        self.leaves = tuple(leaves)
        self._function: Any = None
        self._views: tuple[View, ...] | None = None
        self._dtype: np.dtype[Any] | None = None
        self.is_kept = False  # its function is the package's own and is reused by many calls
        self.marked: Any = None  # cached data for selections by a boolean array

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
        """The dtype of the elements; computing it may compile the function."""
        dtype = self._known_dtype()
        if dtype is None:
            dtype = self._dtype = self._compiled_dtype()
        return dtype

    def _compiled_dtype(self) -> np.dtype[Any]:
        """Return the function's result dtype; captured scalars become constants where needed."""
        op = Operator(self.function)
        op_key = operator_key(op)
        try:
            compiled = op.as_of(op_key, "lazy")
            return outputs.dtype_of(compiled, self.arguments, None, self.place[0], "lazy")
        except (TypeError, CompileError) as error:
            checks.name(error, op, "lazy")
            return retried(error, op, op_key, self._compiled_dtype)

    def _known_dtype(self) -> np.dtype[Any] | None:
        """Return the dtype if it is known without compiling, else None."""
        if self._dtype is None:
            self._dtype = self._plain_dtype()
        return self._dtype

    def _plain_dtype(self) -> np.dtype[Any] | None:
        what = self.node.what
        if self.node.kind == "leaf":
            return self.arguments[int(what)]
        is_number = self.node.kind == "value" and isinstance(what, np.generic)
        return np.dtype(what.dtype) if is_number else None

    @property
    def form(self) -> Form | None:
        dtype = self.dtype
        return forms.form_of(dtype.names or (), self.forms) if dtype.names else None

    def __repr__(self) -> str:
        dtype = self._known_dtype()
        shown = "" if dtype is None else f", dtype={records.shown(dtype)}"
        return f"LazyArray({self.text}, shape={self.shape}{shown})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a lazy array without axes")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Materialize it as a NumPy array; raise TypeError if it reads arrays on a GPU."""
        if self.place[0] != CPU:
            raise TypeError(
                "a lazy array that reads GPU arrays is not copied to the host "
                "implicitly; use gpualgo.copy(x), whose result is in the library of the arrays"
            )
        if copy is False:
            raise ValueError("a lazy array has no memory that a NumPy array could share")
        real = hooks.copy(self)
        array: Array = np.asarray(real) if not isinstance(real, tuple) else self._records(real)
        return array if dtype is None else array.astype(dtype, copy=False)

    def _records(self, items: tuple[Any, ...]) -> Array:
        array = np.empty(self.shape, self.dtype)
        for name, item in zip(self.dtype.names or (), _leaves_of(items), strict=True):
            array[name] = item
        return array

    # The interface for algorithms.

    @property
    def function(self) -> Any:
        """Function that computes an element from one number of each leaf."""
        if self._function is None:
            self._function = expression.function_of(self.node, len(self.leaves))
        return self._function

    @property
    def place(self) -> tuple[int, Any]:
        """Device and library on which it is computed."""
        device, library = self.wish
        return device, NumPy if library is None else library

    @property
    def wish(self) -> Place:
        """Device and library of its leaves; the library is None if no leaf has one."""
        place: Place = (CPU, None)
        is_read = False
        for leaf in self.leaves:
            if leaf.library is NumPyOnCPU:
                return leaf.device, leaf.library
            if leaf.library is not None and not is_read:
                is_read = not leaf.is_position
                if is_read or place[1] is None:
                    place = leaf.device, leaf.library
        return place

    @property
    def reads_arrays(self) -> bool:
        """Whether it reads an array, which then determines the device."""
        return not all(leaf.is_position for leaf in self.leaves)

    @property
    def views(self) -> tuple[View, ...]:
        if self._views is None:
            device, library = self.place
            self._views = tuple([leaf.view(device, library) for leaf in self.leaves])
        return self._views

    @property
    def arguments(self) -> tuple[np.dtype[Any], ...]:
        return tuple([records.operand_dtype(leaf.dtype) for leaf in self.leaves])

    # Views of the same elements.

    def rearranged(self, change: Callable[[Array], Array], text: str) -> LazyArray:
        arrays = [change(leaf.array) for leaf in self.leaves]
        leaves = [leaf.with_array(a) for leaf, a in zip(self.leaves, arrays, strict=True)]
        return LazyArray(arrays[0].shape, self.node, leaves, text, self.forms)

    def __getitem__(self, index: Any) -> LazyArray:
        """Return a part selected by integers, slices, ``...`` and ``None``, or a field by name."""
        if isinstance(index, str):
            return self._field(index)
        items = index if isinstance(index, tuple) else (index,)
        for item in items:
            is_plain = item is None or item is Ellipsis or isinstance(item, slice)
            if not is_plain and (isinstance(item, (bool, np.bool_)) or not _is_integer(item)):
                raise TypeError(
                    f"a lazy array is indexed by integers, slices, ... and None, not by "
                    f"{type(item).__name__}; use lazy.take(x, indices) or gpualgo.select(x, mask)"
                )
        if Ellipsis not in [item for item in items if item is Ellipsis]:
            items = (*items, ...)  # so that NumPy returns an array even for a full index
        shown = ", ".join(map(_index_text, items if index is items else items[:-1]))
        return self.rearranged(lambda array: array[items], f"{self.text}[{shown}]")

    def _field(self, name: str) -> LazyArray:
        names = self.dtype.names or ()
        keys = list(dict.fromkeys(name_path.partition(".")[0] for name_path in names))
        if name not in keys:
            has = f"fields {', '.join(keys)}" if keys else "no fields"
            raise KeyError(f"a lazy array of dtype {self.dtype} has {has}, not {name!r}")
        node = Item(keys.index(name), self.node)
        return LazyArray(self.shape, node, self.leaves, f"{self.text}[{name!r}]", self.forms)

    def reshape(self, *shape: Any) -> LazyArray:
        """Return it with another shape of the same size; one length may be -1."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            (shape,) = shape
        extents = tuple([checks.integer(n, "an extent", "reshape") for n in shape])
        wanted = full_shape(extents, self.size)
        result: LazyArray = hooks.reshaped(self, wanted, f"{self.text}.reshape{wanted}")
        return result

    def ravel(self) -> LazyArray:
        """Return it flattened in C order."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> LazyArray:
        """Return it with its axes permuted, by default reversed."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            (axes,) = axes
        order = axes or None
        shown = "" if order is None else ", ".join(map(str, order))
        return self.rearranged(lambda a: a.transpose(order), f"{self.text}.transpose({shown})")

    @property
    def T(self) -> LazyArray:
        """The array with its axes reversed."""
        return self.rearranged(lambda array: array.T, f"{self.text}.T")

    def astype(self, dtype: Any) -> LazyArray:
        """Return it converted to a dtype, as NumPy converts numbers; tuples field by field."""
        wanted = dtypes.as_dtype(dtype, "astype")
        node = cast(self.node, self.dtype, wanted, "astype")
        text = f"{self.text}.astype({wanted})"
        return LazyArray(self.shape, node, self.leaves, text, self.forms)

    def broadcast_to(self, shape: tuple[int, ...]) -> LazyArray:
        if shape == self.shape:
            return self
        pairs = zip(self.shape[::-1], shape[::-1], strict=False)
        if len(shape) < len(self.shape) or any(own not in (1, new) for own, new in pairs):
            raise ValueError(f"a lazy array of shape {self.shape} does not broadcast to {shape}")
        leaves = [leaf.broadcast_to(shape) for leaf in self.leaves]
        return LazyArray(shape, self.node, leaves, self.text, self.forms)


def _leaves_of(value: Any) -> Iterator[Any]:
    items = value if isinstance(value, tuple) else [value[name] for name in value.dtype.names or ()]
    if not items:
        yield value
    for item in items:
        yield from _leaves_of(item)


def _is_integer(value: Any) -> bool:
    is_like_one = hasattr(type(value), "__index__") and not hasattr(value, "shape")
    return is_like_one or isinstance(value, np.integer)


def _index_text(key: Any) -> str:
    if isinstance(key, slice):
        parts = ["" if part is None else str(part) for part in (key.start, key.stop, key.step)]
        return ":".join(parts if parts[2] else parts[:2])
    return "..." if key is Ellipsis else str(key)


LAZY.add(LazyArray)


def is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic)) and not isinstance(x, np.void)
