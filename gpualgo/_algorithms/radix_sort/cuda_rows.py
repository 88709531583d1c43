"""Sorting rows that fit a block, all in one launch and without temporary storage."""

from __future__ import annotations

import struct

from gpualgo._algorithms.radix_sort import policy
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._driver import device as gpu

_HEAD = struct.Struct("<4Q")  # keys, values, their outputs
_MAX_PASSES = 8


def launch_of(job: Job, arrays: Arrays) -> Launch | None:
    """Return what sorts a job's rows in one launch; None if they are too long."""
    if job.row_items <= policy.SMALL_ROW:
        return _small_launch(job, arrays)
    limit, sms = gpu.get(job.device).shared_limit, gpu.get(job.device).num_sms
    cut = policy.row_policy(
        job.num_rows, job.row_items, job.key_bytes, job.result_bytes, sms, limit
    )
    return None if cut is None else _launch(job, cut, arrays)


def _launch(job: Job, cut: policy.RowPolicy, arrays: Arrays) -> Launch:
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
    return Launch(
        kernel, grid, cut.block_threads, _HEAD, tail, job.device, arrays, shared_bytes=shared
    )


def _small_launch(job: Job, arrays: Arrays) -> Launch:
    width = 1 << (job.row_items - 1).bit_length()
    mask = (1 << job.end_bit - job.begin_bit) - 1
    flip = policy.flipped_bits(job.dtype, job.descending) >> job.begin_bit & mask
    tail = struct.pack("<qqQQq", job.num_rows, job.row_items, mask, flip, job.begin_bit)
    spec = policy.small_rows_spec(job.dtype, job.result_bytes, width)
    rows_per_block = policy.SMALL_ROWS_THREADS // width
    return Launch(
        build.kernel(spec, job.device), -(-job.num_rows // rows_per_block),
        policy.SMALL_ROWS_THREADS, _HEAD, tail, job.device, arrays,
    )  # fmt: skip
