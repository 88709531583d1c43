"""A scan with everything but the memory decided, and the check of its output."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo._arrays.view import View, address_of, is_contiguous, overlap
from gpualgo._operators.captured import check_apart, ownerless
from gpualgo._operators.operator import Operator, check_dtype
from gpualgo._pipeline import checks

EXCLUSIVE = "exclusive_scan"
_WEAK = (bool, int, float, complex)


class Call:
    """A scan with everything but the memory decided: what equal calls share."""

    __slots__ = (
        "_identity", "_kept", "_last_init", "acc", "arrays", "axis", "is_exclusive", "is_reverse",
        "plans", "result_shape", "shape", "where",
    )  # fmt: skip

    def __init__(
        self, view: View, op: Operator, init: Any, axis: Any, reverse: bool, dtype: Any, where: str
    ) -> None:
        self.where, self.is_exclusive, self.is_reverse = where, where == EXCLUSIVE, reverse
        on_device = type(init) is View
        given = init.dtype if on_device and dtype is None else dtype
        self.acc = checks.accumulator(view, init, given, where)
        if on_device and init.dtype != self.acc:
            raise TypeError(
                f"{where}: init on the device has dtype {init.dtype}, the accumulator {self.acc}; "
                "convert it first"
            )
        check_dtype(op, self.acc, where)
        self.shape = view.shape
        self.axis = checks.axis_of(axis, len(view.shape), where)  # None: as if x were flattened
        self.result_shape = (math.prod(view.shape),) if self.axis is None else view.shape
        self.plans: dict[Any, Any] = {}  # of the CUDA backend
        self.arrays = ownerless(op.arrays)  # that op captures
        self._last_init: tuple[Any, np.ndarray[Any, Any] | None] = (None, None)
        self._kept = op.identity  # its id is in the key: no other object may come to have it
        self._identity = self._encoded_identity(op) if self.is_exclusive and init is None else None

    def _encoded_identity(self, op: Operator) -> np.ndarray[Any, Any]:
        identity = op.identity_for(self.acc)
        if identity is None:
            raise ValueError(
                f"{self.where}: op has no known identity for the first result; "
                "pass init= or ga.Operator(op, identity=...)"
            )
        if op.identity is None:  # a recognised operator's: 0, 1 and -1 fit every dtype
            return np.array(identity).astype(self.acc)
        return checks.init_value(identity, self.acc, self.where, "identity")

    def encode(self, init: Any) -> np.ndarray[Any, Any] | None:
        """Return what comes before the first element, 0-d and of the accumulator's dtype.

        That is init, or else the identity if the scan is exclusive. The last init is remembered.
        """
        if init is None:
            return self._identity
        known, encoded = self._last_init
        if known is not init:
            encoded = checks.init_value(init, self.acc, self.where)
            if type(init) in _WEAK:  # immutable, so that identity is enough
                self._last_init = (init, encoded)
        return encoded


def check_output(call: Call, out: Any, view: View, init: Any) -> View:
    """Return the view of out= once it fits; it may be x itself, and else must lie apart."""
    target = checks.output(out, view, call.result_shape, call.acc, call.where)
    if type(init) is View and overlap(target, init):
        raise ValueError(f"{call.where}: out shares memory with init; pass a separate array")
    check_apart(call.arrays, target, call.where)
    in_place = (
        address_of(target) == address_of(view) and target.dtype == view.dtype
        and ((target.shape == view.shape and target.strides == view.strides)
             or (is_contiguous(target) and is_contiguous(view)))
    )  # fmt: skip
    if not in_place and overlap(target, view):
        raise ValueError(f"{call.where}: out overlaps x partly; pass x itself or a separate array")
    return target
