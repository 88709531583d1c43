"""Compiles an operator to LTO-IR of a device function. Only this module uses numba's CUDA target.

Device ABI (docs/adr/0001): `extern "C" void gpualgo_operator(void* result, const void* state, const
void* const* args)`; every pointer points to one element in its memory format.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import forks
from gpualgo._base.errors import CompileError
from gpualgo._base.imports import loading
from gpualgo._base.memo import Memo, paused
from gpualgo._base.records import Argument
from gpualgo._operators.captured import STATE_NAME, STATE_WORDS
from gpualgo._operators.operator import OPERATOR, SOURCE, Operator

NUMBER_NAME = "gpualgo_number"
_NAMES = {None: "gpualgo_operator", OPERATOR: "gpualgo_operator", SOURCE: "gpualgo_input"}
_lock = threading.RLock()  # numba's registries and type inference are not thread-safe


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


@dataclass(frozen=True)
class DeviceOperator:
    """An operator compiled for one architecture and one list of argument dtypes."""

    ltoir: bytes
    result_dtype: np.dtype[Any]


_targets: Memo[Any] = Memo(1)


def _install() -> Any:
    """Import numba's CUDA target and install NumPy-2 arithmetic."""
    try:
        with loading:
            from numba.cuda import compiler, datamodel, dispatcher, extending  # noqa: F401
            from numba.cuda.core import imputils, ir, ir_utils, rewrites
            from numba.cuda.np import arrayobj
    except ImportError as error:
        raise CompileError(
            "compiling an operator for CUDA needs numba-cuda: pip install 'gpualgo[cu13]' "
            f"(import failed: {error})"
        ) from error
    from gpualgo._operators.numpy_rules import rewrite
    from gpualgo._operators.numpy_rules.errors import check_numba

    check_numba()
    target = rewrite.Target(
        ir, ir_utils, rewrites, extending, datamodel.models, imputils, arrayobj, True
    )
    rewrite.install(target)
    return target


def _state_words(builder: Any) -> Any:
    """Return a pointer to the descriptions of captured arrays (defined in operator.cuh)."""
    from llvmlite import ir as llvm

    word, index = llvm.IntType(64), llvm.IntType(32)
    state = builder.module.globals.get(STATE_NAME)
    if state is None:
        kind = llvm.ArrayType(word, STATE_WORDS)
        state = llvm.GlobalVariable(builder.module, kind, STATE_NAME, addrspace=4)  # constant
        state.linkage = "external"
    return builder.gep(state, [index(0), index(0)])


def _number(builder: Any, index: int) -> Any:
    """Return a captured number that is passed at run time (by a function of operator.cuh)."""
    from llvmlite import ir as llvm
    from numba.cuda import cgutils

    word, number = llvm.IntType(64), llvm.IntType(32)
    kind = llvm.FunctionType(word, [number])
    function = cgutils.get_or_insert_function(builder.module, kind, NUMBER_NAME)
    return builder.call(function, [number(index)])


def compile_operator(
    op: Operator,
    arg_dtypes: tuple[Argument, ...],
    result_dtype: np.dtype[Any] | None,
    capability: tuple[int, int],
) -> DeviceOperator:
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    with loading:
        from gpualgo._operators.numpy_rules import rewrite

    fn = rewrite.function_of(op, len(arg_dtypes))
    with _lock, paused:
        return _Compilation(capability, op).run(fn, op.shown, arg_dtypes, result_dtype)


class _Compilation:
    """One run of numba: the operator, the functions that it calls, and the ABI wrapper."""

    def __init__(self, capability: tuple[int, int], op: Operator) -> None:
        from gpualgo._operators.numpy_rules import rewrite

        self.capability, self.abi_name, key = capability, _NAMES[op.part], op.key
        self.adoption = rewrite.Adoption(
            _targets.made("cuda", _install),
            self.device_function,
            _state_words if key.arrays else None,
            _number if key.numbers else None,
        )
        self.dispatchers: dict[Any, Any] = {}

    def run(
        self,
        fn: Any,
        source: Any,
        arg_dtypes: tuple[Argument, ...],
        result_dtype: np.dtype[Any] | None,
    ) -> DeviceOperator:
        from numba import cuda, types

        from gpualgo._operators.numpy_rules import rewrite
        from gpualgo._operators.numpy_rules.errors import translate_errors
        from gpualgo._operators.numpy_rules.rules import result_of
        from gpualgo._operators.numpy_rules.storage import argument_type

        args = tuple(map(argument_type, arg_dtypes))
        with translate_errors(source, arg_dtypes):
            dispatcher = self.device_function(fn)
            returned = dispatcher.compile_device(args).signature.return_type
        result = result_of(source, returned, result_dtype)
        wrapper = rewrite.abi_wrapper(self.adoption.target, dispatcher, arg_dtypes, result)
        signature = types.void(types.voidptr, types.voidptr, types.CPointer(types.voidptr))
        with translate_errors(source, arg_dtypes):
            ltoir, _ = cuda.compile(
                wrapper,
                signature,
                device=True,
                abi="c",
                abi_info={"abi_name": self.abi_name},
                cc=self.capability,
                output="ltoir",
                forceinline=True,
            )
        return DeviceOperator(bytes(ltoir), result)

    def device_function(self, fn: Any) -> Any:
        """Return a dispatcher that compiles for a given architecture without a driver."""
        from gpualgo._operators.numpy_rules import rewrite

        if fn not in self.dispatchers:
            dispatcher = _dispatcher_class()(
                rewrite.adopt(fn, self.adoption), targetoptions={"device": True, "opt": True}
            )
            dispatcher.capability = self.capability
            self.dispatchers[fn] = dispatcher
        return self.dispatchers[fn]


@cache
def _dispatcher_class() -> Any:
    from numba.cuda.compiler import compile_cuda
    from numba.cuda.dispatcher import CUDADispatcher

    class DeviceDispatcher(CUDADispatcher):
        """A device function for a named architecture: numba's own asks the current device."""

        def compile_device(self, args: Any, return_type: Any = None) -> Any:
            if args not in self.overloads:
                result = compile_cuda(
                    self.py_func,
                    return_type,
                    args,
                    forceinline=True,
                    nvvm_options={"opt": 3, "fastmath": False},
                    cc=self.capability,
                )
                self.overloads[args] = result
                result.target_context.insert_user_function(
                    result.entry_point, result.fndesc, [result.library]
                )
            return self.overloads[args]

    return DeviceDispatcher
