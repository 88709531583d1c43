"""Expression graphs of lazy arrays, and their translation into one Python function."""

from __future__ import annotations

import operator
import os
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import Interface, NumPy, View, address_of, strides_for
from gpualgo._base import dtypes, records
from gpualgo._base.memo import Memo
from gpualgo._base.strides import dense_strides
from gpualgo._base.strides import reshape as reshaped_strides
from gpualgo._driver.default_device import CPU
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import ELEMENT

# --- Leaves of lazy arrays: arrays that they read, and index arrays ("positions").
#
# Each is represented by a NumPy array for its address, shape and strides, so that NumPy computes
# slices and transpositions. Those of GPU arrays and positions must never be dereferenced.

Array = np.ndarray[Any, Any]


class InputArray(NamedTuple):
    """An array that a lazy array reads, in the lazy array's shape; or positions."""

    array: Array  # on a GPU and for positions only its address, shape and strides are used
    dtype: np.dtype[Any]
    device: int
    library: Any  # for positions None if they may be used with any arrays
    owner: Any

    @property
    def is_position(self) -> bool:
        return records.is_position(self.dtype)

    @property
    def address(self) -> int:
        """Address of its first element; for positions, the first index."""
        address = int(self.array.__array_interface__["data"][0])
        return address - records.ORIGIN if self.is_position else address

    def view(self, device: int, library: Any) -> View:
        """Return its view; positions get the device and library.

        Host arrays get the library, too: it determines where they are processed.
        """
        array, dtype = self.array, self.dtype
        if self.is_position and any(array.shape) and not any(array.strides):
            dtype = records.SHARED_POSITION
        if device == CPU:
            if self.is_position:
                array = _typed(array, dtype)
            return View(0, array.shape, array.strides, dtype, CPU, library, True, array)
        library = library if self.is_position else self.library
        return View(
            self.address, array.shape, array.strides, dtype, device, library, True, self.owner
        )

    def with_array(self, array: Array) -> InputArray:
        return self._replace(array=array)

    def broadcast_to(self, shape: tuple[int, ...]) -> InputArray:
        if self.array.shape == shape:
            return self
        view = NumPy.view(self.array)
        return self.with_array(as_strided(self.array, shape, strides_for(view, shape)))

    @property
    def place(self) -> tuple[Any, ...]:
        """Key that is equal for leaves with the same elements."""
        array = self.array
        return self.address, array.shape, array.strides, self.dtype, id(self.library)


def _typed(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return positions as an array of their dtype; its strides stay those of 1-byte elements."""
    address = array.__array_interface__["data"][0]
    return np.asarray(Interface(address, array.shape, array.strides, dtype.str))


def of_view(view: View) -> InputArray:
    if view.device == CPU:
        array = view.library.to_numpy(view.owner)
        return InputArray(array, view.dtype, CPU, view.library, view.owner)
    array = np.asarray(Interface(address_of(view), view.shape, view.strides))
    return InputArray(array, view.dtype, view.device, view.library, view.owner)


def within(
    view: View, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> InputArray:
    """Return the leaf of a part of an array that starts at an address."""
    dtype = view.dtype
    if view.device != CPU:
        array = np.asarray(Interface(address, shape, strides))
    else:
        typestr = dtype.str if dtype.isbuiltin == 1 else f"|V{dtype.itemsize}"
        array = np.asarray(Interface(address, shape, strides, typestr, owner=view.owner))
        array = array.view(dtype)
    return InputArray(array, dtype, view.device, view.library, view.owner)


Place = tuple[int, Any]
"""A device and a library; the library is None if other arrays determine both."""


def positions(
    shape: Sequence[int], dtype: np.dtype[Any] = records.POSITION, place: Place = (CPU, None),
    strides: tuple[int, ...] | None = None,
) -> InputArray:  # fmt: skip
    """Return an index leaf, by default 0, 1, … in C order."""
    strides = dense_strides(shape, 1) if strides is None else strides
    array = np.asarray(Interface(records.ORIGIN, tuple(shape), strides))
    return InputArray(array, dtype, *place, None)


def along(shape: Sequence[int], axis: int, place: Place = (CPU, None)) -> InputArray:
    """Return an index leaf whose elements are the indices along one axis."""
    strides = tuple(int(i == axis) for i in range(len(shape)))
    return positions(shape, records.POSITION, place, strides)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return a reshaped view, None if a copy would be needed."""
    try:
        strides = reshaped_strides(array.shape, array.strides, shape, array.itemsize)
    except ValueError:
        return None
    return as_strided(array, shape, strides)


class Node:
    """A step of an expression, by kind. `what` is of

    - a leaf, which is a number that is read or an index: its number among the lazy array's leaves
    - a value: a constant, or an array whose elements are looked up by index
    - a call: the function
    - a group, which is a tuple of other nodes' results: None, or the class of a namedtuple
    - an item: its index in a tuple.
    """

    __slots__ = ("arguments", "kind", "what")

    def __init__(self, kind: str, what: Any, *arguments: Node) -> None:
        self.kind, self.what, self.arguments = kind, what, arguments


Leaf, Value, Call, Group, Item = (
    partial(Node, kind) for kind in ("leaf", "value", "call", "group", "item")
)


def nodes_of(root: Node) -> list[Node]:
    """Return all nodes of a graph in topological order, arguments first."""
    ordered: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            ordered.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(argument, False) for argument in reversed(node.arguments)]
    return ordered


