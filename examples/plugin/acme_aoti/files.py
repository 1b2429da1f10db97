"""Where the playbooks and log patterns lie."""

from __future__ import annotations

from pathlib import Path

AOTIDOCTOR_API = 1

PLAYBOOKS = Path(__file__).with_name("playbooks")
LOG_PATTERNS = Path(__file__).with_name("log_patterns")
