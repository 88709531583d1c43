"""Puts the emulated GPU where the package looks for one."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from emulator import core, kernels, operators, toolchain, xp
from emulator.driver import EmulatedDriver
from gpualgo._base.memo import Memo
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._driver import driver
from gpualgo._operators.operator import SOURCE, Operator

builds_kernels = False  # each kernel is also built by NVRTC, NVVM and nvJitLink
_BUILT_FOR = 9, 0
_lock = threading.RLock()  # of what differs while kernels are built
_build, _compile_operator = build._build, build.operator
_operator_irs: Memo[Any] = Memo(256)  # of NVVM


def install(num_gpus: int = 1) -> EmulatedDriver:
    """Let the package see one GPU, or several; before it has looked for any."""
    made = EmulatedDriver(num_gpus)
    driver.api.cache_clear()
    driver.api = lambda: made  # type: ignore[assignment]
    driver.is_installed = lambda: True
    build.operator, build.cubin, build._build = _operator, _image, _image
    # Result dtypes are kept on disk: not beside those of a GPU.
    os.environ["GPUALGO_CACHE_DIR"] = str(toolchain.cache_folder() / "results")
    xp.install()
    core.install()
    # They would look for a GPU of this machine.
    sys.modules.update(dict.fromkeys(("torch", "numba.cuda", "rmm")))  # type: ignore[arg-type]
    return made


def _operator(
    op: Operator, arg_dtypes: tuple[Any, ...], result_dtype: Any, capability: tuple[int, int]
) -> operators.HostOperator:
    with _lock:
        irs = build._operator_irs
    made: operators.HostOperator = irs.made(
        (op.code, arg_dtypes, result_dtype, capability),
        lambda: operators.compile_operator(op, arg_dtypes, result_dtype),
    )
    if result_dtype is None:  # the kernel asks for it with this dtype
        irs.made((op.code, arg_dtypes, made.result_dtype, capability), lambda: made)
    return made


def _image(spec: Spec, capability: tuple[int, int]) -> tuple[bytes, str]:
    if builds_kernels:
        with _lock:
            emulated = build.operator, build._operator_irs
            build.operator, build._operator_irs = _compile_operator, _operator_irs
            try:
                _build(spec, _BUILT_FOR)
            finally:
                build.operator, build._operator_irs = emulated
    numbers = [0, 0]  # of the operator, and of what makes its elements
    for function in build._functions_of(spec):
        numbers[function.op.part == SOURCE] = _operator(*function, capability).number
    return kernels.image_of(spec, *numbers), spec.expression
