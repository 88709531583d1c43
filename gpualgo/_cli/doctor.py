"""``gpualgo doctor``: checks the installation and prints advice for each fault."""

from __future__ import annotations

import json
import platform
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._api import self_test
from gpualgo._cli import libraries, nvidia
from gpualgo._cli.cache import entries_text, size_text
from gpualgo._cli.libraries import GPU_VERSION
from gpualgo._driver import default_device
from gpualgo._pipeline import auto

SELF_TEST_ARCH = "sm_90"
OLDEST_GPU = (7, 5)
_WIDTH = 80  # columns of the report
_COLOURS = {"ok": "green", "off": "blue", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Its status is ok, off (an optional part is not installed), warn (works with restrictions) or
    fail (broken).
    """

    name: str
    status: str
    detail: str
    advice: str = ""
    more: str = ""  # shown by --verbose only
    data: dict[str, Any] = field(default_factory=dict)


def run(as_json: bool = False, verbose: bool = False) -> int:
    """Print every check; 0 if none failed, else 1."""
    results = list(checks())
    healthy = all(check.status != "fail" for check in results)
    if as_json:
        findings = [asdict(check) for check in results]
        print(json.dumps({"gpualgo": ga.__version__, "ok": healthy, "checks": findings}, indent=2))
    else:
        _print(results, verbose)
    return 0 if healthy else 1


def checks() -> Iterator[Check]:
    """Yield the checks in the order in which their faults explain each other."""
    python = f"gpualgo {ga.__version__}, Python {platform.python_version()}, {sys.platform}"
    yield Check("versions", "ok", f"{python} {platform.machine()}")
    driver = nvidia.find_driver()
    packages = {name: libraries.find_package(name) for name in libraries.PYTHON_PACKAGES}
    yield from _driver_checks(driver, _is_wanted(packages))
    cuda = {name: libraries.find_cuda_library(name) for name in libraries.CUDA_LIBRARIES}
    yield from _library_checks(packages, cuda, driver)
    complete = all(packages[name] for name in libraries.CUDA_PACKAGES) and all(
        isinstance(each, libraries.Library) for each in cuda.values()
    )
    if complete:
        yield linker_check(cuda)
        yield from _driver_age_check(driver, cuda)
        yield _self_test(cuda)
    yield _backend_check("cpu")
    if complete and driver is not None:
        for gpu in driver.gpus:
            yield _backend_check(f"cuda:{gpu.index}")
    yield _default_device_check()
    yield _cache_check()


def _is_wanted(packages: dict[str, libraries.Library | None]) -> bool:
    """Return whether a part of the GPU version is installed."""
    return packages["numba-cuda"] is not None or packages["cuda-core"] is not None


def _driver_checks(driver: nvidia.Driver | None, is_wanted: bool) -> Iterator[Check]:
    if driver is None:
        status, advice = ("warn", "calls run on the CPU") if is_wanted else ("off", "")
        yield Check("driver", status, "no NVIDIA driver found", advice)
        return
    newest = ".".join(map(str, driver.cuda_version))
    data = {"version": driver.version, "cuda_version": list(driver.cuda_version)}
    yield Check("driver", "ok", f"{driver.version}, runs CUDA up to {newest}", data=data)
    if not driver.gpus:
        detail = f"the driver shows none ({driver.problem or 'cuDeviceGetCount: 0'})"
        advice = "look at nvidia-smi and CUDA_VISIBLE_DEVICES; calls run on the CPU"
        yield Check("gpu", "warn", detail, advice)
    for gpu in driver.gpus:
        capability = ".".join(map(str, gpu.compute_capability))
        detail = f"{gpu.name}, compute capability {capability}, {size_text(gpu.memory_bytes)}"
        status, advice = "ok", ""
        if gpu.compute_capability < OLDEST_GPU:
            status, advice = "warn", "gpualgo needs 7.5 or newer; use GPUALGO_DEVICE=cpu"
        yield Check(f"gpu {gpu.index}", status, detail, advice, data=asdict(gpu))


def _install_advice(driver: nvidia.Driver | None) -> str:
    if driver is None:
        return f"for the GPU version {GPU_VERSION}"
    return f"pip install 'gpualgo[cu{13 if driver.cuda_version >= (13, 0) else 12}]'"


def _library_checks(
    packages: dict[str, libraries.Library | None],
    cuda: dict[str, libraries.Library | str],
    driver: nvidia.Driver | None,
) -> Iterator[Check]:
    # An incomplete CUDA installation fails. None at all is allowed, with a warning if there is a
    # GPU.
    status_without_cuda = "off" if driver is None or not driver.gpus else "warn"
    missing: dict[str, tuple[str, str]] = {
        "numpy": ("fail", "pip install --force-reinstall gpualgo"),
        "numba": ("fail", "pip install --force-reinstall gpualgo"),
        "ml_dtypes": ("off", "for bfloat16: pip install ml_dtypes"),
    }
    for name, library in {**packages, **cuda}.items():
        if isinstance(library, libraries.Library):
            data = {"version": library.version, "path": library.path}
            yield Check(name, "ok", str(library.version), more=library.path, data=data)
            continue
        default = ("fail" if _is_wanted(packages) else status_without_cuda, _install_advice(driver))
        status, advice = missing.get(name, default)
        yield Check(name, status, library or "not installed", advice)


def linker_check(cuda: dict[str, Any]) -> Check:
    linker = cuda["nvJitLink"].release
    releases = [cuda[name].release for name in ("nvrtc", "nvvm")]
    compilers = [each for each in releases if each is not None]  # a toolkit's NVVM has none
    if linker is None or not compilers:
        return Check("linker", "warn", "a version is unknown, so its age could not be compared")
    newest = max(compilers)
    versions = f"nvJitLink {linker[0]}.{linker[1]}, compilers up to {newest[0]}.{newest[1]}"
    if linker >= newest:
        return Check("linker", "ok", f"not older than the compilers: {versions}")
    wheel = "nvidia-nvjitlink" if newest[0] >= 13 else "nvidia-nvjitlink-cu12"
    advice = f"pip install --upgrade '{wheel}>={newest[0]}.{newest[1]},<{newest[0] + 1}'"
    return Check("linker", "fail", f"older than the compilers: {versions}", advice)


def _driver_age_check(driver: nvidia.Driver | None, cuda: dict[str, Any]) -> Iterator[Check]:
    release = cuda["nvrtc"].release
    # A driver runs newer machine code of its own major CUDA version only.
    if driver is None or release is None or driver.cuda_version[0] >= release[0]:
        return
    detail = f"runs no CUDA {release[0]}, for which the installed libraries are"
    yield Check("driver age", "fail", detail, f"update the driver, or {_install_advice(driver)}")


def _self_test(cuda: dict[str, Any]) -> Check:
    try:
        result = self_test.self_test(arch=SELF_TEST_ARCH)
    except Exception as error:
        major = (cuda["nvrtc"].release or (13,))[0]
        advice = f"reinstall the libraries: pip install --force-reinstall 'gpualgo[cu{major}]'"
        return Check("compile and link", "fail", f"for {SELF_TEST_ARCH}: {error}", advice)
    detail = f"for {SELF_TEST_ARCH}: {result['cubin_bytes']} bytes in {result['seconds']:.2f} s"
    return Check("compile and link", "ok", detail, data=dict(result))


def _backend_check(device: Any) -> Check:
    start = time.perf_counter()
    try:
        with ga.default_device(device):
            total = ga.reduce(np.arange(1000, dtype=np.float64), 0.0, lambda a, b: a + b)
    except Exception as error:
        advice = f"use another with GPUALGO_DEVICE, {'cuda' if device == 'cpu' else 'cpu'} say"
        return Check(f"run on {device}", "fail", f"{type(error).__name__}: {error}", advice)
    seconds = time.perf_counter() - start
    if total != 499500.0:
        detail = f"the sum of 0 to 999 came out as {total}, not 499500"
        return Check(f"run on {device}", "fail", detail, "trust no result of this device")
    detail = f"a reduce with a lambda is right, first call {seconds:.2f} s"
    return Check(f"run on {device}", "ok", detail, data={"seconds": seconds})


def _default_device_check() -> Check:
    """Report the default device of host arrays, and the table of "auto"."""
    try:
        number = default_device.current()
    except (RuntimeError, ValueError) as error:
        advice = "set GPUALGO_DEVICE to auto, cpu, cuda or cuda:1"
        return Check("default device", "fail", str(error), advice)
    is_auto = number == default_device.AUTO
    name = "auto" if is_auto else default_device.name_of(number)
    rows = [{**row._asdict(), "rule": row.rule} for row in auto.TABLE]
    more = "\n".join(f"{', '.join(row.algorithms)}: {row.rule}" for row in auto.TABLE)
    if is_auto:
        detail, more = "auto: a table decides for each call", f"The table:\n{more}"
    else:
        detail = f"{name}: {default_device.why()}"
        more = f"The table of auto, if there is a GPU:\n{more}"
    return Check("default device", "ok", detail, "", more, {"device": name, "table": rows})


def _cache_check() -> Check:
    try:
        from gpualgo._base import disk_cache as cache

        state = cache.info()
    except Exception as error:
        return Check("cache", "fail", f"{type(error).__name__}: {error}", "gpualgo cache clear")
    data = {**state, "path": str(state["path"])}
    detail = f"{state['path']}, {entries_text(state['entries'])}, {size_text(state['bytes'])}"
    if not state["writable"]:
        advice = "give yourself the folder, or kernels are compiled anew in each process"
        return Check("cache", "warn", f"{detail}, not writable", advice, data=data)
    if state["damaged"]:
        detail = f"{detail}, {state['damaged']} damaged"
        return Check("cache", "warn", detail, "gpualgo cache clear", data=data)
    return Check("cache", "ok", detail, data=data)


def _print(results: list[Check], verbose: bool) -> None:
    name_width = max(len(check.name) for check in results)
    last_advice = ""
    lines = list(_merged(results))
    for check in lines:
        details = [check.detail, *(check.more.split("\n") if verbose and check.more else ())]
        # Consecutive checks with the same advice print it once.
        if check.advice and check.advice != last_advice:
            details.append(f"-> {check.advice}")
        last_advice = check.advice
        text = [part for detail in details for part in _wrapped(detail, _WIDTH - name_width - 8)]
        _line(check.status, f"{check.name:<{name_width}}  {text[0]}")
        for part in text[1:]:
            print(f"{' ' * (name_width + 8)}{part}")
    counts = [sum(check.status == status for check in lines) for status in _COLOURS]
    print(", ".join(f"{count} {status}" for count, status in zip(counts, _COLOURS, strict=True)))


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines; long words such as paths stay whole, so that they can be copied."""
    if text.startswith("-> pip install"):  # a command stays on one line, too
        return [text]
    lines = [
        line
        for part in text.split("\n")
        for line in textwrap.wrap(part, width, break_long_words=False, break_on_hyphens=False)
    ]
    return lines or [""]


def _merged(results: list[Check]) -> Iterator[Check]:
    """Merge the checks of missing libraries that one command installs; each is printed once."""
    for (status, advice), group in groupby(results, lambda check: (check.status, check.advice)):
        checks = list(group)
        if status == "off" and len(checks) > 1:
            names = ", ".join(check.name for check in checks)
            yield Check("GPU version", status, f"not installed: {names}", advice)
        else:
            yield from checks


def _line(status: str, text: str) -> None:
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        print(f"{status:<4}  {text}")
        return
    # soft_wrap: a long path stays on one line, so that it can be copied.
    Console().print(Text(f"{status:<4}", style=_COLOURS[status]), text, soft_wrap=True, sep="  ")
