"""The recipes of CONTRIBUTING, carried out in a copy of the tree: each touches the files that it names, and works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "tests/data/releases/2.13.0/volume/model.pt2"
NO_BYTECODE = shutil.ignore_patterns("__pycache__")


class Tree:
    """A copy of the package and its playbooks, in which a recipe is carried out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched: set[str] = set()
        for name in ("aotidoctor", "playbooks"):
            shutil.copytree(ROOT / name, root / name, ignore=NO_BYTECODE)

    def write(self, name: str, text: str) -> None:
        self.touched.add(name)
        (self.root / name).write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old, text.count(old))
        self.write(name, text.replace(old, new))

    def run(self, *words: str, stdin: str = "", **variables: str) -> str:
        """stdout of ``aotidoctor WORDS`` of the copy; a traceback of ours fails the test."""
        environ = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", **variables}
        command = [sys.executable, "-m", "aotidoctor", *words]
        done = subprocess.run(
            command, cwd=self.root, env=environ, input=stdin, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode in (0, 1, 3, 4), (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def json(self, *words: str, stdin: str = "", **variables: str) -> dict:
        return json.loads(self.run(*words, "--json", stdin=stdin, **variables))


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / "tree")


def files_of(recipe):
    """The files of the package and its playbooks that the section ``recipe`` names, as they are written there."""
    section = CONTRIBUTING.split(f"## {recipe}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"`((?:aotidoctor|playbooks)/[\w/.]+)`", section)


def assert_as_written(recipe, tree, *, files, **names):
    """What was touched is what the recipe names, with ``names`` for its placeholders, and no more ``files`` than that."""
    told = set(files_of(recipe))
    for placeholder, name in names.items():
        told = {one.replace(placeholder, name) for one in told}
    assert tree.touched <= told
    assert len(tree.touched) == files


def test_a_log_pattern(tree):
    playbook = "playbooks/tmpdir.md"
    assert tree.json("classify", "-", stdin="RuntimeError: the scratch moon is made of cheese\n")["diagnoses"] == []
    block = """
```toml log
[[pattern]]
regex = 'the scratch moon is made of cheese'
example = 'RuntimeError: the scratch moon is made of cheese'
source = 'a recipe'
confidence = 0.9
stage = 'load'
```
"""
    tree.write(playbook, (tree.root / playbook).read_text(encoding="utf-8") + block)
    report = tree.json("classify", "-", stdin="RuntimeError: the scratch moon is made of cheese\n")
    assert report["diagnoses"][0]["cause"] == "tmpdir"
    assert_as_written("Add a log pattern", tree, CAUSE="tmpdir", files=1)


CHECK = '''"""A package whose name holds a blank.

What it does
    Looks at the path.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.model.case import Case

FIND = Finder("AD-ART-099", "blank_name")


def run(case: Case) -> Findings:
    """One finding."""
    blank = " " in case.artifact.path
    return [FIND.error("blank", None, observed="a blank", expected="none", source=None)] if blank else []


CHECK = FIND.check(run)
'''


def test_a_check(tree, tmp_path):
    tree.write("aotidoctor/checks/blank_name.py", CHECK)
    tree.replace("aotidoctor/checks/registry.py", "artifact_missing ", "artifact_missing blank_name ")
    condition = '  { code = "AD-ART-099" },\n'
    tree.replace("playbooks/artifact-layout.md", "any_of = [\n", f"any_of = [\n{condition}")
    package = tmp_path / "a model.pt2"
    shutil.copyfile(PACKAGE, package)
    report = tree.json("check", str(package))
    assert "AD-ART-099" in {item["code"] for item in report["findings"]}
    assert "artifact-layout" in {item["cause"] for item in report["diagnoses"]}
    assert "AD-ART-099" in tree.run("explain", "blank_name")
    assert_as_written("Add a check", tree, NAME="blank_name", CAUSE="artifact-layout", files=3)


def test_a_section_that_every_format_shows(tree):
    again = '    "again": ("Again", again_blocks),\n'
    moon = '    "moon": ("Moon", lambda report, _: (NoteBlock(words=f"full over {report.case.host.system}"),)),\n'
    tree.replace("aotidoctor/reports/page/report_page.py", again, moon + again)
    for kind in ("rich", "md", "html"):
        text = tree.run("check", str(PACKAGE), "-v", "--format", kind)
        assert text.count("Moon") >= 1, kind
        assert text.count("full over Linux") == 1, kind
    assert_as_written("Add a section to a report", tree, files=1)


def test_a_host_fact_that_every_format_shows(tree):
    tree.replace("aotidoctor/readers/host/host_facts.py", "        distribution=distribution(),\n", MOON)
    tree.replace("aotidoctor/model/case.py", "    distribution: str | None = None\n", MOON_FIELD)
    tree.replace("aotidoctor/reports/package_view.py", '        ("python", host.python),\n', MOON_ROW)
    assert tree.json("env", AOTI_MOON="full")["host"]["moon"] == "full"
    for kind in ("rich", "md", "html"):
        text = re.sub(r"<[^>]+>|[|:]", " ", tree.run("env", "--format", kind, AOTI_MOON="full"))
        assert re.search(r"moon phase\W+full", text), kind
    assert_as_written("Add a host fact", tree, files=3)


MOON = '        distribution=distribution(),\n        moon=environ.get("AOTI_MOON"),\n'
MOON_FIELD = "    distribution: str | None = None\n    moon: str | None = None\n"
MOON_ROW = '        ("python", host.python),\n        ("moon phase", host.moon or ""),\n'


FORMAT = '''"""Render a report as one line."""

from __future__ import annotations

from aotidoctor.model.report import Report


def render_oneline(report: Report) -> str:
    """Verdict and path."""
    return f"{report.verdict} {report.case.artifact.path}\\n"
'''
RENDER = """        case Format.ONELINE:
            from aotidoctor.reports.oneline import render_oneline

            return render_oneline(report)
"""


def test_a_report_format(tree, tmp_path):
    place = "aotidoctor/cli/document_output.py"
    tree.write("aotidoctor/reports/oneline.py", FORMAT)
    github = "        case Format.GITHUB:\n"
    tree.replace(place, github, f"{RENDER}{github}")
    tree.replace(place, '    GITHUB = "github"\n', '    GITHUB = "github"\n    ONELINE = "oneline"\n')
    package = tmp_path / "model.pt2"
    shutil.copyfile(PACKAGE, package)
    assert re.fullmatch(
        rf"\w+ {re.escape(str(package))}\n", tree.run("check", str(package), "--format", "oneline", "--no-redact")
    )
    tree.run("check", str(package), "--report", f"oneline:{tmp_path / 'x.txt'}")
    assert (tmp_path / "x.txt").exists()
    assert_as_written("Add a report format", tree, NAME="oneline", files=2)


def test_an_environment_variable(tree):
    tree.replace("aotidoctor/model/torch_names.py", 'HSA_ ROCR_ AMD_",\n', 'HSA_ ROCR_ AMD_ MOON_",\n')
    assert tree.json("env", MOON_PHASE="full")["host"]["environment"]["MOON_PHASE"] == "full"
    assert_as_written("Add an environment variable", tree, files=1)


# As a later release might print it: other words for a launch, and another one for a fact.
PRINTED = """[  before_call - cpp_fused_add_0 - buf0  ]:
Number of values: 2
Dtype: float
Size: [2]
Mean value: 2
[  before_call - cpp_fused_add_0 - s0: 7  ]
[  after_call - cpp_fused_add_0 - buf0  ]:
Mean value: 3
"""
READ = """
import sys
from aotidoctor.localize.value_printer import launch_arguments, printed_launches
from aotidoctor.readers.package.shared_object import LAUNCH_MARK
from aotidoctor.model.printer_lines import KEPT
text = sys.stdin.read()
print(*launch_arguments(text, "cpp_fused_add_0"), sep=";")
print(*printed_launches("[ before_call: cpp_fused_add_0 ]"), LAUNCH_MARK)
print(sum(KEPT.compiled.search(line) is not None for line in text.splitlines()))
"""


def test_a_changed_line_of_the_value_printer(tree):
    place = "aotidoctor/model/printer_lines.py"
    text = (tree.root / place).read_text(encoding="utf-8")
    for old, new in (("_launch", "_call"), ("Number of elements", "Number of values")):
        text = text.replace(old, new)
    tree.write(place, text)
    environ = {**os.environ, "PYTHONPATH": str(tree.root)}
    command = [sys.executable, "-c", READ]
    done = subprocess.run(
        command, env=environ, input=PRINTED, capture_output=True, text=True, timeout=120, check=True, cwd=tree.root
    )
    arguments, launches, lines = done.stdout.splitlines()
    assert arguments == "buf0: float 2;s0 = 7"
    assert launches == "('cpp_fused_add_0', False) before_call: "
    assert int(lines) == 8
    assert_as_written("Follow a change of the value printer", tree, files=1)
