"""`top_k`: the top k of each shard, then the top k of those on the first device."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.shards._arguments import build_result, infer_result, on_each, parse_argument, refuse
from gpualgo.shards._moving import one_after_another

_NAME = "top_k"


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: Any = "largest") -> Any:
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters and result are those of `gpualgo.top_k`. Along the sharded axis, for a single row,
    the result is on the first device; along other axes it is sharded like x.

    Notes
    -----
    Each device reads its shard once; its k elements are copied to the first device. The host does
    not wait.
    """
    x_arg = parse_argument(x, _NAME)
    k_axis = checks.axis_of(checks.plain_axis(axis, _NAME), x_arg.first.ndim, _NAME)
    if k_axis is None:
        x_arg, k_axis = x_arg.flat(_NAME), 0
    first, devices = x_arg.first, x_arg.places
    options: dict[str, Any] = {"axis": k_axis, "mode": mode}
    k = checks.integer(k, "k", _NAME)
    if k_axis != first.axis:
        results = on_each(devices, x_arg.seats, lambda i: ga.top_k(x_arg.on(i), k, **options))
        return build_result(results, devices, first.axis)
    length = first.shape[k_axis]
    infer_result(ga.top_k, devices[0], x_arg.on(0), max(0, min(k, first.lengths[0])), **options)
    if not 0 <= k <= length:
        raise ValueError(
            f"{_NAME}: k is {k}, and there are {length} elements to choose from; pass 0 to {length}"
        )
    if first.ndim > 1:
        refuse(
            _NAME, f"the rows along axis {k_axis} are sharded, in shape {first.shape}",
            "pass gpualgo.distribute(x, axis=…) with another axis",
        )  # fmt: skip
    if len(devices) == 1:
        with devices[0].running():
            return ga.top_k(x_arg.on(0), k, **options)
    results = on_each(
        devices, x_arg.seats,
        lambda i: ga.top_k(x_arg.on(i), min(k, first.lengths[i]), **options),
    )  # fmt: skip
    starts, device, library = first.starts, devices[0], first.library
    indices = on_each(devices, x_arg.seats, lambda i: shifted(results[i][1], starts[i]))
    with device.running():
        values = one_after_another([part[0] for part in results], device, library)
        all_indices = one_after_another(indices, device, library)
        chosen = ga.top_k(values, k, mode=mode)
        return ga.TopK(chosen.values, taken_at(all_indices, chosen.indices))


def shifted(indices: Any, start: int) -> Any:
    """Convert indices into a shard to indices into the whole array."""
    if isinstance(indices, (np.ndarray, np.generic)):
        return np.asarray(indices) + start
    return ga.transform(_plus, indices, start) if start else indices


def _plus(a: Any, b: Any) -> Any:
    return a + b


def taken_at(x: Any, indices: Any) -> Any:
    """Return x[indices], on the device of x."""
    if isinstance(x, np.ndarray):
        return x[indices]
    return ga.copy(ga.lazy.take(x, indices))
