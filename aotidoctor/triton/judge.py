"""Apply every rule to a model, each guarded against its own failure, and make findings of the remarks.

A module of its own because it imports the rules, which import the other modules.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, describe_failure
from aotidoctor.triton.call_spec import FIRST_RELEASE
from aotidoctor.triton.rules import RULES
from aotidoctor.triton.serving import Consequence, Needs, NotJudged, Release, Remark, ServedModel, ServingRule

_LOOKED_LIKE = {
    Consequence.FAILS_TO_LOAD: "a model that the server does not load",
    Consequence.REQUESTS_FAIL: "a model that loads, and requests that fail",
    Consequence.SILENTLY_WRONG: "a healthy model: it loads and answers with HTTP status 200",
    Consequence.WASTE: "a healthy model",
    Consequence.NOTE: "a healthy model",
}
_ORDER = tuple(Needs)


def judge_model(
    model: ServedModel, rules: Sequence[ServingRule] = RULES
) -> tuple[tuple[Evidence, ...], tuple[NotChecked, ...]]:
    """Findings of the rules about one model, the worst first, and the rules that could not be applied."""
    findings: list[Evidence] = []
    not_checked: list[NotChecked] = []
    for rule in rules:
        missing = _missing(rule.needs, model)
        try:
            found = [NotJudged(reason=missing)] if missing is not None else list(rule.check(model))
        except Exception:  # noqa: BLE001 - a broken rule must not cost the rest of the report
            found = [NotJudged(reason=describe_failure())]
        for item in found:
            if isinstance(item, NotJudged):
                not_checked.append(NotChecked(code=rule.code, name=f"{model.name} {rule.id}", reason=item.reason))
            else:
                findings.append(finding_of(rule, item, model))
    findings.sort(key=lambda item: "FESWI".index(str(item.facts["consequence"])))
    return tuple(findings), tuple(not_checked)


def _missing(needs: Needs, model: ServedModel) -> str | None:
    """Why a rule with these needs cannot be applied; None where it can."""
    level = _ORDER.index(needs)
    if level >= _ORDER.index(Needs.CONFIG) and (model.config is None or model.settled is None):
        return "config.pbtxt does not parse"
    if level >= _ORDER.index(Needs.AOTI) and model.release.before(FIRST_RELEASE):
        return f"Triton {model.release.name} has no torch_aoti"
    if level >= _ORDER.index(Needs.PACKAGE) and not any(version.artifact for version in model.served):
        return "no version that would be served contains a package"
    if level >= _ORDER.index(Needs.CONTRACT) and not model.contracts:
        problems = [version.problem for version in model.served if version.problem]
        return problems[0] if problems else "the package contains no call spec"
    return None


def finding_of(rule: ServingRule, remark: Remark, model: ServedModel) -> Evidence:
    """Finding for a remark of a rule."""
    file, at, release = remark.file or model.config_path, remark.at, model.release
    consequence = remark.consequence or rule.worst
    message = remark.message
    if release.key > Release(name=rule.last_seen).key:
        note = f"(Seen up to {rule.last_seen}; nothing is known of a change up to {release.name}.)"
        message = f"{message} {note}" if message else note
    return Evidence(
        code=rule.code,
        kind=remark.kind,
        severity=consequence.severity,
        subject=model.name if remark.subject is None else f"{model.name}: {remark.subject}",
        observed=remark.observed,
        expected=remark.expected,
        message=message,
        source=FileSource(file=file, line=at.line if at else None, column=at.column if at else None) if file else None,
        facts={
            "consequence": consequence.value,
            "release": release.name,
            "last_seen": rule.last_seen,
            "remedy": remark.remedy,
            "model": model.name,
            "rule": rule.title,
            "looked_like": _LOOKED_LIKE[consequence],
            **remark.facts,
        },
    )
