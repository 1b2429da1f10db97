"""The rules of ``aotidoctor verify``, in the order of their codes, each with its manual page: ``rules.toml``."""

from __future__ import annotations

from pathlib import Path

from aotidoctor.model import load_toml
from aotidoctor.model.evidence import ExportRule, Severity


def _read_rules() -> dict[str, ExportRule]:
    tables = load_toml(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))["rule"]
    found: dict[str, ExportRule] = {}
    for table in tables:
        severities = {kind: Severity(word) for kind, word in table.pop("severities").items()}
        found[table["code"]] = ExportRule(**table, severities=severities)
    return found


BY_CODE = _read_rules()
# Without those of ``--package``, which are about two files.
RULES = tuple(rule for code, rule in BY_CODE.items() if not code.startswith("VERIFY-P"))
