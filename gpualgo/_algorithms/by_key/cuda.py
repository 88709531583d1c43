"""Algorithms by key on a GPU: layout of elements, tiles, the launch, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.by_key import tuning
from gpualgo._algorithms.by_key.problem import ByKey
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import View
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.plan import NONE, STATES, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import START, tagged_bytes
from gpualgo._driver import device as gpu
from gpualgo._driver.pools import STATE_BYTES
from gpualgo._pipeline import planners

_CONTROL_BYTES = 256  # LookbackControl


@planners.for_cuda.register(ByKey)
def _(problem: ByKey, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan into targets of any stride; of a reduction the last one is the count."""
    reduces = problem.has_dynamic_length
    outs = targets[:-1] if reduces else targets
    args, device = ArgMap(len(views), len(targets)), outs[0].device
    num_items = math.prod(problem.shape)
    if num_items == 0:
        zero = [Clear(args.target(len(outs)), targets[-1].dtype.itemsize)] if reduces else []
        return Plan(device, zero)
    source, acc = problem.source, problem.acc
    written = tuple(out.dtype for out in outs)
    strides = zip(*(view.strides for view in views), strict=True)
    dims = merge(list(zip(problem.shape, strides, strict=True)))
    cut = tuning.policy_of(source, written, acc)
    access, fields = access_of(source, dims, [view.ptr for view in views], cut.items)
    is_wide = num_items >= tuning.NARROW_COUNTS
    num_tiles = -(-num_items // cut.tile_items)
    tile_bytes = tagged_bytes(acc) + 8 * (1 + is_wide) * reduces
    piece = Piece(_CONTROL_BYTES + num_tiles * tile_bytes, STATES, is_zeroed=True)
    kind = tuning.Kind(
        problem.way, op, problem.key, source, acc, access, cut, written, is_wide,
        problem.has_eq, problem.has_init,
    )  # fmt: skip
    words = max(piece.num_bytes, STATE_BYTES) - _CONTROL_BYTES
    spec = kind.spec
    packed = spec.parameters.pack(
        num_items=num_items, num_tiles=num_tiles, num_words=words // 8,
        capacity=outs[0].shape[0], output_steps=[out.strides[0] for out in outs], access=fields,
    )  # fmt: skip
    slots = {
        "init": START,
        "input": [args.source(i) for i in range(len(views))],
        "output": [args.target(i) for i in range(len(outs))],
        "num_runs": args.target(len(outs)) if reduces else NONE, "states": args.piece(0),
    }  # fmt: skip
    grid = min(num_tiles, gpu.get(device).num_sms * cut.blocks_per_sm)
    launch = Launch(
        build.kernel(spec, device), grid, cut.block_threads, packed, device, slots,
        shared_bytes=kind.shared_bytes,
    )  # fmt: skip
    return Plan(device, [launch], [piece])
