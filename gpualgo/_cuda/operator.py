"""Compiles an operator to PTX and LTO-IR of a device function, by the target of `_cuda/target.py`.

Device ABI (docs/adr/0001): `extern "C" void gpualgo_operator(void* result, const void* state, const
void* const* args)`; every pointer points to one element in its memory format.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import forks, recording
from gpualgo._base.errors import CompileError
from gpualgo._base.imports import loading
from gpualgo._base.memo import paused
from gpualgo._base.records import Argument
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver import streams as lifetime
from gpualgo._driver.default_device import CPU
from gpualgo._driver.streams import wait_for
from gpualgo._operators.captured import (
    STATE_NAME,
    STATE_WORDS,
    Binding,
    binding_of,
    describe,
    pack,
    view_of,
)
from gpualgo._operators.operator import SOURCE, Operator

NUMBER_NAME = "gpualgo_number"


@dataclass(frozen=True)
class DeviceOperator:
    result_dtype: np.dtype[Any]
    _compile: Callable[[list[str], str], bytes]
    _texts: list[str]  # of LLVM modules
    _texts_of_words: list[str]

    @cached_property
    def ltoir(self) -> bytes:
        return self._compile(self._texts, "-gen-lto")

    @cached_property
    def ptx(self) -> str:
        """Of a function of words (ADR 42)."""
        return self._compile(self._texts_of_words, "-fma=0").rstrip(b"\0").decode()


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
    from numba.core import cgutils

    word, number = llvm.IntType(64), llvm.IntType(32)
    kind = llvm.FunctionType(word, [number])
    function = cgutils.get_or_insert_function(builder.module, kind, NUMBER_NAME)
    return builder.call(function, [number(index)])


def compile_operator(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None,
    capability: tuple[int, int],
) -> DeviceOperator:  # fmt: skip
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    try:
        with loading():
            nvvm = driver.bindings("nvvm")
            from gpualgo._cuda import target
            from gpualgo._operators.numpy_rules import rewrite

            target.libdevice()
    except (ImportError, OSError, RuntimeError) as error:  # a package or a library is missing
        raise CompileError(
            "compiling an operator for CUDA needs cuda-bindings and libNVVM: "
            f"pip install 'gpualgo[cu13]' ({error})"
        ) from error
    from gpualgo._operators.numpy_rules.errors import check_numba, translate_errors
    from gpualgo._operators.numpy_rules.rules import result_of
    from gpualgo._operators.numpy_rules.storage import argument_type

    check_numba()
    fn, args = rewrite.function_of(op, len(arg_dtypes)), tuple(map(argument_type, arg_dtypes))
    functions: dict[Any, target.Function] = {}

    def device_function(fn: Any) -> target.Function:
        if fn not in functions:
            functions[fn] = target.Function(rewrite.adopt(fn, adoption))
        return functions[fn]

    adoption = rewrite.Adoption(
        device_function, _state_words if op.key.arrays else None,
        _number if op.key.numbers else None,
    )  # fmt: skip
    with paused(), target.selected():
        rewrite.install()
        try:
            with translate_errors(op.shown, arg_dtypes):
                compiled = device_function(fn).compile(args)
            result = result_of(op.shown, compiled.signature.return_type, result_dtype)
            name = "gpualgo_input" if op.part == SOURCE else "gpualgo_operator"
            target.add_entry(name, compiled, arg_dtypes, result)
            texts = target.texts_of(compiled.library, nvvm, name)
            words = target.texts_of(
                compiled.library, nvvm, target.add_words_entry(name, compiled, arg_dtypes, result)
            )
        finally:
            for function in functions.values():
                function.forget()
    compile_texts = partial(target.compile_texts, capability, nvvm)
    return DeviceOperator(result, compile_texts, texts, words)


# --- Kernels whose operators read captured arrays: one machine code, loaded once per set of
# arrays.
#
# The code finds its arrays in a constant of its library (`gpualgo_state` of operator.cuh). So
# other arrays need another loaded copy of the library but no compilation, and calls with
# different arrays may overlap.

MAX_LOADED = 64  # loaded copies that are kept without running

_captured_lock = forks.Lock()
_kernels: weakref.WeakValueDictionary[Any, BoundKernel] = weakref.WeakValueDictionary()
_recent: OrderedDict[int, tuple[BoundKernel, _Loaded]] = OrderedDict()  # most recently used last

Image: TypeAlias = tuple[bytes, str]  # machine code that the driver accepts, and the kernel's name


class _Loaded:
    """A loaded library with its captured arrays written into it; unloaded when unreferenced."""

    __slots__ = ("__weakref__", "kernel", "words")

    def __init__(self, kernel: driver.Kernel, words: bytes, device: int) -> None:
        self.kernel, self.words = kernel, words
        weakref.finalize(self, _unload, kernel.library, device).atexit = False
        _write_state(kernel, words, device)


class BoundKernel(driver.Kernel):
    """A kernel bound to captured arrays, which it does not own: each launch keeps them alive."""

    __slots__ = ("__weakref__", "_binding", "_device", "_image", "_loaded", "_num_shared", "_words")

    def __init__(
        self, image: Image, binding: Binding, views: tuple[View, ...], device: int
    ) -> None:
        self.name, self.handle = image[1], None  # taken from the copy that a launch loads
        self._image, self._binding, self._device = image, binding, device
        # The array descriptions that the code reads; None if each launch must look up host arrays.
        self._words = None if any(view.device == CPU for view in views) else pack(views)
        self._loaded: weakref.ref[_Loaded] | None = None
        self._num_shared = 0

    def allow_shared(self, num_bytes: int, device: int) -> None:
        """Allow each loaded copy so much dynamic shared memory."""
        self._num_shared = max(self._num_shared, num_bytes)

    def resources(self, device: int) -> driver.Resources | None:
        """Return the resource use of the kernel, from a copy that is loaded temporarily."""
        with gpu.get(device).outside_capture():
            loaded = driver.Kernel(*self._image)
        try:
            return loaded.resources(device)
        finally:
            _unload(loaded.library, device)

    def wrapped(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Return a launch function that loads the kernel and keeps its arrays alive meanwhile."""

        def launch(config: Any, _: Any, parameters: int, extra: int) -> Any:
            stream = int(config.hStream)
            with gpu.get(self._device).current():
                owners = self._binding.owners()
                loaded = self._load(self._words or self._current_words(owners))
                is_recorded = driver.is_capturing(stream)
                streams = [] if is_recorded else _streams_of([view for _, view in owners], stream)
                for producer in streams:
                    wait_for(stream, producer, self._device)
                result = submit(config, loaded.kernel.handle, parameters, extra)
                if result[0]:
                    return result
                held = loaded, [owner for owner, _ in owners]
                if is_recorded:
                    recording.keep_alive(held)
                else:
                    for producer in streams:  # its next work may overwrite the arrays
                        wait_for(producer, stream, self._device)
                    lifetime.keep_until_done(stream, self._device, held)
            return result

        return launch

    def _current_words(self, owners: list[tuple[Any, View]]) -> bytes:
        """Return the array descriptions that the code reads, if all arrays can still be read."""
        alive = {(v.ptr, v.shape, v.strides, v.device): owner for owner, v in owners}
        views = [view_of(alive[key]) for key in self._binding.places]
        return pack(_on_device(view, self._device) for view in views)

    def _load(self, words: bytes) -> _Loaded:
        with _captured_lock:
            loaded = None if self._loaded is None else self._loaded()
            if loaded is None or loaded.words != words:
                with gpu.get(self._device).outside_capture():
                    loaded = _Loaded(driver.Kernel(*self._image), words, self._device)
                self._loaded = weakref.ref(loaded)
            loaded.kernel.allow_shared(self._num_shared, self._device)
            _recent[id(self)] = self, loaded
            _recent.move_to_end(id(self))
            surplus = [_recent.popitem(last=False) for _ in range(len(_recent) - MAX_LOADED)]
        del surplus  # released outside the lock
        return loaded


