"""Weights in the package are replaced by a set-up, and load_constants refuses them: the weights are at fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from warm import line

import aotidoctor

SETUP = """
import torch


def after_load(model):
    weights = {{name: value.detach() for name, value in torch.export.load({exported!r}).state_dict.items()}}
    {change}
"""
LOAD = "model.load_constants({}, check_full_update=True)"


def first_cause(packages, tmp_path, change):
    setup = tmp_path / "setup_case.py"
    setup.write_text(SETUP.format(exported=str(packages.exported("linear")), change=change))
    with line().lent():
        report = aotidoctor.diagnose(
            packages.package("linear"), inputs=packages.sample_path("linear"), setup=str(setup)
        )
    return report.diagnoses[0] if report.diagnoses else None


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ("del weights['l.bias']; " + LOAD.format("weights"), "l.bias"),
        ("weights['l.bias'] = None; " + LOAD.format("weights"), "l.bias"),
        ("weights['l.other'] = weights['l.bias']; " + LOAD.format("weights"), "l.other"),
        (LOAD.format("{}"), "w"),
        (LOAD.format("list(weights.values())"), "setup_case.py"),
    ],
)
def test_what_load_constants_refuses_is_about_the_weights(packages, tmp_path, change, subject):
    first = first_cause(packages, tmp_path, change)
    assert (first.cause, Path(first.subject).name) == ("weights-mismatch", subject)


def test_weights_that_fit_and_an_exception_of_the_setup_are_told_apart(packages, tmp_path):
    assert first_cause(packages, tmp_path, LOAD.format("weights")) is None
    assert first_cause(packages, tmp_path, "raise KeyError('checkpoint')").cause == "setup-failed"
