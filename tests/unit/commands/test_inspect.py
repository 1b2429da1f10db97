"""What ``inspect`` says of a package that nobody calls."""

from __future__ import annotations

import pytest

from aotidoctor.commands import diagnose_package
from aotidoctor.model.case import Options
from tests.artifacts.packages import archive_parts, model_parts, write_zip


@pytest.mark.parametrize(("name", "cause"), [(None, None), ("encoder", None), ("nope", "model-name")])
def test_several_models_are_no_fault_until_one_is_asked_for(tmp_path, name, cause):
    parts = [
        *model_parts("p/data/aotinductor/encoder"),
        *model_parts("p/data/aotinductor/decoder"),
        *archive_parts("p"),
    ]
    report = diagnose_package.inspect(str(write_zip(tmp_path / "two.pt2", parts)), Options(model_name=name), environ={})
    found = [item.cause for item in report.diagnoses if item.cause == "model-name"]
    assert found == ([cause] if cause else [])
    told = [item for item in report.findings if item.code == "AD-ART-011"]
    assert bool(told) == (name != "encoder")
