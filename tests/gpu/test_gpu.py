"""All faults on the GPU of this machine; skipped, with the reason, where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run
from tests.gpu.machine import describe

pytestmark = pytest.mark.gpu


def test_every_fault_gets_its_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = describe().get("problem")
    if problem:
        pytest.skip(str(problem))
    status = run.main(["--out", str(tmp_path)])
    assert status == 0, capsys.readouterr().out
