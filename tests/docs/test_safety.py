"""Each promise of docs/safety.md names a test that exists, and the README says the same figures."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")


def test_each_promise_names_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "|---"))]
    assert len(rows) > 12
    for row in rows:
        path = re.search(r"\| `(tests/[\w/]+\.py)` \|$", row)
        assert path, row
        assert (ROOT / path[1]).is_file(), row


def test_the_figures_are_those_of_the_code():
    from aotidoctor.checks.matching.leaves import MOST_KEYS
    from aotidoctor.cli.execute import CPU_S, MEMORY, ORDINARY
    from aotidoctor.model.inputs import MOST_LEAVES
    from aotidoctor.readers.contract.run_impl import MOST_CALLS
    from aotidoctor.readers.inputs.other_formats import MOST_BRACKETS
    from aotidoctor.readers.inputs.saved_calls import MOST_PLACES
    from aotidoctor.readers.package.package_models import MAX_METADATA
    from aotidoctor.triage.static_checks import MOST_FINDINGS
    from aotidoctor.triton.config_schema import MOST_TOKENS

    for figure in (MOST_PLACES, MOST_CALLS, MOST_LEAVES, MOST_BRACKETS, MAX_METADATA, MOST_FINDINGS, MOST_TOKENS):
        assert f"{figure:,} " in PAGE
    assert f"{CPU_S:.0f} s of CPU time and {MEMORY >> 20} MB for inputs below {ORDINARY >> 20} MB" in PAGE
    assert MOST_KEYS
