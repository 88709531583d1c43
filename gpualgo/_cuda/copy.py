"""Copies between arrays of any strides, and gathers, for items of any size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.plan import Launch
from gpualgo._cuda.templates import DIVISOR, layout

_BLOCK_THREADS = 256
_WORDS_PER_THREAD = 4
_WIDEST = 16
_COPY = Parameters("CopyParams", input=POINTER, output=POINTER, num_words=I64, layout=layout(2))
_GATHER = Parameters(
    "GatherParams",
    input=POINTER, output=POINTER, indices=POINTER, num_words=I64,
    words_per_item=DIVISOR, row_items=DIVISOR,
)  # fmt: skip


def word_bytes(*numbers: int) -> int:
    """Return the widest word that divides all sizes, strides and addresses."""
    return math.gcd(_WIDEST, *(abs(number) for number in numbers))


def _word(size: int) -> str:
    return "uint4" if size == 16 else f"gpualgo::uint{8 * size}"


def copy_spec(word: int) -> Spec:
    expression = f"gpualgo::copy_kernel<{_BLOCK_THREADS}, {_WORDS_PER_THREAD}, {_word(word)}>"
    return Spec("copy.cuh", expression, _COPY)


def gather_spec(word: int, index_bytes: int) -> Spec:
    return Spec(
        "copy.cuh",
        f"gpualgo::gather_kernel<{_BLOCK_THREADS}, {_WORDS_PER_THREAD}, {_word(word)}, "
        f"{_word(index_bytes)}>",
        _GATHER,
    )


def _grid(num_words: int) -> int:
    return -(-num_words // (_BLOCK_THREADS * _WORDS_PER_THREAD))


def copy(
    dims: Dims, itemsize: int, alignment: int, device: int, takes: Mapping[str, Any]
) -> Launch:
    """Return the launch of a copy; `dims` have the strides of input and output."""
    # Neighbouring threads write neighbouring words.
    dims = sorted(merge(dims), key=lambda dim: -abs(dim[1][1]))
    word = word_bytes(itemsize, alignment, *(s for _, strides in dims for s in strides))
    if word < itemsize:
        dims.append((itemsize // word, (word, word)))
    dims = merge(dims)
    num_words = math.prod(extent for extent, _ in dims)
    packed = _COPY.pack(num_words=num_words, layout=dims)
    kernel = build.kernel(copy_spec(word), device)
    return Launch(kernel, _grid(num_words), _BLOCK_THREADS, packed, device, takes)


def gather(
    num_rows: int, row_items: int, itemsize: int, alignment: int, index_bytes: int, device: int,
    takes: Mapping[str, int],
) -> Launch:  # fmt: skip
    """Return the launch that gathers items of rows in the order of `indices`."""
    word = word_bytes(itemsize, alignment)
    num_words = num_rows * row_items * (itemsize // word)
    packed = _GATHER.pack(num_words=num_words, words_per_item=itemsize // word, row_items=row_items)
    kernel = build.kernel(gather_spec(word, index_bytes), device)
    return Launch(kernel, _grid(num_words), _BLOCK_THREADS, packed, device, takes)
