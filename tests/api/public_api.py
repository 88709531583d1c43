"""Write down what is public: ``python tests/api/public_api.py`` writes public_api.txt anew.

Names, kinds, signatures with defaults and annotations, overloads, the classes' public attributes,
and the headings of docs/troubleshooting.md, which are the documented messages.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SNAPSHOT = Path(__file__).with_name("public_api.txt")
# What a module needs beyond the base dependencies.
OPTIONAL = {"gpualgo.dask": "dask", "gpualgo.jax": "jax", "gpualgo.torch": "torch"}
MODULES = ("gpualgo", "gpualgo.lazy", "gpualgo.numpy", "gpualgo.shards", *OPTIONAL)
MESSAGES = "documented messages"

# Classes that only the package makes, and attributes that only the package reads.
NO_CONSTRUCTOR = {"DeviceArray", "Graph", "LazyArray", "Plan", "ShardedArray", "UFunc"}
INTERNAL = {
    "Graph": "call is_graph is_rough",
    "LazyArray": "arguments broadcast_to form forms function is_kept leaves marked node place "
    "rearranged reads_arrays text views wish",
    "Operator": "arrays as_of code digest function identity_for is_known name part shown source "
    "with_arrays words",
    "ShardedArray": "library places starts",
}
# Special methods that every class has, or that differ between Python versions.
COMPARISONS = {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"}
COMMON = (set(dir(object)) - COMPARISONS) | {
    "__annotate_func__", "__annotations__", "__annotations_cache__", "__copy__",
    "__dataclass_fields__", "__dataclass_params__", "__deepcopy__", "__del__", "__dict__",
    "__firstlineno__", "__getnewargs__", "__getstate__", "__match_args__", "__module__",
    "__orig_bases__", "__parameters__", "__replace__", "__setstate__", "__signature__", "__slots__",
    "__static_attributes__", "__type_params__", "__weakref__",
}  # fmt: skip


def sections() -> dict[str, list[str]]:
    """Return the lines of each part of what is public that this installation has."""
    found = {}
    for name in MODULES:
        if name not in OPTIONAL or importlib.util.find_spec(OPTIONAL[name]) is not None:
            module = importlib.import_module(name)
            found[name] = list(_lines_of(module, name))
    page = (REPOSITORY / "docs/troubleshooting.md").read_text(encoding="utf-8")
    found[MESSAGES] = sorted(re.findall(r"^### (.*)$", page, flags=re.MULTILINE))
    return found


def text_of(found: dict[str, list[str]]) -> str:
    """Return the snapshot's text."""
    return "\n".join("\n".join([f"[{title}]", *lines, ""]) for title, lines in found.items())


def _lines_of(module: ModuleType, prefix: str) -> Iterator[str]:
    kinds = {}
    for name in sorted(module.__all__):
        value = getattr(module, name)
        yield from _lines_of_value(value, f"{prefix}.{name}")
        if not isinstance(value, (type, ModuleType, str)) and not inspect.isroutine(value):
            kinds[type(value).__name__] = type(value)
    for name, cls in sorted(kinds.items()):
        yield from _lines_of_class(cls, f"{prefix}.{name}")


def _lines_of_value(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"{name}: module"
    elif isinstance(value, str):
        yield f"{name}: str"
    elif isinstance(value, type):
        yield from _lines_of_class(value, name)
    elif inspect.isroutine(value):
        yield f"{name}{signature_of(value)}"
        yield from (f"    overload {line}" for line in overloads_of(value))
    else:
        yield f"{name}: {type(value).__name__}{signature_of(value)}"


def _lines_of_class(cls: type, name: str) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if _is_of_others(base))
    is_made_here = cls.__name__ in NO_CONSTRUCTOR or issubclass(cls, BaseException)
    made = "" if is_made_here else signature_of(cls)
    yield f"class {name}{made}: {bases}" if bases else f"class {name}{made}"
    internal = INTERNAL.get(cls.__name__, "").split()
    special = []
    for attribute in sorted(dir(cls)):
        owner = next(each for each in cls.__mro__ if attribute in each.__dict__)
        if _is_of_others(owner) or attribute in internal:
            continue
        if not attribute.startswith("_"):
            yield f"    {attribute}{_told(inspect.getattr_static(cls, attribute))}"
        elif attribute.endswith("__") and attribute not in COMMON:
            special.append(attribute)
    if special:
        yield f"    special: {' '.join(special)}"


def _is_of_others(cls: type) -> bool:
    return not cls.__module__.startswith("gpualgo")


def _told(value: Any) -> str:
    if isinstance(value, property):
        annotation = inspect.signature(value.fget).return_annotation if value.fget else ""
        return _annotation(": ", annotation)
    if isinstance(value, (staticmethod, classmethod)):
        return f": {type(value).__name__}{signature_of(value.__func__)}"
    return signature_of(value) if callable(value) else ""


def signature_of(value: Any) -> str:
    """Return a callable's parameters with annotations and defaults, and what it returns."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):  # C's own
        return "(…)"
    written = _annotations(value)
    parts: list[str] = []
    before = None
    for each in found.parameters.values():
        if before is each.POSITIONAL_ONLY and each.kind is not before:
            parts.append("/")
        if each.kind is each.KEYWORD_ONLY and before not in (each.kind, each.VAR_POSITIONAL):
            parts.append("*")
        annotation = written.get(each.name, each.empty)
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f" = {_default(each)}"
        parts.append(f"{star}{each.name}{_annotation(': ', annotation)}{default}")
        before = each.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)}){_annotation(' -> ', written.get('return', found.empty))}"


def _annotations(value: Any) -> dict[str, Any]:
    """Return what is written in the source: signatures are shown without annotations."""
    if isinstance(value, type):
        made = value.__new__ if issubclass(value, tuple) else value.__init__  # type: ignore[misc]
        return made.__annotations__
    if not inspect.isroutine(value):  # a ufunc, which returns what it is given
        return {**type(value).__call__.__annotations__, "return": inspect.Parameter.empty}
    return getattr(inspect.unwrap(value), "__annotations__", {})


def _annotation(before: str, annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__forward_arg__", None) or inspect.formatannotation(
            annotation
        )
    return before + _public(annotation)


def _public(annotation: str) -> str:
    return annotation.replace("ty.", "")  # as the package imports its types


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if isinstance(value, type):
        return value.__qualname__
    text = f"operator.{value.__name__}" if inspect.isbuiltin(value) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def overloads_of(function: Callable[..., Any]) -> list[str]:
    """Return the overloads that type checkers read, in their order."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return []
    functions = [n for n in _tree(code.co_filename).body if isinstance(n, ast.FunctionDef)]
    name = function.__name__
    for node in functions:
        for decorator in map(ast.unparse, node.decorator_list):
            if node.name == name and decorator.startswith("typed_as("):
                name = decorator[len("typed_as(") : -1]
    return [
        _public(
            f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns) if node.returns else ''}"
        )
        for node in functions
        if node.name == name and "overload" in map(ast.unparse, node.decorator_list)
    ]


@functools.cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    SNAPSHOT.write_text(text_of(sections()), encoding="utf-8")
