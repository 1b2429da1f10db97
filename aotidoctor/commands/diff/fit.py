"""A package against a host it was not examined on: the checks of the host, asked of that host's report."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.commands.diff.node import Node
from aotidoctor.commands.diff.tally import Tally
from aotidoctor.model import records
from aotidoctor.model.case import Case
from aotidoctor.model.difference import Difference
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.host import Host

_LEVELS = {Severity.ERROR: "decisive", Severity.WARN: "relevant", Severity.INFO: "minor"}
_WORDS = {Severity.ERROR: "does not fit", Severity.WARN: "may not fit", Severity.INFO: "fits"}
# Without torch a check still tells much, so it is a note there; here the question is whether it would run.
_WITHOUT_TORCH = "AD-HOST-013"
_NOT_SEEN = "libraries and symbols were not resolved on that host; run `aotidoctor check` there"


def compare_fit(tally: Tally, case: Case, host: Node, *, package_is_a: bool) -> None:
    """What the package needs and the host lacks, as differences; passed checks count as equal."""
    # Only this question needs the checks.
    from aotidoctor.triage.fit import ask_host  # noqa: PLC0415

    for asked in ask_host(replace(case, host=_host(host))):
        if isinstance(asked.found, NotChecked):
            tally.unknown.append(f"fit: {asked.check.name}: {asked.found.reason}")
            continue
        # What a package asks for and this host permits fits.
        unfit = [item for item in asked.found if item.facts.get("permitted") is not True]
        tally.equal["fit"] += 0 if unfit else 1
        tally.differences += [_difference(item, asked.check.cause, package_is_a=package_is_a) for item in unfit]


def _difference(finding: Evidence, cause: str, *, package_is_a: bool) -> Difference:
    severity = Severity.WARN if finding.code == _WITHOUT_TORCH else finding.severity
    there, told = f"observed {finding.observed}, expected {finding.expected}", _WORDS[severity]
    return Difference(
        area="fit",
        subject=finding.subject or finding.code,
        a=told if package_is_a else there,
        b=there if package_is_a else told,
        level=_LEVELS[severity],
        why=finding.message or "the package does not fit this host",
        playbook=cause,
        codes=(finding.code,),
    )


def _host(node: Node) -> Host:
    host = node.at("host")
    if not isinstance(host.value, dict):
        raise host.misfit("an object")
    try:
        found = records.from_json(Host, host.value)
    except records.RecordError as error:
        raise CannotExamineError(
            f"{host.file}: at {host.place}: observed {error}, expected the record of a host"
        ) from error
    return found if found.symbols_checked else replace(found, libraries={}, symbols_problem=_NOT_SEEN)
