"""Forks while another thread compiles or loads: the child works, or says why it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# A thread compiles one operator after the other; each fork falls into the midst of one.
WHILE_COMPILING = """if True:
    import os, signal, sys, threading, time
    import numpy as np
    import gpualgo as ga
    from gpualgo._cpu import kernels as operator

    is_under_way, stop = threading.Event(), threading.Event()
    compiled = operator.compile_operator
    x = np.arange(5)

    def make(k):
        space = {}
        exec(f"def op(a):\\n    return a * {k} + {k}", space)
        return space["op"]

    def compile_all():
        for k in range(1000):
            if stop.is_set():
                return
            is_under_way.set()
            with ga.default_device("cpu"):
                ga.transform(make(k), x)

    def child(k):
        signal.alarm(60)  # ends a child that hangs, which the parent sees
        with ga.default_device("cpu"):
            new = ga.transform(make(10_000 + k), x)
            totals = ga.reduce(x, None, lambda a, b: a ^ b), ga.inclusive_scan(x, 0)
            os._exit(0 if new.tolist() == ((10_000 + k) * (x + 1)).tolist() else 3)

    thread = threading.Thread(target=compile_all)
    thread.start()
    statuses = []
    for k in range(3):
        is_under_way.clear()
        is_under_way.wait()
        time.sleep(0.07 * k)
        pid = os.fork()
        if pid == 0:
            child(k)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stop.set()
    thread.join()
    print(statuses)
"""


def test_a_child_compiles_though_another_thread_did(tmp_path: Path) -> None:
    done = run_python(WHILE_COMPILING, timeout=300, GPUALGO_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[0, 0, 0]", done.stderr


WHILE_LOADING = """if True:
    import os, signal, sys, threading
    import numpy as np
    import gpualgo as ga

    x, looked = np.arange(5), threading.Event()

    class Look:
        def find_spec(self, name, path=None, target=None):
            if name == "numba.core.typing":
                looked.set()

    sys.meta_path.insert(0, Look())
    total = lambda: int(ga.reduce(x, None, lambda a, b: a + b))
    with ga.default_device("cpu"):
        thread = threading.Thread(target=total)
        thread.start()
        assert looked.wait(60)
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            os._exit(total() != 10)
    thread.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_child_loads_numba_though_another_thread_did(tmp_path: Path) -> None:
    done = run_python(WHILE_LOADING, GPUALGO_DEVICE="cpu", GPUALGO_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


# A thread that never gives the lock back, as one that waits for the forking thread itself.
NEVER_FREE = """if True:
    import os, signal, sys, threading
    import numpy as np
    import gpualgo as ga
    from gpualgo._base import forks

    x = np.arange(5)
    warm = lambda a: a + 1
    with ga.default_device("cpu"):
        ga.transform(warm, x)
        forks.PATIENCE = 0.1
        held, stop = threading.Event(), threading.Event()

        def hold():
            from numba.core.compiler_lock import global_compiler_lock
            with global_compiler_lock:
                held.set()
                stop.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            assert ga.transform(warm, x).tolist() == [1, 2, 3, 4, 5]
            try:
                ga.transform(lambda a: a * 77, x)
            except RuntimeError as error:
                print(error, flush=True)
                os._exit(0)
            os._exit(3)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        stop.set()
        thread.join()
        assert ga.transform(lambda a: a * 77, x).tolist() == (x * 77).tolist()
        sys.exit(status)
"""


def test_a_child_that_cannot_compile_says_so(tmp_path: Path) -> None:
    done = run_python(NEVER_FREE, GPUALGO_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "forked while another thread" in done.stdout
    assert "spawn" in done.stdout
