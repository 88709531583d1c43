"""`transform`: one call per shard."""

from __future__ import annotations

from typing import Any

import gpualgo as ga
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo.shards._arguments import Argument, build_result, on_each, parse_argument

_NAME = "transform"


def transform(op: Any, *arrays: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`; arguments are numbers, and arrays of one
    shape that are sharded alike. The result is sharded like them. Nothing is copied between
    devices, and the host does not wait.
    """
    arguments: list[Argument | Any] = []
    first = None
    for k, x in enumerate(arrays):
        if is_scalar(x):
            arguments.append(x)
            continue
        argument = parse_argument(x, _NAME, f"argument {k}", first)
        first = argument.first if first is None else first
        arguments.append(argument)
    assert first is not None  # the caller dispatches here only for sharded arguments
    devices = first.places

    def call(i: int) -> Any:
        local_args = [x.on(i) if isinstance(x, Argument) else x for x in arguments]
        return ga.transform(op, *local_args, dtype=dtype)

    return build_result(on_each(devices, range(len(devices)), call), devices, first.axis)
