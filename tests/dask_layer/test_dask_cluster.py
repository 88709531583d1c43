"""A cluster of two processes: the same bits, after a kill and from disk too; what is wrong."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import gpualgo as ga

distributed = pytest.importorskip("distributed", reason="it comes by the extra dask")
zict = pytest.importorskip("zict", reason="it comes with distributed")

QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.limit": "60s"}


@contextlib.contextmanager
def cluster(workers: int = 2, nthreads: int = 1, **options: Any) -> Iterator[Any]:
    options = {"dashboard_address": ":0", "silence_logs": 50, **options}
    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(workers, threads_per_worker=nthreads, **options) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def two() -> Iterator[Any]:
    with cluster() as client:
        yield client


def calls(n: int, chunks: int, seed: int = 0) -> dict[str, Any]:
    """Return calls whose bits depend on how elements are grouped, of data made in the tasks."""
    x = da.random.default_rng(seed).standard_normal(n, chunks=n // chunks, dtype=np.float32)
    step = 0.25

    def faded(a: Any, b: Any) -> Any:  # not associative in floats: each grouping has its own bits
        return a + b + step * a * b * np.float32(1e-3)

    return {
        "reduce": ga.reduce(x),
        "scan": ga.inclusive_scan(x, None, faded),
        "argsort": ga.argsort(x),
        "weights": ga.histogram(x, 64, (-3, 3), weights=x),
        "keys": ga.reduce_by_key(ga.transform(lambda a: np.int64(a * 10), x), x).aggregates,
    }


def bits(found: dict[str, Any], where: Any) -> dict[str, str]:
    values = dask.compute(*found.values(), scheduler=where)
    return {
        name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        for name, value in zip(found, values, strict=True)
    }


@pytest.fixture(scope="module")
def want() -> dict[str, str]:
    return bits(calls(60_000, 12), "synchronous")


def test_bits_on_two_processes(two: Any, want: dict[str, str]) -> None:
    assert bits(calls(60_000, 12), two) == want
    assert all(file.endswith("gpualgo/__init__.py") for file in two.run(_file).values())


def _file() -> str:
    return ga.__file__


def test_threads_follow_the_worker(two: Any) -> None:
    from gpualgo._base import threads
    from gpualgo.dask import _tasks

    def asked() -> Any:
        return _tasks._worker_threads(), threads.num_threads()

    assert two.submit(asked, pure=False).result()[0] == 1


class Killer(threading.Thread):
    """Kills a worker once so many tasks of a name are done."""

    def __init__(self, client: Any, prefix: str, count: int) -> None:
        super().__init__()
        self._prefixes, self._prefix = client.cluster.scheduler.task_prefixes, prefix
        self._count, self.has_killed = self._done() + count, False
        self._process = min(client.run(os.getpid).values())

    def _done(self) -> int:
        known = self._prefixes.get(self._prefix)
        return 0 if known is None else int(known.state_counts["memory"])

    def run(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and not self.has_killed:
            if self._done() >= self._count:
                os.kill(self._process, signal.SIGKILL)
                self.has_killed = True
            time.sleep(0.002)


def _after_a_kill(client: Any, name: str, prefix: str, count: int, seed: int) -> None:
    call = {name: calls(200_000, 16, seed)[name]}
    want = bits(call, "synchronous")
    killer = Killer(client, prefix, count)
    killer.start()
    got = bits(call, client)
    killer.join()
    assert killer.has_killed
    assert got == want


def test_bits_after_a_worker_is_killed(two: Any) -> None:
    _after_a_kill(two, "argsort", "ga-argsort-piece", 60, seed=1)


KILLS = [
    ("argsort", "ga-argsort-run", 8), ("argsort", "ga-argsort-piece", 100),
    ("scan", "ga-inclusive-scan-prefix", 5), ("reduce", "ga-reduce-chunk", 4),
    ("keys", "ga-reduce-by-key-piece", 9),
]  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "prefix", "count"), KILLS)
def test_bits_after_many_kills(name: str, prefix: str, count: int, seed: int) -> None:
    with cluster() as client:  # whose workers are all there
        _after_a_kill(client, name, prefix, count, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("workers", "nthreads"), [(1, 1), (1, 2), (3, 1)])
def test_bits_on_other_clusters(workers: int, nthreads: int, want: dict[str, str]) -> None:
    with cluster(workers, nthreads) as client:
        assert bits(calls(60_000, 12), client) == want


# The worker is this process, which holds more than the limit of what it keeps: it never pauses.
_KEEPS_NOTHING = {
    f"distributed.worker.memory.{name}": value
    for name, value in {"target": 0.001, "spill": False, "pause": False, "terminate": False}.items()
}


def test_bits_from_disk(tmp_path: Any) -> None:
    """Workers that keep next to nothing in memory write chunks to disk and read them again."""
    call = {"argsort": calls(400_000, 16)["argsort"]}
    want = bits(call, "synchronous")
    with (
        dask.config.set(_KEEPS_NOTHING),
        cluster(1, 1, memory_limit="1GB", local_directory=str(tmp_path), processes=False) as client,
    ):
        kept = {"argsort": call["argsort"].persist(scheduler=client)}
        assert bits(kept, client) == want
        spilled = client.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
        assert max(spilled.values()) > 1_000_000


def test_bits_with_a_full_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written stays in memory: dask says so, and nothing is wrong or lost."""
    refused = []

    def full(self: Any, key: Any, value: Any) -> None:
        refused.append(key)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    call = {"argsort": calls(200_000, 8)["argsort"]}
    want = bits(call, "synchronous")
    monkeypatch.setattr(zict.File, "__setitem__", full)
    with (
        dask.config.set(_KEEPS_NOTHING),
        cluster(1, 1, memory_limit="1GB", local_directory=str(tmp_path), processes=False) as client,
    ):
        kept = {"argsort": call["argsort"].persist(scheduler=client)}
        assert bits(kept, client) == want
        spilled = client.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
    assert refused
    assert max(spilled.values()) == 0


WITHOUT = "import sys; sys.modules['gpualgo'] = None"
OTHER = "import gpualgo; gpualgo.__version__ = '9.9'"


@pytest.mark.parametrize(
    ("preload", "text"),
    [(WITHOUT, "a worker without gpualgo"), (OTHER, "a worker with gpualgo 9.9")],
    ids=["without", "other"],
)
def test_workers_that_are_not_as_here(preload: str, text: str) -> None:
    with cluster(1, 1, preload=[preload]) as client:
        lazy = ga.reduce(da.ones(10, chunks=5))
        with pytest.raises(RuntimeError, match=f"a graph of gpualgo {ga.__version__}.*{text}"):
            lazy.compute(scheduler=client)
