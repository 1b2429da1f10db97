"""A kernel writes past its buffer, and whoever frees the neighbour dies: the kernel is named, not the one that freed.

As the package of an image model of timm behaves whose kernel torch 2.8 gave a local buffer of one element.
"""

from __future__ import annotations

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.localize.culprit import localize
from aotidoctor.model.evidence import Evidence, Severity
from tests.unit.probes.outcomes import case

PLAYBOOKS = load_playbooks()
FREED = "c10::StorageImpl::~StorageImpl()"
KERNEL = "cpp_fused_add_mean_native_layer_norm_55"


def found(code, kind, subject, **facts):
    return Evidence(
        code=code, kind=kind, severity=Severity.ERROR, subject=subject, observed="SIGABRT", expected="", facts=facts
    )


DIED = found("AD-RUN-001", "signalled", None, stage="run2", signal="SIGABRT", symptom="heap-corruption")
STACK = found("AD-RUN-023", "crash", FREED, where="libtorch", has_custom_ops=False, signal="SIGABRT")
LAST = found("AD-RUN-024", "extern", "aoti_torch_cpu_convolution", ending="signalled")


@pytest.mark.parametrize(
    ("kind", "call_kind", "inside", "named"),
    [
        ("moved", "kernel", True, KERNEL),
        ("moved", "extern", False, KERNEL),
        ("same", "kernel", True, KERNEL),
        ("same", "kernel", False, FREED),
        ("same", "extern", True, FREED),
        ("later", "kernel", True, FREED),
    ],
)
def test_where_the_checked_heap_stopped_it(kind, call_kind, inside, named):
    checked = found("AD-RUN-025", kind, KERNEL, call_kind=call_kind, inside=inside)
    findings = [DIED, LAST, STACK, checked]
    first = diagnose(findings, PLAYBOOKS)[0]
    assert (first.cause, first.subject) == ("kernel-crash", named)
    assert localize(case(), findings, {}, failed=True).culprit == named
