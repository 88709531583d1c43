"""Dtypes of sums of weights, and the argument table of their kernel on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import dtypes

Dtype = np.dtype[Any]


def dtype_of(weights: Dtype, dtype: Any, where: str) -> Dtype:
    """Return the dtype of sums: `dtype`, else that of the weights, widened if integer."""
    kind = dtypes.kind(weights)
    if dtype is None:
        defaults = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
        return defaults.get(kind, weights)
    result = dtypes.as_dtype(dtype, where)
    if result.kind == "b" or not dtypes.can_cast(weights, result):
        raise TypeError(
            f"{where}: weights of dtype {weights} cannot be added up in dtype {result}; "
            f"pass dtype=np.{weights if kind in 'fc' else 'int64'} or convert them first"
        )
    return result


def accumulator(dtype: Dtype) -> Dtype:
    """Return the dtype in which a GPU adds up the weights of a result: of four bytes or more."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype({"i": np.int32, "u": np.uint32}.get(dtype.kind, np.float32))


# --- Argument table of the kernel of joint and weighted histograms on the CPU.

MOST = 1024  # samples per call of a stage; buffers stay in L1
SLOT_BYTES = 4 * MOST  # of scratch memory: slots of a run, then those of one dimension

# After TAIL follow the samples' dimensions, the extents between rows, those within a row, and READS
# fields: each as `packing.fetched` takes it, then its strides between and within rows; weights are
# last. PLACES: offset in scratch memory of the addresses of a run's numbers. COMPUTE: 0, or the
# function that computes samples from them, to COMPUTED.
(DIMS, LENGTH, ROWS, SPLIT, ADD, TABLES, ROW_BYTES, SHARE_BYTES, OUTER, INNER) = range(10)
(READS, PLACES, COMPUTE, COMPUTED, TAIL) = range(10, 15)

# One of DIMS dimensions, which follow TAIL: the stage that finds its slots.
(STAGE, STAGE_TABLE, BINS, STAGE_SIZE) = range(4)
