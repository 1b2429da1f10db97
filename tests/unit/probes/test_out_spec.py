"""A package that returns other outputs than its own out spec tells of."""

from __future__ import annotations

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.probes import plain_run
from tests.unit.probes.outcomes import case, history, raised

TOLD = "treespec.unflatten(leaves): `leaves` has length 5 but the spec refers to a pytree that holds 1 items (*)."


def test_outputs_that_the_out_spec_does_not_have():
    found = plain_run.read(case(), history(), raised(TOLD, type="ValueError"))
    assert {item.facts["symptom"] for item in found if item.code == "AD-RUN-001"} == {"output-spec"}
    assert [item.cause for item in diagnose(found, load_playbooks())] == ["output-spec"]
