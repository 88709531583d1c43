"""The algorithms, a package for each; the registry by which everything common knows them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar, cast

from gpualgo._lazy import is_lazy

# In the registry: `prepare`, `temp_storage_bytes` and graphs take it, and tests/contract tests it.
ALGORITHMS: tuple[Callable[..., Any], ...]

_NAMES = {
    "adjacent_difference": ("adjacent_difference",),
    "by_index": ("reduce_by_index",),
    "by_key": ("reduce_by_key", "inclusive_scan_by_key", "exclusive_scan_by_key"),
    "extremes": ("argmin", "argmax", "minmax"),
    "find": ("find", "count"),
    "histogram": ("histogram",),
    "merge_sort": ("merge_sort", "merge", "sort"),
    "radix_sort": ("radix_sort", "argsort"),
    "reduce": ("reduce",),
    "rolling": ("rolling",),
    "runs": ("run_length_encode",),
    "scan": ("inclusive_scan", "exclusive_scan"),
    "searchsorted": ("searchsorted",),
    "segmented_sort": ("segmented_sort",),
    "segments": ("segmented_reduce", "segmented_inclusive_scan", "segmented_exclusive_scan"),
    "select": ("select", "stable_partition"),
    "top_k": ("top_k", "kth_value"),
    "transform": ("transform",),
}


def __getattr__(name: str) -> Any:
    """Load all algorithms once the registry is asked for: most programs need few of them."""
    if name != "ALGORITHMS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = tuple(
        getattr(import_module(f"{__name__}.{package}"), function)
        for package, functions in _NAMES.items()
        for function in functions
    )
    globals()[name] = found
    return found


def materialized(
    arguments: dict[str, Any], beside: Sequence[Any], where: str, stream: Any, is_flat: bool = False
) -> list[Any]:
    """Return arguments, given by name, with lazy ones computed; `beside`: other arrays of the call.

    Lazy arrays that read no array are placed on the device of all others.
    """
    if not any(map(is_lazy, arguments.values())):
        return [*arguments.values()]
    from gpualgo._lazy.combining import place_lazy
    from gpualgo._lazy.construction import made

    placed = zip(arguments, place_lazy([*arguments.values()], beside, where), strict=True)
    return [made(x, is_flat, f"{where}: {name}", stream) for name, x in placed]


# --- How public functions are shown.

_Function = TypeVar("_Function", bound=Callable[..., Any])


def typed_as(function: _Function) -> Callable[[Callable[..., Any]], _Function]:
    """Give type checkers a function's overloads for another one with the same parameters."""
    return lambda other: cast("_Function", other)


class _Parameter(inspect.Parameter):
    """A parameter that is shown as ``op=operator.add``, not as ``op=<built-in function add>``."""

    def __str__(self) -> str:
        text = str(inspect.Parameter(self.name, self.kind, default=self.default))
        prefix = "operator." if getattr(self.default, "__module__", "") == "_operator" else ""
        text = re.sub("<built-in function (.+)>", rf"{prefix}\1", text)
        return re.sub("<class '(.+)'>", r"\1", text)

    def _format(self, **_: Any) -> str:  # what Signature.format calls from Python 3.14 on
        return str(self)


def show_signatures(*values: Any, first: str = "import numpy as np, gpualgo as ga") -> None:
    """Have `help` show functions as the manual does: without annotations, with whole docstrings.

    Methods of classes, too, have no annotations. Examples get a heading, and the line `first`.
    """
    for value in values:
        for member in vars(value).values() if isinstance(value, type) else (value,):
            function: Any = getattr(member, "__func__", member)  # of a class method
            if isinstance(function, FunctionType):
                found = inspect.signature(function).parameters.values()
                shown = [_Parameter(one.name, one.kind, default=one.default) for one in found]
                function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
                if function is value and function.__doc__:
                    doc, names = inspect.cleandoc(function.__doc__), [one.name for one in found]
                    if "\nExamples\n" not in doc:
                        doc = doc.replace("\n\n>>> ", _EXAMPLES.format(first), 1)
                    if _PARAMETERS in doc:
                        doc = _completed(doc, names, function.__module__)
                    function.__doc__ = doc


# --- Docstrings of public functions: paragraphs that many of them would repeat are written here.

_PARAMETERS = "\n\nParameters\n---"
_STREAM = """
stream : stream, optional
    CUDA stream for device arrays; by default the current stream of the array's library."""
_AXIS = """
numpy.exceptions.AxisError
    The axis is out of range."""
_COMPILE = """
CompileError
    numba cannot compile `{}`."""
_SEE = "\n\nSee https://github.com/gpualgo/gpualgo/blob/main/docs/{}.md."
_PAGES = {"by_index": "by_key", "segmented_sort": "segments"}  # of packages with other names
_EXAMPLES = "\n\nExamples\n--------\n>>> {}\n>>> "


def _completed(doc: str, names: list[str], module: str) -> str:
    """Return a docstring whose sections have the shared entries that they do not write themselves.

    `names` are the parameters of the function, which is in `module`.
    """
    summary, *sections = re.split(r"\n\n(?=\w+\n--)", doc)
    by_title = {section.partition("\n")[0]: section for section in sections}
    is_documented = re.search(r"^(.*, )?stream( :|,|$)", by_title["Parameters"], re.MULTILINE)
    if "stream" in names and not is_documented:
        by_title["Parameters"] += _STREAM
    if raises := by_title.get("Raises", ""):
        if "axis" in names and "AxisError" not in raises:
            by_title["Raises"] += _AXIS
        operators = [name for name in ("op", "less", "eq", "predicate") if name in names]
        if operators and "CompileError" not in raises:
            by_title["Raises"] += _COMPILE.format(operators[0])
    package, _, algorithm = module.rpartition(".")
    if package == __name__:
        by_title["Notes"] += _SEE.format(_PAGES.get(algorithm, algorithm))
    return "\n\n".join([summary, *by_title.values()])
