"""Sorting rows that fit a block, all in one launch."""

from __future__ import annotations

import struct

from gpualgo._algorithms.radix_sort import policy
from gpualgo._algorithms.radix_sort.cuda_passes import Job
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._driver import driver

_HEAD = struct.Struct("<4Q")  # keys, values, their outputs
_MAX_PASSES = 8


class RowsSorter:
    """Sorts a job's rows without temporary storage."""

    __slots__ = ("_launch",)
    temp_storage_bytes = 0

    def __init__(self, job: Job, cut: policy.RowPolicy | None) -> None:
        self._launch = _small_launch(job) if cut is None else _launch(job, cut)

    def queue(self, stream: int, keys: int, values: int, out_keys: int, out_values: int) -> None:
        """Queue the sort on a stream; the device is current."""
        self._launch(stream, keys, values, out_keys, out_values)


def sorter_of(job: Job) -> RowsSorter | None:
    """Return what sorts a job's rows in one launch; None if they are too long."""
    if job.row_items <= policy.SMALL_ROW:
        return RowsSorter(job, None)
    limit, sms = driver.shared_limit(job.device), driver.num_sms(job.device)
    cut = policy.row_policy(
        job.num_rows, job.row_items, job.key_bytes, job.result_bytes, sms, limit
    )
    return None if cut is None else RowsSorter(job, cut)


def _launch(job: Job, cut: policy.RowPolicy) -> Launch:
    digits = policy.digits_of(job.dtype, job.descending, job.begin_bit, job.end_bit, False)
    padding, is_highest = policy.last_key(job.dtype, job.descending)
    words = [word for d in digits for word in (d.shift, d.mask, d.flip)]
    words += [0] * (3 * _MAX_PASSES - len(words))
    tail = struct.pack(
        f"<qqQII{3 * _MAX_PASSES}I", job.num_rows, job.row_items, padding, is_highest,
        len(digits), *words,
    )  # fmt: skip
    kernel = build.kernel(policy.rows_spec(job.dtype, job.result_bytes, cut), job.device)
    shared = cut.shared_bytes(job.key_bytes, job.result_bytes > 0)
    grid = -(-job.num_rows // cut.rows_per_block)
    return Launch(kernel, grid, cut.block_threads, _HEAD, tail, job.device, shared)


def _small_launch(job: Job) -> Launch:
    width = 1 << (job.row_items - 1).bit_length()
    mask = (1 << job.end_bit - job.begin_bit) - 1
    flip = policy.flipped_bits(job.dtype, job.descending) >> job.begin_bit & mask
    tail = struct.pack("<qqQQq", job.num_rows, job.row_items, mask, flip, job.begin_bit)
    spec = policy.small_rows_spec(job.dtype, job.result_bytes, width)
    rows_per_block = policy.SMALL_ROWS_THREADS // width
    return Launch(
        build.kernel(spec, job.device), -(-job.num_rows // rows_per_block),
        policy.SMALL_ROWS_THREADS, _HEAD, tail, job.device,
    )  # fmt: skip
