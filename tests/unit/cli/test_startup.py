"""What a command may import. The one test here that starts a process: imports of this one say nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CUDA = Path(__file__).parents[2] / "data" / "cuda" / "mlp.pt2"
HEAVY = "torch numpy pandas matplotlib rich jinja2 asyncio http.client fsspec distributed sqlite3"

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
    [
        "--help",
        "schema",
        "check /no/such.pt2 --json",
        "check /no/such.pt2 --format md",
        "check /no/such.pt2 --format sarif",
        "check /no/such.pt2 --format junit",
        "check /no/such.pt2 --format github",
        "check /no/such.pt2 --format md --for pytorch",
        "diff --help",
        "inspect /no/such.pt2 --json",
    ],
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


# Records and stages that a command has no use for: each was a good part of its start-up time.
RUNS = "aotidoctor.runner aotidoctor.probes aotidoctor.triage.run_probes aotidoctor.triage.examine aotidoctor.localize.culprit"
IDLE = f"{RUNS} aotidoctor.model.localization aotidoctor.model.run aotidoctor.program"
NO_INPUTS = (
    f"{IDLE} aotidoctor.readers.inputs.read_inputs aotidoctor.readers.inputs.saved_calls aotidoctor.readers.provenance"
)
NO_FAILURE = "aotidoctor.diagnosis.playbooks aotidoctor.diagnosis.failure_signature"


@pytest.mark.parametrize(
    ("words", "idle"),
    [
        ("check {package} --json", NO_INPUTS.replace("aotidoctor.model.run ", "")),
        ("inspect {package} --json", f"{NO_INPUTS} {NO_FAILURE}"),
        ("triton {repository} --json", f"{NO_INPUTS} {NO_FAILURE} aotidoctor.checks.registry"),
        (
            "env --json",
            f"{NO_INPUTS} {NO_FAILURE} aotidoctor.checks.registry aotidoctor.readers.contract.read_contract",
        ),
        # The types of its fields are those of the records.
        (
            "schema",
            f"{NO_INPUTS.replace('aotidoctor.model.localization aotidoctor.model.run ', '')} {NO_FAILURE} aotidoctor.commands.diagnose_package",
        ),
    ],
)
def test_a_command_imports_only_what_it_uses(words, idle, tmp_path):
    from tests.unit.triton.harness import MLP, package

    folder = tmp_path / "mlp" / "1"
    folder.mkdir(parents=True)
    (folder / "model.pt2").write_bytes(package("mlp"))
    (folder.parent / "config.pbtxt").write_text(MLP)
    code = CODE.format(words=words.format(package=CUDA, repository=tmp_path), heavy=f"{HEAVY} {idle}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout
    assert done.stderr.strip() == ""
