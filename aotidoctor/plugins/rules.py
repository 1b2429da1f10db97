"""What a plugin may be called, and what its files must be: the validator of ``aotidoctor plugins``."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from aotidoctor.checks import CHECKS
from aotidoctor.diagnosis.head import PlaybookError
from aotidoctor.diagnosis.playbooks import check_prose, read_playbook
from aotidoctor.logs.patterns import Pattern, PatternError, check, read_patterns
from aotidoctor.model import playbook_files
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.plugins.discover import Entry
from aotidoctor.probes import LATER, PROBES

OURS = ("AD-", "TRITON-", "VERIFY-", "LOG-")
STAGES = ("artifact", "host", "load", "inputs")
_CODE = re.compile(r"[A-Z][A-Z0-9]{1,19}(?:-[A-Z0-9]{1,20}){1,4}")
_NAME = re.compile(r"[a-z][a-z0-9_]{2,59}")
_LARGEST = 256 << 10


class Broken(AotidoctorError):  # noqa: N818 - of a plugin: a state that is reported, no failure of ours
    """The plugin breaks a rule; the message says what was observed and what was expected."""


def check_rules(entry: Entry, item: JsonObject, codes: Collection[str], names: Collection[str]) -> None:
    """A check is called like none of ours and none before it. Raises Broken."""
    _called(item, {*codes, *(one.code for one in CHECKS)}, {*names, *(one.name for one in CHECKS)})
    if item.get("stage") not in STAGES:
        raise Broken(f"stage: observed {item.get('stage')!r}, expected one of {', '.join(STAGES)}")
    cause = str(item.get("cause"))
    if not _is_cause_of(entry, cause) and playbook_files.find(cause) is None:
        raise Broken(f"cause: observed {cause[:80]!r}, expected a known cause or one that begins with {entry.name}-")


def probe_rules(item: JsonObject, codes: Collection[str], names: Collection[str]) -> None:
    """A probe likewise. Raises Broken."""
    known = (*PROBES, *LATER)
    _called(item, {*codes, *(one.code for one in known)}, {*names, *(one.name for one in known)})


def _called(item: JsonObject, codes: Collection[str], names: Collection[str]) -> None:
    code, name = str(item.get("code")), str(item.get("name"))
    if not _CODE.fullmatch(code) or code.startswith(OURS):
        raise Broken(
            f"code: observed {code[:80]!r}, expected one like ACME-001 that does not begin with {', '.join(OURS)}"
        )
    if not _NAME.fullmatch(name):
        raise Broken(f"name: observed {name[:80]!r}, expected lower case letters, digits and _")
    if code in codes or name in names:
        raise Broken(f"observed {code} ({name}), which is taken")


def files_rules(entry: Entry, said: JsonValue, *, patterns: bool) -> list[Path]:
    """Playbooks of causes that are the plugin's own; with ``patterns`` log patterns of any cause. Raises Broken."""
    paths = [Path(str(path)) for path in said] if isinstance(said, list) else []
    for path in paths:
        if path.stat().st_size > _LARGEST:
            raise Broken(f"{path.name}: observed {path.stat().st_size:,} bytes, expected at most {_LARGEST:,}")
        try:
            _file(entry, path, patterns=patterns)
        except (PlaybookError, PatternError, UnicodeDecodeError) as error:
            raise Broken(str(error)) from error
    return paths


def _file(entry: Entry, path: Path, *, patterns: bool) -> None:
    found = read_patterns(path.stem, path.read_text(encoding="utf-8"))
    for number, pattern in enumerate(found, 1):
        where = f"{path.name}: pattern {number}"
        check(pattern, where)
        _examined(pattern, where)
    if patterns:
        if not found:
            raise Broken(f"{path.name}: observed no block `toml log`, expected patterns")
        if not _is_cause_of(entry, path.stem) and playbook_files.find(path.stem) is None:
            raise Broken(f"{path.name}: expected the name of a known cause, or one that begins with {entry.name}-")
        return
    if not _is_cause_of(entry, path.stem):
        raise Broken(f"{path.name}: expected a cause that begins with {entry.name}-")
    playbook = read_playbook(path)
    check_prose(playbook)


def _examined(pattern: Pattern, where: str) -> None:
    example = pattern.record.example
    if not example or not pattern.may_match(example) or pattern.regex.search(example) is None:
        raise Broken(f"{where}: expected an example that its own regex matches")


def _is_cause_of(entry: Entry, cause: str) -> bool:
    return cause.startswith(f"{entry.name}-") and bool(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)+", cause))
