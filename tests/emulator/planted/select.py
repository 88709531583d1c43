"""Bugs of selections, and of the look-back of counts."""

from __future__ import annotations

from emulator.planted.bug import WRONG, Bug, bug

_TILE = "select/tile.cuh"
_KERNEL = "select/kernel.cuh"
_SUM = "parts/prefix_sum.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "select: a tile staged while an earlier one leaves",
        _KERNEL,
        "      ptx::syncthreads();  // behind it, the stage is free again\n",
        "",
        "select",
        "RACE",
        "OUT OF BOUNDS",  # a position that nobody wrote may be written to before the race is seen
    ),
    bug(
        "select: no barrier before a tile leaves",
        _KERNEL,
        "shared.next[parity] = after;\n      ptx::syncthreads();",
        "shared.next[parity] = after;",
        "select",
        "RACE",
    ),
    bug(
        "select: one stage for two",
        _KERNEL,
        "write(last, sum, shared.stages[parity ^ 1])",
        "write(last, sum, shared.stages[parity])",
        "select",
        WRONG,
        "UNINITIALISED",
    ),
    bug(
        "select: written past the end of the output",
        _KERNEL,
        "if (place + count > params.capacity) {",
        "if (place > params.capacity) {",
        "select",
        "OUT OF BOUNDS",
    ),
    bug(
        "select: a rest that begins one too early",
        _KERNEL,
        "put(to, num_kept + i - place, i, held",
        "put(to, num_kept + i - place - 1, i, held",
        "partition",
        WRONG,
        "RACE",
    ),
    bug(
        "select: an element too far",
        _TILE,
        "last = count - 1;",
        "last = count;",
        "select",
        "OUT OF BOUNDS",
    ),
    bug(
        "select: the first lane counts what another one has",
        _TILE,
        "if (lane >= delta) sums += other;",
        "if (lane > 0) sums += other;",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
        "UNINITIALISED",
    ),
    bug(
        "prefix sum: not waited for",
        _SUM,
        "if (!ptx::any_sync(all_lanes, is_needed && status == nothing)) break;",
        "break;",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
        seeds=6,
    ),
    bug(
        "prefix sum: what lies before the nearest prefix, too",
        _SUM,
        "      if (!is_needed) value = Sum{};\n",
        "",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
    ),
    bug(
        "prefix sum: what warps behind the nearest prefix saw, too",
        _SUM,
        "if (lane < warps && ((ends ^ (ends - 1)) >> lane & 1)) value",
        "if (lane < warps) value",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
    ),
)
