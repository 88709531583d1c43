"""The cache of compiled kernels: ``gpualgo cache`` and ``gpualgo warmup``."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpualgo._api.warm_up import Report


def info(as_json: bool = False) -> int:
    from gpualgo._base import disk_cache as cache

    state = cache.info()
    if as_json:
        print(json.dumps(state, indent=2))
        return 0
    print(f"path     {state['path']}")
    print(f"entries  {state['entries']}, {state['cpu_entries']} of them for the CPU")
    print(f"size     {size_text(state['bytes'])}")
    print(f"damaged  {state['damaged']}")
    print(f"writable {'yes' if state['writable'] else 'no'}")
    return 0


def clear() -> int:
    from gpualgo._base import disk_cache as cache

    try:
        removed = cache.clear()
    except OSError as error:
        print(f"gpualgo cache clear: {error}; remove the folder by hand.")
        return 1
    print(f"removed {entries_text(removed)}")
    return 0


def entries_text(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def size_text(count: int) -> str:
    """Return a number of bytes as text, in the largest binary unit in which it is at least 1."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024**power:.1f} {' KMGT'[power]}iB"


# --- `gpualgo warmup`: fills the cache in advance.


def warmup(ops: Sequence[str], archs: Sequence[str] | None, jobs: int | None) -> int:
    from gpualgo._api import prepare, warm_up
    from gpualgo._base import disk_cache
    from gpualgo._base.threads import num_threads

    if jobs is not None and jobs < 1:
        print(f"gpualgo warmup: --jobs must be 1 or more, got {jobs}", file=sys.stderr)
        return 2
    try:
        gpus = warm_up.present()
        names = [warm_up.capability_of(arch) for arch in archs or ()]
        operators = [(name, _imported(name)) for name in ops]
        jobs = jobs or num_threads()
    except ValueError as error:
        print(f"gpualgo {error}", file=sys.stderr)
        return 2
    info = disk_cache.info()
    if not info["writable"] or not _can_store():
        print(
            f"gpualgo warmup: nothing would be kept in {info['path']}: set GPUALGO_CACHE_DIR to a "
            "folder of your own; of a package in an archive nothing is kept",
            file=sys.stderr,
        )
        return 1
    targets = list(dict.fromkeys(names)) if archs else list(gpus)
    if targets and (problem := _toolchain_problem()):
        print(f"gpualgo warmup: {problem}", file=sys.stderr)
        return 1
    chosen = [recipe for name, op in operators for recipe in prepare.of_operator(name, op)]
    reports = warm_up.warm_up(chosen or list(prepare.known()), targets, jobs, gpus, _print_report)
    if not targets:
        print("no GPU is here: name GPUs by --arch to compile for them")
    print(f"cache: {info['path']}")
    return int(any(report.failures for report in reports))


def _can_store() -> bool:
    from gpualgo._cpu import kernels
    from gpualgo._cuda import build

    return kernels.provenance() is not None and build.provenance() is not None


def _toolchain_problem() -> str:
    """Return why kernels cannot be compiled for a GPU, or an empty text."""
    from gpualgo._base.errors import CompileError
    from gpualgo._cuda import compilers

    try:
        compilers.nvrtc_version()
    except CompileError as error:
        return str(error)
    except Exception as error:  # NVRTC's library is missing
        return f"NVRTC cannot be loaded ({error}): pip install 'gpualgo[cu13]'"
    return ""


def _imported(name: str) -> Any:
    module, _, path = name.partition(":")
    if not module or not path:
        raise ValueError(f"warmup: --ops takes module:function, got {name!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        op: Any = importlib.import_module(module)
        for part in path.split("."):
            op = getattr(op, part)
    except (Exception, SystemExit) as error:  # importing a module may raise anything
        reason = str(error) if isinstance(error, ImportError | AttributeError) else repr(error)
        raise ValueError(f"warmup: {name} cannot be imported ({reason})") from error
    if isinstance(op, type) or not (callable(op) or hasattr(op, "fn")):
        raise ValueError(f"warmup: {name} is {type(op).__name__}; name a function or Operator")
    return op


def _print_report(report: Report) -> None:
    unit = "entries" if report.device == "cpu" else "kernels"
    print(f"{report.device}: {report.compiled} {unit} compiled, {report.found} found", flush=True)
    for name in dict.fromkeys(report.refused):
        print(f"  refused: {name}")
    for text in report.failures:
        print(f"  failed: {text}", file=sys.stderr)
