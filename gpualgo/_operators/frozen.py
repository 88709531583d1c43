"""Copies of functions in which captured numbers, functions and modules are frozen."""

from __future__ import annotations

from typing import Any

from gpualgo._operators import captured
from gpualgo._operators.captured import Location, Policy
from gpualgo._operators.guards import Guard, Reads, Tree
from gpualgo._operators.key import facts_of
from gpualgo._operators.snapshot import Replacement, Snapshot, python_function


class _Frozen(Snapshot):
    """A snapshot whose copy contains all numbers as constants and the original arrays."""

    def _number(self, value: Any, location: Location, source: Any, name: Any) -> Replacement | None:
        return None

    def _variable(self, value: Any, names: Any, name: Any, tree: Tree, reads: Reads) -> Replacement:
        if captured.is_array(value):
            return (), value
        return super()._variable(value, names, name, tree, reads)


def frozen(fn: Any) -> Any:
    """Return a copy of fn that does not change if the variables that fn reads are reassigned.

    Arrays are not copied; they are read when it runs.
    """
    function = python_function(fn)
    if function is None:
        return fn
    return _Frozen(Guard(function), facts_of, Policy()).function(function)[1]
