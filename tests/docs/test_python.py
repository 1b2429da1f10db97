"""The Python of the docs is executed: what stands behind a line as a comment is what the line gives."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from test_readme import demo_folder, run_python, warm  # noqa: E402, F401
from warm_python import python  # noqa: E402

pytestmark = pytest.mark.torch
ENVIRON = {**os.environ, "COLUMNS": "120", "PYTHONPATH": str(ROOT)}

# What the reader has at hand: a call with int32 ids.
GIVEN = """
import torch
saved = torch.load("int32_ids.pt")
(x, affine), ids = saved["args"], saved["kwargs"]["ids"]
exported_program = torch.export.load("exported.pt2")
"""


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.S | re.M)


def test_every_page_with_python_is_here():
    found = {
        str(path.relative_to(ROOT / "docs"))
        for path in (ROOT / "docs").rglob("*.md")
        if "```python" in path.read_text()
    }
    assert found == {"python.md", "pytest.md", "how-to/prevent.md"}


@pytest.fixture
def folder(demo_folder, tmp_path):  # noqa: F811
    for name in demo_folder.iterdir():
        (tmp_path / name.name).symlink_to(name)
    return tmp_path


def asserted(block):
    """``report.cause   # 'input-dtype'`` as an assertion."""
    return re.sub(r"^(report\.\S+) +# (['\"].*)$", r"assert \1 == \2, \1", block, flags=re.M)


def test_the_library(folder):
    (block,) = blocks("python.md")
    assert asserted(block).count("assert ") == 3
    done = python(GIVEN + asserted(block), cwd=folder, env=ENVIRON)
    # The last line raises.
    assert "ProblemFoundError" in done.stderr
    assert "PROBLEM  input-dtype" in done.stdout
    assert (folder / "report.html").stat().st_size > 10_000


def test_the_validator_and_the_stamp(folder):
    validator, stamp = blocks("how-to/prevent.md")
    emit = ("contract", "model.pt2", "--emit", "python", "-o", "model_inputs.py")
    assert warm.line()(*emit, cwd=folder).returncode == 0
    done = python(GIVEN + validator, cwd=folder, env=ENVIRON)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["input-dtype", "kwargs['ids']"]
    # What it compiles into is not of the demo's folder.
    (folder / "model.pt2").unlink()
    done = python(f"import aotidoctor{GIVEN}{stamp}", cwd=folder, env=ENVIRON)
    assert done.returncode == 0, done.stderr
    assert "aotidoctor" in warm.line()("inspect", "model.pt2", cwd=folder).stdout
    check = ("check", "model.pt2", "-i", "good.pt", "--reference", "exported.pt2", "-q")
    assert warm.line()(*check, cwd=folder).returncode == 0


def test_pytest(folder):
    for name, source in {"models/ranker.pt2": "model.pt2", "samples/ranker.pt": "good.pt"}.items():
        (folder / name).parent.mkdir()
        (folder / name).symlink_to((folder / source).resolve())
    assert warm.line()("env", "--save", "production-host.json", cwd=folder).returncode == 0
    (folder / "test_packages.py").write_text("\n\n".join(blocks("pytest.md")))
    done = run_python(["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_packages.py"], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
