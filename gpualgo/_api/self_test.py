"""The self-test of `gpualgo doctor`: compiles and links, bypassing the caches."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce.policy import cut_rows, flat, rows_spec
from gpualgo._cuda import toolchain
from gpualgo._cuda.build import Spec, _compile
from gpualgo._cuda.operator import compile_operator
from gpualgo._operators.operator import Operator


def self_test(arch: str = "sm_90") -> dict[str, Any]:
    """Compile a kernel and an operator and link them, bypassing the caches; needs no GPU."""
    digits = arch.removeprefix("sm_")
    capability = int(digits[:-1]), int(digits[-1])
    start = time.perf_counter()
    spec = probe_spec()
    assert spec.op is not None
    operator_ir = compile_operator(spec.op, spec.arg_dtypes, spec.result_dtype, capability)
    kernel_ir, _ = _compile(spec, capability, is_ltoir=True)
    code = toolchain.linked((kernel_ir, operator_ir.ltoir), arch, spec.expression)
    return {"seconds": time.perf_counter() - start, "cubin_bytes": len(code), "arch": arch}


def probe_spec() -> Spec:
    dtype = np.dtype(np.float32)
    op = Operator(lambda a, b: a * 0.5 + b)
    return rows_spec(op, dtype, dtype, flat(True), cut_rows(op, 1, 1 << 20, dtype))
