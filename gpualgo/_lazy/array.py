"""Lazy arrays: their elements' expression, the arrays that it reads, and their shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import NumPy, View, view_of
from gpualgo._base import dtypes, records
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, leaf
from gpualgo._lazy.expression import Call, Group, Item, Node, Value
from gpualgo._lazy.hooks import hooks
from gpualgo._lazy.leaf import Array, Leaf
from gpualgo._lazy.operators import Operators
from gpualgo._operators.frozen import frozen
from gpualgo._operators.markers import strong
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks, elements, inputs, results

MAX_LEAVES = 16  # of a transformation; others take elements of 8 numbers


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
        "__weakref__", "_dtype", "_function", "_views", "forms", "leaves", "node", "shape", "text",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], node: Node, leaves: Sequence[Leaf], text: str,
        forms: tuple[Form, ...] = (),
    ) -> None:  # fmt: skip
        """`leaves` have the shape, there is one at least. `text` says how it came to be.

        `forms` are of the tuples that it was made of: elements with the same fields are such.
        """
        self.shape, self.node, self.text, self.forms = shape, node, text, forms
        self.leaves = tuple(leaves)
        self._function: Any = None
        self._views: tuple[View, ...] | None = None
        self._dtype: np.dtype[Any] | None = None

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
            op, (device, _) = Operator(self.function), self.place
            self._dtype = results.dtype_of(op, self.arguments, None, device, "lazy")
        return self._dtype

    @property
    def form(self) -> Form | None:
        """How elements are built that are tuples."""
        dtype = self.dtype
        return forms.form_of(dtype.names or (), self.forms) if dtype.names else None

    def __repr__(self) -> str:
        return f"LazyArray({self.text}, shape={self.shape})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a lazy array without axes")
        return self.shape[0]

    __iter__ = None  # element after element each would be a call; make it real first

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Make it real, for NumPy; what reads arrays of a GPU stays there."""
        if self.place[0] != CPU:
            raise TypeError(
                "a lazy array that reads arrays of a GPU does not become NumPy's unasked; "
                "use gpualgo.copy(x), whose result is in the library of the arrays"
            )
        if copy is False:
            raise ValueError("a lazy array has no memory that a NumPy array could share")
        made: Array = np.asarray(hooks.copy(self))
        return made if dtype is None else made.astype(dtype, copy=False)

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
        for one in self.leaves:
            if not one.is_position:
                return one.device, one.library
        device = self.leaves[0].device
        if device == CPU:
            return CPU, NumPy
        from gpualgo._arrays import protocols

        return device, protocols.at(0)

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
        wanted = _whole_shape(extents, self.size, self.shape)
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
        node = _cast(self.node, self.dtype, wanted, "astype")
        text = f"{self.text}.astype({wanted})"
        return LazyArray(self.shape, node, self.leaves, text, self.forms)

    def broadcast_to(self, shape: tuple[int, ...]) -> LazyArray:
        """Return it broadcast to a shape."""
        if shape == self.shape:
            return self
        leaves = [one.broadcast_to(shape) for one in self.leaves]
        return LazyArray(shape, self.node, leaves, self.text, self.forms)


def _is_integer(value: Any) -> bool:
    return (hasattr(type(value), "__index__") and not hasattr(value, "shape")) or isinstance(
        value, np.integer
    )


def _shown_index(one: Any) -> str:
    if isinstance(one, slice):
        parts = ["" if part is None else str(part) for part in (one.start, one.stop, one.step)]
        return ":".join(parts if parts[2] else parts[:2])
    return "..." if one is Ellipsis else str(one)


