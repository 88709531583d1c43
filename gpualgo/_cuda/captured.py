"""Kernels whose operators read captured arrays: one machine code, loaded once for each set of them.

The code finds its arrays in a constant of its library (`gpualgo_state` of operator.cuh). So arrays
at other places take another copy of the library, not another compilation, and calls with different
arrays may overlap.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from gpualgo._arrays.view import View
from gpualgo._base import forks, recording
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, lifetime
from gpualgo._driver.default_device import CPU
from gpualgo._driver.streams import wait_for
from gpualgo._operators.captured import STATE_NAME, Binding, binding_of, describe, pack, view_of

MAX_LOADED = 64  # copies that stay loaded with nothing to run

_lock = threading.RLock()  # a finalizer may come by while it is held
_kernels: weakref.WeakValueDictionary[Any, BoundKernel] = weakref.WeakValueDictionary()
_recent: OrderedDict[int, tuple[BoundKernel, _Loaded]] = OrderedDict()  # the latest used last

Image: TypeAlias = tuple[bytes, str]  # machine code that the driver takes, the kernel's name


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


class _Loaded:
    """A library of its own with its words written; unloaded when nobody holds it any longer."""

    __slots__ = ("__weakref__", "kernel", "words")

    def __init__(self, kernel: driver.Kernel, words: bytes, device: int) -> None:
        self.kernel, self.words = kernel, words
        weakref.finalize(self, _unload, kernel.library, device).atexit = False
        _write_state(kernel, words, device)


class BoundKernel(driver.Kernel):
    """A kernel for arrays at some places. It does not own them: each launch holds them."""

    __slots__ = ("__weakref__", "_binding", "_device", "_image", "_loaded", "_num_shared", "_words")

    def __init__(
        self, image: Image, binding: Binding, views: tuple[View, ...], device: int
    ) -> None:
        self.name, self.handle = image[1], None  # of the copy that is loaded at a launch
        self._image, self._binding, self._device = image, binding, device
        # What the code reads; where an array is the host's, it is looked at anew each time.
        self._words = None if any(view.device == CPU for view in views) else pack(views)
        self._loaded: weakref.ref[_Loaded] | None = None
        self._num_shared = 0

    def allow_shared(self, num_bytes: int, device: int) -> None:
        """Let each copy have so much dynamic shared memory."""
        self._num_shared = max(self._num_shared, num_bytes)

    def resources(self, device: int) -> driver.Resources | None:
        """Return what each copy takes, by one that is loaded for this question alone."""
        with gpu.get(device).outside_capture():
            loaded = driver.Kernel(*self._image)
        try:
            return loaded.resources(device)
        finally:
            _unload(loaded.library, device)

    def wrapped(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Return a launch that loads what is missing and holds the arrays until it has run."""

        def launch(config: Any, _: Any, parameters: int, extra: int) -> Any:
            stream = int(config.hStream)
            with gpu.get(self._device).current():
                owners = self._binding.owners()
                loaded = self._bound(self._words or self._words_now(owners))
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
                    for producer in streams:  # whose next work may write what is read
                        wait_for(producer, stream, self._device)
                    lifetime.keep_until_done(stream, self._device, held)
            return result

        return launch

    def _words_now(self, owners: list[tuple[Any, View]]) -> bytes:
        """Return what the code reads, if all its arrays can still be read."""
        alive = {(v.ptr, v.shape, v.strides, v.device): owner for owner, v in owners}
        views = [view_of(alive[place]) for place in self._binding.places]
        return pack(_on_device(view, self._device) for view in views)

    def _bound(self, words: bytes) -> _Loaded:
        """Return a loaded copy that reads these words."""
        with _lock:
            loaded = None if self._loaded is None else self._loaded()
            if loaded is None or loaded.words != words:
                with gpu.get(self._device).outside_capture():
                    loaded = _Loaded(driver.Kernel(*self._image), words, self._device)
                self._loaded = weakref.ref(loaded)
            loaded.kernel.allow_shared(self._num_shared, self._device)
            _recent[id(self)] = self, loaded
            _recent.move_to_end(id(self))
            surplus = [_recent.popitem(last=False) for _ in range(len(_recent) - MAX_LOADED)]
        del surplus  # let go outside the lock
        return loaded


def tried(loaded: driver.Kernel, code: bytes, device: int) -> Image:
    """Return machine code that has been loaded, without the library of that trial."""
    _unload(loaded.library, device)
    return code, loaded.name


def kernel(key: Any, image: Image, views: tuple[View, ...], device: int) -> BoundKernel:
    """Return the kernel of a key for arrays where they lie now; key says which code it is."""
    for view in views:
        _on_device(view, device)
    binding = binding_of(views)
    key = (key, device, binding.places)
    with _lock:
        found = _kernels.get(key)
        if found is None:
            found = _kernels[key] = BoundKernel(image, binding, views, device)
    return found


def _on_device(view: View, device: int) -> View:
    """Return an array as kernels on a device see it; raise TypeError if they cannot."""
    if view.device == device:
        return view
    found = None
    if view.device == CPU:
        from gpualgo._arrays import page_locked

        with gpu.get(device).current():
            found = page_locked.view(view, device, "op")
    if found is None:
        raise TypeError(
            f"op captures {describe(view)}, but the call runs on cuda:{device}; capture an array "
            "there or a page-locked one of the host, or run on gpualgo.default_device('cpu')"
        )
    return found


def _streams_of(views: list[View], stream: int) -> list[int]:
    """Return the streams besides one on which the captured arrays' libraries write them."""
    producers = {view.library.stream(view.device) for view in views if view.device != CPU}
    # Those that are captured cannot be joined.
    return [each for each in producers if each != stream and driver.is_free(each)]


def _write_state(kernel: driver.Kernel, words: bytes, device: int) -> None:
    """Write a library's words, past all streams of the caller and their captures."""
    api = driver.api()
    with gpu.get(device).outside_capture():
        address, size = driver.check(
            api.cuLibraryGetGlobal(kernel.library, STATE_NAME.encode()),
            f"finding the state of {kernel.name}",
        )
        assert len(words) <= size
        driver.write(address, words)


def _unload(library: Any, device: int) -> None:
    """Unload a library that no launch uses any longer."""
    with contextlib.suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        driver.api().cuLibraryUnload(library)
