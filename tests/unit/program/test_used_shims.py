"""A shim is not missing of an operator that the very package calls."""

from __future__ import annotations

import pytest

from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.program.verify_stages import without_called_shims


def said(code, kind, **facts):
    return Evidence(code=code, kind=kind, severity=Severity.WARN, subject=None, observed="", expected="", facts=facts)


@pytest.mark.parametrize(
    ("target", "called", "kept"),
    [
        ("aten.linalg_eig.default", ("aoti_torch_cpu_linalg_eig",), False),
        ("aten.sort.stable", ("aoti_torch_cpu_sort_stable",), False),
        ("aten.linalg_eig.default", ("torch.ops.aten.linalg_eig.default",), False),
        ("aten.linalg_eig.default", ("aoti_torch_cpu_linalg_eigh",), True),
        ("aten.linalg_eig.default", (), True),
    ],
)
def test_operators_that_the_package_calls(target, called, kept):
    claim, other = said("VERIFY-A02", "no-shim", target=target), said("VERIFY-A07", "dropout", target=target)
    verdict = said("VERIFY-P00", "same", called=called)
    assert without_called_shims([claim, other, verdict]) == [*([claim] if kept else []), other, verdict]
    assert without_called_shims([claim, other]) == [claim, other]
