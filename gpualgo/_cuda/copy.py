"""Copies between arrays of any strides, and gathers, of items of any size."""

from __future__ import annotations

import math
import struct

from gpualgo._base.extents import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import DIVISOR, divisor, pack_layout

_BLOCK_THREADS = 256
_WORDS_PER_THREAD = 4
_WIDEST = 16
_COPY_HEAD = struct.Struct("<2Q")  # input, output
_GATHER_HEAD = struct.Struct("<3Q")  # input, output, indices


def word_bytes(*numbers: int) -> int:
    """Return the widest word that divides sizes, strides and addresses."""
    return math.gcd(_WIDEST, *(abs(number) for number in numbers))


def _word(size: int) -> str:
    return "uint4" if size == 16 else f"gpualgo::uint{8 * size}"


def copy_spec(word: int) -> Spec:
    """Return the kernel that copies words between layouts."""
    expression = f"gpualgo::copy_kernel<{_BLOCK_THREADS}, {_WORDS_PER_THREAD}, {_word(word)}>"
    return Spec("copy.cuh", expression)


def gather_spec(word: int, index_bytes: int) -> Spec:
    """Return the kernel that gathers words."""
    return Spec(
        "copy.cuh",
        f"gpualgo::gather_kernel<{_BLOCK_THREADS}, {_WORDS_PER_THREAD}, {_word(word)}, "
        f"{_word(index_bytes)}>",
    )


def _grid(num_words: int) -> int:
    return -(-num_words // (_BLOCK_THREADS * _WORDS_PER_THREAD))


def copy(dims: Dims, itemsize: int, alignment: int, device: int, takes: tuple[int, int]) -> Launch:
    """Return the launch (input, output) of a copy; strides are those of input and output."""
    # Neighbouring threads should write neighbours.
    dims = sorted(merge(dims), key=lambda dim: -abs(dim[1][1]))
    word = word_bytes(itemsize, alignment, *(s for _, strides in dims for s in strides))
    if word < itemsize:
        dims.append((itemsize // word, (word, word)))
    dims = merge(dims)
    num_words = math.prod(extent for extent, _ in dims)
    tail = struct.pack("<q", num_words) + pack_layout(dims, 2)
    kernel = build.kernel(copy_spec(word), device)
    return Launch(kernel, _grid(num_words), _BLOCK_THREADS, _COPY_HEAD, tail, device, takes)


def gather(
    num_rows: int, row_items: int, itemsize: int, alignment: int, index_bytes: int, device: int,
    takes: tuple[int, int, int],
) -> Launch:  # fmt: skip
    """Return the launch (input, output, indices) that puts rows' items in a new order."""
    word = word_bytes(itemsize, alignment)
    num_words = num_rows * row_items * (itemsize // word)
    tail = struct.pack(
        f"<q{DIVISOR}{DIVISOR}", num_words, *divisor(itemsize // word), *divisor(row_items)
    )
    kernel = build.kernel(gather_spec(word, index_bytes), device)
    return Launch(kernel, _grid(num_words), _BLOCK_THREADS, _GATHER_HEAD, tail, device, takes)
