"""Packages that threads load at once: cuda.core and numba, which are in pieces meanwhile."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
import types

import pytest
from support import run_python

from gpualgo._base import imports
from gpualgo._base.imports import loading

WAIT = 30  # seconds; what takes longer hangs

needs_core = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="needs the CUDA wheels (extra cu12 or cu13); no GPU",
)

# Threads that begin at once, each with the first thing of its own; what each raised is printed.
AT_ONCE = """if True:
    import sys, threading
    import numpy as np
    import gpualgo as ga
    from gpualgo._cuda import build, compilers, operator
    from gpualgo._driver import device, driver


    firsts = [
        lambda: driver.core().ProgramOptions, lambda: driver.core().Buffer,
        lambda: driver.bindings("runtime").cudaPointerGetAttributes, compilers.nvrtc_version,
        lambda: device.core_stream(0), lambda: driver.bindings("nvjitlink").create,
        lambda: operator.compile_operator(
            ga.Operator(lambda a: a), (np.dtype("f4"),), None, (9, 0)
        ).ltoir,
        lambda: driver.api().CUresult, {extra}
    ]
    errors, barrier = [], threading.Barrier(len(firsts))

    def run(first):
        barrier.wait(30)
        try:
            first()
        except Exception as error:
            errors.append(repr(error))

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=run, args=(first,)) for first in firsts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads)
    print(errors)
"""

CUBINS = """
        *[lambda k=k: build.cubin(build.Spec(
            probe.header, probe.expression, probe.parameters,
            ga.Operator(eval(f"lambda a, b: a + b * {k}")), probe.arg_dtypes, probe.result_dtype,
        ), (9, 0)) for k in range(8) for probe in [probe_spec()]]
"""


@needs_core
@pytest.mark.parametrize("attempt", range(2))
def test_first_calls_of_many_threads(attempt: int) -> None:
    done = run_python(AT_ONCE.format(extra=""))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@needs_core
def test_first_kernels_of_many_threads(tmp_path: object) -> None:
    code = AT_ONCE.format(extra=CUBINS.strip()).replace(
        "import sys, threading\n",
        "import sys, threading\n    from gpualgo._api.warm_up import probe_spec\n",
    )
    done = run_python(code, GPUALGO_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_one_thread_loads_at_a_time() -> None:
    inside, most = [], []
    barrier = threading.Barrier(6)

    def load() -> None:
        barrier.wait(WAIT)
        with loading(), loading():  # a package that loads another
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert most == [1] * 6


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Return a package that somebody else's thread is importing, in the place of CuPy."""
    found = types.ModuleType("cupy")
    found.__spec__ = importlib.util.spec_from_loader("cupy", None)
    found.__spec__._initializing = True  # type: ignore[union-attr]
    monkeypatch.setitem(sys.modules, "cupy", found)
    return found


def test_an_import_of_another_thread_s_is_waited_for(package: types.ModuleType) -> None:
    def end() -> None:
        package.is_whole = True  # type: ignore[attr-defined]
        package.__spec__._initializing = False  # type: ignore[union-attr]

    timer = threading.Timer(0.1, end)
    timer.start()
    with loading():
        assert package.is_whole
    timer.join(WAIT)


def test_an_import_that_never_ends_is_told(
    package: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "PATIENCE", 0.05)
    with pytest.raises(RuntimeError, match="cupy is still being imported"), loading():
        pass
    package.__spec__._initializing = False  # type: ignore[union-attr]
    free = []

    def enter() -> None:
        with loading():
            free.append(None)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join(WAIT)
    assert free == [None]  # the lock was given back


BOTH_BACKENDS = """if True:
    import threading
    import numpy as np
    import gpualgo as ga
    from gpualgo._cuda.operator import compile_operator

    single, errors, barrier = np.dtype(np.float32), [], threading.Barrier(6)

    def run(k):
        barrier.wait(30)
        try:
            if k % 2:
                ga.transform(eval(f"lambda a: a * {k} + 1"), np.ones(3))
            else:
                compile_operator(ga.Operator(eval(f"lambda a: a * {k}")), (single,), None, (9, 0))
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    print(errors, sum(thread.is_alive() for thread in threads))
"""


@needs_core
@pytest.mark.parametrize("attempt", range(3))
def test_first_operators_of_both_backends(attempt: int) -> None:
    """Numba makes the CPU's context under a lock of its own, and compiles under another."""
    done = run_python(BOTH_BACKENDS)
    assert (done.returncode, done.stdout.strip()) == (0, "[] 0"), done.stderr
