"""From installed plugins to what a command has of them: each is described and checked first, then stands in for itself.

A check or probe of a plugin is here a record like any other, whose functions ask the process that has imported it. What
that answers is read strictly; an answer that is none, or none in time, is ``NotChecked`` with the plugin's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from aotidoctor.checks.check import Check
from aotidoctor.model import extensions
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.extensions import Extensions
from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, objects
from aotidoctor.model.records import RecordError, from_json
from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome, Request
from aotidoctor.plugins import API, GROUPS
from aotidoctor.plugins.discover import Entry, found
from aotidoctor.plugins.rules import Broken, check_rules, files_rules, probe_rules
from aotidoctor.plugins.sent import sendable
from aotidoctor.probes.probe import History, Plan, Probe, Reuse
from aotidoctor.runner.plugin_host import PluginError, PluginHost

CODE = "AD-PLUGIN"
# Importing may take a while; a check that takes longer than this would be slower than all of ours together.
DESCRIBE_S, ASK_S, RENDER_S = 20.0, 5.0, 20.0
_MOST_FINDINGS, _MOST_TEXT = 300, 2000

_RUN = ("run", "localize", "compare", "repro")
# Formats are asked when a report is written.
_ASKED_BY: Mapping[str, tuple[str, ...]] = {
    "checks": (*_RUN, "check"), "probes": _RUN, "setup": _RUN, "reports": (), "log_patterns": ("classify", "watch"),
}  # fmt: skip

T = TypeVar("T")


@dataclass(slots=True)
class Taken:
    """What is known of the plugins so far. ``used`` are entries that passed, ``broken`` those that did not, and why."""

    used: list[Entry] = field(default_factory=list)
    broken: list[tuple[Entry, str]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    playbooks: list[Path] = field(default_factory=list)
    patterns: list[Path] = field(default_factory=list)
    setups: list[str] = field(default_factory=list)
    host_facts: dict[str, str] = field(default_factory=dict)


@contextmanager
def plugins_of(command: str, entries: Sequence[Entry]) -> Iterator[None]:
    """With ``entries`` until the end of the block: those of the groups that ``command`` asks."""
    unused = {group for group, commands in _ASKED_BY.items() if command not in commands}
    asked = [entry for entry in entries if entry.group not in unused]
    with PluginHost() as host, extensions.using(_extensions(take(asked, host))):
        yield


def take(entries: Sequence[Entry], host: PluginHost) -> Taken:
    """Describe and check every entry."""
    taken = Taken()
    for entry in entries:
        problem = _problem(entry, host, taken)
        if problem is None:
            taken.used.append(entry)
        else:
            taken.broken.append((entry, problem))
    return taken


def _problem(entry: Entry, host: PluginHost, taken: Taken) -> str | None:
    try:
        _take(entry, host, taken)
    except (PluginError, Broken, OSError) as error:
        return str(error)
    return None


def _take(entry: Entry, host: PluginHost, taken: Taken) -> None:
    if entry.group not in GROUPS:
        raise Broken(f"observed the group aotidoctor.{entry.group}, expected one of {', '.join(GROUPS)}")
    said = _ask(host, entry, "describe", DESCRIBE_S)
    match entry.group:
        case "checks":
            for item in objects(said):
                check_rules(entry, item, {one.code for one in taken.checks}, {one.name for one in taken.checks})
                taken.checks.append(_check(entry, item, host))
        case "probes":
            for item in objects(said):
                probe_rules(item, {one.code for one in taken.probes}, {one.name for one in taken.probes})
                taken.probes.append(_probe(entry, item, host))
        case "playbooks":
            taken.playbooks += files_rules(entry, said, patterns=False)
        case "log_patterns":
            taken.patterns += files_rules(entry, said, patterns=True)
        case "setup":
            taken.setups.append(entry.target)
        case "host_facts":
            facts = _ask(host, entry, "facts", ASK_S)
            named = facts.items() if isinstance(facts, dict) else ()
            taken.host_facts.update({f"{entry.name}.{name}": str(value) for name, value in named})


def _ask(host: PluginHost, entry: Entry, what: str, seconds: float, **more: object) -> JsonValue:
    return host.ask({"ask": what, "group": entry.group, "target": entry.target, **more}, seconds)


def _extensions(taken: Taken) -> Extensions:
    return Extensions(
        checks=tuple(taken.checks),
        probes=tuple(taken.probes),
        playbooks=tuple(taken.playbooks),
        patterns=tuple(taken.patterns),
        setups=tuple(taken.setups),
        host_facts=taken.host_facts,
        took_part="; ".join(entry.label for entry in taken.used),
        problems=tuple(not_used(entry, reason) for entry, reason in taken.broken),
    )


def not_used(entry: Entry, reason: str) -> NotChecked:
    """A plugin did not take part."""
    return NotChecked(code=CODE, name=entry.label, reason=f"the plugin cannot be used: {reason}")


def _check(entry: Entry, item: JsonObject, host: PluginHost) -> Check:
    code, name = str(item["code"]), str(item["name"])

    def run(case: Case) -> Sequence[Evidence] | NotChecked:
        try:
            said = _ask(host, entry, "run", ASK_S, code=code, case=sendable(case))
            return _unchecked(said) if isinstance(said, dict) else _evidence(said, code)
        except (PluginError, Broken) as error:
            return NotChecked(code=code, name=name, reason=_failed(entry, error))

    return Check(
        code=code,
        name=name,
        cause=str(item["cause"]),
        stage=str(item["stage"]),
        needs=tuple(map(str, as_list(item["needs"]))),
        run=run,
        facts=tuple(map(str, as_list(item["facts"]))),
    )


def _probe(entry: Entry, item: JsonObject, host: PluginHost) -> Probe:
    code, name = str(item["code"]), str(item["name"])

    def ask(what: str, case: Case, history: History, read: Callable[[JsonValue], T], **more: object) -> T:
        seen = History(
            outcomes={key: sendable(one) for key, one in history.outcomes.items()}, findings=history.findings
        )
        return read(_ask(host, entry, what, ASK_S, code=code, case=sendable(case), history=seen, **more))

    def plan(case: Case, history: History) -> Plan:
        try:
            return ask("plan", case, history, _plan)
        except (PluginError, Broken) as error:
            return NotChecked(code=code, name=name, reason=_failed(entry, error))

    def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
        try:
            return ask("read", case, history, lambda said: _evidence(said, code), outcome=sendable(outcome))
        except (PluginError, Broken) as error:
            # The guard of the session turns it into NotChecked.
            raise PluginError(_failed(entry, error)) from error

    return Probe(code=code, name=name, asks=str(item["asks"]), asked_when=str(item["asked_when"]), plan=plan, read=read)


def _failed(entry: Entry, error: Exception) -> str:
    return f"the plugin {entry.label} failed: {error}"


def _evidence(said: JsonValue, code: str) -> list[Evidence]:
    """Findings under the code of their check, with texts that fit. Raises Broken."""
    if not isinstance(said, list):
        raise Broken(f"observed {type(said).__name__}, expected findings")
    if len(said) > _MOST_FINDINGS:
        raise Broken(f"{len(said)} findings, expected at most {_MOST_FINDINGS}")
    made = [_record(Evidence, item) for item in said]
    other = next((item.code for item in made if item.code != code), None)
    if other is not None:
        raise Broken(f"observed a finding with the code {other[:80]}, expected {code}")
    return [_short(item) for item in made]


def _short(item: Evidence) -> Evidence:
    texts = {name: getattr(item, name)[:_MOST_TEXT] for name in ("kind", "observed", "expected", "message")}
    facts = {name[:80]: _cut(value) for name, value in list(item.facts.items())[:50]}
    subject = None if item.subject is None else item.subject[:300]
    return replace(item, **texts, facts=facts, subject=subject, id="")


def _cut(value: T) -> T:
    return value[:_MOST_TEXT] if isinstance(value, (str, tuple)) else value  # type: ignore[return-value]  # of its kind


def _unchecked(said: JsonObject) -> NotChecked:
    made = _record(NotChecked, said)
    return replace(made, reason=made.reason[:_MOST_TEXT])


def _record(kind: type[T], item: JsonValue) -> T:
    try:
        return from_json(kind, item)
    except RecordError as error:
        raise Broken(f"observed no {kind.__name__}: {str(error)[:200]}") from error


def _plan(said: JsonValue) -> Plan:
    kinds: Mapping[str, type[Request | Reuse | NotChecked]]
    kinds = {"Request": Request, "Reuse": Reuse, "NotChecked": NotChecked}
    parts = [_record(kinds[str(item["kind"])], item["value"]) for item in objects(said)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def render_with(name: str, report: Report) -> str:
    """``report`` in the format of a plugin. Raises PluginError."""
    entry = next((one for one in found() if one.group == "reports" and one.name == name), None)
    if entry is None:
        raise PluginError(f"no plugin has the format {name!r}")
    with PluginHost() as host:
        said = _ask(host, entry, "render", RENDER_S, report=sendable(report))
    if not isinstance(said, str):
        raise PluginError("observed no text, expected a document")
    return said


__all__ = ["API", "CODE", "PluginError", "Taken", "not_used", "plugins_of", "render_with", "take"]
