"""Sort of tuples on a GPU: fields are packed into words.

Fields that fit 8 bytes are packed into one key, sorted once and unpacked. More fields are sorted
group by group, the last group first. Indices carry the order so far; each group is gathered by them
before it is sorted. Values are moved as one word if they fit 16 bytes, and gathered otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort import tuning
from gpualgo._algorithms.radix_sort.cuda_passes import (
    Arrays,
    Builder,
    Job,
    Operand,
    launch_of,
    position_bytes,
)
from gpualgo._algorithms.radix_sort.problem import PARTS, Dtype, Group, TupleSort, used_bits
from gpualgo._arrays.view import View
from gpualgo._base.strides import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.plan import NONE, Clear, Launch, Piece, Plan

# --- Packing of arrays' items into words on a GPU, and unpacking (radix_sort/words.cuh).

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


def plan_of(problem: TupleSort, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    builder = _Builder(problem, views, targets)
    if problem.index_dtype is not None:
        builder.add_argsort(problem.index_dtype.itemsize)
    elif len(problem.groups) == 1:
        builder.add_one_sort(problem.groups[0])
    else:
        builder.add_sorts()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """Builds the steps and scratch pieces of a plan for one combination of layouts."""

    def __init__(self, problem: TupleSort, views: Sequence[View], targets: Sequence[View]) -> None:
        super().__init__(problem.axis, problem.row_items, views, targets)
        self.problem = problem
        count = problem.num_keys
        self._keys = [self._aligned(operand) for operand in self._sources[:count]]
        self._values = self._sources[count:]
        out = self._targets if problem.index_dtype is None else []
        self._out_keys, self._out_values = out[:count], out[count:]
        self._num_items = self._num_rows * self._row_items
        self._shared_pieces: dict[str, int] = {}  # pieces shared by several steps
        self._storage = -1  # first scratch piece of the passes

    def add_argsort(self, result_bytes: int) -> None:
        """Sort the positions of elements by the elements."""
        target, groups = self._targets[0], self.problem.groups
        key_dst = target.slot if target.is_ready else self._scratch(target.num_bytes)
        size = position_bytes(self._row_items)
        if len(groups) == 1:
            self._order_group(groups[0], key_dst, size, result_bytes)
        elif size == result_bytes:
            self._order(key_dst, size)
        else:  # widen once, at the end
            indices = self._scratch(self._num_items * size)
            self._order(indices, size)
            narrow = target.dense_rows(indices, size)
            self._pack([(narrow, 0)], result_bytes, key_dst)
        self._scatter(target, key_dst)

    def add_one_sort(self, group: Group) -> None:
        """Sort by one word or one array, and values with it."""
        key_src, key_dst, keys_same = self._gather_keys(group)
        word = self.problem.value_word
        is_moved = len(self._values) == 1 and self._values[0].itemsize in tuning.WORDS
        if not self._values:
            self._sort(
                self._job_of(group, keys_same, not keys_same), Arrays(key_src, NONE, key_dst, NONE)
            )
        elif is_moved or word is not None:
            if word is None:
                val_src, val_dst, same = self._gather_source(self._values[0], self._out_values[0])
            else:
                val_src = val_dst = self._scratch(self._num_items * word.itemsize)
                same = True
                parts = [self._aligned(operand) for operand in self._values]
                self._pack(_with_offsets(parts, word), word.itemsize, val_dst)
            size = self._values[0].itemsize if word is None else word.itemsize
            job = self._job_of(
                group, keys_same or same, not (keys_same and same), value_bytes=size,
                result_bytes=size,
            )  # fmt: skip
            self._sort(job, Arrays(key_src, val_src, key_dst, val_dst))
            if word is None:
                self._scatter(self._out_values[0], val_dst)
            else:
                self._unpack(val_dst, word, self._out_values)
        else:
            size = position_bytes(self._row_items)
            indices = self._scratch(self._num_items * size)
            job = self._job_of(
                group, keys_same, True, value_bytes=size, result_bytes=size, makes_indices=True
            )
            self._sort(job, Arrays(key_src, NONE, key_dst, indices))
            for source, target in zip(self._values, self._out_values, strict=True):
                self._fetch(source, target, indices, size)
        self._finish_keys(group, key_dst)

    def add_sorts(self) -> None:
        """Sort by several groups, and gather the arrays that were not moved with the keys."""
        size = position_bytes(self._row_items)
        indices = self._scratch(self._num_items * size)
        sorted_keys = self._order(indices, size)
        first = self.problem.groups[0]
        self._finish_keys(first, sorted_keys)
        others = range(first.size, len(self._keys))
        pairs = [(self._keys[i], self._out_keys[i]) for i in others]
        for source, target in [*pairs, *zip(self._values, self._out_values, strict=True)]:
            self._fetch(source, target, indices, size)

    def _order(self, indices: int, size: int) -> int:
        """Write the order of elements; return the slot of the first group's sorted keys."""
        *others, last = self.problem.groups
        self._order_group(last, indices, size, size)
        sorted_keys = NONE
        for group in reversed(others):
            sorted_keys = self._sort_slot_of(group)
            self._pack(self._parts(group), group.dtype.itemsize, sorted_keys, (indices, size))
            job = self._job_of(group, True, False, value_bytes=size, result_bytes=size)
            self._sort(job, Arrays(sorted_keys, indices, sorted_keys, indices))
        return sorted_keys

    def _sort_slot_of(self, group: Group) -> int:
        """Return the slot where a group's keys are gathered and sorted: the output if possible."""
        if group.first == 0 and not group.is_word and self._out_keys:
            source, target = self._sources[0], self._out_keys[0]
            if target.is_ready and target.address != source.address:
                return target.slot
        return self._shared_piece("keys", self._num_items * group.dtype.itemsize)

    def _order_group(self, group: Group, indices: int, size: int, result_bytes: int) -> None:
        """Write the order of a group's keys, which stay unchanged."""
        source = self._keys[group.first]
        key_src = source.slot
        if group.is_word or not source.is_ready:
            key_src = self._shared_piece("keys", self._num_items * group.dtype.itemsize)
            self._pack(self._parts(group), group.dtype.itemsize, key_src)
        job = self._job_of(
            group, False, True, value_bytes=size, result_bytes=result_bytes, makes_indices=True,
            keeps_keys=False,
        )  # fmt: skip
        self._sort(job, Arrays(key_src, NONE, NONE, indices))

    # --- keys ---------------------------------------------------------------------------------

    def _gather_keys(self, group: Group) -> tuple[int, int, bool]:
        """Return the slots of the sort's source and target, and whether these are the same."""
        if not group.is_word:
            return self._gather_source(self._keys[group.first], self._out_keys[group.first])
        slot = self._shared_piece("keys", self._num_items * group.dtype.itemsize)
        self._pack(self._parts(group), group.dtype.itemsize, slot)
        return slot, slot, True

    def _finish_keys(self, group: Group, slot: int) -> None:
        targets = [self._out_keys[i] for i in group.places]
        if group.is_word:
            self._unpack(slot, group.dtype, targets)
        else:
            self._scatter(targets[0], slot)

    def _parts(self, group: Group) -> list[tuple[Operand, int]]:
        operands = [self._keys[i] for i in group.places]
        return _with_offsets(operands, group.dtype) if group.is_word else [(operands[0], 0)]

    def _job_of(self, group: Group, is_in_place: bool, has_to_write: bool, **others: int) -> Job:
        problem = self.problem
        begin, end = problem.begin_bit, problem.end_bit
        if end is None:
            begin, end = 0, used_bits(group.dtype)
        return Job(
            self.device, group.dtype, self._num_rows, self._row_items, group.descending, begin, end,
            is_in_place=is_in_place, has_to_write=has_to_write,
            **others,  # type: ignore[arg-type]
        )  # fmt: skip

    # --- steps --------------------------------------------------------------------------------

    def _sort(self, job: Job, arrays: Arrays) -> None:
        """Add a sort; several share the passes' storage, which is cleared in between."""
        single_launch = launch_of(job, arrays)
        if single_launch is not None:
            self.steps.append(single_launch)
            return
        is_first = self._storage < 0
        if is_first:
            self._storage = len(self.pieces)
        is_kept = not self.pieces and len(self.problem.groups) == 1  # kept storage is not cleared
        steps, pieces = passes.steps_of(job, arrays, self._slots.piece(self._storage), is_kept)
        if is_first:
            self.pieces += pieces
            pieces = []
        for i, piece in enumerate(pieces):
            index = self._storage + i
            if piece.is_zeroed:
                self.steps.append(Clear(self._slots.piece(index), piece.num_bytes))
            if piece.num_bytes > self.pieces[index].num_bytes:
                self.pieces[index] = piece
        self.steps += steps

    def _pack(
        self, parts: Sequence[tuple[Operand, int]], word_bytes: int, target: int,
        indices: tuple[int, int] = (NONE, 0),
    ) -> None:  # fmt: skip
        rows = self._num_rows, self._row_items
        self.steps.append(pack(parts, word_bytes, target, rows, self.device, indices))

    def _unpack(self, source: int, word: Dtype, targets: Sequence[Operand]) -> None:
        """Add the step that writes words' fields to arrays, unaligned ones through a copy."""
        aligned = [
            t if t.is_aligned else t.dense_rows(self._scratch(t.num_bytes), t.itemsize)
            for t in targets
        ]
        self.steps.append(
            unpack(
                source, word.itemsize, _with_offsets(aligned, word), self._num_items, self.device
            )
        )
        for target, dense in zip(targets, aligned, strict=True):
            if dense is not target:
                self._scatter(target, dense.slot)

    def _fetch(self, source: Operand, target: Operand, indices: int, size: int) -> None:
        """Add the steps that gather an array's items by indices."""
        if source.itemsize not in PARTS or not source.is_aligned:
            self._scatter(target, self._gather_items(source, target, indices, size))
            return
        slot = target.slot
        if not target.is_ready or target.address == source.address:
            slot = self._shared_piece("numbers", target.num_bytes)
        self._pack([(source, 0)], source.itemsize, slot, (indices, size))
        self._scatter(target, slot)

    # --- memory -------------------------------------------------------------------------------

    def _aligned(self, operand: Operand) -> Operand:
        """Return an array, or a copy of it if its items are not aligned."""
        if operand.is_aligned:
            return operand
        dense_copy = operand.dense_rows(self._scratch(operand.num_bytes), operand.itemsize)
        self._copy(operand, True, dense_copy.slot)
        return dense_copy

    def _shared_piece(self, name: str, num_bytes: int) -> int:
        """Return the slot of a piece shared by name, large enough for every user."""
        if name not in self._shared_pieces:
            self._shared_pieces[name] = len(self.pieces)
            return self._scratch(num_bytes)
        index = self._shared_pieces[name]
        self.pieces[index] = Piece(max(num_bytes, self.pieces[index].num_bytes))
        return self._slots.piece(index)


def _with_offsets(operands: Sequence[Operand], word: Dtype) -> list[tuple[Operand, int]]:
    return list(zip(operands, offsets(word), strict=True))
