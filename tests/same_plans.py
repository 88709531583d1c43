"""Compare the plans of two checkouts: ``python tests/same_plans.py BEFORE AFTER``.

Each checkout explains the calls of its own tests/contract/cases.py, in a process of its own: on the
CPU, and on the fake GPU of tests/fake_driver.py. Compared are the steps of each plan: kernels,
grids, blocks, temporary storage and bytes moved. The exit status is 1 if a plan differs, or if a
call can be explained in one of the checkouts only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    before, after = (_plans_of(Path(checkout).resolve()) for checkout in sys.argv[1:])
    changed = [name for name in sorted(before.keys() | after.keys())
               if before.get(name) != after.get(name)]  # fmt: skip
    for name in changed:
        print(f"{name}\n  before: {before.get(name)}\n  after:  {after.get(name)}")
    print(f"{len(before)} and {len(after)} plans, {len(changed)} differ")
    return bool(changed)


def _plans_of(checkout: Path) -> dict[str, str]:
    """Return the plans of a checkout as texts, by device and call."""
    path = os.pathsep.join(map(str, (checkout, checkout / "tests")))
    command = [sys.executable, str(Path(__file__).resolve()), str(checkout), "--explain"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, cwd=checkout, stdout=subprocess.PIPE,
        check=True,
    )  # fmt: skip
    plans: dict[str, str] = json.loads(done.stdout)
    return plans


def _explain_all() -> None:
    """Print the plans of the checkout that is on the path."""
    sys.path.pop(0)  # this file's folder, which may be of another checkout
    import numpy as np
    from contract.case import TABLE, Call
    from contract.cases import CASES

    import gpualgo as ga

    def explain_on(device: str, of: Any) -> None:
        for case in CASES:
            args, options = Call(case, of(TABLE)).arguments(list(map(of, case.samples())))
            try:
                plan = str(ga.explain(case.function, *args, **options))
            except Exception as error:
                plan = f"{type(error).__name__}: {error}"
            found[f"{device}, {case}"] = plan.replace(str(Path.cwd()), "")

    found: dict[str, str] = {}
    with ga.default_device("cpu"):
        explain_on("cpu", np.asarray)
    import fake_driver
    import pytest

    patch = pytest.MonkeyPatch()
    fake_driver.install(patch)
    fake_driver.stub_kernels(patch)
    fake_driver.register_arrays(patch)
    explain_on("gpu", lambda x: fake_driver.FakeArray(x.shape, x.dtype))
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(_explain_all() if sys.argv[2:] == ["--explain"] else main())
