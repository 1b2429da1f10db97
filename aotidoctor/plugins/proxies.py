"""Load plugins in a helper process, validate their declarations, and register proxies for them.

A check or probe of a plugin is a record like any other, whose functions ask the process that has imported it. The
answer is read strictly; a malformed answer, or none in time, is ``NotChecked`` with the plugin's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypedDict, TypeVar

from aotidoctor.checks.check import Check
from aotidoctor.checks.registry import CHECKS
from aotidoctor.diagnosis.playbooks import PlaybookError, check_prose, read_playbook
from aotidoctor.logs.patterns import PatternError, check, read_patterns
from aotidoctor.model.case import Case
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.record import JsonObject, JsonValue, as_list, objects, values_of
from aotidoctor.model.record_json import RecordError, from_json
from aotidoctor.model.report import Extensions, Report, playbook_file, use_extensions
from aotidoctor.model.run import Outcome, Request
from aotidoctor.plugins import API, GROUPS
from aotidoctor.plugins.discover import PluginEntry, find_plugins
from aotidoctor.probes import LATER, PROBES
from aotidoctor.probes.probe import History, Plan, Probe, Reuse
from aotidoctor.reports.text import one_line
from aotidoctor.runner.own_command import PluginError, PluginHost

# Records without the functions that look at values, for another process.
RecordT = TypeVar("RecordT")


def sendable(record: RecordT) -> RecordT:
    """A case or report without ``elements``; anything else as it is."""
    if isinstance(record, Report):
        plain = Report(**{item.name: getattr(record, item.name) for item in fields(Report)})
        return replace(plain, case=sendable(plain.case))  # type: ignore[return-value]  # a report, as the users' own
    if isinstance(record, Case) and record.inputs is not None:
        return replace(record, inputs=record.inputs.without_elements())
    return record


# Names and files that a plugin may have: the validator of `aotidoctor plugins`.
OURS = ("AD-", "TRITON-", "VERIFY-", "LOG-")
STAGES = ("artifact", "host", "load", "inputs")
_CODE = re.compile(r"[A-Z][A-Z0-9]{1,19}(?:-[A-Z0-9]{1,20}){1,4}")
_NAME = re.compile(r"[a-z][a-z0-9_]{2,59}")
_LARGEST = 256 << 10


class BrokenPluginError(AotidoctorError):
    """The plugin breaks a rule; the message says what was observed and what was expected."""


def check_rules(entry: PluginEntry, item: JsonObject, codes: Collection[str], names: Collection[str]) -> None:
    """Require names that no other check has, a known stage and an allowed cause. Raises Broken."""
    _check_names(item, {*codes, *(one.code for one in CHECKS)}, {*names, *(one.name for one in CHECKS)})
    if item.get("stage") not in STAGES:
        raise BrokenPluginError(f"stage: observed {item.get('stage')!r}, expected one of {', '.join(STAGES)}")
    cause = str(item.get("cause"))
    if not _is_cause_of(entry, cause) and playbook_file(cause) is None:
        raise BrokenPluginError(
            f"cause: observed {cause[:80]!r}, expected a known cause or one that begins with {entry.name}-"
        )


def probe_rules(item: JsonObject, codes: Collection[str], names: Collection[str]) -> None:
    """Require names that no other probe has. Raises Broken."""
    known = (*PROBES, *LATER)
    _check_names(item, {*codes, *(one.code for one in known)}, {*names, *(one.name for one in known)})


def _check_names(item: JsonObject, codes: Collection[str], names: Collection[str]) -> None:
    code, name = str(item.get("code")), str(item.get("name"))
    if not _CODE.fullmatch(code) or code.startswith(OURS):
        raise BrokenPluginError(
            f"code: observed {code[:80]!r}, expected one like ACME-001 that does not begin with {', '.join(OURS)}"
        )
    if not _NAME.fullmatch(name):
        raise BrokenPluginError(f"name: observed {name[:80]!r}, expected lower case letters, digits and _")
    if code in codes or name in names:
        raise BrokenPluginError(f"observed {code} ({name}), which is taken")


def files_rules(entry: PluginEntry, answer: JsonValue, *, patterns: bool) -> list[Path]:
    """Playbooks of causes that are the plugin's own; with ``patterns`` log patterns of any cause. Raises Broken."""
    paths = [Path(str(path)) for path in answer] if isinstance(answer, list) else []
    for path in paths:
        if path.stat().st_size > _LARGEST:
            raise BrokenPluginError(
                f"{path.name}: observed {path.stat().st_size:,} bytes, expected at most {_LARGEST:,}"
            )
        try:
            _file(entry, path, patterns=patterns)
        except (PlaybookError, PatternError, UnicodeDecodeError) as error:
            raise BrokenPluginError(str(error)) from error
    return paths


