"""Sort of rows that fit a block, in one launch and without temporary storage."""

from __future__ import annotations

from gpualgo._algorithms.radix_sort import parameters, policy
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job
from gpualgo._algorithms.radix_sort.digits import digits_of, flipped_bits, last_key, packed_digits
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._driver import device as gpu


def launch_of(job: Job, arrays: Arrays) -> Launch | None:
    """Return the launch that sorts a job's rows at once; None if the rows are too long."""
    if job.row_items <= policy.SMALL_ROW:
        return _small_launch(job, arrays)
    limit, sms = gpu.get(job.device).shared_limit, gpu.get(job.device).num_sms
    tiling = policy.row_policy(
        job.num_rows, job.row_items, job.key_bytes, job.result_bytes, sms, limit
    )
    return None if tiling is None else _launch(job, tiling, arrays)


def _launch(job: Job, tiling: policy.RowPolicy, arrays: Arrays) -> Launch:
    digits = digits_of(job.dtype, job.descending, job.begin_bit, job.end_bit, False)
    packed = parameters.ROWS.pack(
        num_rows=job.num_rows, row_items=job.row_items, padding=last_key(job.dtype, job.descending),
        is_padding_highest=True, num_passes=len(digits),
        digits=packed_digits(digits, parameters.MAX_ROW_PASSES),
    )  # fmt: skip
    spec = policy.rows_spec(job.dtype, job.descending, job.result_bytes, tiling)
    kernel = build.kernel(spec, job.device)
    shared = tiling.shared_bytes(job.key_bytes, job.result_bytes > 0)
    grid = -(-job.num_rows // tiling.rows_per_block)
    return Launch(
        kernel, grid, tiling.block_threads, packed, job.device, _slots(arrays), shared_bytes=shared
    )


def _small_launch(job: Job, arrays: Arrays) -> Launch:
    width = 1 << (job.row_items - 1).bit_length()
    mask = (1 << job.end_bit - job.begin_bit) - 1
    flip = flipped_bits(job.dtype, job.descending) >> job.begin_bit & mask
    packed = parameters.SMALL_ROWS.pack(
        num_rows=job.num_rows, row_items=job.row_items, mask=mask, flip=flip, shift=job.begin_bit
    )
    spec = policy.small_rows_spec(job.dtype, job.descending, job.result_bytes, width)
    rows_per_block = policy.SMALL_ROWS_THREADS // width
    return Launch(
        build.kernel(spec, job.device), -(-job.num_rows // rows_per_block),
        policy.SMALL_ROWS_THREADS, packed, job.device, _slots(arrays),
    )  # fmt: skip


def _slots(arrays: Arrays) -> dict[str, int]:
    """Return the argument slots of a kernel."""
    return {
        "keys": arrays.keys, "values": arrays.values, "output_keys": arrays.out_keys,
        "output_values": arrays.out_values,
    }  # fmt: skip
