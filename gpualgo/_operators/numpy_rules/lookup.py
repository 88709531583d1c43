"""Finds the Python objects to which variables of numba's IR refer."""

from __future__ import annotations

import types as pytypes
from typing import Any

from numba import types

from gpualgo._operators.numbers import Data


class Lookup:
    """The IR of one function, with lookups of its variables' values."""

    def __init__(self, func_ir: Any, ir: Any, args: tuple[Any, ...]) -> None:
        self.func_ir, self.ir, self.args = func_ir, ir, args
        self.values_passed_on = self._passed_on()

    def definition(self, var: Any) -> Any:
        """Return the IR value assigned to a variable, None if there are several assignments."""
        definitions = self.func_ir._definitions.get(var.name, [])
        return definitions[0] if len(definitions) == 1 else None

    def constant(self, var: Any) -> tuple[bool, Any]:
        """Return whether a variable is a known Python object, and the object."""
        return self.constant_of(self.definition(var))

    def constant_of(self, value: Any) -> tuple[bool, Any]:
        ir = self.ir
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
        return (True, default) if type(default) is Data else (False, None)

    def owner_of(self, value: Any) -> pytypes.ModuleType | None:
        """Return the module of an IR value that is a module's attribute, else None."""
        if isinstance(value, self.ir.Expr) and value.op == "getattr":
            is_known, owner = self.constant(value.value)
            if is_known and isinstance(owner, pytypes.ModuleType):
                return owner
        return None

    def counted_by(self, value: Any) -> Any:
        """Return range or enumerate if a value is the next item of one, else None."""
        for op in ("pair_first", "iternext", "getiter", "call"):
            if not isinstance(value, self.ir.Expr) or value.op != op:
                return None
            value = value.func if op == "call" else value.value
            while isinstance(value, self.ir.Var):
                value = self.definition(value)
        is_known, fn = self.constant_of(value)
        return fn if is_known and fn in (range, enumerate) else None

    def _passed_on(self) -> set[str]:
        """Return the variables that are used other than by calling them."""
        used: set[str] = set()
        for block in self.func_ir.blocks.values():
            for statement in block.body:
                value = getattr(statement, "value", None)
                if not isinstance(statement, self.ir.Assign):
                    used.update(var.name for var in statement.list_vars())
                elif isinstance(value, self.ir.Var):
                    used.add(value.name)
                elif isinstance(value, self.ir.Expr):
                    names = [var.name for var in value.list_vars()]
                    if value.op == "call":
                        names.remove(value.func.name)
                    used.update(names)
        return used
