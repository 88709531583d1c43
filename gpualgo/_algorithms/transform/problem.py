"""A transformation: the shape that its arrays broadcast to, and the dtype that op gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import dtypes
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._operators.recognised import check_dtype
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Problem, Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


class Transformation(Problem):
    """What equal calls of `transform` share."""

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        self.inputs = [f"argument {i + 1}" for i in range(len(views))]
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        for view, name in zip(views, self.inputs, strict=True):
            checks.element(view, name, where)
            check_dtype(op, view.dtype, where)
        self.shape = _broadcast(views)
        wanted = None if rest[0] is None else dtypes.as_dtype(rest[0], where)
        dtype = _result_dtype(op, tuple(view.dtype for view in views), wanted, device)
        self.results = (Result(self.shape, dtype, tuple(range(len(views)))),)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.transform import cuda

        return cuda.plan_of(op, views, self.shape, targets[0])

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.transform import cpu

        cpu.transform(op, [np.broadcast_to(a, self.shape) for a in arrays], results[0])

    def in_blocks(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        from gpualgo._algorithms.transform import blocks

        spread = [np.broadcast_to(a, self.shape) for a in arrays]
        blocks.transform(self, op, spread, results[0], stream, places)
        return True


def _broadcast(views: tuple[View, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(view.shape for view in views))
    except ValueError:
        shapes = ", ".join(str(view.shape) for view in views)
        raise ValueError(f"transform: shapes {shapes} do not broadcast together") from None


def _result_dtype(
    op: Operator, inputs: tuple[np.dtype[Any], ...], wanted: np.dtype[Any] | None, device: int
) -> np.dtype[Any]:
    """Return the dtype of op's results; it is compiled to find out."""
    if device == CPU:
        from gpualgo._cpu.operator import compile_operator

        return compile_operator(op, inputs, wanted).result_dtype
    from gpualgo._cuda import build
    from gpualgo._driver import device as gpu

    return build.result_dtype(op, inputs, wanted, gpu.get(device).capability)
