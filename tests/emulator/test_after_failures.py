"""A launch that failed, or took more than it may, leaves nothing that the next test stumbles on."""

from __future__ import annotations

import numpy as np
import pytest
from support import Backend

from emulator import kernels, streams, trial, work
from emulator.planted.cases import CASES
from emulator.planted.run import patched

pytestmark = pytest.mark.usefixtures("emulated_alone")


def _call(gpu: Backend, name: str) -> None:
    for got, want in CASES[name].calls(gpu, np.random.default_rng(1)):
        np.testing.assert_array_equal(gpu.to_host(got), want)
    work.finish_all()


def _is_cut_short(gpu: Backend, name: str, steps: int) -> bool:
    """Return whether a call takes more than so many steps; renew streams as after a test."""
    test = trial.begin("a launch that is cut short", steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "MAX_STEPS", steps)
        try:
            _call(gpu, name)
        except (RuntimeError, AssertionError, pytest.skip.Exception):
            assert test.has_ended
    if test.has_ended:
        streams.renew()
    return test.has_ended


@pytest.mark.parametrize("is_failure", [False, True], ids=["capped", "failed"])
@pytest.mark.parametrize(
    "name", ["reduce blocks", "reduce small of many blocks", "tiles", "sort again"]
)
def test_a_launch_that_was_cut_short_leaves_nothing_behind(
    cuda: Backend, name: str, is_failure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_failure:  # too many steps count as any other mistake
        monkeypatch.setattr(kernels, "_TOO_LONG", "nothing begins so")
    num_cut = 0
    with patched(CASES[name]):
        for steps in (1000, 3000, 9000):
            num_cut += _is_cut_short(cuda, name, steps)
            test = trial.begin("what comes after", steps)
            _call(cuda, name)
            assert not test.has_ended, test.failures or test.capped
    assert num_cut >= 2
