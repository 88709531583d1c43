"""``gpualgo doctor``: checks the installation and prints advice for each fault."""

from __future__ import annotations

import ctypes
import json
import platform
import re
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._api import warm_up
from gpualgo._cli.cache import entries_text, size_text
from gpualgo._driver import default_device
from gpualgo._pipeline import auto

# --- Queries the NVIDIA driver and its GPUs through ctypes, without any CUDA package.

_COMPUTE_CAPABILITY_MAJOR = 75
_COMPUTE_CAPABILITY_MINOR = 76


@dataclass(frozen=True)
class Gpu:
    """A GPU; `index` is the driver's ordinal."""

    index: int
    name: str
    compute_capability: tuple[int, int]
    memory_bytes: int


@dataclass(frozen=True)
class Driver:
    """The driver: its version, the newest CUDA that it supports, and its GPUs or an error."""

    version: str
    cuda_version: tuple[int, int]
    gpus: tuple[Gpu, ...]
    problem: str


def find_driver() -> Driver | None:
    cuda = _load("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    if cuda is None:
        return None
    number = _asked(cuda.cuDriverGetVersion, ctypes.c_int)
    code = cuda.cuInit(0)
    problem = "" if code == 0 else _error_name(cuda, code)
    count = 0 if problem else _asked(cuda.cuDeviceGetCount, ctypes.c_int)
    gpus = tuple(_gpu(cuda, index) for index in range(count))
    return Driver(_version(), (number // 1000, number % 1000 // 10), gpus, problem)


def _asked(function: Any, kind: Any, *args: Any) -> Any:
    """Return the number that a function of the driver writes to its first argument."""
    number = kind()
    function(ctypes.byref(number), *args)
    return number.value


def _load(name: str) -> Any:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _version() -> str:
    nvml = _load("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    text = ctypes.create_string_buffer(80)
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return "unknown"
    nvml.nvmlSystemGetDriverVersion(text, len(text))
    nvml.nvmlShutdown()
    return text.value.decode() or "unknown"


def _error_name(cuda: Any, code: int) -> str:
    name = ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(name))
    return name.value.decode() if name.value else f"error {code}"


def _gpu(cuda: Any, index: int) -> Gpu:
    device = _asked(cuda.cuDeviceGet, ctypes.c_int, index)
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, len(name), device)
    memory = _asked(cuda.cuDeviceTotalMem_v2, ctypes.c_size_t, device)
    major, minor = (
        _asked(cuda.cuDeviceGetAttribute, ctypes.c_int, attribute, device)
        for attribute in (_COMPUTE_CAPABILITY_MAJOR, _COMPUTE_CAPABILITY_MINOR)
    )
    return Gpu(index, name.value.decode(), (major, minor), memory)


# --- Finds the paths and versions of libraries; does not raise if one is missing.

CUDA_PACKAGES = ("cuda-core", "cuda-bindings")
PYTHON_PACKAGES = ("numpy", "numba", "ml_dtypes", *CUDA_PACKAGES)
# cuda.pathfinder's name of each CUDA library, and its function that returns the version, if any.
CUDA_LIBRARIES = {"nvrtc": "nvrtcVersion", "nvJitLink": "nvJitLinkVersion", "nvvm": None}
_NVVM_WHEELS = ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc")
# CUDA 13 wheels need driver 580 or newer, CUDA 12 wheels 525 or newer.
GPU_VERSION = (
    "pip install 'gpualgo[cu13]' (NVIDIA driver 580 or newer; with an older one 'gpualgo[cu12]')"
)


@dataclass(frozen=True)
class Library:
    """An installed library: its version as text and as (major, minor), and its path."""

    name: str
    version: str
    release: tuple[int, int] | None
    path: str


def find_package(name: str) -> Library | None:
    try:
        dist = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    return Library(name, dist.version, release(dist.version), str(dist.locate_file("")))


def find_cuda_library(name: str) -> Library | str:
    """Load a CUDA library through cuda.pathfinder, as gpualgo does; return the error on failure."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return "cuda-pathfinder is not installed"
    try:
        path = load_nvidia_dynamic_lib(name).abs_path
    except Exception as error:
        return str(error).strip().partition("\n")[0]
    if path is None:
        return "loaded from an unknown place"
    release = _queried(path, CUDA_LIBRARIES[name]) if CUDA_LIBRARIES[name] else _toolkit(path)
    version = ".".join(map(str, release)) if release else "unknown"
    return Library(name, version, release, path)


def _queried(path: str, function: str | None) -> tuple[int, int] | None:
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        code = getattr(ctypes.CDLL(path), str(function))(ctypes.byref(major), ctypes.byref(minor))
    except (AttributeError, OSError):
        return None
    return (major.value, minor.value) if code == 0 else None


def _toolkit(path: str) -> tuple[int, int] | None:
    # NVVM reports the version of its IR only; the wheel or the toolkit has the CUDA version.
    for wheel in _NVVM_WHEELS:
        package = find_package(wheel)
        if package and Path(path).resolve().is_relative_to(Path(package.path).resolve()):
            return package.release
    for folder in Path(path).parents:
        if (folder / "version.json").is_file():
            versions = json.loads((folder / "version.json").read_text())
            return release(str(versions.get("cuda", {}).get("version", "")))
    return None


def release(version: str) -> tuple[int, int] | None:
    parts = version.split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])


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
    driver = find_driver()
    packages = {name: find_package(name) for name in PYTHON_PACKAGES}
    yield from _driver_checks(driver, _is_wanted(packages))
    cuda = {name: find_cuda_library(name) for name in CUDA_LIBRARIES}
    yield from _library_checks(packages, cuda, driver)
    complete = all(packages[name] for name in CUDA_PACKAGES) and all(
        isinstance(each, Library) for each in cuda.values()
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
    yield _wheel_check()


def _is_wanted(packages: dict[str, Library | None]) -> bool:
    return packages["cuda-core"] is not None


def _driver_checks(driver: Driver | None, is_wanted: bool) -> Iterator[Check]:
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


def _install_advice(driver: Driver | None) -> str:
    if driver is None:
        return f"for the GPU version {GPU_VERSION}"
    return f"pip install 'gpualgo[cu{13 if driver.cuda_version >= (13, 0) else 12}]'"


def _library_checks(
    packages: dict[str, Library | None], cuda: dict[str, Library | str], driver: Driver | None
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
        if isinstance(library, Library):
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


def _driver_age_check(driver: Driver | None, cuda: dict[str, Any]) -> Iterator[Check]:
    release = cuda["nvrtc"].release
    # A driver runs newer machine code of its own major CUDA version only.
    if driver is None or release is None or driver.cuda_version[0] >= release[0]:
        return
    detail = f"runs no CUDA {release[0]}, for which the installed libraries are"
    yield Check("driver age", "fail", detail, f"update the driver, or {_install_advice(driver)}")


def _self_test(cuda: dict[str, Any]) -> Check:
    try:
        result = warm_up.self_test(arch=SELF_TEST_ARCH)
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
        if variable := re.match(r"GPUALGO_\w+", str(error)):
            advice = f"unset {variable[0]}, or set it to a valid value"
        return Check(f"run on {device}", "fail", f"{type(error).__name__}: {error}", advice)
    seconds = time.perf_counter() - start
    if total != 499500.0:
        detail = f"the sum of 0 to 999 came out as {total}, not 499500"
        return Check(f"run on {device}", "fail", detail, "trust no result of this device")
    detail = f"a reduce with a lambda is right, first call {seconds:.2f} s"
    return Check(f"run on {device}", "ok", detail, data={"seconds": seconds})


def _default_device_check() -> Check:
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


def _wheel_check() -> Check:
    from gpualgo._cpu import kernels
    from gpualgo._cuda import build

    count = sum(len(keys) // build.KEY_BYTES for _, _, keys in build.wheel_index())
    for_gpus = f"{count or 'no'} kernels for GPUs"
    if shells := len(kernels.shells_of_wheel()):
        detail = f"{shells} kernels of the CPU and {for_gpus} came with the wheel"
        return Check("compiled kernels", "ok", detail)
    if kernels.WHEEL_FILE.exists():
        why = "those of the wheel are for other versions or without NUMBA_ variables"
    else:
        why = "this installation holds none"
    return Check("compiled kernels", "off", f"numba compiles all; {for_gpus}: {why}")


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
    label = Text(f"{status:<4}", style=_COLOURS[status])
    Console().print(label, text, soft_wrap=True, sep="  ", markup=False, emoji=False)
