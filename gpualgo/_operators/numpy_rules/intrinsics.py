"""numba intrinsics by which the rewrite replaces the functions that operators call."""

from __future__ import annotations

import types as pytypes
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import ir
from numba.extending import intrinsic

from gpualgo._operators.captured import DataPlaceholder
from gpualgo._operators.numpy_rules import rules
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded
from gpualgo._operators.numpy_rules.storage import (
    Weak,
    common_name,
    described,
    native,
    scalar_name,
    scalar_type,
)
from gpualgo._operators.numpy_rules.table import Entry

_intrinsics: dict[tuple[Any, ...], Any] = {}


def calling(entry: Entry, fn: Any, arity: int) -> Any:
    lowest, highest = entry.arity
    if not lowest <= arity <= highest:
        expected = str(lowest) if lowest == highest else f"{lowest} or {highest}"
        expected = f"{lowest} or more" if highest > lowest + 1 else expected
        noun = "argument" if expected == "1" else "arguments"
        raise Refused(f"{entry.shown} takes {expected} {noun} in an operator, not {arity}")

    def resolve(*args: Any) -> Any:
        return rules.resolve(entry, fn, args)

    typers: tuple[Callable[..., Any], ...] = (  # numba reads their signatures
        lambda typingctx, a: resolve(a),
        lambda typingctx, a, b: resolve(a, b),
        lambda typingctx, a, b, c: resolve(a, b, c),
    )
    return _once((entry, fn, arity), typers[arity - 1], f"numpy_{entry.does}")


def _once(key: Any, typer: Callable[..., Any], name: str) -> Any:
    if key not in _intrinsics:
        typer.__name__ = name
        _intrinsics[key] = intrinsic(typer)
    return _intrinsics[key]


def converting(name: str) -> Any:
    """Return the intrinsic of one of `_CONVERSIONS`, which changes the type of a value."""
    convert = _CONVERSIONS[name]

    def typer(typingctx: Any, value: Any) -> Any:
        target = convert(value)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _cast(context, builder, value, target, args[0])

        return target(value), generate

    return _once(name, typer, name)


def _cast(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    if source == target:
        return value
    if not isinstance(source, types.BaseTuple):
        if isinstance(target, Weak) and not isinstance(source, Weak):
            return context.cast(builder, value, source, native(target))
        return context.cast(builder, value, source, target)
    items = [
        _cast(context, builder, item, item_type, builder.extract_value(value, i))
        for i, (item, item_type) in enumerate(zip(source, target, strict=True))
    ]
    return context.make_tuple(builder, target, items)


def _plain(ty: Any) -> Any:
    """Convert Python integers to int64, for numba's indices and ranges."""
    if isinstance(ty, Weak):
        if ty.kind != "int":
            raise Refused(f"an index or a bound must be an integer, not {described(ty)}")
        return types.int64
    if isinstance(ty, types.BaseTuple) and any(isinstance(item, Weak) for item in ty):
        return types.Tuple([_plain(item) for item in ty])
    return ty


def _index(ty: Any) -> Any:
    """As `_plain`, for indices of tuples, which numba needs as constants."""
    if isinstance(ty, Weak) and ty.data:
        raise ValueNeeded(ty.data)
    return _plain(ty)


def _python(ty: Any) -> Any:
    """Convert integers from numba's counters and lengths to weak Python integers."""
    if isinstance(ty, types.BaseTuple):
        return types.Tuple([_python(item) for item in ty])
    return Weak("int") if isinstance(ty, types.Integer) else ty


def _numbered(ty: Any) -> Any:
    return types.Tuple([_python(ty[0]), *ty.types[1:]])


def _uniform(ty: Any) -> Any:
    """Convert a tuple to one whose items have a common type, so that it can be iterated."""
    if not isinstance(ty, types.BaseTuple) or isinstance(ty, types.UniTuple) or not len(ty):
        return ty
    joint = _common_type(list(ty))
    return ty if joint is None else types.UniTuple(joint, len(ty))


def _common_type(items: list[Any]) -> Any:
    """Return the common type of numbers, or of tuples of one length; None if there is none."""
    if all(isinstance(item, types.BaseTuple) for item in items):
        if len({len(item) for item in items}) > 1:
            return None
        columns = [_common_type(list(column)) for column in zip(*items, strict=True)]
        return None if None in columns else types.Tuple(columns)
    if any(scalar_name(item) is None for item in items):
        return None
    if not all(isinstance(item, Weak) for item in items):
        return scalar_type(str(common_name(tuple(items))))
    joint = items[0]
    for item in items:
        joint = joint.joined(item)
    return joint


def _any_value(ty: Any) -> Any:
    """Convert a Python constant to one of unknown value, for arguments of recursive calls."""
    return Weak(ty.kind) if isinstance(ty, Weak) else ty


def _strong(ty: Any) -> Any:
    """Convert Python numbers to their dtypes in an array."""
    if isinstance(ty, types.BaseTuple):
        items = tuple(map(_strong, ty))
        return types.BaseTuple.from_types(items, getattr(ty, "instance_class", None))
    return native(ty) if isinstance(ty, Weak) else ty


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "plain": _plain, "index": _index, "python": _python, "numbered": _numbered, "uniform": _uniform,
    "any_value": _any_value, "strong": _strong,
}  # fmt: skip


