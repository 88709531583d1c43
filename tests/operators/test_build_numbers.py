"""Machine code of operators whose numbers are data, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import Capability, needs_compilers, needs_cuobjdump
from support import sampled

from gpualgo._base import dtypes
from gpualgo._cuda import build
from gpualgo._operators.operator import Operator

FLOAT32 = np.dtype("float32")


pytestmark = pytest.mark.usefixtures("own_cache")


def _scaled(k: Any) -> Callable[..., Any]:
    return lambda a: a * k


def _decayed(k: Any) -> Callable[..., Any]:
    return lambda a, b: a * k + b


@needs_cuobjdump
@pytest.mark.parametrize("capability", [(7, 5), (9, 0), (10, 0), (12, 0)], ids=build.arch_of)
def test_numbers_are_read_once_for_several_elements(capability: Capability, tmp_path: Path) -> None:
    functions = _scaled(2.5), lambda a: a * 2.5
    (result, code), (_, plain) = sass.all_transformed(functions, [FLOAT32], tmp_path, capability)
    assert result == FLOAT32
    assert not code.calls()
    assert not code.local_bytes
    assert code.count("BAR") == 1 + plain.count("BAR")
    assert code.count("LDS") <= 4  # of 16 elements, and in the last tile
    assert plain.count("LDS") == 0


@needs_compilers
@pytest.mark.parametrize("kind", ["float", "complex", *sampled(dtypes.NAMES)])
def test_every_type_links(kind: str) -> None:
    value = {"float": 1.5, "complex": 1j}.get(kind)
    op = Operator(_scaled(dtypes.from_name(kind).type(1) if value is None else value))
    result = build.result_dtype(op, (FLOAT32,), None, (9, 0))
    build.cubin(sass.flat_case(op, [FLOAT32], result).spec, (9, 0))


@needs_cuobjdump
def test_reductions_keep_their_form(tmp_path: Path) -> None:
    cases = sass.reduce_cases(Operator(_decayed(0.5)), FLOAT32, FLOAT32, sass.MANY_BYTES)
    sass.check(cases, (9, 0), tmp_path)


@needs_compilers
def test_other_values_link_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(k: Any) -> build.Spec:
        op = Operator((lambda a: -a) if k is None else _scaled(k))
        return sass.flat_case(op, [FLOAT32], FLOAT32).spec

    sass.check_links_once(monkeypatch, spec, 1.5, -7.0, None)