def picked(root: Node) -> tuple[int, ...] | None:
    """Return the leaf index of each field if elements are unchanged leaves, None if computed."""
    if root.kind == "leaf":
        return (root.what,)
    if root.kind != "group":
        return None
    parts = [picked(argument) for argument in root.arguments]
    return None if None in parts else tuple(index for part in parts for index in part or ())


Known: TypeAlias = dict[Any, Node]
"""Nodes by their function and arguments, for the elimination of common subexpressions."""


def with_leaves(
    root: Node, leaf: Callable[[int], Node] = Leaf, known: Known | None = None,
    value: Callable[[Any], Any] = lambda constant: constant,
) -> Node:  # fmt: skip
    """Return a graph with its leaves and values replaced, common subexpressions merged."""
    known = {} if known is None else known
    replaced: dict[int, Node] = {}
    leaves: dict[int, Node] = {}
    for node in nodes_of(root):
        if node.kind == "leaf":
            if node.what not in leaves:
                leaves[node.what] = leaf(node.what)
            replaced[id(node)] = leaves[node.what]
            continue
        what = value(node.what) if node.kind == "value" else node.what
        arguments = [replaced[id(argument)] for argument in node.arguments]
        key = (node.kind, id(what), *map(id, arguments))  # a small int has one id
        if key not in known:
            is_same = what is node.what and all(map(operator.is_, node.arguments, arguments))
            known[key] = node if is_same else Node(node.kind, what, *arguments)
        replaced[id(node)] = known[key]
    return replaced[id(root)]


class _Template:
    """The code shared by expressions of one structure that call functions with the same code."""

    __slots__ = ("bind", "code", "held", "last")

    def __init__(
        self, held: tuple[Any, ...], bind: Callable[..., types.FunctionType], code: types.CodeType
    ) -> None:
        self.held = held  # kept alive, as the memo's key contains their ids
        self.bind, self.code = bind, code
        # The last captured values and function, if they hold no array: compiled code of an
        # identical function is found quickly.
        self.last: tuple[list[Any], types.FunctionType] | None = None

    def function(self, captured: list[Any]) -> types.FunctionType:
        """Return the function that captures these values, possibly the same as before."""
        last = self.last
        if last is not None and all(map(operator.is_, last[0], captured)):
            return last[1]
        function = self.bound(*captured)
        if all(map(_holds_no_array, captured)):
            self.last = captured, function
        return function

    def bound(self, *captured: Any) -> types.FunctionType:
        function = self.bind(*captured)
        function.__code__ = self.code
        return function


_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_templates: Memo[_Template] = Memo(1 << 10)


def function_of(root: Node, num_fields: int) -> types.FunctionType:
    """Return the function that computes an element from one number of each leaf.

    Expressions of the same structure and functions share its code object, with which data about
    captured numbers is stored.
    """
    template, captured = template_of(root, num_fields)
    return template.function(captured)


def template_of(root: Node, num_fields: int) -> tuple[_Template, list[Any]]:
    """Return the template of an expression, and the values that its function captures."""
    steps, captured = _steps_of(root)
    functions = [getattr(python_function(fn), "__code__", fn) for fn in captured if callable(fn)]

    def make() -> _Template:
        scope: dict[str, Any] = {}
        text = _source_of(steps, num_fields, len(captured))
        exec(text, globals(), scope)  # of this module, whose functions' keys are kept
        code = scope["bind"](*captured).__code__.replace(co_filename="<lazy array>")
        user = next(filter(_is_foreign, functions), None)
        if user is not None:  # errors refer to the caller's function
            code = code.replace(co_filename=user.co_filename, co_firstlineno=user.co_firstlineno)
        return _Template(tuple(functions), scope["bind"], code)

    return _templates.made((num_fields, steps, *map(id, functions)), make), captured


