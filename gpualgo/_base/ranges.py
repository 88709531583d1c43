"""NVTX ranges around calls, graph launches and compilation, for profilers.

They are enabled at import, if NVTX_INJECTION64_PATH is set (by nsys and ncu) or GPUALGO_NVTX=1, and
if the package `nvtx` is installed. Otherwise they add no cost to calls.
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
    requested = flag("GPUALGO_NVTX")
    return bool(os.environ.get("NVTX_INJECTION64_PATH")) if requested is None else requested


def _load_nvtx() -> Any:
    if not is_wanted():
        return None
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


_nvtx = _load_nvtx()


def named(text: str, *args: Any) -> AbstractContextManager[Any]:
    if _nvtx is None:
        return nullcontext()
    context: AbstractContextManager[Any] = _nvtx.annotate(text % args, domain=DOMAIN)
    return context


def each(name: Callable[..., str]) -> Callable[[Function], Function]:
    """Decorate a function so that each call is a range; `name` maps the arguments to its name."""

    def decorate(function: Function) -> Function:
        if _nvtx is None:
            return function

        @functools.wraps(function)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            with named("%s", name(*args)):
                return function(*args, **kwargs)

        result: Any = ranged
        return cast(Function, result)

    return decorate
