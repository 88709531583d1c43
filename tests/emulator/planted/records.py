"""Bugs of what kernels do with records."""

from __future__ import annotations

from emulator.planted.bug import WRONG, Bug, bug

_LEAVES = "parts/leaves.cuh"
_ROWS = "reduce/rows.cuh"
_STEPPED = "scan/stepped_lines.cuh"
_TILES = "scan/tiles.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "leaves: one number for all elements of a pack",
        _LEAVES,
        "leaf_of<i>(result.items[k]) = numbers.items[k];",
        "leaf_of<i>(result.items[k]) = numbers.items[0];",
        "reduce blocks of records",
        WRONG,
    ),
    bug(
        "leaves: records would lie in one piece",
        _LEAVES,
        "count * detail::leaf_stride<Leaf<T, i>>;",
        "count * int64(sizeof(T));",
        "reduce blocks of records",
        "OUT OF BOUNDS",
        WRONG,
    ),
    bug(
        "whole: a number goes to another byte of its word",
        "parts/whole.cuh",
        "<< (at + k) % 4 * 8",
        "<< (at + k + 1) % 4 * 8",
        "tiles of mixed records",
        WRONG,
        "OUT OF BOUNDS",
        "LIVELOCK",
    ),
    bug(
        "reduce: results in the inputs' strides",
        _ROWS,
        "return moved(output, [&](auto leaf) { return offsets[leaves + decltype(leaf)::value]; });",
        "return moved(output, [&](auto leaf) { return offsets[decltype(leaf)::value]; });",
        "reduce rows of records in steps",
        "OUT OF BOUNDS",
        WRONG,
        "RACE",
    ),
    bug(
        "stepped: all lanes begin with one element",
        _STEPPED,
        "const unsigned char* source = line.at[i] + (begin + lane) * steps[i];",
        "const unsigned char* source = line.at[i] + begin * steps[i];",
        "tiles of records",
        WRONG,
    ),
    bug(
        "stepped: numbers of other elements",
        _STEPPED,
        "load_item<Leaf<T, i>>(source + j * warp_threads * steps[i])",
        "load_item<Leaf<T, i>>(source + j * steps[i])",
        "tiles of mixed records",
        WRONG,
    ),
    bug(
        "stepped: an element past the line",
        _STEPPED,
        "k < count; k += warp_threads) {\n      copy_to_shared",
        "k <= count; k += warp_threads) {\n      copy_to_shared",
        "tiles of records",
        "OUT OF BOUNDS",
        "RACE",
    ),
    bug(
        "stepped: a result past the line",
        _STEPPED,
        "for (int k = lane; k < count; k += warp_threads) {",
        "for (int k = lane; k <= count; k += warp_threads) {",
        "tiles of records",
        "OUT OF BOUNDS",
        "RACE",
        WRONG,
    ),
    bug(
        "tiles: a warp without elements does not wait for what it began",
        _TILES,
        "if (count > 0 || is_record<E>) {",
        "if (count > 0) {",
        "tiles of records",
        "COPY",
    ),
)