def tried(loaded: driver.Kernel, code: bytes, device: int) -> Image:
    """Return machine code that was loaded successfully; unload that copy."""
    _unload(loaded.library, device)
    return code, loaded.name


def kernel(key: Any, image: Image, views: tuple[View, ...], device: int) -> BoundKernel:
    for view in views:
        _on_device(view, device)
    binding = binding_of(views)
    key = (key, device, binding.places)
    with _captured_lock:
        bound = _kernels.get(key)
        if bound is None:
            bound = _kernels[key] = BoundKernel(image, binding, views, device)
    return bound


def _on_device(view: View, device: int) -> View:
    """Return an array as kernels on a device see it; raise TypeError if they cannot access it."""
    if view.device == device:
        return view
    device_view = None
    if view.device == CPU:
        from gpualgo._arrays import page_locked

        with gpu.get(device).current():
            device_view = page_locked.view(view, device, "op")
    if device_view is None:
        raise TypeError(
            f"op captures {describe(view)}, but the call runs on cuda:{device}; capture an array "
            "on that GPU or a page-locked host array, or run on gpualgo.default_device('cpu')"
        )
    return device_view


def _streams_of(views: list[View], stream: int) -> list[int]:
    """Return the other streams on which the captured arrays' libraries write them."""
    producers = {view.library.stream(view.device) for view in views if view.device != CPU}
    # Streams under capture cannot be waited for.
    return [each for each in producers if each != stream and driver.is_free(each)]


def _write_state(kernel: driver.Kernel, words: bytes, device: int) -> None:
    """Write the array descriptions into a library, without involving any stream or capture."""
    api = driver.api()
    with gpu.get(device).outside_capture():
        address, size = driver.check(
            api.cuLibraryGetGlobal(kernel.library, STATE_NAME.encode()),
            f"finding the state of {kernel.name}",
        )
        assert len(words) <= size
        driver.write(address, words)


def _unload(library: Any, device: int) -> None:
    """Unload a library that no launch uses."""
    with contextlib.suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        driver.api().cuLibraryUnload(library)
