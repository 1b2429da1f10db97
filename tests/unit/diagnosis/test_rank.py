from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import CONFIRMED, confirm, diagnose, rerank, with_paths
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import Container, InputSet
from aotidoctor.model.report import Diagnosis, Remedy, Status

PLAYBOOKS = load_playbooks()


def seen(code, kind, severity="error", subject=None, **facts):
    return Evidence(
        code=code,
        kind=kind,
        severity=Severity(severity),
        subject=subject,
        observed="x",
        expected="y",
        facts=facts,
        id=f"{code}/{kind}",
    )


def crash(stage="run1", signal="SIGSEGV", *, ops=False, **facts):
    return seen("AD-RUN-001", "signalled", stage=stage, signal=signal, symptom="other", has_custom_ops=ops, **facts)


def raised(symptom, stage="run1", *, ops=False, **facts):
    return seen("AD-RUN-001", "raised", stage=stage, symptom=symptom, has_custom_ops=ops, type="RuntimeError", **facts)


RETURNED = seen("AD-RUN-001", "ok", "info", stage="done")
NEEDS_OP = seen("AD-LOAD-001", "needs", "warn", subject="ops::scale")


def causes(*findings, refuted=()):
    return [item.cause for item in diagnose(findings, PLAYBOOKS, refuted=refuted)]


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([seen("AD-IN-010", "dtype"), raised("index-out-of-bounds")], ["input-dtype"]),
        ([seen("AD-IN-016", "symbol"), raised("index-out-of-bounds")], ["input-shape-disagree"]),
        ([seen("AD-IN-013", "static"), crash()], ["input-shape"]),
        ([seen("AD-IN-010", "dtype"), raised("storage-overflow")], ["input-dtype"]),
        ([seen("AD-HOST-010", "baked"), crash()], ["threads-exceed-build"]),
        ([seen("AD-LOAD-002", "external"), crash()], ["weights-not-loaded"]),
        ([seen("AD-IN-004", "none"), seen("AD-IN-005", "few"), raised("count-mismatch")], ["input-nontensor"]),
        ([seen("AD-IN-002", "keys"), raised("count-mismatch")], ["input-tree"]),
        ([seen("AD-ART-002", "torchscript"), raised("model-not-found", "load")], ["artifact-wrong-kind"]),
        ([seen("AD-HOST-003", "torch-build"), raised("not-compiled-with", "load")], ["device-unavailable"]),
        ([NEEDS_OP, raised("schema-missing", "load", ops=True)], ["custom-op-missing"]),
        ([NEEDS_OP, seen("AD-RUN-010", "missing"), raised("schema-missing", "load", ops=True)], ["custom-op-missing"]),
        ([seen("AD-RUN-010", "schema"), raised("other", ops=True)], ["custom-op-schema"]),
        ([NEEDS_OP, crash(ops=True)], ["custom-op-crash"]),
        ([crash()], ["kernel-crash"]),
        ([crash(signal="SIGKILL", ops=True)], ["killed"]),
        ([crash(), seen("AD-RUN-006", "heals")], ["threading"]),
        ([crash(signal="SIGILL")], ["artifact-corrupt"]),
        ([crash(stage="load", signal="SIGILL")], ["isa-mismatch"]),
        ([crash(signal="SIGILL"), seen("AD-HOST-002", "isa")], ["isa-mismatch"]),
        ([RETURNED, seen("AD-RUN-009", "depends"), seen("AD-RUN-002", "differs")], ["uninitialized-read"]),
        ([RETURNED, seen("AD-IN-014", "stride"), seen("AD-RUN-011", "differs")], ["input-stride"]),
        ([RETURNED, seen("AD-IN-014", "stride"), seen("AD-RUN-002", "differs")], ["input-stride"]),
        ([RETURNED, seen("AD-RUN-011", "weights"), seen("AD-RUN-005", "nan-output", clean=True)], ["weights-differ"]),
        (
            [raised("op-no-storage", ops=True), seen("AD-RUN-003", "raised", symptom="check-op")],
            ["custom-op-bad-return"],
        ),
        ([raised("index-out-of-bounds"), seen("AD-RUN-003", "raised", symptom="check-dtype")], ["input-dtype"]),
        ([raised("setup-error", "setup")], ["setup-failed"]),
    ],
)
def test_explanations_leave_no_symptom_beside_them(findings, expected):
    assert causes(*findings) == expected


def test_evidence_of_the_symptom_goes_to_the_explanation():
    failed = raised("index-out-of-bounds")
    first = diagnose([seen("AD-IN-010", "dtype", subject="args[0]"), failed], PLAYBOOKS)[0]
    assert first.evidence == ("AD-IN-010/dtype", failed.id)
    assert first.subject == "args[0]"