def _file(entry: PluginEntry, path: Path, *, patterns: bool) -> None:
    found = read_patterns(path.stem, path.read_text(encoding="utf-8"))
    for number, pattern in enumerate(found, 1):
        where = f"{path.name}: pattern {number}"
        check(pattern, where)
        example = pattern.record.example
        if not example or not pattern.may_match(example) or pattern.regex.search(example) is None:
            raise BrokenPluginError(f"{where}: expected an example that its own regex matches")
    if patterns:
        if not found:
            raise BrokenPluginError(f"{path.name}: observed no block `toml log`, expected patterns")
        if not _is_cause_of(entry, path.stem) and playbook_file(path.stem) is None:
            raise BrokenPluginError(
                f"{path.name}: expected the name of a known cause, or one that begins with {entry.name}-"
            )
        return
    if not _is_cause_of(entry, path.stem):
        raise BrokenPluginError(f"{path.name}: expected a cause that begins with {entry.name}-")
    playbook = read_playbook(path)
    check_prose(playbook)


def _is_cause_of(entry: PluginEntry, cause: str) -> bool:
    return cause.startswith(f"{entry.name}-") and bool(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)+", cause))


# The proxies.
CODE = "AD-PLUGIN"
# Importing may take a while; a check that takes longer than this would be slower than all of ours together.
DESCRIBE_S, ASK_S, RENDER_S = 20.0, 5.0, 20.0
_MOST_FINDINGS, _MOST_TEXT = 300, 2000

_RUN = ("run", "localize", "compare", "repro")
# Formats are asked when a report is written.
_GROUPS_BY_COMMAND: Mapping[str, tuple[str, ...]] = {
    "checks": (*_RUN, "check"), "probes": _RUN, "setup": _RUN, "reports": (), "log_patterns": ("classify", "watch"),
}  # fmt: skip

T = TypeVar("T")


