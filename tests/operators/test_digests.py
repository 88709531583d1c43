"""Digests of operators: the same in every process, or the disk cache is of no use."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import REPOSITORY, run_python

import gpualgo as ga
from gpualgo._operators.tokens import digest_of

TABLE = """if True:
    import cmath, enum, math, operator, os, random, sys, types
    from collections import namedtuple

    junk = [object() for _ in range(int(os.environ["JUNK"]))]  # other addresses
    import numba, numpy as np
    import gpualgo as ga
    from gpualgo._operators.tokens import digest_of

    class Color(enum.IntEnum):
        RED, GREEN = 3, 5

    Point = namedtuple("Point", "x y", defaults=(1.5,))
    settings = types.ModuleType("settings")
    settings.K, settings.f, settings.Color, settings.np = 2.5, lambda a: a - 1, Color, np
    served = types.ModuleType("served")
    served.__getattr__ = {"K": 7, "__path__": None}.__getitem__
    k, pair, table = np.float16(0.1), (1, (2.0, "three")), np.zeros((2, 3))
    ufunc, cast, member = np.hypot, np.float32, Color.GREEN

    @numba.njit
    def jitted(a):
        return a * k

    def recursive(a, n):
        return a if n == 0 else recursive(a + 1, n - 1)

    def around(a):
        first, second, third = settings, settings, settings
        return (lambda b: first.K + second.f(b) + third.np.pi + second.Color.RED)(a)

    def plain(a, b=2, *rest):
        return a + b

    ops = {
        "where": lambda a: np.where(a > 0, a, 0.0), "real": lambda a: np.real(a),
        "round": lambda a: np.round(a), "iinfo": lambda a: a + np.iinfo(np.int8).max,
        "finfo": lambda a: a + np.finfo(np.float32).eps, "imag": lambda a: np.imag(a),
        "angle": lambda a: np.angle(a), "clip": lambda a: np.clip(a, 0, 1),
        "ufunc": lambda a: ufunc(a, np.pi), "cast": lambda a: cast(a) + np.uint8(3),
        "nan": lambda a: a if a == a else np.nan, "random": lambda a: a + np.random.random(),
        "math": lambda a: math.sin(a) + cmath.sin(a).real, "loose": lambda a: (a * a).conjugate(),
        "builtins": lambda a: min(abs(a), max(a, round(a))), "range": lambda a: sum(range(a)),
        "operator": lambda a: operator.mul(a, a), "numba": lambda a: numba.float32(a),
        "set": lambda a: a in {1, 2, 3, 10**20, "x", "y", None, (1, "z")},
        "enum": lambda a: a + Color.RED.value, "member": lambda a: a == member,
        "namedtuple": lambda a: Point(a).y, "tuple": lambda a: a + pair[0],
        "settings": lambda a: settings.f(a) + settings.K + settings.Color.RED + settings.np.pi,
        "served": lambda a: a * served.K, "scalar": lambda a: a * k, "jitted": lambda a: jitted(a),
        "table": lambda i: table[i, 0], "recursive": recursive, "plain": plain,
        "around": around,
        "inner": lambda a: (lambda b: b + k)(a), "tuples of functions": lambda a: fs[0](a),
        "np.hypot": np.hypot, "np.where": np.where, "abs": abs, "math.floor": math.floor,
        "add": operator.add, "float32": np.float32, "njit": jitted,
    }
    fs = (ops["where"], ops["scalar"])
    for name, op in ops.items():
        print(name, digest_of(ga.Operator(op).key))
"""


def test_digests_are_the_same_in_every_process() -> None:
    done = [
        run_python(TABLE, PYTHONHASHSEED=str(seed), JUNK=str(seed * 1000)) for seed in (0, 1, 7)
    ]
    assert all(run.returncode == 0 for run in done), done[0].stderr
    first, *others = ([line.rsplit(" ", 1) for line in run.stdout.splitlines()] for run in done)
    assert len(first) > 30
    for other in others:
        assert [
            name for (name, one), (_, two) in zip(first, other, strict=True) if one != two
        ] == []
    assert len({digest for _, digest in first}) == len(first) - 1  # njit's is that of its function


def test_what_is_known_in_one_process_alone_hits_no_cache_of_another() -> None:
    code = """if True:
        import gpualgo as ga
        from gpualgo._operators.tokens import digest_of
        class Plain: pass
        print(digest_of(ga.Operator(lambda a: Plain(a)).key))
    """
    assert run_python(code).stdout != run_python(code).stdout


def test_versions_of_what_compiles_are_part_of_the_cache_s_keys(tmp_path: Path) -> None:
    """Another release of numba may compile the same bytecode into something else."""
    code = """if True:
        import numpy
        from gpualgo._cuda import build
        print(build.provenance())
    """
    here = run_python(code)
    assert here.returncode == 0, here.stderr
    for name in ("numba", "llvmlite"):
        package, folder = tmp_path / name / name, tmp_path / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (folder / f"{name}-99.0.dist-info").mkdir()
        path = os.pathsep.join((str(folder), str(REPOSITORY)))
        env = {**os.environ, "PYTHONPATH": path}
        other = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert other.stdout != here.stdout, name


CALLS: list[Any] = [
    lambda a: np.where(a > 0, a, np.float32(0)),
    lambda a: np.real(a),
    lambda a: np.round(a),
    lambda a: a + np.iinfo(np.int8).max,
]


@pytest.mark.parametrize("op", CALLS)
def test_no_address_is_in_a_key(op: Any) -> None:
    token = repr(ga.Operator(op).key.token)
    assert " at 0x" not in token
    assert str(id(np.where)) not in token
    assert digest_of(ga.Operator(op).key) == hashlib.sha256(token.encode()).hexdigest()
