"""What a command may import. The one test here that starts a process: imports of this one say nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = "torch numpy pandas matplotlib rich jinja2 asyncio http.client"

CODE = """
import sys
from aotidoctor.cli import build_app
try:
    build_app()({words!r}.split(), prog_name="aotidoctor")
except SystemExit:
    pass
print(*sorted(set({heavy!r}.split()) & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    ["--help", "schema", "check /no/such.pt2 --json", "check /no/such.pt2 --format md", "inspect /no/such.pt2 --json"],
)
def test_nothing_heavy_is_imported(words):
    code = CODE.format(words=words, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout
    assert done.stderr.strip() == ""


def test_the_terminal_format_does_import_rich():
    code = CODE.format(words="check /no/such.pt2", heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "rich"
