"""The GitHub Action and the pre-commit hooks: their steps are read from the YAML and run, as far as that goes here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CUDA = ROOT / "tests" / "data" / "cuda"
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
SARIF = json.loads((ROOT / "tests" / "data" / "schemas" / "sarif-2.1.0-rtm.5.json").read_text())


@pytest.fixture
def project(tmp_path):
    (tmp_path / "models" / "deep").mkdir(parents=True)
    shutil.copy(CUDA / "mlp.pt2", tmp_path / "models" / "good one.pt2")
    shutil.copy(CUDA / "two_kernels.pt2", tmp_path / "models" / "deep" / "two.pt2")
    (tmp_path / "models" / "cut.pt2").write_bytes((CUDA / "mlp.pt2").read_bytes()[:5000])
    return tmp_path


class Action:
    """The steps of ``action.yml`` with the contexts that they use: inputs, outputs of steps, the runner's folder."""

    def __init__(self, folder):
        self.document = yaml.safe_load((ROOT / "action.yml").read_text())
        self.folder = folder
        self.room = folder / "runner"
        self.room.mkdir()
        self.outputs = {}
        self.said = {}
        self.environ = {}

    def run(self, **inputs):
        """Every step in order; the exit status of the action."""
        known = self.document["inputs"]
        assert set(inputs) <= {name.replace("-", "_") for name in known}
        assert all("default" in one or one.get("required") for one in known.values())
        self.inputs = {name: inputs.get(name.replace("-", "_"), one.get("default")) for name, one in known.items()}
        status = 0
        for step in self.document["runs"]["steps"]:
            always = "always()" in step.get("if", "")
            if (status and not always) or not self.condition(step.get("if", "true")):
                continue
            status = self.step(step) or status
        return status

    def condition(self, text):
        """An ``if:`` as far as this action has them."""
        known = re.sub(r"inputs\.([\w-]+)", lambda found: repr(self.inputs[found[1]]), text)
        return eval(known.replace("always()", "True").replace("&&", "and")) if text != "true" else True

    def filled(self, text):
        def value(found):
            context, _, name = found[1].partition(".")
            if context == "inputs":
                return str(self.inputs[name])
            if context == "runner":
                return str(self.room)
            assert context == "steps", found[0]
            step, _, output = name.partition(".outputs.")
            return self.outputs[step][output]

        return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", value, str(text))

    def step(self, step):
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+", step["uses"])
            self.said[step["name"]] = {name: self.filled(value) for name, value in step["with"].items()}
            return 0
        # An expression in a script could be a command of whoever wrote the input.
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        output, summary = self.room / "output", self.room / "summary.md"
        output.write_text("")
        environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            **{name: self.filled(value) for name, value in step.get("env", {}).items()},
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_ACTION_PATH": str(ROOT),
            **self.environ,
        }
        # As GitHub runs `shell: bash`.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            capture_output=True, text=True, cwd=self.folder, env=environ, check=False,
        )  # fmt: skip
        self.said[step["name"]] = done.stdout + done.stderr
        lines = [line.partition("=") for line in output.read_text().splitlines()]
        self.outputs[step.get("id", step["name"])] = {name: value for name, _, value in lines}
        return done.returncode


@pytest.fixture
def action(project):
    return Action(project)


def test_healthy_packages_pass(action):
    arguments = "--host torch-2.14-cuda-13.0"
    status = action.run(packages="models/good*.pt2\nmodels/**/two.pt2", arguments=arguments, install="")
    assert status == 0, action.said
    assert "2 of 2 passed" in action.said["Examine"]
    assert "Install" not in action.said
    assert "Upload" not in action.said
    summary = (action.room / "summary.md").read_text()
    assert "| models/good one.pt2 | 0 |" in summary
    assert "| models/deep/two.pt2 | 0 |" in summary


