"""The kernels of rolling windows, built without a GPU."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import pytest
import sass
from sass import needs_cuobjdump
from support import sampled

from gpualgo._algorithms.rolling import cuda
from gpualgo._algorithms.scan import tuning
from gpualgo._cuda import build
from gpualgo._cuda.headers import cpp
from gpualgo._operators.operator import Operator, mirrored

pytestmark = pytest.mark.usefixtures("own_cache")


@needs_cuobjdump
def test_mirrored_operator_is_inlined(tmp_path: Path) -> None:
    dtype = np.dtype("float32")
    op, access = Operator(lambda a, b: b if a == b else a + b), cpp("DenseRows", 16, 16, True)
    tiling = tuning.rows_tiling(64, dtype, dtype)
    specs = [
        tuning.rows_spec(each, dtype, dtype, access, tiling, False, True)
        for each in (op, mirrored(op))
    ]
    first, second = sass.read_all(specs, (9, 0), tmp_path)
    assert not second.calls()
    assert second.local_bytes == first.local_bytes
    assert build.cubin(specs[0], (9, 0))[0] != build.cubin(specs[1], (9, 0))[0]


@needs_cuobjdump
@pytest.mark.parametrize("capability", [sass.MAIN, *sampled(sass.OTHERS, [(7, 5)])])
def test_windows_stay_in_registers(capability: tuple[int, int], tmp_path: Path) -> None:
    specs = []
    for name in ("int8", "float32", "complex128"):
        for window in (2, 5, 200):
            acc = np.dtype(name)
            tiling = cuda.tiling_of(acc, 5000, window)
            assert tiling is not None
            for op in (Operator(operator.add), Operator(lambda a, b: b if a == b else a)):
                specs.append(cuda.windows_spec(op, acc, tiling, window > 2))
    sass.held(specs, capability, tmp_path, 0)