@dataclass(slots=True)
class LoadedPlugins:
    """The plugins loaded so far. ``used`` are entries that passed, ``broken`` those that did not, and why."""

    used: list[PluginEntry] = field(default_factory=list)
    broken: list[tuple[PluginEntry, str]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    playbooks: list[Path] = field(default_factory=list)
    patterns: list[Path] = field(default_factory=list)
    setups: list[str] = field(default_factory=list)
    host_facts: dict[str, str] = field(default_factory=dict)


@contextmanager
def plugins_of(command: str, entries: Sequence[PluginEntry]) -> Iterator[None]:
    """Use those of ``entries`` whose groups ``command`` needs until the end of the block."""
    unused = {group for group, commands in _GROUPS_BY_COMMAND.items() if command not in commands}
    parts = [entry for entry in entries if entry.group not in unused]
    with PluginHost() as host, use_extensions(_extensions(load_plugins(parts, host))):
        yield


def load_plugins(entries: Sequence[PluginEntry], host: PluginHost) -> LoadedPlugins:
    """Describe and check every entry."""
    taken = LoadedPlugins()
    for entry in entries:
        problem = _problem(entry, host, taken)
        if problem is None:
            taken.used.append(entry)
        else:
            taken.broken.append((entry, problem))
    return taken


def _problem(entry: PluginEntry, host: PluginHost, taken: LoadedPlugins) -> str | None:
    try:
        _load_plugin(entry, host, taken)
    except (PluginError, BrokenPluginError, OSError) as error:
        return str(error)
    return None


def _load_plugin(entry: PluginEntry, host: PluginHost, taken: LoadedPlugins) -> None:
    if entry.group not in GROUPS:
        raise BrokenPluginError(f"observed the group aotidoctor.{entry.group}, expected one of {', '.join(GROUPS)}")
    answer = _ask(host, entry, "describe", DESCRIBE_S)
    match entry.group:
        case "checks":
            for item in objects(answer):
                check_rules(entry, item, {one.code for one in taken.checks}, {one.name for one in taken.checks})
                taken.checks.append(_check(entry, item, host))
        case "probes":
            for item in objects(answer):
                probe_rules(item, {one.code for one in taken.probes}, {one.name for one in taken.probes})
                taken.probes.append(_probe(entry, item, host))
        case "playbooks":
            taken.playbooks += files_rules(entry, answer, patterns=False)
        case "log_patterns":
            taken.patterns += files_rules(entry, answer, patterns=True)
        case "setup":
            taken.setups.append(entry.target)
        case "host_facts":
            facts = _ask(host, entry, "facts", ASK_S)
            named = facts.items() if isinstance(facts, dict) else ()
            taken.host_facts.update({f"{entry.name}.{name}": str(value) for name, value in named})


def _ask(host: PluginHost, entry: PluginEntry, what: str, seconds: float, **more: object) -> JsonValue:
    return host.ask({"ask": what, "group": entry.group, "target": entry.target, **more}, seconds)


def _extensions(taken: LoadedPlugins) -> Extensions:
    return Extensions(
        checks=tuple(taken.checks),
        probes=tuple(taken.probes),
        playbooks=tuple(taken.playbooks),
        patterns=tuple(taken.patterns),
        setups=tuple(taken.setups),
        host_facts=taken.host_facts,
        took_part="; ".join(entry.label for entry in taken.used),
        problems=tuple(
            NotChecked(code=CODE, name=entry.label, reason=f"the plugin cannot be used: {reason}")
            for entry, reason in taken.broken
        ),
    )


def _check(entry: PluginEntry, item: JsonObject, host: PluginHost) -> Check:
    code, name = str(item["code"]), str(item["name"])

    def run(case: Case) -> Sequence[Evidence] | NotChecked:
        try:
            answer = _ask(host, entry, "run", ASK_S, code=code, case=sendable(case))
            if not isinstance(answer, dict):
                return _evidence(answer, code)
            made = _record(NotChecked, answer)
            return replace(made, reason=made.reason[:_MOST_TEXT])
        except (PluginError, BrokenPluginError) as error:
            return NotChecked(code=code, name=name, reason=_failure_text(entry, error))

    return Check(
        code=code,
        name=name,
        cause=str(item["cause"]),
        stage=str(item["stage"]),
        needs=tuple(map(str, as_list(item["needs"]))),
        run=run,
        facts=tuple(map(str, as_list(item["facts"]))),
    )


def _probe(entry: PluginEntry, item: JsonObject, host: PluginHost) -> Probe:
    code, name = str(item["code"]), str(item["name"])

    def ask(what: str, case: Case, history: History, read: Callable[[JsonValue], T], **more: object) -> T:
        seen = History(
            outcomes={key: sendable(one) for key, one in history.outcomes.items()}, findings=history.findings
        )
        return read(_ask(host, entry, what, ASK_S, code=code, case=sendable(case), history=seen, **more))

    def plan(case: Case, history: History) -> Plan:
        try:
            return ask("plan", case, history, _plan)
        except (PluginError, BrokenPluginError) as error:
            return NotChecked(code=code, name=name, reason=_failure_text(entry, error))

    def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
        try:
            return ask("read", case, history, lambda answer: _evidence(answer, code), outcome=sendable(outcome))
        except (PluginError, BrokenPluginError) as error:
            # The guard of the session turns it into NotChecked.
            raise PluginError(_failure_text(entry, error)) from error

    return Probe(code=code, name=name, asks=str(item["asks"]), asked_when=str(item["asked_when"]), plan=plan, read=read)


def _failure_text(entry: PluginEntry, error: Exception) -> str:
    return f"the plugin {entry.label} failed: {error}"


def _evidence(answer: JsonValue, code: str) -> list[Evidence]:
    """Findings under the code of their check, with texts that fit. Raises Broken."""
    if not isinstance(answer, list):
        raise BrokenPluginError(f"observed {type(answer).__name__}, expected findings")
    if len(answer) > _MOST_FINDINGS:
        raise BrokenPluginError(f"{len(answer)} findings, expected at most {_MOST_FINDINGS}")
    made = [_record(Evidence, item) for item in answer]
    other = next((item.code for item in made if item.code != code), None)
    if other is not None:
        raise BrokenPluginError(f"observed a finding with the code {other[:80]}, expected {code}")
    # No text is longer than a report can show.
    return [
        replace(
            item,
            kind=item.kind[:_MOST_TEXT],
            observed=item.observed[:_MOST_TEXT],
            expected=item.expected[:_MOST_TEXT],
            message=item.message[:_MOST_TEXT],
            facts={
                name[:80]: value[:_MOST_TEXT] if isinstance(value, (str, tuple)) else value
                for name, value in list(item.facts.items())[:50]
            },
            subject=None if item.subject is None else item.subject[:300],
            id="",
        )
        for item in made
    ]


def _record(kind: type[T], item: JsonValue) -> T:
    try:
        return from_json(kind, item)
    except RecordError as error:
        raise BrokenPluginError(f"observed no {kind.__name__}: {str(error)[:200]}") from error


def _plan(answer: JsonValue) -> Plan:
    kinds: Mapping[str, type[Request | Reuse | NotChecked]]
    kinds = {"Request": Request, "Reuse": Reuse, "NotChecked": NotChecked}
    parts = [_record(kinds[str(item["kind"])], item["value"]) for item in objects(answer)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def render_with(name: str, report: Report) -> str:
    """``report`` in the format of a plugin. Raises PluginError."""
    entry = next((one for one in find_plugins() if one.group == "reports" and one.name == name), None)
    if entry is None:
        raise PluginError(f"no plugin has the format {name!r}")
    with PluginHost() as host:
        answer = _ask(host, entry, "render", RENDER_S, report=sendable(report))
    if not isinstance(answer, str):
        raise PluginError("observed no text, expected a document")
    return answer


# The list of installed plugins (``aotidoctor plugins``).
class PluginList(TypedDict):
    """The document ``aotidoctor.plugins/1``; ``api`` is the version of the plugin interface.

    A plugin has the fields of ``PluginEntry``, and its ``problem``: None if it can be used, or was not validated.
    """

    schema: str
    api: int
    validated: bool
    plugins: list[dict[str, object]]


def list_plugins(*, validate: bool) -> PluginList:
    """List all entry points; with ``validate`` each is imported in a process of its own."""
    entries = find_plugins()
    problems: dict[PluginEntry, str] = {}
    if validate and entries:
        with PluginHost() as host:
            problems = dict(load_plugins(entries, host).broken)
    rows = [{**values_of(entry), "problem": problems.get(entry)} for entry in entries]
    return PluginList(schema="aotidoctor.plugins/1", api=API, validated=validate, plugins=rows)


def plugin_list_text(found_: PluginList) -> str:
    """The list as text for a terminal."""
    if not found_["plugins"]:
        return f"no plugins are installed (interface {found_['api']})\n"
    good = "ok" if found_["validated"] else "not validated"
    lines = [
        f"{row['distribution']} {row['version']}  {row['group']} {row['name']} = {row['target']}: "
        f"{row['problem'] or good}"
        for row in found_["plugins"]
    ]
    return "".join(f"{one_line(line, 1000)}\n" for line in lines)
