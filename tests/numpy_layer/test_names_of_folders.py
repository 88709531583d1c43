"""What users see of `gpualgo.numpy` is its functions, whatever folders they lie in."""

from __future__ import annotations

import pickle
import pkgutil
from importlib import import_module
from types import ModuleType

import gpualgo.numpy as gnp

SUBMODULES = [found.name for found in pkgutil.walk_packages(gnp.__path__, "gpualgo.numpy.")]


def test_no_submodule_takes_the_place_of_a_function() -> None:
    assert len(SUBMODULES) > 15, "not all folders were walked through"
    before = {name: getattr(gnp, name) for name in gnp.__all__}
    for name in SUBMODULES:
        import_module(name)
    assert all(getattr(gnp, name) is value for name, value in before.items())
    assert not [name for name, value in before.items() if isinstance(value, ModuleType)]


def test_submodules_are_private() -> None:
    modules = [name for name, value in vars(gnp).items() if isinstance(value, ModuleType)]
    assert not [name for name in modules if not name.startswith("_")]
    assert all(name.removeprefix("gpualgo.numpy.").startswith("_") for name in SUBMODULES)
    assert {name for name in dir(gnp) if not name.startswith("_")} == {*gnp.__all__}


def test_names_do_not_tell_of_files() -> None:
    """What pickles, tracebacks and help say stays true when a file moves."""
    told = {name: getattr(gnp, name).__module__ for name in gnp.__all__}
    assert {*told.values()} == {"gpualgo.numpy"}, told
    for name in gnp.__all__:
        value = getattr(gnp, name)
        found = pickle.dumps(value)
        assert pickle.loads(found) is value
        assert b"gpualgo.numpy." not in found, name
