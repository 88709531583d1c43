"""Sorting elements of several numbers on a GPU: words of them, and an order where they need more.

Numbers that fit 8 bytes are packed into one key, sorted by once, and unpacked. More are sorted by
group after group, the last one first: the order of the groups so far travels along as indices, by
which the next one is fetched. Values travel as one word if they fit 16 bytes, or are fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort import cuda_rows as block_sort
from gpualgo._algorithms.radix_sort import cuda_words, policy, words
from gpualgo._algorithms.radix_sort.cuda_builder import Builder, position_bytes
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job
from gpualgo._algorithms.radix_sort.operands import Operand
from gpualgo._algorithms.radix_sort.words import Dtype, Group
from gpualgo._arrays.view import View
from gpualgo._cuda.pieces import Piece
from gpualgo._cuda.plan import NONE, Clear, Plan

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort


def plan_of(problem: TupleSort, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a sort whose keys or values are several arrays."""
    builder = _Builder(problem, views, targets)
    if problem.index_dtype is not None:
        builder.add_argsort(problem.index_dtype.itemsize)
    elif len(problem.groups) == 1:
        builder.add_one_sort(problem.groups[0])
    else:
        builder.add_sorts()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """The steps and pieces of a plan, for one combination of layouts."""

    def __init__(self, problem: TupleSort, views: Sequence[View], targets: Sequence[View]) -> None:
        super().__init__(problem.axis, problem.row_items, views, targets)
        self.problem = problem
        count = problem.num_keys
        self._keys = [self._aligned(operand) for operand in self._sources[:count]]
        self._values = self._sources[count:]
        out = self._targets if problem.index_dtype is None else []
        self._out_keys, self._out_values = out[:count], out[count:]
        self._num_items = self._num_rows * self._row_items
        self._turns: dict[str, int] = {}  # pieces that several steps use in turn
        self._storage = -1  # the first piece of the passes'

    def add_argsort(self, result_bytes: int) -> None:
        """Sort the positions of elements by the elements."""
        target, groups = self._targets[0], self.problem.groups
        home = target.place if target.is_ready else self._piece(target.num_bytes)
        size = position_bytes(self._row_items)
        if len(groups) == 1:
            self._start(groups[0], home, size, result_bytes)
        elif size == result_bytes:
            self._order(home, size)
        else:  # wider at the end, once
            indices = self._piece(self._num_items * size)
            self._order(indices, size)
            narrow = target.like(indices, size)
            self._pack([(narrow, 0)], result_bytes, home)
        self._scatter(target, home)

    def add_one_sort(self, group: Group) -> None:
        """Sort by one word, or one array, and values along."""
        begin, home, keys_same = self._gather_keys(group)
        word = self.problem.value_word
        is_moved = len(self._values) == 1 and self._values[0].itemsize in policy.WORDS
        if not self._values:
            self._sort(
                self._job_of(group, keys_same, not keys_same), Arrays(begin, NONE, home, NONE)
            )
        elif is_moved or word is not None:
            if word is None:
                first, last, same = self._gather_source(self._values[0], self._out_values[0])
            else:
                first = last = self._piece(self._num_items * word.itemsize)
                same = True
                parts = [self._aligned(operand) for operand in self._values]
                self._pack(_places(parts, word), word.itemsize, last)
            size = self._values[0].itemsize if word is None else word.itemsize
            job = self._job_of(
                group, keys_same or same, not (keys_same and same), value_bytes=size,
                result_bytes=size,
            )  # fmt: skip
            self._sort(job, Arrays(begin, first, home, last))
            if word is None:
                self._scatter(self._out_values[0], last)
            else:
                self._unpack(last, word, self._out_values)
        else:
            size = position_bytes(self._row_items)
            indices = self._piece(self._num_items * size)
            job = self._job_of(
                group, keys_same, True, value_bytes=size, result_bytes=size, makes_indices=True
            )
            self._sort(job, Arrays(begin, NONE, home, indices))
            for source, target in zip(self._values, self._out_values, strict=True):
                self._fetch(source, target, indices, size)
        self._finish_keys(group, home)

    def add_sorts(self) -> None:
        """Sort by several groups, and fetch what did not travel along."""
        size = position_bytes(self._row_items)
        indices = self._piece(self._num_items * size)
        home = self._order(indices, size)
        first = self.problem.groups[0]
        self._finish_keys(first, home)
        rest = range(first.size, len(self._keys))
        pairs = [(self._keys[i], self._out_keys[i]) for i in rest]
        for source, target in [*pairs, *zip(self._values, self._out_values, strict=True)]:
            self._fetch(source, target, indices, size)

    def _order(self, indices: int, size: int) -> int:
        """Write the order of elements; return where the first group's sorted keys are then."""
        *others, last = self.problem.groups
        self._start(last, indices, size, size)
        home = NONE
        for group in reversed(others):
            home = self._home_of(group)
            self._pack(self._parts(group), group.dtype.itemsize, home, (indices, size))
            job = self._job_of(group, True, False, value_bytes=size, result_bytes=size)
            self._sort(job, Arrays(home, indices, home, indices))
        return home

    def _home_of(self, group: Group) -> int:
        """Return where a group's keys are fetched to and sorted: where they belong if they may."""
        if group.first == 0 and not group.is_word and self._out_keys:
            source, target = self._sources[0], self._out_keys[0]
            if target.is_ready and target.address != source.address:
                return target.place
        return self._take_turns("keys", self._num_items * group.dtype.itemsize)

    def _start(self, group: Group, indices: int, size: int, result_bytes: int) -> None:
        """Write the order of a group's keys, which stay as they are."""
        source = self._keys[group.first]
        begin = source.place
        if group.is_word or not source.is_ready:
            begin = self._take_turns("keys", self._num_items * group.dtype.itemsize)
            self._pack(self._parts(group), group.dtype.itemsize, begin)
        job = self._job_of(
            group, False, True, value_bytes=size, result_bytes=result_bytes, makes_indices=True,
            keeps_keys=False,
        )  # fmt: skip
        self._sort(job, Arrays(begin, NONE, NONE, indices))

    # --- keys ---------------------------------------------------------------------------------

    def _gather_keys(self, group: Group) -> tuple[int, int, bool]:
        """Return where sorting starts, where sorted keys go, and whether that is the same."""
        if not group.is_word:
            return self._gather_source(self._keys[group.first], self._out_keys[group.first])
        home = self._take_turns("keys", self._num_items * group.dtype.itemsize)
        self._pack(self._parts(group), group.dtype.itemsize, home)
        return home, home, True

    def _finish_keys(self, group: Group, home: int) -> None:
        targets = [self._out_keys[i] for i in group.places]
        if group.is_word:
            self._unpack(home, group.dtype, targets)
        else:
            self._scatter(targets[0], home)

    def _parts(self, group: Group) -> list[tuple[Operand, int]]:
        operands = [self._keys[i] for i in group.places]
        return _places(operands, group.dtype) if group.is_word else [(operands[0], 0)]

    def _job_of(self, group: Group, is_in_place: bool, has_to_write: bool, **others: int) -> Job:
        problem = self.problem
        begin, end = problem.begin_bit, problem.end_bit
        if end is None:
            begin, end = 0, words.used_bits(group.dtype)
        return Job(
            self.device, group.dtype, self._num_rows, self._row_items, group.descending, begin, end,
            is_in_place=is_in_place, has_to_write=has_to_write,
            **others,  # type: ignore[arg-type]
        )  # fmt: skip

    # --- steps --------------------------------------------------------------------------------

    def _sort(self, job: Job, arrays: Arrays) -> None:
        """Add a sort; the passes of several use the same storage, tidied in between."""
        sorted_in_one = block_sort.launch_of(job, arrays)
        if sorted_in_one is not None:
            self.steps.append(sorted_in_one)
            return
        is_first = self._storage < 0
        if is_first:
            self._storage = len(self.pieces)
        is_kept = not self.pieces and len(self.problem.groups) == 1  # what is kept is not cleared
        steps, pieces = passes.steps_of(job, arrays, self._at.piece(self._storage), is_kept)
        if is_first:
            self.pieces += pieces
            pieces = []
        for i, piece in enumerate(pieces):
            at = self._storage + i
            if piece.is_zeroed:
                self.steps.append(Clear(self._at.piece(at), piece.num_bytes))
            if piece.num_bytes > self.pieces[at].num_bytes:
                self.pieces[at] = piece
        self.steps += steps

    def _pack(
        self, parts: Sequence[tuple[Operand, int]], word_bytes: int, target: int,
        indices: tuple[int, int] = (NONE, 0),
    ) -> None:  # fmt: skip
        rows = self._num_rows, self._row_items
        self.steps.append(cuda_words.pack(parts, word_bytes, target, rows, self.device, indices))

    def _unpack(self, source: int, word: Dtype, targets: Sequence[Operand]) -> None:
        """Add the step that writes words' numbers to arrays, past such as are not aligned."""
        homes = [
            t if t.is_aligned else t.like(self._piece(t.num_bytes), t.itemsize) for t in targets
        ]
        self.steps.append(
            cuda_words.unpack(
                source, word.itemsize, _places(homes, word), self._num_items, self.device
            )
        )
        for target, home in zip(targets, homes, strict=True):
            if home is not target:
                self._scatter(target, home.place)

    def _fetch(self, source: Operand, target: Operand, indices: int, size: int) -> None:
        """Add the steps that put an array's numbers in the order of indices."""
        if source.itemsize not in words.PARTS or not source.is_aligned:
            self._scatter(target, self._gather_items(source, target, indices, size))
            return
        home = target.place
        if not target.is_ready or target.address == source.address:
            home = self._take_turns("numbers", target.num_bytes)
        self._pack([(source, 0)], source.itemsize, home, (indices, size))
        self._scatter(target, home)

    # --- memory -------------------------------------------------------------------------------

    def _aligned(self, operand: Operand) -> Operand:
        """Return an array, or a copy of it if its numbers are not aligned."""
        if operand.is_aligned:
            return operand
        home = operand.like(self._piece(operand.num_bytes), operand.itemsize)
        self._copy(operand, True, home.place)
        return home

    def _take_turns(self, name: str, num_bytes: int) -> int:
        """Return the place of a piece that is large enough for each that asks for it by name."""
        if name not in self._turns:
            self._turns[name] = len(self.pieces)
            return self._piece(num_bytes)
        at = self._turns[name]
        self.pieces[at] = Piece(max(num_bytes, self.pieces[at].num_bytes))
        return self._at.piece(at)


def _places(operands: Sequence[Operand], word: Dtype) -> list[tuple[Operand, int]]:
    """Return arrays with the byte of a word where each one's numbers begin."""
    return list(zip(operands, cuda_words.offsets(word), strict=True))
