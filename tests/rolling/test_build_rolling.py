"""The kernel of suffixes, built without a GPU: op with its operands exchanged is inlined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sass
from sass import needs_cuobjdump

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
