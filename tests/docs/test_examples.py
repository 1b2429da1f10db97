"""Every command that the docs, the README and the help of a command give as an example is executed, as it stands.

Sessions with their output are in ``test_readme.py``. Here are the others: in code blocks, in running text, in tables and
in the examples of ``--help``. Each runs in a folder that has the files it names, with relative paths and the defaults.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.commands.sweep import run_sweep
from tests.artifacts.executorch import content

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
sys.path.insert(0, str(Path(__file__).parent))

import warm  # noqa: E402
from test_readme import SESSIONS, _typed, demo_folder  # noqa: E402, F401
from warm_python import python  # noqa: E402

from tests.artifacts import precompiled  # noqa: E402

CONSOLE = re.compile(r"^( *)```console\n.*?```", re.S | re.M)
# What a session or another test runs already, or what needs a network or a server.
ELSEWHERE = {
    "aotidoctor demo": "tests/e2e/test_demo_fleet.py and the demo of each release",
    "aotidoctor demo --fleet": "tests/e2e/test_demo_fleet.py",
    "aotidoctor watch -- ./server": "there is no server: the same with a program of ours is a session",
    "aotidoctor run --reference": "a row of a table: the command and its files are in others",
    "aotidoctor run function.bin --inputs sample.pt --trust-pickle": "tests/e2e/test_precompiled.py, for the same torch",
    "kubectl": "there is no pod: classify reads a pipe in tests/unit/cli/test_classify.py",
}
OUTSIDE = ("s3://", "s3-fleet", "tcp://")
# A word in capitals stands for something of the reader's.
PLACEHOLDER = re.compile(r"(?<!-)\b(NAME|CAUSE|A|B|PROGRAM|COMMAND)\b")


def pages():
    folders = [path for name in ("docs", "skills", "examples") for path in sorted((ROOT / name).rglob("*.md"))]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *folders]


def written():
    """The commands on the pages, with what stands in no session, and those of the help."""
    from aotidoctor.cli import COMMANDS

    for path in pages():
        text = re.sub(r"\\\n *", "", CONSOLE.sub("", path.read_text(encoding="utf-8")))
        for line in text.splitlines():
            whole = re.match(r" *(aotidoctor [a-z-].*)", line) if "`" not in line else None
            yield from [whole[1]] if whole else re.findall(r"`(aotidoctor [a-z-][^`]* [^`]+)`", line)
    for entry in COMMANDS.values():
        for each in (entry, *entry.words.values()):
            yield from each.examples


def examples():
    """Each once, without comments and without what runs elsewhere."""
    found = dict.fromkeys(re.sub(r"\s+#.*", "", command).strip() for command in written())
    sessions = {command for command, _ in SESSIONS}
    begin = ("aotidoctor watch -- ./server", "kubectl")
    return [
        command
        for command in found
        if command not in sessions and command not in ELSEWHERE and not command.startswith(begin)
        if not any(word in command for word in OUTSIDE) and not PLACEHOLDER.search(command)
    ]


EXAMPLES = examples()


def test_no_command_stands_in_a_block_that_nobody_runs():
    """A prompt belongs into a session, whose output is compared; a command in another block begins its line."""
    for path in pages():
        text = CONSOLE.sub("", path.read_text(encoding="utf-8"))
        assert not re.findall(r"^ *\$ .*", text, flags=re.M), path
        for kind, body in re.findall(r"^ *```(\w+)\n(.*?)^ *```", text, flags=re.S | re.M):
            if kind != "sh":
                assert not re.search(r"^ *aotidoctor [a-z]", body, flags=re.M), (path, kind, body)


@pytest.fixture(scope="module")
def workshop(demo_folder, tmp_path_factory):  # noqa: F811
    """A folder with every file that an example names."""
    place = tmp_path_factory.mktemp("workshop")
    for name in demo_folder.iterdir():
        (place / name.name).symlink_to(name)

    def run(*words, code=(0, 1)):
        done = warm.line()(*words, cwd=place)
        assert done.returncode in code, (words, done.stderr)

    with warm.line().lent():
        run("env", "--save", "host.json")
        run("run", "model.pt2", "-i", "transposed.pt", "--report", "json:fails.json")
        for number, (package, inputs) in enumerate(
            [("model.pt2", "transposed.pt"), ("model.pt2", "int32_ids.pt"), ("separate_weights.pt2", "good.pt")]
        ):
            run("check", package, "-i", inputs, "--report", f"json:{number}.json")
            run("analyze", f"{number}.json", "--cases", "desk.sqlite", "-q")
        run("compare", "model.pt2", "-i", "good.pt", "--reference", "exported.pt2", "--report", "json:report.json")
        run("bundle", "model.pt2", "-i", "good.pt", "--run", "-o", "case.zip", "-q")
        run("cases", "export", "--cases", "desk.sqlite", "-o", "cases.json")
        for night in ("results", "yesterday"):
            run("batch", "model.pt2", "separate_weights.pt2", "-o", night, "-q", "--jobs", "1")
    weights = "import torch; torch.save(torch.export.load('exported.pt2').state_dict, 'a.pt')"
    assert python(weights, cwd=place).returncode == 0
    for name, source in {
        "b.pt": "a.pt",
        "sample.pt": "good.pt",
        "sample.npz": "sample.npz",
        "works.json": "report.json",
        "production.json": "host.json",
        "production-host.json": "host.json",
        "avx2.json": "host.json",
        "avx512.json": "host.json",
        "bundle.zip": "case.zip",
        "server.log": "crash.log",
        "other.sqlite": "desk.sqlite",
        "old": "yesterday",
        "last-night": "yesterday",
        "tonight": "results",
        "crash-logs/a.log": "crash.log",
        "models/model.pt2": "model.pt2",
    }.items():
        (place / name).parent.mkdir(exist_ok=True)
        if not (place / name).exists() and source != name:
            source_path = (place / source).resolve()
            (shutil.copytree if source_path.is_dir() else shutil.copyfile)(source_path, place / name)
    shutil.copytree(demo_folder / "served" / "ranker", place / "models" / "mlp")
    config = place / "models" / "mlp" / "config.pbtxt"
    config.write_text(config.read_text().replace('"ranker"', '"mlp"'))
    _write_npz(place / "sample.npz")
    for name, source in {"model.pte": "cuda_mlp.pte", "weights.ptd": "cuda_mlp.ptd"}.items():
        (place / name).write_bytes(content(source))
    (place / "function.bin").write_bytes(precompiled.content("aot_fn"))
    (place / "fleet.csv").write_text("package,inputs\nmodel.pt2,sample.pt\n")
    (place / "accepted.toml").write_text(
        '[[accept]]\ncause = "weights-not-loaded"\nreason = "known"\nuntil = 2999-12-31\n'
    )
    (place / "ops.py").write_text("")
    (place / "shapes.json").write_text('{"x": {"0": "batch"}}')
    (place / "serve.py").write_text("raise RuntimeError('index out of bounds: 0 <= tmp7 < 100L')\n")
    (place / "notify-the-desk").write_text("#!/bin/sh\ncat > /dev/null\n")
    (place / "notify-the-desk").chmod(0o755)
    return place


@pytest.fixture(autouse=True)
def short_sweeps(monkeypatch):
    """All hundred calls of the demo's model say no more of the command than these, in half a minute."""
    plan_calls = run_sweep.plan_calls

    def plan_a_dozen(*given, **named):
        plan = plan_calls(*given, **named)
        return replace(plan, points=plan.points[:12])

    monkeypatch.setattr(run_sweep, "plan_calls", plan_a_dozen)


