"""``gpualgo warmup``: fill the cache of compiled kernels ahead."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpualgo._api.warm_up import Report


def run(ops: Sequence[str], archs: Sequence[str] | None, jobs: int | None) -> int:
    """Compile what calls need and print what was compiled and found; return the exit code."""
    from gpualgo._api import recipes, warm_up
    from gpualgo._base import disk_cache
    from gpualgo._base.threads import num_threads

    if jobs is not None and jobs < 1:
        print(f"gpualgo warmup: --jobs must be 1 or more, got {jobs}", file=sys.stderr)
        return 2
    try:
        here = warm_up.present()
        names = [warm_up.capability_of(arch) for arch in archs or ()]
        loaded = [(name, _loaded(name)) for name in ops]
        jobs = jobs or num_threads()
    except ValueError as error:
        print(f"gpualgo {error}", file=sys.stderr)
        return 2
    info = disk_cache.info()
    if not info["writable"] or not _is_kept():
        print(
            f"gpualgo warmup: nothing would be kept in {info['path']}: set GPUALGO_CACHE_DIR to a "
            "folder of your own; of a package in an archive nothing is kept",
            file=sys.stderr,
        )
        return 1
    wanted = list(dict.fromkeys(names)) if archs else list(here)
    if wanted and (missing := _missing()):
        print(f"gpualgo warmup: {missing}", file=sys.stderr)
        return 1
    known = [recipe for name, op in loaded for recipe in recipes.of_operator(name, op)]
    made = warm_up.warm_up(known or list(recipes.known()), wanted, jobs, here, _tell)
    if not wanted:
        print("no GPU is here: name GPUs by --arch to compile for them")
    print(f"cache: {info['path']}")
    return int(any(report.failures for report in made))


def _is_kept() -> bool:
    """Return whether this process may keep what it compiles."""
    from gpualgo._cpu import host
    from gpualgo._cuda import kept

    return host.provenance() is not None and kept.provenance() is not None


def _missing() -> str:
    """Return what compiling for a GPU needs and has not, or nothing."""
    from gpualgo._base.errors import CompileError
    from gpualgo._cuda import toolchain

    try:
        toolchain.nvrtc_version()
    except CompileError as error:
        return str(error)
    except Exception as error:  # NVRTC's library is not there
        return f"NVRTC cannot be loaded ({error}): pip install 'gpualgo[cu13]'"
    return ""


def _loaded(name: str) -> Any:
    """Return what ``module:function`` names."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise ValueError(f"warmup: --ops takes module:function, got {name!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # a module may do anything when it is imported
        told = str(error) if isinstance(error, ImportError | AttributeError) else repr(error)
        raise ValueError(f"warmup: {name} cannot be imported ({told})") from error
    if isinstance(found, type) or not (callable(found) or hasattr(found, "fn")):
        raise ValueError(f"warmup: {name} is {type(found).__name__}; name a function or Operator")
    return found


def _tell(report: Report) -> None:
    """Print what was done for one device."""
    what = "entries" if report.device == "cpu" else "kernels"
    print(f"{report.device}: {report.compiled} {what} compiled, {report.found} found", flush=True)
    for name in dict.fromkeys(report.refused):
        print(f"  refused: {name}")
    for text in report.failures:
        print(f"  failed: {text}", file=sys.stderr)
