"""Packing of arrays' items into words on a GPU, and unpacking (radix_sort/words.cuh)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import tuning
from gpualgo._algorithms.radix_sort.cuda_passes import Operand
from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.plan import NONE, Launch

_BLOCK_THREADS = 256
_ITEMS = 4  # items per thread


def pack(
    parts: Sequence[tuple[Operand, int]], word_bytes: int, target: int, rows: tuple[int, int],
    device: int, indices: tuple[int, int] = (NONE, 0),
) -> Launch:  # fmt: skip
    """Return the launch that packs items side by side into dense words.

    `parts`: arrays, with the byte offsets of their fields in a word; `rows`: their number and
    length; `indices`: slot and size of the indices of elements within their row.
    """
    operands = _in_order(parts)
    index_slot, index_bytes = indices
    num_items = rows[0] * rows[1]
    spec = pack_spec(word_bytes, _sizes(operands), index_bytes, _is_dense(operands))
    packed = spec.parameters.pack(num_items=num_items, row_items=rows[1], layout=_dims(operands))
    slots: dict[str, Any] = {
        "numbers": [operand.slot for operand in operands], "indices": index_slot, "words": target,
    }  # fmt: skip
    kernel = build.kernel(spec, device)
    return Launch(kernel, _grid(num_items), _BLOCK_THREADS, packed, device, slots)


def unpack(
    source: int, word_bytes: int, parts: Sequence[tuple[Operand, int]], num_items: int, device: int
) -> Launch:
    """Return the launch that writes the fields of dense words to arrays."""
    operands = _in_order(parts)
    spec = unpack_spec(word_bytes, _sizes(operands), _is_dense(operands))
    packed = spec.parameters.pack(num_items=num_items, layout=_dims(operands))
    slots: dict[str, Any] = {"numbers": [o.slot for o in operands], "words": source}
    kernel = build.kernel(spec, device)
    return Launch(kernel, _grid(num_items), _BLOCK_THREADS, packed, device, slots)


def pack_spec(word_bytes: int, sizes: Sequence[int], index_bytes: int, is_dense: bool) -> Spec:
    """Return the kernel that packs; in order of the elements if `index_bytes` is 0."""
    index = tuning.word(index_bytes) if index_bytes else "gpualgo::InOrder"
    return Spec(
        "radix_sort/words.cuh",
        f"gpualgo::pack_words_kernel<{_policy(is_dense)}, {tuning.word(word_bytes)}, "
        f"{_numbers(sizes)}, {index}>",
        tuning.pack_words_params(len(sizes)),
    )


def unpack_spec(word_bytes: int, sizes: Sequence[int], is_dense: bool) -> Spec:
    return Spec(
        "radix_sort/words.cuh",
        f"gpualgo::unpack_words_kernel<{_policy(is_dense)}, {tuning.word(word_bytes)}, "
        f"{_numbers(sizes)}>",
        tuning.unpack_words_params(len(sizes)),
    )


def _policy(is_dense: bool) -> str:
    return f"gpualgo::WordsPolicy<{_BLOCK_THREADS}, {_ITEMS}, {str(is_dense).lower()}>"


def _numbers(sizes: Sequence[int]) -> str:
    return f"gpualgo::Tuple<{', '.join(map(tuning.word, sizes))}>"


def _grid(num_items: int) -> int:
    return -(-num_items // (_BLOCK_THREADS * _ITEMS))


def _in_order(parts: Sequence[tuple[Operand, int]]) -> list[Operand]:
    """Return arrays in the order of their fields in a word, from the lowest bytes on."""
    return [operand for operand, _ in sorted(parts, key=lambda part: part[1])]


def _sizes(operands: Sequence[Operand]) -> list[int]:
    return [operand.itemsize for operand in operands]


def _is_dense(operands: Sequence[Operand]) -> bool:
    return all(operand.is_gapless for operand in operands)


def _dims(operands: Sequence[Operand]) -> Dims:
    if _is_dense(operands):
        return []
    strides = zip(*(operand.strides for operand in operands), strict=True)
    extents = [extent for extent, _ in operands[0].dims]
    return merge(list(zip(extents, strides, strict=True)))


def offsets(word: np.dtype[Any]) -> list[int]:
    assert word.fields is not None
    return [word.fields[name][1] for name in word.names or ()]
