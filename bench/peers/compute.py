"""Calls of NVIDIA's cuda.compute (package cuda-cccl): prepared, or as one call that allocates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench import peers
from bench.peers import Contender, Prepared


def reduction(op: Callable[..., Any] | None = None, *, one_call: bool = False) -> Prepared:
    """Return a reduction, by a sum without an operator."""

    def make(x: Any, out: Any) -> Contender:
        arguments = {
            "d_in": x,
            "d_out": out.reshape(1),
            "op": _op(op),
            "h_init": np.zeros(1, x.dtype),
        }
        return _call("reduce_into", arguments, x.size, out, one_call)

    return Prepared(make)


def scan(op: Callable[..., Any] | None = None, *, one_call: bool = False) -> Prepared:
    """Return an inclusive scan, by a sum without an operator."""

    def make(x: Any, out: Any) -> Contender:
        arguments = {"d_in": x, "d_out": out, "op": _op(op), "init_value": None}
        return _call("inclusive_scan", arguments, x.size, out, one_call)

    return Prepared(make)


def transformation(op: Callable[..., Any], *, one_call: bool = False) -> Prepared:
    def make(*inputs: Any, out: Any) -> Contender:
        names = ["d_in"] if len(inputs) == 1 else ["d_in1", "d_in2"]
        arguments = dict(zip(names, inputs, strict=True)) | {"d_out": out, "op": op}
        name = "unary_transform" if len(inputs) == 1 else "binary_transform"
        return _call(name, arguments, out.size, out, one_call, needs_storage=False)

    return Prepared(make)


def _op(op: Callable[..., Any] | None) -> Any:
    import cuda.compute

    return cuda.compute.OpKind.PLUS if op is None else op


def _call(
    name: str, arguments: dict[str, Any], n: int, out: Any, one_call: bool,
    needs_storage: bool = True,
) -> Contender:  # fmt: skip
    import cuda.compute

    given = {**arguments, "num_items": n}
    temporary_bytes = 0
    if one_call:
        function = getattr(cuda.compute, name)
        function(**given)  # compiles: a peer that cannot is left out
    else:
        function = getattr(cuda.compute, f"make_{name}")(**arguments)
        if needs_storage:
            temporary_bytes = function(temp_storage=None, **given)
            given["temp_storage"] = peers.gpu().empty(max(temporary_bytes, 1), "uint8")

    def call() -> Any:
        function(**given)
        return out

    call.temporary_bytes = temporary_bytes  # type: ignore[attr-defined]  # read by bench.memory
    return call