# --- Finds the Python objects to which variables of numba's IR refer.


class Lookup:
    def __init__(self, func_ir: Any, args: tuple[Any, ...]) -> None:
        self.func_ir, self.args = func_ir, args
        self.values_passed_on = self._passed_on()

    def definition(self, var: Any) -> Any:
        """Return the IR value assigned to a variable, None if there are several assignments."""
        definitions = self.func_ir._definitions.get(var.name, [])
        return definitions[0] if len(definitions) == 1 else None

    def constant(self, var: Any) -> tuple[bool, Any]:
        """Return whether a variable is a known Python object, and the object."""
        return self.constant_of(self.definition(var))

    def constant_of(self, value: Any) -> tuple[bool, Any]:
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return True, value.value
        owner = self.owner_of(value)
        if owner is not None and hasattr(owner, value.attr):
            return True, getattr(owner, value.attr)
        return False, None

    def default_of(self, value: Any) -> tuple[bool, Any]:
        """Return whether a parameter's default is a data number, and the number."""
        ty = self.args[value.index] if value.index < len(self.args) else None
        default = getattr(ty, "value", None) if isinstance(ty, types.Omitted) else None
        return (True, default) if type(default) is DataPlaceholder else (False, None)

    def owner_of(self, value: Any) -> pytypes.ModuleType | None:
        """Return the module of an IR value that is a module's attribute, else None."""
        if isinstance(value, ir.Expr) and value.op == "getattr":
            is_known, owner = self.constant(value.value)
            if is_known and isinstance(owner, pytypes.ModuleType):
                return owner
        return None

    def counted_by(self, value: Any) -> Any:
        """Return range or enumerate if a value is the next item of one, else None."""
        for op in ("pair_first", "iternext", "getiter", "call"):
            if not isinstance(value, ir.Expr) or value.op != op:
                return None
            value = value.func if op == "call" else value.value
            while isinstance(value, ir.Var):
                value = self.definition(value)
        is_known, fn = self.constant_of(value)
        return fn if is_known and fn in (range, enumerate) else None

    def _passed_on(self) -> set[str]:
        """Return the variables that are used other than by calling them."""
        used: set[str] = set()
        for block in self.func_ir.blocks.values():
            for statement in block.body:
                value = getattr(statement, "value", None)
                if not isinstance(statement, ir.Assign):
                    used.update(var.name for var in statement.list_vars())
                elif isinstance(value, ir.Var):
                    used.add(value.name)
                elif isinstance(value, ir.Expr):
                    names = [var.name for var in value.list_vars()]
                    if value.op == "call":
                        names.remove(value.func.name)
                    used.update(names)
        return used
