"""Bugs of ranks and first elements of long rows, which many blocks look for."""

from __future__ import annotations

from emulator.planted.bug import WRONG, Bug, bug

_FILTER, _NARROW = "top_k/filter.cuh", "top_k/narrow.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "filter: what comes before is forgotten",
        _FILTER,
        "        ++num_before[l];\n",
        "",
        "ranks of a long row of few values",
        WRONG,
    ),
    bug(
        "filter: a place among a block's own",
        _FILTER,
        "ptx::atom_add_relaxed_gpu(&params.bounds[lane].num_kept",
        "ptx::atom_add_relaxed_cta(&params.bounds[lane].num_kept",
        "first elements of a long row",
        "RACE",
    ),
    bug(
        "filter: elements behind the last vector",
        _FILTER,
        "const bool is_there = i < row.count;",
        "const bool is_there = i <= row.count;",
        "first elements of a long row",
        "OUT OF BOUNDS",
    ),
    bug(
        "filter: what others have gathered is not waited for",
        _FILTER,
        "  __device__ void flush() {\n    ptx::syncwarp();",
        "  __device__ void flush() {",
        "ranks of a long row",
        "RACE",
        "UNINITIALISED",
    ),
    bug(
        "filter: more than a warp can gather",
        _FILTER,
        "    if (total > staged) {\n      keep_each(kept, at);\n      return;\n    }\n",
        "",
        "ranks of a long row of few values",
        "OUT OF BOUNDS",
        "RACE",
        WRONG,
    ),
    bug(
        "narrow: counts of a part of the blocks",
        _NARROW,
        "shared.is_last = ptx::atom_add_acq_rel_gpu<1>(&state.num_done) == parts - 1;",
        "shared.is_last = ptx::atom_add_acq_rel_gpu<1>(&state.num_done) == 0;",
        "ranks of a long row",
        "RACE",
        WRONG,
        "UNINITIALISED",
    ),
    bug(
        "narrow: counts that are not cleared",
        _NARROW,
        "      counts[i] = 0;\n",
        "",
        "ranks of a long row",
        WRONG,
        "UNINITIALISED",
    ),
    bug(
        "narrow: digits looked up before they are there",
        _NARROW,
        "    ptx::syncthreads();\n    search.look_up();",
        "    search.look_up();",
        "ranks of a long row",
        "RACE",
    ),
    bug(
        "narrow: no barrier before the last block is told",
        _NARROW,
        "    ptx::syncthreads();\n    if (!shared.is_last) return;",
        "    if (!shared.is_last) return;",
        "ranks of a long row",
        "RACE",
        "UNINITIALISED",
    ),
)
