"""Functions as they stand: what they read of numbers, functions and modules cannot change later."""

from __future__ import annotations

from typing import Any

from gpualgo._operators import captured
from gpualgo._operators.bytecode import Reads, Tree
from gpualgo._operators.guards import Guard
from gpualgo._operators.key import facts_of
from gpualgo._operators.numbers import Place, Policy
from gpualgo._operators.snapshot import Found, Snapshot, python_function


class _Frozen(Snapshot):
    """A look at an operator whose copy has all values in their places; arrays are themselves."""

    def _number(self, value: Any, place: Place, source: Any, name: Any) -> Found | None:
        return None

    def _variable(self, value: Any, names: Any, name: Any, tree: Tree, reads: Reads) -> Found:
        if captured.is_array(value):
            return (), value
        return super()._variable(value, names, name, tree, reads)


def frozen(fn: Any) -> Any:
    """Return a function that computes what fn does now, whatever becomes of what fn reads.

    Arrays are the same ones, which are read when it runs.
    """
    function = python_function(fn)
    if function is None:
        return fn
    return _Frozen(Guard(function), facts_of, Policy()).function(function)[1]
