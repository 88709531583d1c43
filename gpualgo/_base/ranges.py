"""NVTX ranges for a profiler: of calls, graphs' launches and compilation, where one listens.

Decided once, when the package is imported: nsys and ncu set NVTX_INJECTION64_PATH for what they
run, and GPUALGO_NVTX=1 asks for ranges in any case. Without that nothing is loaded, and no call
takes a step more. With it the package `nvtx` writes them, if it is installed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

from gpualgo._base.environment import flag

Function = TypeVar("Function", bound=Callable[..., Any])

DOMAIN = "gpualgo"


def is_wanted() -> bool:
    """Return whether a profiler listens, or whoever started this process says so."""
    asked = flag("GPUALGO_NVTX")
    return bool(os.environ.get("NVTX_INJECTION64_PATH")) if asked is None else asked


def _found() -> Any:
    if not is_wanted():
        return None
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


_nvtx = _found()


def named(text: str, *args: Any) -> AbstractContextManager[Any]:
    """Return a range of a name that is formatted with `args`."""
    if _nvtx is None:
        return nullcontext()
    found: AbstractContextManager[Any] = _nvtx.annotate(text % args, domain=DOMAIN)
    return found


def each(name: Callable[..., str]) -> Callable[[Function], Function]:
    """Make each call of a function a range, named from its arguments; without NVTX leave it be."""

    def decorate(function: Function) -> Function:
        if _nvtx is None:
            return function

        @functools.wraps(function)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            with named("%s", name(*args)):
                return function(*args, **kwargs)

        found: Any = ranged
        return cast(Function, found)

    return decorate
