"""NVIDIA's cuda.compute (package cuda-cccl), where it is installed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Contender = Callable[[], Any]
NAME = "cuda.compute"


@functools.cache
def _module() -> Any:
    try:
        import cuda.compute as module
    except ImportError:
        return None
    return module


def _guarded(make: Callable[[], Contender]) -> dict[str, Contender]:
    """A peer in beta may fail to build on some machine: say so, and leave its column empty."""
    try:
        return {NAME: make()}
    except Exception as error:
        print(f"bench: {NAME} left out: {type(error).__name__}: {error}", file=sys.stderr)
        return {}


def reduction(x: Any, out: Any, op: Any, *, one_call: bool = False) -> dict[str, Contender]:
    """Return the reduction prepared with its storage, or the single call that allocates it."""
    module = _module()
    if module is None:
        return {}
    init = np.zeros(1, x.dtype)
    op = module.OpKind.PLUS if op is None else op
    arguments = {"d_in": x, "d_out": out, "num_items": x.size, "op": op, "h_init": init}

    def make_prepared() -> Contender:
        import cupy

        reducer = module.make_reduce_into(d_in=x, d_out=out, op=op, h_init=init)
        temp = cupy.empty(max(reducer(temp_storage=None, **arguments), 1), cupy.uint8)

        def call() -> Any:
            reducer(temp_storage=temp, **arguments)
            return out

        return call

    def call() -> Any:
        module.reduce_into(**arguments)
        return out

    def make_one_call() -> Contender:
        call()  # compiles: a peer that cannot is left out
        return call

    return _guarded(make_one_call if one_call else make_prepared)


def transformation(
    arrays: list[Any], out: Any, op: Any, *, one_call: bool = False
) -> dict[str, Contender]:
    """Return the unary or binary transformation, prepared or as a single call."""
    module = _module()
    if module is None:
        return {}
    names = ["d_in"] if len(arrays) == 1 else ["d_in1", "d_in2"]
    inputs = dict(zip(names, arrays, strict=True))
    kind = "unary" if len(arrays) == 1 else "binary"
    arguments = {**inputs, "d_out": out, "op": op}

    def make_prepared() -> Contender:
        prepared = getattr(module, f"make_{kind}_transform")(**arguments)

        def call() -> Any:
            prepared(**arguments, num_items=out.size)
            return out

        return call

    def call() -> Any:
        getattr(module, f"{kind}_transform")(**arguments, num_items=out.size)
        return out

    def make_one_call() -> Contender:
        call()  # compiles: a peer that cannot is left out
        return call

    return _guarded(make_one_call if one_call else make_prepared)