def test_a_sick_one_fails_and_is_uploaded(action):
    status = action.run(
        packages="models/**/*.pt2", arguments="--host torch-2.14-cuda-13.0", sarif="true", install="", fail_on="error"
    )
    assert status == 1, action.said
    assert "2 of 3 passed" in action.said["Examine"]
    assert action.outputs["examine"]["status"] == "1"
    reports = Path(action.outputs["examine"]["reports"])
    verdicts = {path.name: json.loads(path.read_text())["verdict"] for path in reports.glob("*.json")}
    assert sorted(verdicts.values()) == ["healthy", "healthy", "problem"]
    uploaded = json.loads(Path(action.said["Upload"]["sarif_file"]).read_text())
    (run,) = uploaded["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    assert any(result["ruleId"].startswith("artifact-") for result in run["results"])
    for result in run["results"]:
        assert "ruleIndex" not in result or rules[result["ruleIndex"]] == result["ruleId"]
    assert len(run["invocations"]) == 3
    jsonschema.Draft7Validator(SARIF).validate(uploaded)
    summary = (action.room / "summary.md").read_text()
    assert "<details><summary>models/cut.pt2</summary>" in summary


def test_a_batch(action):
    status = action.run(
        packages="models/**/*.pt2", command="batch", arguments="--host torch-2.14-cuda-13.0", sarif="true", install=""
    )
    assert status == 1, action.said
    assert "Upload" not in action.said
    results = Path(action.outputs["examine"]["reports"]) / "batch" / "results.jsonl"
    assert len(results.read_text().splitlines()) >= 3
    assert "healthy" in (action.room / "summary.md").read_text()


def test_what_is_not_there_fails(action):
    assert action.run(packages="none/*.pt2", install="") == 4
    assert "no file matches" in action.said["Examine"]


@pytest.mark.parametrize("inputs", [{"command": "watch"}, {"arguments": "--nonsense"}, {"arguments": "'"}])
def test_what_cannot_be_meant_is_a_usage_error(action, inputs):
    assert action.run(packages="models/good*.pt2", install="", **inputs) == 2


def test_an_input_is_never_a_command(action):
    evil = '$(touch hit)`touch hit`";touch hit;"'
    assert action.run(packages=evil, arguments=evil, install="") != 0
    assert not (action.folder / "hit").exists()


def test_by_default_the_checkout_of_the_action_is_installed(action):
    """Not a release of that name: with another one, options of the action could be unknown to the command."""
    programs = action.folder / "programs"
    programs.mkdir()
    (programs / "python").write_text('#!/bin/sh\necho "$@"\n')
    (programs / "python").chmod(0o755)
    action.environ = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    step = next(step for step in action.document["runs"]["steps"] if step["name"] == "Install")
    for given, installed in (
        (action.document["inputs"]["install"]["default"], str(ROOT)),
        ("aotidoctor==1", "aotidoctor==1"),
    ):
        action.inputs = {"install": given}
        assert action.step(step) == 0
        assert action.said["Install"].split()[-1] == installed


def test_the_install_step_installs_this_project(action):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    pytest.importorskip("pip", reason="pip is not installed")
    target = action.folder / "installed"
    action.environ = {
        "PIP_TARGET": str(target), "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": os.devnull,
    }  # fmt: skip
    step = next(step for step in action.document["runs"]["steps"] if step["name"] == "Install")
    action.inputs = {"install": action.document["inputs"]["install"]["default"]}
    assert action.step(step) == 0, action.said
    assert (target / "aotidoctor" / "py.typed").exists()
    assert (target / "aotidoctor" / "_playbooks").is_dir()
    entries = next(target.glob("aotidoctor-*.dist-info/entry_points.txt")).read_text()
    assert "aotidoctor = aotidoctor.pytest_plugin" in entries


HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


def hook(name, files, folder):
    """As pre-commit does: the files that match, behind the entry."""
    matching = [path for path in files if re.search(HOOKS[name]["files"], path)]
    program, *words = shlex.split(HOOKS[name]["entry"])
    assert (program, HOOKS[name]["language"]) == ("python", "python")
    return matching, subprocess.run(
        [sys.executable, *words, *HOOKS[name].get("args", []), *matching],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip


def test_the_hook_for_packages(project):
    files = ["models/good one.pt2", "models/cut.pt2", "README.md", "models/x.pt2.txt"]
    matching, done = hook("aotidoctor-check", files, project)
    assert matching == files[:2]
    assert done.returncode == 1
    assert "models/cut.pt2" in done.stdout
    assert "artifact-" in done.stdout
    # A file has its path and what stands on the first screen.
    _, of_good, of_cut = re.split(r"^models/.*$", done.stdout.rpartition("0 of 2 passed")[0], flags=re.M)
    for part in (of_good, of_cut):
        assert 3 <= len(part.strip().splitlines()) <= 7, part


def test_the_hook_for_configurations(project):
    from tests.unit.triton.harness import MLP, package

    for name, config in (("mlp", MLP), ("odd", MLP.replace("torch_aoti", "torch_aot"))):
        (project / "served" / name / "1").mkdir(parents=True)
        (project / "served" / name / "config.pbtxt").write_text(config.replace('"mlp"', f'"{name}"'))
        (project / "served" / name / "1" / "model.pt2").write_bytes(package("mlp"))
    good, odd = "served/mlp/config.pbtxt", "served/odd/config.pbtxt"
    matching, done = hook("aotidoctor-triton", [good, "served/mlp/1/model.pt2", "my-config.pbtxt"], project)
    assert matching == [good]
    assert done.returncode == 0, done.stdout
    assert hook("aotidoctor-triton", [good, odd], project)[1].returncode == 1


def test_a_file_whose_name_is_an_option(project):
    shutil.copy(CUDA / "mlp.pt2", project / "--help")
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor.cli.each", "check", "--", "--help"],
        capture_output=True, text=True, cwd=project, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert "device-unavailable" in done.stdout or "1 of 1 passed" in done.stdout
