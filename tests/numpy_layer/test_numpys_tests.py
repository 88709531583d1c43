"""NumPy's own tests pass with its functions answered here, but for what is explained."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpys_tests import imported, outcomes

import gpualgo.numpy as gnp

TABLE = Path(__file__).with_name("numpys_failures.txt")
SAMPLE = [
    "lib/tests/test_function_base.py::TestBincount",
    "lib/tests/test_histograms.py::TestHistogramdd",
]
MULTIARRAY = "_core/tests/test_multiarray.py"
CLASSES = [
    "ArgmaxArgminCommon", "Argmax", "Argmin", "MinMax", "Clip", "Compress", "Take", "Lexsort",
    "Stats", "Vdot", "Dot", "Inner", "Choose", "Repeat", "Where", "BytestringArrayNonzero",
    "Methods",
    "UnicodeArrayNonzero", "TextSignatures",
]  # fmt: skip
ALL = [
    ["lib/tests/test_nanfunctions.py"],
    ["lib/tests/test_arraysetops.py"],
    ["lib/tests/test_histograms.py"],
    ["lib/tests/test_function_base.py"],
    ["_core/tests/test_numeric.py"],
    ["_core/tests/test_ufunc.py"],
    [f"{MULTIARRAY}::Test{name}" for name in CLASSES],
]


def explained() -> dict[str, str]:
    """Return the reason of each failure, by its name or the beginning of several."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" | ") for line in lines if line and not line.startswith("#"))


def check(chosen: list[str], *, whole: bool) -> None:
    found = outcomes(chosen)
    failed = {name: text for name, (outcome, text) in found.items() if outcome == "failed"}
    known = {
        name: [one for one in failed if one == name or _begins(one, name)] for name in explained()
    }
    new = set(failed).difference(*known.values())
    assert not new, "\n".join(f"{name}: {failed[name]}" for name in sorted(new))
    modules = {name.partition("::")[0] for name in found}
    if whole:
        idle = [name for name in known if name.partition("::")[0] in modules and not known[name]]
        assert not idle, f"these do not fail any more: {idle}"
    assert len(found) > 20


def _begins(name: str, pattern: str) -> bool:
    return pattern.endswith("*") and name.startswith(pattern[:-1])


def test_sample() -> None:
    check(SAMPLE, whole=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chosen", ALL, ids=lambda chosen: chosen[0].partition("::")[0])
def test_all(chosen: list[str]) -> None:
    check(chosen, whole=True)


def test_every_failure_has_a_reason() -> None:
    assert all(len(reason.split()) >= 3 for reason in explained().values())


def test_globals_alone_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_small.py"
    path.write_text(
        "from __future__ import annotations\nimport numpy as np\nfrom numpy import histogram, pi\n"
        "import numpy.linalg as linalg\nFUNCTIONS = [np.bincount]\n"
    )
    monkeypatch.setitem(sys.modules, "numpy.test_small_of_ours", None)  # taken out again
    module = imported(path, "numpy.test_small_of_ours")
    assert module.np == gnp.wrap(np)
    assert module.histogram == module.np.histogram
    assert module.FUNCTIONS[0].__wrapped__ is gnp.bincount
    assert module.pi is np.pi
    assert module.linalg is np.linalg
    assert np.bincount.__module__ == "numpy"