def _holds_no_array(value: Any) -> bool:
    """Return whether a captured value holds no array, so that it may be kept alive."""
    function = python_function(value) if callable(value) else None
    if function is not None:
        captures = function.__closure__, function.__defaults__, function.__kwdefaults__
        return captures == (None, None, None)
    return callable(value) or isinstance(value, (int, float, complex, np.number, np.bool_))


def is_own(fn: Any) -> bool:
    """Return whether a function is the package's or NumPy's own and captures nothing."""
    function = python_function(fn)
    if function is None:
        return isinstance(fn, (np.ufunc, types.BuiltinFunctionType))
    return _holds_no_array(fn) and not _is_foreign(function.__code__)


def _is_foreign(code: Any) -> bool:
    return isinstance(code, types.CodeType) and not code.co_filename.startswith(_PACKAGE)


Steps: TypeAlias = tuple[tuple[Any, ...], ...]
"""The nodes of an expression in order: kind, `what` or its index among the values to capture, and
the numbers of its arguments. They are equal for expressions of one structure.
"""


def _steps_of(root: Node) -> tuple[Steps, list[Any]]:
    """Return the steps of an expression, and the values that its function captures."""
    numbers: dict[int, int] = {}
    captured: dict[int, tuple[int, Any]] = {}
    steps = []
    for node in nodes_of(root):
        kind, what = node.kind, node.what
        if kind not in ("leaf", "item") and what is not None and what is not AT:
            what = captured.setdefault(id(what), (len(captured), what))[0]
        steps.append((kind, what, *[numbers[id(argument)] for argument in node.arguments]))
        numbers[id(node)] = len(numbers)
    return tuple(steps), [value for _, value in captured.values()]


def _source_of(steps: Steps, num_fields: int, num_captured: int) -> str:
    """Return the source of `bind`, which returns the function that captures its arguments."""
    names: list[str] = []
    lines: list[str] = []
    for kind, what, *numbers in steps:
        arguments = [names[i] for i in numbers]
        if kind in ("leaf", "value"):
            names.append(f"{'a' if kind == 'leaf' else 'c'}{what}")
            continue
        if kind == "item":
            text = f"{arguments[0]}[{what}]"
        elif what is AT:
            text = f"{arguments[0]}[{', '.join(arguments[1:])}]"
        else:  # a tuple, or a call
            text = f"({''.join(f'{argument}, ' for argument in arguments)})"
            text = text if what is None else f"c{what}{text}"
        names.append(f"t{len(lines)}")
        lines.append(f"        {names[-1]} = {text}\n")
    parameters, captured = (
        ", ".join(f"{letter}{i}" for i in range(count))
        for letter, count in (("a", num_fields), ("c", num_captured))
    )
    return (
        f"def bind({captured}):\n    def {ELEMENT}({parameters}):\n{''.join(lines)}        return "
        f"{names[-1]}\n    return {ELEMENT}\n"
    )


def AT(array: Any, *places: Any) -> Any:
    """Return an element of a captured array."""
    return array[places]


def values_of(root: Node) -> Iterator[Any]:
    return (node.what for node in nodes_of(root) if node.kind == "value")


# --- Dtype conversions of elements.


def cast(node: Node, own: np.dtype[Any], one: np.dtype[Any], where: str) -> Node:
    for number in records.field_dtypes(own):
        if dtypes.kind(number) == "c" and dtypes.kind(one) not in "cb":
            raise TypeError(
                f"{where}: {number} cannot become {one} without losing the imaginary part; "
                "use x.real"
            )
    return cast_to(node, own, records.with_fields(own, [one] * len(records.field_dtypes(own))))


def cast_to(node: Node, own: np.dtype[Any], wanted: np.dtype[Any]) -> Node:
    if own == wanted and records.field_dtypes(own) == records.field_dtypes(wanted):
        return node
    if not records.is_record(own):
        return Call(wanted.type, node)
    pairs = iter(zip(records.field_dtypes(own), records.field_dtypes(wanted), strict=True))
    return _cast_form(node, forms.form_of(own.names or ()), pairs)


def _cast_form(node: Node, form: Form, pairs: Any) -> Node:
    items: list[Node] = []
    for i, inner in enumerate(form.items):
        item = Item(i, node)
        if inner is not None:
            items.append(_cast_form(item, inner, pairs))
        else:
            source, target = next(pairs)
            items.append(item if source == target else Call(target.type, item))
    return Group(None if form.cls is tuple else form.cls, *items)
