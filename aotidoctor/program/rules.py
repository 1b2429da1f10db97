"""The rules of ``aotidoctor verify``, in the order of their codes, each with its manual page: ``rules.toml``."""

from __future__ import annotations

from pathlib import Path

from aotidoctor.model import load_toml
from aotidoctor.model.evidence import ExportRule, Severity
from aotidoctor.model.record import record


@record
class Advice:
    """Texts that replace those of playbook and diagnosis, unless empty; ``{subject}`` is that of the finding."""

    looked_like: str = ""
    confirmation: str = ""
    remedy: str = ""
    command: str = ""


_TABLES = load_toml(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
BY_CODE: dict[str, ExportRule] = {}
for _table in _TABLES["rule"]:
    _severities = {kind: Severity(word) for kind, word in _table.pop("severities").items()}
    BY_CODE[_table["code"]] = ExportRule(**_table, severities=_severities)
# Without those of ``--package``, which are about two files.
RULES = tuple(rule for code, rule in BY_CODE.items() if not code.startswith("VERIFY-P"))
# By code and kind of a finding.
ADVICE = {(code, kind): Advice(**table) for table in _TABLES["advice"] for code, kind in table.pop("of")}