@pytest.mark.parametrize(
    "finding",
    [
        seen("AD-IN-017", "batch-one", "warn"),
        seen("AD-IN-002", "list-for-tuple", "warn"),
        seen("AD-IN-010", "same-width-mask", "warn"),
        seen("AD-IN-012", "one-element", "warn"),
        seen("AD-IN-010", "dtype", "warn", unused=True),
        seen("AD-ART-003", "so-truncated", "warn"),
        seen("AD-HOST-009", "two-runtimes", "warn"),
        seen("AD-IN-018", "overlap", "info"),
        NEEDS_OP,
    ],
)
def test_these_remarks_make_no_diagnosis(finding):
    assert causes(RETURNED, finding) == []


@pytest.mark.parametrize(
    ("finding", "cause"),
    [
        (seen("AD-IN-017", "high", "warn"), "input-range"),
        (seen("AD-RUN-004", "output-alias", "warn"), "output-alias"),
        (seen("AD-RUN-004", "input-changed", "warn"), "input-mutation"),
        (seen("AD-RUN-002", "differs", "warn"), "nondeterministic"),
        (seen("AD-ART-010", "cpp-only", "warn"), "artifact-cpp-only"),
    ],
)
def test_these_remarks_do_at_their_own_severity(finding, cause):
    (only,) = diagnose([RETURNED, finding], PLAYBOOKS)
    assert (only.cause, only.severity) == (cause, Severity.WARN)


def test_an_unused_input_does_not_explain_a_crash():
    assert causes(crash(), seen("AD-IN-010", "dtype", "warn", unused=True)) == ["kernel-crash"]


def test_a_range_violation_becomes_an_error_when_the_run_dies_behind_what_failed_by_itself():
    found = diagnose([seen("AD-IN-017", "high", "warn"), crash()], PLAYBOOKS)
    assert [item.cause for item in found] == ["kernel-crash", "input-range"]
    assert found[1].severity is Severity.ERROR


def test_proof_beats_order():
    first, second = diagnose([seen("AD-IN-017", "high", "warn"), crash()], PLAYBOOKS)
    proven = rerank([first, confirm(second, "cut: the failure went away")])
    assert [(item.rank, item.cause) for item in proven] == [(1, "input-range"), (2, "kernel-crash")]


def test_a_warning_does_not_outrank_what_failed():
    found = causes(seen("AD-IN-017", "high", "warn"), raised("storage-overflow"))
    assert found == ["out-of-memory", "input-range"]


def test_artifact_before_host_before_inputs():
    findings = [seen("AD-IN-010", "dtype"), seen("AD-HOST-005", "needed"), seen("AD-ART-003", "crc")]
    assert causes(*findings) == ["artifact-corrupt", "missing-library", "input-dtype"]


def test_nothing_explains_an_unknown_message():
    assert causes(raised("other")) == []
    assert causes(seen("AD-RUN-001", "not-started", stage="import", symptom="other")) == []


def test_a_crash_while_loading_is_not_a_kernel_crash():
    assert causes(crash(stage="load")) == []


def test_refuted_causes_explain_nothing_and_come_last():
    findings = [seen("AD-IN-014", "stride"), crash()]
    assert causes(*findings) == ["input-stride"]
    found = diagnose(findings, PLAYBOOKS, refuted=["input-stride"])
    assert [item.cause for item in found] == ["kernel-crash", "input-stride"]
    assert found[1].confidence < found[0].confidence
    assert found[1].confirmation


def test_ranks_count_from_one_and_confidence_is_a_share():
    found = diagnose([seen("AD-IN-010", "dtype"), seen("AD-IN-014", "stride"), seen("AD-ART-003", "crc")], PLAYBOOKS)
    assert [item.rank for item in found] == list(range(1, len(found) + 1))
    assert all(0 < item.confidence <= 1 for item in found)
    assert [item.status for item in found[1:]] == [Status.SUSPECTED] * (len(found) - 1)
    # A wrong checksum is proof by itself.
    assert (found[0].cause, found[0].status, found[0].confidence) == ("artifact-corrupt", Status.CONFIRMED, 0.99)


def test_confirm_marks_the_remedy_as_tried():
    first = confirm(diagnose([seen("AD-IN-010", "dtype")], PLAYBOOKS)[0], "cast: the failure went away")
    assert first.status is Status.CONFIRMED
    assert first.confidence == CONFIRMED
    assert first.remedy.verified
    assert first.confirmation == "cast: the failure went away"


def test_more_subjects_are_counted_in_the_title():
    findings = [seen("AD-IN-010", "dtype", subject=f"args[{at}]", path=f"args[{at}]") for at in range(3)]
    assert diagnose(findings, PLAYBOOKS)[0].title.endswith("(and 2 more)")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (RETURNED, "returned without an error"),
        (crash(), "killed by SIGSEGV in the first call"),
        (raised("index-out-of-bounds", line="RuntimeError: index out of bounds"), "index out of bounds"),
        (seen("AD-RUN-001", "timed-out", stage="run2"), "no return in call 2"),
    ],
)
def test_looked_like_is_what_the_run_showed(run, words):
    assert words in diagnose([seen("AD-IN-010", "dtype"), run], PLAYBOOKS)[0].looked_like