def _write_npz(path):
    import numpy as np

    np.savez(path, x=np.zeros((8, 16), "float32"), ids=np.zeros(8, "int64"))


def _writes(words):
    """The files and folders that a command writes."""
    after = {words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-o", "--output", "--save", ">")}
    default = {"batch": {"results"}, "repro": {"repro"}, "minimize": {"minimized"}}.get(words[1], set())
    return (after or default) | {word.partition(":")[2] for word in words if re.match(r"(md|json|html|junit):", word)}


def _words(command, folder):
    """As a shell makes them, as far as the examples need one."""
    inner = re.fullmatch(r"source <\((.*)\)", command)
    for text in shlex.split((inner[1] if inner else command).partition(" | ")[0].partition(" > ")[0]):
        found = sorted(str(path.relative_to(folder)) for path in folder.glob(text)) if "*" in text else [text]
        yield from (word.replace("~", str(folder)) for word in found)


@pytest.mark.torch
@pytest.mark.parametrize("command", EXAMPLES)
def test_example(command, workshop, tmp_path, monkeypatch):
    new = _writes(shlex.split(command))
    for source in workshop.iterdir():
        if source.name in new:
            continue
        if source.is_dir():
            shutil.copytree(source, tmp_path / source.name)
        else:
            shutil.copy(source, tmp_path / source.name)
    if " repro " in command:
        # There is a script of a failure only.
        shutil.copy(workshop / "transposed.pt", tmp_path / "sample.pt")
        shutil.copy(workshop / "fails.json", tmp_path / "report.json")
    if " init " in command:
        (tmp_path / "models" / "mlp" / "config.pbtxt").unlink()
    program, *words = _words(command, tmp_path)
    assert program == "aotidoctor"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if words[0] == "cases" and "--cases" not in words:
        monkeypatch.setenv("AOTIDOCTOR_CASES", "desk.sqlite")
    if words[0] == "mcp":
        pytest.importorskip("mcp", reason="the extra mcp is not installed")
    if words == ["web"]:
        pytest.skip("it serves until it is stopped: tests/browser/test_web_page.py starts and ends it")
    if words[0] in ("watch", "mcp", "batch"):
        # They end the process, read its input, or start others.
        done = _typed(words, tmp_path)
    else:
        with warm.line().lent():
            done = warm.line()(*words, cwd=tmp_path)
    if words[0] == "web" and "npm" in done.stderr:
        pytest.skip(f"Pyodide is not at hand: {done.stderr}")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "could not" not in done.stderr
    for name in new if ">" not in command else ():
        # With a healthy model there is nothing to minimize.
        assert name == "minimized" or Path(name.replace("~", str(tmp_path))).exists() or (tmp_path / name).exists(), (
            name
        )
