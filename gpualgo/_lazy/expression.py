"""How an element of a lazy array is computed, as a graph of calls; and one function of it all.

One file of more than 300 lines: the graph's nodes and the function made of them are read together.
"""

from __future__ import annotations

import operator
import os
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base.memo import Memo
from gpualgo._operators.key import python_function
from gpualgo._operators.recompiled import ELEMENT


class Leaf:
    """A number that is read or counted: that of an array of the lazy one's."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Value:
    """A number, the same for all elements; or an array that is read at other places."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Call:
    """What a function gives for what others do."""

    __slots__ = ("arguments", "fn")

    def __init__(self, fn: Any, *arguments: Node) -> None:
        self.fn, self.arguments = fn, arguments


class Group:
    """A tuple of what others give; of a namedtuple's class, if that is not None."""

    __slots__ = ("arguments", "cls")

    def __init__(self, cls: Any, arguments: Sequence[Node]) -> None:
        self.cls, self.arguments = cls, tuple(arguments)


class Item:
    """One item of a tuple."""

    __slots__ = ("arguments", "index")

    def __init__(self, index: int, whole: Node) -> None:
        self.index, self.arguments = index, (whole,)


Node: TypeAlias = Leaf | Value | Call | Group | Item


def nodes_of(root: Node) -> list[Node]:
    """Return all nodes of a graph, each after those that it needs."""
    found: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(argument, False) for argument in reversed(_arguments(node))]
    return found


def _arguments(node: Node) -> tuple[Node, ...]:
    return () if isinstance(node, (Leaf, Value)) else node.arguments


def picked(root: Node) -> tuple[int, ...] | None:
    """Return which leaves' numbers an element's are, as they are; None: it is computed."""
    if isinstance(root, Leaf):
        return (root.index,)
    if not isinstance(root, Group):
        return None
    found: list[int] = []
    for argument in root.arguments:
        part = picked(argument)
        if part is None:
            return None
        found += part
    return tuple(found)


Known: TypeAlias = dict[Any, Node]
"""Nodes by what they are made of, so that equal ones are one."""


def with_leaves(root: Node, leaf: Callable[[int], Node], known: Known | None = None) -> Node:
    """Return a graph with other nodes in the places of its leaves; what is in it twice is one."""
    known = {} if known is None else known
    made: dict[int, Node] = {}
    leaves: dict[int, Node] = {}
    for node in nodes_of(root):
        if isinstance(node, Leaf):
            if node.index not in leaves:
                leaves[node.index] = leaf(node.index)
            made[id(node)] = leaves[node.index]
            continue
        if isinstance(node, Value):
            made[id(node)] = known.setdefault((Value, id(node.value)), node)
            continue
        arguments = [made[id(argument)] for argument in node.arguments]
        what, kind = _own(node)
        key = (kind, *map(id, arguments))
        if key not in known:
            known[key] = _again(node, what, arguments)
        made[id(node)] = known[key]
    return made[id(root)]


def _own(node: Call | Group | Item) -> tuple[Any, Any]:
    """Return what a node is beside its arguments, and a key of that."""
    if isinstance(node, Call):
        return node.fn, (Call, id(node.fn))
    if isinstance(node, Group):
        return node.cls, (Group, id(node.cls))
    return node.index, (Item, node.index)


def _again(node: Call | Group | Item, what: Any, arguments: list[Node]) -> Node:
    if all(a is b for a, b in zip(node.arguments, arguments, strict=True)):
        return node
    if isinstance(node, Call):
        return Call(what, *arguments)
    return Group(what, arguments) if isinstance(node, Group) else Item(what, arguments[0])


class _Template:
    """The code of expressions of one form that call functions of the same codes."""

    __slots__ = ("bind", "code", "held", "last")

    def __init__(
        self, held: tuple[Any, ...], bind: Callable[..., types.FunctionType], code: types.CodeType
    ) -> None:
        self.held = held  # as the memo is by their ids
        self.bind, self.code = bind, code
        # What was captured last, if all may be kept, and by what: the very function is soon known.
        self.last: tuple[list[Any], types.FunctionType] | None = None

    def function(self, captured: list[Any]) -> types.FunctionType:
        """Return the function that captures these."""
        last = self.last
        if last is not None and all(map(operator.is_, last[0], captured)):
            return last[1]
        found = self.bound(*captured)
        if all(map(_may_be_kept, captured)):
            self.last = captured, found
        return found

    def bound(self, *captured: Any) -> types.FunctionType:
        """Return a function that captures these, one of its own."""
        found = self.bind(*captured)
        found.__code__ = self.code
        return found


_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_templates: Memo[_Template] = Memo(1 << 10)


