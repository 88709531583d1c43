"""NVIDIA's cuda.compute (package cuda-cccl), where it is installed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._bench import notes
from gpualgo._bench.support import is_wanted

Contender = Callable[[], Any]
NAME = "cuda.compute"


@functools.cache
def module() -> Any:
    """Return cuda.compute if it is wanted and installed."""
    if not is_wanted(NAME):
        return None
    try:
        import cuda.compute as found
    except Exception:  # what is installed and does not load is not there either
        return None
    return found


def _guarded(make: Callable[[], Contender]) -> dict[str, Contender]:
    """A peer in beta may fail to build on some machine: say so, and leave its column empty."""
    try:
        return {NAME: make()}
    except Exception as error:
        notes.add("", NAME, f"{type(error).__name__}: {error}")
        return {}


def reduction(x: Any, out: Any, op: Any, *, one_call: bool = False) -> dict[str, Contender]:
    """Return the reduction prepared with its storage, or the single call that allocates it."""
    if module() is None:
        return {}
    op = module().OpKind.PLUS if op is None else op
    arguments = {"d_in": x, "d_out": out, "op": op, "h_init": np.zeros(1, x.dtype)}
    return _two_phase("reduce_into", arguments, x.size, one_call)


def scan(x: Any, out: Any, op: Any, *, one_call: bool = False) -> dict[str, Contender]:
    """Return the inclusive scan, prepared with its storage or as a single call."""
    if module() is None:
        return {}
    op = module().OpKind.PLUS if op is None else op
    arguments = {"d_in": x, "d_out": out, "op": op, "init_value": None}
    return _two_phase("inclusive_scan", arguments, x.size, one_call)


def _two_phase(
    name: str, arguments: dict[str, Any], n: int, one_call: bool
) -> dict[str, Contender]:
    out = arguments["d_out"]

    def make_prepared() -> Contender:
        import cupy

        prepared = getattr(module(), f"make_{name}")(**arguments)
        needed = prepared(temp_storage=None, num_items=n, **arguments)
        temp = cupy.empty(max(needed, 1), cupy.uint8)

        def call() -> Any:
            prepared(temp_storage=temp, num_items=n, **arguments)
            return out

        call.temporary_bytes = needed  # type: ignore[attr-defined]  # for gpualgo._bench.memory
        return call

    def call() -> Any:
        getattr(module(), name)(num_items=n, **arguments)
        return out

    def make_one_call() -> Contender:
        call()  # compiles: a peer that cannot is left out
        return call

    return _guarded(make_one_call if one_call else make_prepared)


def transformation(
    arrays: list[Any], out: Any, op: Any, *, one_call: bool = False
) -> dict[str, Contender]:
    """Return the unary or binary transformation, prepared or as a single call."""
    if module() is None:
        return {}
    names = ["d_in"] if len(arrays) == 1 else ["d_in1", "d_in2"]
    inputs = dict(zip(names, arrays, strict=True))
    kind = "unary" if len(arrays) == 1 else "binary"
    arguments = {**inputs, "d_out": out, "op": op}

    def make_prepared() -> Contender:
        prepared = getattr(module(), f"make_{kind}_transform")(**arguments)

        def call() -> Any:
            prepared(**arguments, num_items=out.size)
            return out

        return call

    def call() -> Any:
        getattr(module(), f"{kind}_transform")(**arguments, num_items=out.size)
        return out

    def make_one_call() -> Contender:
        call()  # compiles: a peer that cannot is left out
        return call

    return _guarded(make_one_call if one_call else make_prepared)