def _whole_shape(extents: tuple[int, ...], size: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without -1 that holds so many elements."""
    known = math.prod(n for n in extents if n != -1)
    if extents.count(-1) == 1 and known and size % known == 0:
        extents = tuple(size // known if n == -1 else n for n in extents)
    if -1 in extents or any(n < 0 for n in extents) or math.prod(extents) != size:
        raise ValueError(
            f"reshape: a lazy array of shape {shape} has {size} elements and cannot have shape "
            f"{extents}"
        )
    return extents


# --- of several others ------------------------------------------------------------------------


def is_lazy(x: Any) -> bool:
    """Return whether an argument is computed where it is read, or a tuple that holds such."""
    kind = type(x)
    if kind is LazyArray:
        return True
    return isinstance(x, tuple) and any(map(is_lazy, x))


def is_number(x: Any) -> bool:
    """Return whether an argument is one number."""
    return isinstance(x, (bool, int, float, complex, np.generic)) and not isinstance(x, np.void)


class _Merged:
    """Leaves of several lazy arrays, each of them once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.leaves: list[Leaf] = []
        self._known: dict[Any, int] = {}

    def add(self, one: Leaf) -> expression.Leaf:
        """Return the node of a leaf."""
        one = one.broadcast_to(self.shape)
        index = self._known.setdefault(one.place, len(self.leaves))
        if index == len(self.leaves):
            self.leaves.append(one)
        return expression.Leaf(index)

    def node_of(self, part: Part) -> Node:
        """Return the node of an argument."""
        if isinstance(part, LazyArray):
            nodes = [self.add(one) for one in part.leaves]
            return expression.with_leaves(part.node, lambda index: nodes[index])
        if isinstance(part, _Tuple):
            return Group(part.cls, [self.node_of(item) for item in part.items])
        return Value(part)


class _Tuple:
    """An argument that is a tuple, and how it is built."""

    def __init__(self, form: Form, items: Sequence[Part]) -> None:
        self.form, self.items = form, items
        self.cls = None if form.cls is tuple else records.class_of(form.keys)


Part = Any  # a LazyArray, a _Tuple or a number


def parted(x: Any, where: str, depth: int = 0) -> Part:
    """Return an argument as a lazy array, a number, or a tuple of them."""
    if isinstance(x, LazyArray) or is_number(x):
        if isinstance(x, np.generic):
            dtypes.check(x.dtype, where)
        return x
    if isinstance(x, tuple):
        if depth > 1:
            raise TypeError(f"{where} is a tuple within a tuple within one; one level is possible")
        if not x:
            raise TypeError(f"{where} is an empty tuple; pass at least one array in it")
        items = [parted(_typed(item), f"{where}[{i}]", depth + 1) for i, item in enumerate(x)]
        cls = type(x) if hasattr(x, "_fields") else tuple
        inner = [item.form if isinstance(item, _Tuple) else None for item in items]
        return _Tuple(Form(cls, tuple(inner)), items)
    view = view_of(x, where)
    if view.dtype.names is not None:
        found, form = forms.taken_apart(view.owner, where)
        items = [_of_view(view_of(array, name), name) for array, name in found]
        return _Tuple(form, items)
    return _of_view(view, where)


def _typed(item: Any) -> Any:
    """Return an item of a tuple, a number of Python's as an array has it."""
    return np.array(item)[()] if isinstance(item, (bool, int, float, complex)) else item


def _of_view(view: View, where: str) -> LazyArray:
    checks.dimensions(view, where.rpartition(": ")[2], where.partition(":")[0])
    checks.element(view, where.rpartition(": ")[2], where.partition(":")[0])
    checks.aligned(view, where.rpartition(": ")[2], where.partition(":")[0]) if (
        view.device != CPU
    ) else None
    found = leaf.of_view(view)
    text = f"{getattr(view.library, 'name', 'array')} {view.dtype}"
    return LazyArray(view.shape, expression.Leaf(0), [found], text)


def combined(parts: Sequence[Part], where: str, node: Callable[[list[Node]], Node], text: str
) -> LazyArray:  # fmt: skip
    """Return what a node makes of several arguments, broadcast against each other."""
    arrays = list(_arrays_of(parts))
    if not arrays:
        raise TypeError(f"{where}: all arguments are numbers; pass at least one array")
    shape = inputs.broadcast([one.shape for one in arrays], where)
    merged = _Merged(shape)
    made = node([merged.node_of(part) for part in parts])
    if len(merged.leaves) > MAX_LEAVES:
        raise TypeError(
            f"{where}: it would read {len(merged.leaves)} arrays, at most {MAX_LEAVES} are "
            "possible; make a part of it real with gpualgo.copy"
        )
    known = dict.fromkeys(form for part in parts for form in _forms_of(part))
    used = [one for one in merged.leaves if not one.is_position] or merged.leaves
    _check_places(used, where)
    return LazyArray(shape, made, merged.leaves, text, tuple(known))


def _forms_of(part: Part) -> tuple[Form, ...]:
    if isinstance(part, LazyArray):
        return part.forms
    return (part.form,) if isinstance(part, _Tuple) else ()


def _check_places(leaves: Sequence[Leaf], where: str) -> None:
    views = [
        View(0, (), (), one.dtype, one.device, one.library or NumPy, True, None) for one in leaves
    ]
    checks.same_place(views, where)


def _arrays_of(parts: Sequence[Part]) -> Any:
    for part in parts:
        if isinstance(part, LazyArray):
            yield part
        elif isinstance(part, _Tuple):
            yield from _arrays_of(part.items)


def zipped(x: Any, where: str) -> LazyArray:
    """Return an argument as one lazy array: a tuple's elements are tuples."""
    part = parted(x, where)
    if isinstance(part, LazyArray):
        return part
    return combined([part], where, lambda nodes: nodes[0], "a tuple")


def applied(op: Any, arguments: Sequence[Any], where: str, dtype: Any = None) -> LazyArray:
    """Return what an operator makes of arguments, element by element."""
    found = as_operator(op, where, len(arguments))
    fn = frozen(found.fn)
    parts = [parted(x, f"{where}: an argument") for x in arguments]
    shown = ", ".join(part.text if isinstance(part, LazyArray) else _shown(part) for part in parts)
    text = f"{_name_of(found.fn)}({shown})"
    made = combined(parts, where, lambda nodes: Call(strong, Call(fn, *nodes)), text)
    if dtype is None:
        return made
    own = made.dtype
    wanted = elements.wanted_of(own, dtype, where) if _is_tuple_dtype(dtype) else None
    if wanted is None:
        one = dtypes.as_dtype(dtype, where)
        wanted = records.with_leaves(own, [one] * len(records.leaves(own)))
    for source, target in zip(records.leaves(own), records.leaves(wanted), strict=True):
        if not dtypes.can_cast(source, target):
            raise TypeError(
                f"{where}: op returns {source}, which does not fit {target}; pass "
                f"dtype=np.{source} or convert inside op"
            )
    node = _cast_to(made.node, own, wanted)
    return LazyArray(made.shape, node, made.leaves, text, made.forms)


def _is_tuple_dtype(dtype: Any) -> bool:
    return isinstance(dtype, tuple) or getattr(dtype, "names", None) is not None


def _shown(part: Part) -> str:
    return "(…)" if isinstance(part, _Tuple) else repr(part)


def _name_of(fn: Any) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def _cast(node: Node, own: np.dtype[Any], one: np.dtype[Any], where: str) -> Node:
    """Return a node whose numbers are converted to one dtype."""
    for number in records.leaves(own):
        if dtypes.kind(number) == "c" and dtypes.kind(one) not in "cb":
            raise TypeError(
                f"{where}: {number} does not become {one} without losing a part; use x.real"
            )
    return _cast_to(node, own, records.with_leaves(own, [one] * len(records.leaves(own))))


def _cast_to(node: Node, own: np.dtype[Any], wanted: np.dtype[Any]) -> Node:
    if own == wanted and records.leaves(own) == records.leaves(wanted):
        return node
    if not records.is_record(own):
        return Call(_constructor(wanted), node)
    pairs = iter(zip(records.leaves(own), records.leaves(wanted), strict=True))
    return _cast_form(node, forms.form_of(own.names or ()), pairs)


def _cast_form(node: Node, form: Form, pairs: Any) -> Node:
    items: list[Node] = []
    for i, inner in enumerate(form.items):
        item = Item(i, node)
        if inner is not None:
            items.append(_cast_form(item, inner, pairs))
        else:
            source, target = next(pairs)
            items.append(item if source == target else Call(_constructor(target), item))
    return Group(None if form.cls is tuple else form.cls, items)


def _constructor(dtype: np.dtype[Any]) -> Any:
    return np.bool_ if dtype == np.bool_ else dtype.type
