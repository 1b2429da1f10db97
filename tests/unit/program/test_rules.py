"""The rules of ``verify``: their list, their pages, and what becomes of a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.commands import explain
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.model import load_toml
from aotidoctor.model.answers import Verified, parse_answer
from aotidoctor.model.evidence import FileSource, Severity, Where
from aotidoctor.model.report import Diagnosis, Remedy, Status
from aotidoctor.probes.stages import CODE as STAGES_CODE
from aotidoctor.program import rules, verify_stages
from aotidoctor.program.rules import ADVICE, BY_CODE, RULES
from aotidoctor.program.verify_stages import with_advice
from tests.every import every

FILE = Path(rules.__file__).with_name("rules.toml")


def test_the_list_is_in_the_order_of_the_codes():
    order = {family: at for at, family in enumerate("GSAL")}
    keys = [(order[rule.code[7]], int(rule.code[8:])) for rule in RULES]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_no_code_and_no_name_is_in_the_file_twice():
    tables = load_toml(FILE.read_text(encoding="utf-8"))["rule"]
    assert len(BY_CODE) == len(tables)
    assert len({rule.name for rule in BY_CODE.values()}) == len(BY_CODE)


@every("rule", RULES, ids=lambda rule: rule.code)
def test_its_page_has_all_headings(rule):
    page = explain.find(rule.code)
    assert page is not None
    assert (page.kind, page.name, page.code) == ("rule", rule.name, rule.code)
    for heading in ("What it does", "Why it matters", "Example", "When it is wrong"):
        assert f"\n## {heading}\n" in explain.markdown(page)


@every("rule", RULES, ids=lambda rule: rule.code)
def test_rules_of_the_verifier_are_errors(rule):
    if rule.of_torch:
        assert set(rule.severities.values()) == {Severity.ERROR}


@every("rule", RULES, ids=lambda rule: rule.code)
def test_every_error_has_a_playbook(rule):
    conditions = [(condition.code, condition.kind) for playbook in load_playbooks() for condition in playbook.any_of]
    for kind, severity in rule.severities.items():
        if severity is Severity.ERROR:
            assert (rule.code, kind) in conditions or (rule.code, None) in conditions


def test_advice_is_for_kinds_that_exist():
    # The stages of a model are compared by a probe, which has no rule.
    stages = {(STAGES_CODE, "exported"), (STAGES_CODE, "decomposed")}
    assert not [key for key in ADVICE.keys() - stages if key[1] not in BY_CODE[key[0]].severities]


RECORD = {
    "code": "VERIFY-G04",
    "kind": "not-functional",
    "node": "add_",
    "target": "aten.add_.Tensor",
    "graph": "true_graph_0",
    "where": {"file": "model.py", "line": 7, "text": "x.add_(1)"},
    "observed": "aten.add_.Tensor writes to its arguments",
    "expected": "an operator that changes no argument",
    "facts": {"dialect": "ATEN", "list": [1, None]},
}


class TestRecord:
    def test_becomes_a_violation(self):
        found = read(RECORD)
        assert (found.code, found.kind) == ("VERIFY-G04", "not-functional")
        assert found.where == Where(file="model.py", line=7, text="x.add_(1)")
        assert found.facts == {"dialect": "ATEN", "list": (1, None)}

    def test_of_an_unknown_rule_is_our_error(self):
        for changes in ({"code": "VERIFY-G99"}, {"kind": "else"}):
            with pytest.raises(KeyError):
                verify_stages.violation_evidence(read({**RECORD, **changes}), "p.pt2")

    def test_without_a_place(self):
        assert verify_stages.violation_evidence(read({**RECORD, "where": None}), "p.pt2").source is None


def read(record):
    """As it comes from the child."""
    (program,) = parse_answer(Verified, {"programs": [{"records": [record]}]}).programs
    (found,) = program.records
    return found


class TestFinding:
    def made(self, **changes):
        return read({**RECORD, **changes})

    def test_names_node_line_and_rule(self):
        made = verify_stages.violation_evidence(self.made(), "p.pt2")
        assert made.severity is Severity.ERROR
        assert made.subject == "true_graph_0.add_"
        assert made.source == FileSource(file="model.py", line=7)
        assert made.facts["target"] == "aten.add_.Tensor"
        assert made.facts["rule"] == "not_functional"
        assert "x.add_(1)" in made.message

    def test_about_an_operator_or_input_names_that(self):
        changes = {"code": "VERIFY-L02", "kind": "operator-missing", "target": "zoo::scale", "graph": ""}
        assert verify_stages.violation_evidence(self.made(**changes), "p.pt2").subject == "zoo::scale"

    def test_about_nothing_names_the_file(self):
        made = verify_stages.violation_evidence(self.made(node=None, target=None, graph=""), "p.pt2")
        assert made.subject == "p.pt2"

    def test_that_the_installed_verifier_accepts_is_a_warning(self):
        made = verify_stages.violation_evidence(self.made(), "p.pt2", accepted=True)
        assert made.severity is Severity.WARN
        assert "accepts it" in made.message

    def test_of_what_comes_later_is_not_for_the_verifier_to_accept(self):
        found = self.made(code="VERIFY-A11", kind="symbolic-input")
        assert verify_stages.violation_evidence(found, "p.pt2", accepted=True).severity is Severity.ERROR


class TestAdvice:
    def diagnosis(self):
        return Diagnosis(
            cause="custom-op-missing",
            rank=1,
            status=Status.SUSPECTED,
            confidence=0.95,
            title="t",
            looked_like="as a package",
            subject="zoo::scale",
            evidence=("E1",),
            remedy=Remedy(text="of a package", command="run"),
            playbook="custom-op-missing",
        )

    def finding(self, **changes):
        made = verify_stages.violation_evidence(read({**RECORD, **changes}), "p.pt2")
        return type(made)(**{**{name: getattr(made, name) for name in made.__slots__}, "id": "E1"})

    def test_replaces_the_words_for_packages(self):
        found = self.finding(code="VERIFY-L02", kind="operator-missing", target="zoo::scale", graph="")
        (made,) = with_advice([self.diagnosis()], [found])
        assert made.looked_like.startswith("SerializeError")
        assert made.remedy.text.startswith("Register zoo::scale before the program")
        assert "--setup" in made.remedy.command

    def test_leaves_the_others(self):
        (made,) = with_advice([self.diagnosis()], [self.finding()])
        assert made == self.diagnosis()

    def test_without_evidence(self):
        assert with_advice([self.diagnosis()], []) == (self.diagnosis(),)
