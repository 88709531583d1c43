"""Each result is compared with the expected one before anything is timed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo._bench import notes
from gpualgo._bench.support import OURS, Row, Work, gpu


def check(row: Row, work: Work) -> None:
    """Raise unless our result is the expected one; leave out peers that cannot do the work.

    A peer with another result is left out as well, and named: its time would compare nothing.
    """
    for who, contender in list(work.contenders.items()):
        try:
            error = _worst(contender(), work)
        except Exception as reason:
            if who == OURS:
                raise
            notes.add(str(row), who, f"{type(reason).__name__}: {reason}")
            del work.contenders[who]
            continue
        if error <= work.tolerance:
            continue
        told = f"{who} is off by {error:.3g}, allowed {work.tolerance:.3g}"
        if who == OURS:
            raise AssertionError(f"{row}: {told}")
        notes.add(str(row), who, told)
        del work.contenders[who]


def _worst(result: Any, work: Work) -> float:
    if not isinstance(work.expected, tuple):
        return _error(result, work.expected, work.any_dtype)
    pairs = zip(result, work.expected, strict=True)
    return max(_error(got, expected, work.any_dtype) for got, expected in pairs)


def _error(got: Any, expected: Any, any_dtype: bool) -> float:
    xp: Any = np if isinstance(expected, np.ndarray | np.generic) else gpu()
    if hasattr(got, "block_until_ready"):  # JAX's, whose streams are its own
        got = xp.from_dlpack(got.block_until_ready())
    got = xp.asarray(got).reshape(expected.shape)
    if any_dtype:
        got = got.astype(expected.dtype, copy=False)
    if got.dtype != expected.dtype:
        return math.inf
    if bool((got == expected).all()):
        return 0.0
    if expected.dtype.kind != "f":
        return math.inf
    error = float(abs(got - expected).max() / (abs(expected).max() + xp.finfo(got.dtype).tiny))
    return math.inf if math.isnan(error) else error