def test_without_a_run_the_playbook_says_what_it_would_look_like():
    assert "index out of bounds" in diagnose([seen("AD-IN-010", "dtype")], PLAYBOOKS)[0].looked_like


def test_operators_are_named_one_way():
    complaint = seen("AD-RUN-003", "raised", subject="torch.ops.zoo.tr.default", symptom="check-op")
    assert diagnose([RETURNED, complaint], PLAYBOOKS)[0].subject == "zoo::tr"


def test_inputs_that_were_never_read_did_not_return():
    unsafe = seen("AD-IN-001", "unsafe")
    assert "returned" not in diagnose([unsafe, RETURNED], PLAYBOOKS)[0].looked_like


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/data/m.pt2", "aotidoctor inspect /data/m.pt2"),
        ("my model.pt2", "aotidoctor inspect model.pt2"),
        ("$(reboot).pt2", "aotidoctor inspect model.pt2"),
    ],
)
def test_commands_name_the_users_files(path, command):
    made = Diagnosis(
        cause="x",
        rank=1,
        status=Status.SUSPECTED,
        confidence=0.5,
        title="",
        looked_like="",
        subject=None,
        evidence=(),
        remedy=Remedy(text="", command="aotidoctor inspect model.pt2"),
        playbook="x",
    )
    artifact = Artifact(path=path, kind=ArtifactKind.AOTI_PACKAGE, size=1)
    host = Host(system="Linux", machine="x86_64", python="3.11")
    assert with_paths(made, Case(artifact=artifact, host=host)).remedy.command == command


def test_no_command_saves_over_the_file_of_inputs():
    # The stand-in becomes the user's own file.
    saving = [item for item in PLAYBOOKS if "torch.save(" in item.command]
    assert saving
    assert [item.cause for item in saving if "sample.pt" in item.command] == []


def case_of(leaf):
    empty = Container(type="tuple", children=())
    contract = ModelContract(model_name="m", source="wrapper.cpp", args=empty, kwargs=empty, leaves=(leaf,), n_inputs=1)
    artifact = Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1)
    host = Host(system="Linux", machine="x86_64", python="3.11")
    given = InputSet(path="sample.pt", format="pt", form="args", args=empty, kwargs=empty)
    return Case(artifact=artifact, host=host, contract=contract, inputs=given)


READ = LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0, dtype="int64", rank=1, dims=(Dim(static=4),))


@pytest.mark.parametrize(
    ("leaf", "sure"),
    [
        (READ, True),
        (replace(READ, dtype=None), False),
        (replace(READ, rank=None, dims=None), False),
        (replace(READ, dims=(Dim(min=2, max=9),)), False),
        (replace(READ, dtype=None, used=False), True),
    ],
)
def test_what_wrong_inputs_lead_to_is_a_guess_while_nothing_tells_which_are_right(leaf, sure):
    case = case_of(leaf)
    found = diagnose([raised("index-out-of-bounds")], PLAYBOOKS, case=case)[0]
    assert (found.confidence > 0.5) is sure, found


def differs(code="AD-RUN-002", kind="differs", **facts):
    return seen(code, kind, **facts)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        # Another size makes healthy code read other memory: the outputs alone are no cause.
        ([differs(random_ops=())], []),
        ([differs(random_ops=()), differs("AD-RUN-009", "depends", uninitialized_ops=())], []),
        ([differs("AD-RUN-006", "differs")], []),
        # A read past the end breaks with one layout of memory and not with another: one thread has another.
        ([differs("AD-RUN-006", "heals")], []),
        ([differs(random_ops=("aten.rand",))], ["nondeterministic"]),
        ([differs("AD-RUN-009", "depends", uninitialized_ops=("aten.empty",))], ["uninitialized-read"]),
        ([differs("AD-RUN-015", "random", subject="ops::scale")], ["nondeterministic"]),
        # An operator of PyTorch refuses what it is given; one of the user's may be at fault.
        ([replace(raised("op-raised", ops=True), subject="aten::linalg_qr")], []),
        ([replace(raised("op-raised", ops=True), subject="ops::scale")], ["custom-op-exception"]),
    ],
)
def test_what_open_inputs_may_lead_to_is_no_cause_by_itself(findings, expected):
    named = [item.cause for item in diagnose(findings, PLAYBOOKS, case=case_of(replace(READ, dtype=None)))]
    assert named == expected
    assert len(diagnose(findings, PLAYBOOKS, case=case_of(READ))) == 1


def test_a_random_operator_is_no_guess_whatever_the_inputs_are():
    (found,) = diagnose([differs(random_ops=("aten.rand",))], PLAYBOOKS, case=case_of(replace(READ, dtype=None)))
    assert found.confidence > 0.8
