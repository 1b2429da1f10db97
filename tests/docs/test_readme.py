"""Every command of the README and the docs is executed; every line shown below one is in what the command prints."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import warm  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")


def sessions():
    """``(command, lines shown)`` of each console block."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "skills").rglob("*.md"))]
    texts = [README, *(path.read_text(encoding="utf-8") for path in pages)]
    # In a list, a block is indented.
    found = (block for text in texts for block in re.findall(r"^( *)```console\n(.*?)```", text, flags=re.S | re.M))
    for block in (re.sub(f"^{indent}", "", text, flags=re.M) for indent, text in found):
        for part in block.split("$ ")[1:]:
            command, *lines = part.splitlines()
            yield command, [line for line in lines if line.strip() and line.strip() != "…"]


def merged():
    """Each command once, with the lines of all its blocks."""
    found = {}
    for command, lines in sessions():
        found.setdefault(command, []).extend(lines)
    return list(found.items())


SESSIONS = merged()
# The first session of each command goes through the shell; so do programs that are watched, whose end is that of watch.
# Of the commands that run packages, one is enough: in a process of its own each of them imports torch, to the same end.
RUNS_PACKAGES = {"bundle", "compare", "localize", "map", "minimize", "repro", "sweep", "verify"}
FIRST = {command.split()[1]: command for command, _ in reversed(SESSIONS)}


@pytest.fixture(scope="session")
def demo_folder():
    """The files of the demo, built once per machine."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the demo's packages with")
    pytest.importorskip("torch", reason="torch is not installed")
    from aotidoctor.commands import demo
    from tests.e2e.foundry.place import cache_dir

    return demo.prepare_demo({**os.environ, "XDG_CACHE_HOME": str(cache_dir())}, lambda _event: None)


def _from_one(text):
    """The runs numbered from 1: a worker that is shared goes on counting."""
    numbers = sorted({int(number) for number in re.findall(r"\bR(\d+)\b", text)})
    return re.sub(r"\bR(\d+)\b", lambda found: f"R{numbers.index(int(found[1])) + 1}", text)


def _evidence_alike(lines):
    """The lines without the numbers of evidence: a host with a finding of its own counts from another one."""
    return [re.sub(r"\[E\d+\]", "[E]", line) for line in lines]


@pytest.mark.torch
@pytest.mark.parametrize(("command", "lines"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_session(command, lines, demo_folder, tmp_path):
    if "--cuda" in command and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed: pip install 'aotidoctor[emulate]'")
    program, *arguments = shlex.split(command)
    assert program == "aotidoctor"
    for name in demo_folder.iterdir():
        (tmp_path / name.name).symlink_to(name)
    if arguments[0] == "fleet":
        _examine_two_nights(tmp_path)
    if "--cases" in arguments:
        # Seen before.
        _typed(arguments, tmp_path)
    if arguments[0] == "watch" or (command == FIRST[arguments[0]] and arguments[0] not in RUNS_PACKAGES):
        done = _typed(arguments, tmp_path)
    else:
        with warm.line().lent():
            done = warm.line()(*arguments, cwd=tmp_path, env={"COLUMNS": "120"})
    broken = (
        re.search(r"int32_ids|transposed|separate_weights|bad_id|served/|crash.log|compat|edited|\*", command)
        is not None
    )
    assert done.returncode == int(broken), done.stdout + done.stderr
    # The stdout of a watched program is its own.
    shown = done.stderr if arguments[0] == "watch" else done.stdout
    # Triton's rules have such names, too.
    shown = (shown if arguments[0] == "triton" else _from_one(shown)).splitlines()
    # What a demo proposes begins with the way in which it was called itself.
    shown = [line.replace("python -m aotidoctor", "aotidoctor") for line in _evidence_alike(shown)]
    for line in _evidence_alike(lines):
        assert any(line.rstrip() in candidate for candidate in shown), f"{line!r} is not in\n{done.stdout}"


def _examine_two_nights(folder):
    """``yesterday`` has a healthy package, ``tonight`` also a new one and one that fails."""
    (folder / "new").mkdir()
    for name, source in (("a", "model.pt2"), ("0", "separate_weights.pt2")):
        (folder / "new" / f"{name}.pt2").symlink_to((folder / source).resolve())
    for night, items in (("yesterday", ["model.pt2"]), ("tonight", ["new", "model.pt2"])):
        _typed(["batch", *items, "-o", night, "-q"], folder)


def _typed(arguments, folder):
    return run_python(["-m", "aotidoctor", *arguments], folder)


def run_python(words, folder):
    """``python words``, with aotidoctor as it is here."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=280,
        env={
            **os.environ,
            "COLUMNS": "120",
            "PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")]))),
            # A watched `python` is the one that has torch.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
    )


def test_the_skill_names_itself_and_commands_that_there_are():
    from aotidoctor.cli import COMMANDS

    text = (ROOT / "skills" / "aotidoctor" / "SKILL.md").read_text(encoding="utf-8")
    head = re.match(r"---\nname: aotidoctor\ndescription: (.{50,1024})\n---\n", text)
    assert head is not None
    assert (
        {"check", "run", "classify", "explain", "compat", "triton"}
        <= set(re.findall(r"`aotidoctor (\w+)", text))
        <= {*COMMANDS}
    )


def test_make_targets_exist():
    targets = re.findall(r"^make (\w+)", README, flags=re.M)
    assert {"demo", "test"} <= set(targets)
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    for target in targets:
        subprocess.run(["make", "-n", target], check=True, cwd=ROOT, capture_output=True)


def test_links_lead_somewhere():
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_readme_names_every_command():
    from aotidoctor.cli import COMMANDS

    assert set(COMMANDS) <= set(re.findall(r"`aotidoctor (\w+)", README))
