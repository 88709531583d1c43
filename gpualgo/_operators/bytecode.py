"""Which names the bytecode of an operator may read."""

from __future__ import annotations

import types


def names_of(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the globals and the attributes that code, or code inside it, may read."""
    import dis

    loaded: dict[str, None] = {}
    attributes: dict[str, None] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded[str(instruction.argval)] = None
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes[str(instruction.argval)] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner_loaded, inner_attributes = names_of(constant)
            loaded.update(dict.fromkeys(inner_loaded))
            attributes.update(dict.fromkeys(inner_attributes))
    return tuple(loaded), tuple(attributes)
