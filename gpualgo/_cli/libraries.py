"""Where each library comes from, and which version it is; never fails, whatever is missing."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

CUDA_PACKAGES = ("numba-cuda", "cuda-core", "cuda-bindings")
PYTHON_PACKAGES = ("numpy", "numba", "ml_dtypes", *CUDA_PACKAGES)
# pathfinder's name of each CUDA library, and the call that tells its version where one does.
CUDA_LIBRARIES = {"nvrtc": "nvrtcVersion", "nvJitLink": "nvJitLinkVersion", "nvvm": None}
_NVVM_WHEELS = ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc")
# From driver 580 on the CUDA 13 wheels run; older ones (525 and up) need those of CUDA 12.
GPU_VERSION = (
    "pip install 'gpualgo[cu13]' (NVIDIA driver 580 or newer; with an older one 'gpualgo[cu12]')"
)


@dataclass(frozen=True)
class Library:
    """A library that was found: its version as text and as (major, minor), and its place."""

    name: str
    version: str
    release: tuple[int, int] | None
    path: str


def find_package(name: str) -> Library | None:
    """Find an installed Python package by its metadata, without importing it."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    return Library(name, found.version, release(found.version), str(found.locate_file("")))


def find_cuda_library(name: str) -> Library | str:
    """Load a CUDA library through cuda.pathfinder, as gpualgo does, or say why that failed."""
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
    release = _asked(path, CUDA_LIBRARIES[name]) if CUDA_LIBRARIES[name] else _toolkit(path)
    version = ".".join(map(str, release)) if release else "unknown"
    return Library(name, version, release, path)


def _asked(path: str, function: str | None) -> tuple[int, int] | None:
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        code = getattr(ctypes.CDLL(path), str(function))(ctypes.byref(major), ctypes.byref(minor))
    except (AttributeError, OSError):
        return None
    return (major.value, minor.value) if code == 0 else None


def _toolkit(path: str) -> tuple[int, int] | None:
    # NVVM tells only the version of its IR; the toolkit's stands in the wheel or the toolkit.
    for wheel in _NVVM_WHEELS:
        found = find_package(wheel)
        if found and Path(path).resolve().is_relative_to(Path(found.path).resolve()):
            return found.release
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
