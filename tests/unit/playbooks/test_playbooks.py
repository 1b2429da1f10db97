"""Every playbook against its own examples, and all of them against each other."""

from __future__ import annotations

import re
from pathlib import Path

from aotidoctor.diagnosis.playbooks import (
    DOES_NOT,
    HEAD_STAGES,
    MATCHES,
    Head,
    check_prose,
    examples_of,
    find_playbook,
    read_playbook,
)
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.diagnosis.treatments import PLANNERS
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.report import playbook_files
from tests.every import every

FILES = playbook_files()
PLAYBOOKS = tuple(read_playbook(path) for path in FILES)
BY_CAUSE = {playbook.cause: playbook for playbook in PLAYBOOKS}
EXPLAINED_GROUPS = {"@load", "@run", "@output"}

CAUSES = {
    "artifact": "missing wrong-kind corrupt layout incomplete bad-metadata ambiguous unsafe bomb cpp-only",
    "input": "count kwargs tree nontensor constant-changed order device dtype rank shape range shape-disagree "
    "divisibility stride layout lazy-bit alias nan mutation",
    "inputs-file": "missing corrupt unsafe format",
    "custom-op": "missing schema no-kernel exception crash hang exits leak fake-kernel bad-return contract",
    "cuda": "illegal-access device-assert graph-capture launch race",
}
OTHERS = (
    "model-name platform-mismatch isa-mismatch gpu-arch-mismatch device-unavailable abi-mismatch missing-library "
    "toolchain-missing tmpdir openmp-conflict threads-exceed-build out-of-memory driver-mismatch weights-not-loaded "
    "weights-mismatch executable-stack pytree-class-missing device-index load-device load-api setup-failed index-out-of-range integer-division "
    "runtime-assert operator-refused kernel-crash mixed-device model-hang killed threading memory-leak nan-produced overflow "
    "weights-differ codegen-bug numeric-difference nondeterministic uninitialized-read train-mode output-alias output-spec "
    "serving-config export-unsupported export-specialization unbacked-symint missing-c-shim large-weights dtype-unsupported "
    "lowering-failure model-error dynamic-shape-codegen autotune-failure user-triton-kernel triton-version arch-flags packaging-bug "
    "undefined-symbol-link backend-unsupported host-application performance"
)


def names() -> set[str]:
    families = {f"{family}-{name}" for family, text in CAUSES.items() for name in text.split()}
    return families | set(OTHERS.split())


def evidence_of(table: Head, number: int) -> Evidence:
    facts = table._left.pop("facts", {})
    made = Evidence(
        code=table.text("code"),
        kind=table.text("kind"),
        severity=Severity(table.text("severity", "error")),
        subject=table.text("subject", "") or None,
        observed=table.text("observed", ""),
        expected=table.text("expected", ""),
        facts={key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()},
        id=f"E{number}",
    )
    table.done()
    return made


def examples(playbook, block: str) -> list[Evidence]:
    return [evidence_of(table, number) for number, table in enumerate(examples_of(playbook)[block], start=1)]


def test_there_is_one_for_each_cause():
    assert set(BY_CAUSE) == names()


def test_weights_order_them_without_ties():
    weights = [playbook.weight for playbook in PLAYBOOKS]
    assert len(set(weights)) == len(weights)


class TestPlaybook:
    @every("cause", sorted(BY_CAUSE))
    def test_form(self, cause):
        check_prose(BY_CAUSE[cause])

    @every("cause", sorted(BY_CAUSE))
    def test_matches_its_example_at_rank_one_among_all(self, cause):
        found = diagnose(examples(BY_CAUSE[cause], MATCHES), PLAYBOOKS)
        assert found
        assert found[0].cause == cause
        assert found[0].stage == BY_CAUSE[cause].stage

    @every("cause", sorted(BY_CAUSE))
    def test_does_not_match_its_counterexample(self, cause):
        found = diagnose(examples(BY_CAUSE[cause], DOES_NOT), (BY_CAUSE[cause],))
        assert found == ()

    @every("cause", sorted(BY_CAUSE))
    def test_texts_have_no_holes(self, cause):
        first = diagnose(examples(BY_CAUSE[cause], MATCHES), PLAYBOOKS)[0]
        for text in (first.title, first.looked_like, first.remedy.text, first.remedy.command, first.would_confirm):
            assert "?" not in re.sub(r"['\"].*?['\"]", "", text).replace("NaN as well?", "").replace("operator?", "")
            assert not re.search(r"\{[a-z_]+(\|[^{}]*)?\}", text)

    @every("cause", sorted(BY_CAUSE))
    def test_a_prediction_has_no_made_up_number_or_name(self, cause):
        """A number in it is part of every such message; what differs from case to case is a fact, or three dots."""
        fixed = ("pt2", "CUDA_LAUNCH_BLOCKING=1", "exit status 0", "[Errno 2]", "137", "16K", "0 <= ", "Error #15", "exit status",
                 "args[0]: TensorBox", "ld returned 1")  # fmt: skip
        text = BY_CAUSE[cause].looked_like
        for one in fixed:
            text = text.replace(one, "")
        assert not re.search(r"\d", text), text
        assert not re.search(r"lib(?!torch)\w+\.so|'model'|ops::|mylib", text), text

    @every("cause", sorted(BY_CAUSE))
    def test_explains_what_exists(self, cause):
        for item in BY_CAUSE[cause].explains:
            known = item in names() or item in EXPLAINED_GROUPS
            assert known or re.fullmatch(r"[a-z-]+|SIG[A-Z]+", item)
            assert item != cause

    @every("cause", sorted(BY_CAUSE))
    def test_treatment_has_a_planner(self, cause):
        planned = PLANNERS.get(cause)
        assert BY_CAUSE[cause].treatment == (planned[0] if planned else None)

    @every("cause", sorted(BY_CAUSE))
    def test_weight_lies_in_its_stage(self, cause):
        assert BY_CAUSE[cause].weight in HEAD_STAGES[BY_CAUSE[cause].stage]


def test_planners_are_for_known_causes():
    assert set(PLANNERS) <= set(BY_CAUSE)


def test_one_can_be_found_by_cause():
    found = find_playbook("input-dtype")
    assert found is not None
    assert Path(found.path).stem == "input-dtype"
    assert find_playbook("no-such-cause") is None