def function_of(root: Node, num_leaves: int) -> types.FunctionType:
    """Return the function of an element's numbers that computes it.

    Its code is one for all expressions of the same form and functions, so that what is learnt of
    numbers in it holds for those alone.
    """
    template, captured = _template_of(root, num_leaves)
    return template.function(captured)


def binder_of(root: Node, num_leaves: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return what gives such a function of what it captures, and what that is."""
    template, captured = _template_of(root, num_leaves)
    return template.bound, captured


def _template_of(root: Node, num_leaves: int) -> tuple[_Template, list[Any]]:
    text, captured = _written(root, num_leaves)
    functions = [_code_of(value) for value in captured if callable(value)]

    def make() -> _Template:
        scope: dict[str, Any] = {}
        exec(text, scope)
        code = scope["bind"](*captured).__code__.replace(co_filename="<lazy array>")
        place = next(filter(_is_given, functions), None)
        if place is not None:  # of which an error shall tell the line
            code = code.replace(co_filename=place.co_filename, co_firstlineno=place.co_firstlineno)
        return _Template(tuple(functions), scope["bind"], code)

    return _templates.made((text, *map(id, functions)), make), captured


def _may_be_kept(value: Any) -> bool:
    """Return whether a value that is captured holds no array."""
    function = python_function(value) if callable(value) else None
    if function is not None:
        held = function.__closure__, function.__defaults__, function.__kwdefaults__
        return held == (None, None, None)
    return callable(value) or isinstance(value, (int, float, complex, np.number, np.bool_))


def is_own(fn: Any) -> bool:
    """Return whether an operator's function is the package's, or NumPy's, and captures nothing."""
    function = python_function(fn)
    if function is None:
        return isinstance(fn, (np.ufunc, types.BuiltinFunctionType))
    return _may_be_kept(fn) and not _is_given(function.__code__)


def _is_given(code: Any) -> bool:
    """Return whether code is a caller's, and not of this package."""
    return isinstance(code, types.CodeType) and not code.co_filename.startswith(_PACKAGE)


def _code_of(fn: Any) -> Any:
    function = python_function(fn)
    return fn if function is None else function.__code__


def _written(root: Node, num_leaves: int) -> tuple[str, list[Any]]:
    """Return a function's text, within one of what it captures, and what that is."""
    names: dict[int, str] = {}
    captured: dict[int, tuple[str, Any]] = {}
    lines: list[str] = []

    def capture(value: Any) -> str:
        return captured.setdefault(id(value), (f"c{len(captured)}", value))[0]

    for node in nodes_of(root):
        given = [names[id(argument)] for argument in _arguments(node)]
        if isinstance(node, Leaf):
            names[id(node)] = f"a{node.index}"
        elif isinstance(node, Value):
            names[id(node)] = capture(node.value)
        else:
            names[id(node)] = name = f"t{len(lines)}"
            lines.append(f"{name} = {_shown(node, given, capture)}")
    parameters = ", ".join(f"a{i}" for i in range(num_leaves))
    body = "".join(f"        {line}\n" for line in lines)
    outer = ", ".join(name for name, _ in captured.values())
    text = (
        f"def bind({outer}):\n    def {ELEMENT}({parameters}):\n{body}        return "
        f"{names[id(root)]}\n    return {ELEMENT}\n"
    )
    return text, [value for _, value in captured.values()]


def _shown(node: Any, given: list[str], capture: Callable[[Any], str]) -> str:
    if isinstance(node, Call):
        if node.fn is AT:
            return f"{given[0]}[{', '.join(given[1:])}]"
        return f"{capture(node.fn)}({', '.join(given)})"
    if isinstance(node, Item):
        return f"{given[0]}[{node.index}]"
    if node.cls is None:
        return f"({''.join(f'{one}, ' for one in given)})"
    return f"{capture(node.cls)}({', '.join(given)})"


def AT(array: Any, *places: Any) -> Any:
    """Return an element of an array that is captured."""
    return array[places]


def with_values(root: Node, change: Callable[[Any], Any]) -> Node:
    """Return a graph with others in the places of some of the values that it captures."""
    made: dict[int, Node] = {}
    for node in nodes_of(root):
        if isinstance(node, Value):
            value = change(node.value)
            made[id(node)] = node if value is node.value else Value(value)
        elif isinstance(node, Leaf):
            made[id(node)] = node
        else:
            arguments = [made[id(argument)] for argument in node.arguments]
            made[id(node)] = _again(node, _own(node)[0], arguments)
    return made[id(root)]


def values_of(root: Node) -> Iterator[Any]:
    """Return the numbers and arrays that a graph captures as they are."""
    return (node.value for node in nodes_of(root) if isinstance(node, Value))
