"""What `import gpualgo` costs and what it loads."""

from __future__ import annotations

import importlib.metadata

import pytest
from support import run_python

import gpualgo as ga

HEAVY = ("numba", "llvmlite", "cupy", "torch", "cuda", "ml_dtypes", "rich", "pandas")
MOST_MODULES = 45  # of this package; each costs about 0.3 ms


def test_import_loads_few_modules() -> None:
    """A count tells the same on every machine; bench/rows/startup.py has the times."""
    code = "import gpualgo, sys; print(sum(m.startswith('gpualgo.') for m in sys.modules))"
    assert 0 < int(run_python(code).stdout) <= MOST_MODULES


def test_import_loads_nothing_heavy() -> None:
    done = run_python("import gpualgo, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))")
    assert done.returncode == 0, done.stderr
    assert not set(HEAVY) & set(done.stdout.split())


def test_import_needs_nothing_but_numpy() -> None:
    """A broken numba or CUDA package breaks the call that needs it, not the import."""
    blocked = ";".join(f"sys.modules[{name!r}] = None" for name in HEAVY)
    done = run_python(f"import sys; {blocked}; import gpualgo; print(gpualgo.__version__)")
    assert done.returncode == 0, done.stderr


WITHOUT_CUDA = """if True:
    import sys

    class Hiding:
        '''A finder of modules that does not find the packages of a GPU.'''

        def __init__(self, finder):
            self.finder = finder

        def __getattr__(self, name):
            return getattr(self.finder, name)

        def find_spec(self, name, *args):
            if name.partition(".")[0] in ("cuda", "cupy", "torch", "ml_dtypes"):
                return None
            return self.finder.find_spec(name, *args)

        def find_distributions(self, context):
            if context.name in ("cuda-bindings", "cuda-core", "ml_dtypes"):
                return ()
            found = getattr(self.finder, "find_distributions", None)
            return () if found is None else found(context)

    sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
    import numpy as np, gpualgo as ga
    from gpualgo import numpy as gnp
    from gpualgo._cli import main

"""


@pytest.mark.parametrize(
    "code",
    [
        "main(['doctor'])",
        "[getattr(package, name) for package in (ga, gnp) for name in package.__all__]",
        "print(ga.explain(ga.reduce, np.ones(9)), ga.temp_storage_bytes(ga.reduce, np.ones(9)))",
        "assert ga.prepare(ga.reduce, np.ones(9))(np.ones(9)) == 9",
        "assert ga.radix_sort(np.array([3, 1])).tolist() == [1, 3]",
        "ga.set_memory_resource(None)",
    ],
)
def test_the_base_dependencies_suffice(code: str) -> None:
    """Without the packages of a GPU, everything that runs on the CPU loads and runs."""
    done = run_python(WITHOUT_CUDA + "    " + code)
    assert done.returncode == 0, done.stderr


def test_public_names() -> None:
    for name in ("reduce", "transform", "Operator", "default_device"):
        assert name in ga.__all__
        assert getattr(ga, name).__doc__
    assert issubclass(ga.NoDeviceError, RuntimeError)
    assert issubclass(ga.CompileError, RuntimeError)
    assert all(hasattr(ga, name) for name in ga.__all__)


def test_dir_shows_public_names_alone() -> None:
    done = run_python("import gpualgo; print(*dir(gpualgo))")  # nothing else is loaded there
    shown = done.stdout.split()
    assert set(ga.__all__) <= set(shown)
    assert [name for name in shown if name not in ga.__all__ and not name.startswith("__")] == []
    assert len(set(shown)) == len(shown)


def test_version() -> None:
    try:
        installed = importlib.metadata.version("gpualgo")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gpualgo runs from its sources here: there is no metadata to compare with")
    assert ga.__version__ == installed


def test_the_device_in_the_environment() -> None:
    code = "import numpy as np, gpualgo as ga; print(ga.reduce(np.ones(10)))"
    assert run_python(code, GPUALGO_DEVICE="cpu").stdout.strip() == "10.0"
    for name, error in (("cuda:99", "NoDeviceError"), ("abacus", "ValueError")):
        done = run_python(code, GPUALGO_DEVICE=name)
        assert done.returncode != 0
        assert error in done.stderr
        assert name in done.stderr


def test_default_device_nests_and_ends() -> None:
    code = """if True:
        import numpy as np, gpualgo as ga
        with ga.default_device("cpu"):
            with ga.default_device("cpu"):
                pass
            assert ga.reduce(np.ones(10)) == 10
            try:
                with ga.default_device("nowhere"):
                    pass
            except ValueError:
                pass
            assert ga.reduce(np.ones(10)) == 10
        import sys
        assert not {"cupy", "torch", "numba.cuda"} & set(sys.modules), "the CPU needs no CUDA"
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr
