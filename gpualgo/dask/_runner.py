"""The callable of every task: imports gpualgo on the worker and reports if it is missing there.

The instance is pickled by value, so that a worker or scheduler without gpualgo can unpickle it; all
else in a task is plain data: names, numbers, dtypes, bytes.
"""

from __future__ import annotations

import pickle
import sys
import threading
from typing import Any


class Runner:
    """Calls a function of this package by name."""

    def __init__(self) -> None:
        self.blob: bytes | None = None

    def __call__(self, version: str, device: str, name: str, *args: Any) -> Any:
        """Call the function with a name such as ``_reduce:chunk`` on a device."""
        try:
            import gpualgo
        except ImportError as error:
            raise RuntimeError(
                f"a graph of gpualgo {version} reached a worker without gpualgo ({error}); "
                f"install gpualgo {version} there"
            ) from error
        if gpualgo.__version__ != version:
            raise RuntimeError(
                f"a graph of gpualgo {version} reached a worker with gpualgo "
                f"{gpualgo.__version__}, whose results may differ; install one of them on both"
            )
        from gpualgo.dask import _tasks

        return _tasks.call(name, device, args)

    def __reduce__(self) -> Any:
        blob = self.blob
        if blob is None:
            return type(self), ()
        return pickle.loads, (blob,), blob

    def __setstate__(self, blob: bytes) -> None:
        self.blob = blob

    def __dask_tokenize__(self) -> str:
        return "gpualgo-runner"


_lock = threading.Lock()
_runner: Runner | None = None


def runner() -> Runner:
    """Return the singleton, with its pickle."""
    global _runner
    with _lock:
        if _runner is None:
            import cloudpickle

            instance, module = Runner(), sys.modules[__name__]
            cloudpickle.register_pickle_by_value(module)
            try:
                instance.blob = cloudpickle.dumps(instance)
            finally:
                cloudpickle.unregister_pickle_by_value(module)
            _runner = instance
        return _runner
