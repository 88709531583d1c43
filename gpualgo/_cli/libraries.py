"""Finds the paths and versions of libraries; does not raise if one is missing."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

CUDA_PACKAGES = ("numba-cuda", "cuda-core", "cuda-bindings")
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
    """Find an installed Python package from its metadata, without importing it."""
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
