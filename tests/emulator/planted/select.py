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
        "look_back(last);\n      ptx::syncthreads();",
        "look_back(last);",
        "select",
        "RACE",
    ),
    bug(
        "select: one stage for two",
        _KERNEL,
        "write(last, shared.stages[parity ^ 1])",
        "write(last, shared.stages[parity])",
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
        "put(to, num_kept + i - place, held",
        "put(to, num_kept + i - place - 1, held",
        "partition",
        WRONG,
        "RACE",
    ),
    bug(
        "select: an element too far",
        _TILE,
        "        if (i < count) {",
        "        if (i <= count) {",
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
        "select: the first tile publishes no prefix",
        _KERNEL,
        "tile == 0 ? prefix : aggregate",
        "aggregate",
        "select",
        WRONG,
        "LIVELOCK",
    ),
    bug(
        "prefix sum: not waited for",
        _SUM,
        "at >= 0 && status == nothing && (reached >> lane & 1)",
        "false",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
        seeds=6,
    ),
    bug(
        "prefix sum: what lies before the nearest prefix, too",
        _SUM,
        "if (at >= 0 && (reached >> lane & 1)) sum = joined(sum, value);",
        "if (at >= 0) sum = joined(sum, value);",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
    ),
    bug(
        "prefix sum: a window that overlaps the next",
        _SUM,
        "end -= warp_threads)",
        "end -= warp_threads - 1)",
        "select",
        WRONG,
        "RACE",
        "OUT OF BOUNDS",
        seeds=12,
    ),
)
