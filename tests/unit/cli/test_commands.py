"""The table of commands: it names what is in the folder, and a command imports no other."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor import cli
from aotidoctor.cli import CASES_WORDS, COMMANDS, TRITON_WORDS, build_app

ENTRIES = {
    **{(name,): entry for name, entry in COMMANDS.items()},
    **{("triton", w): e for w, e in TRITON_WORDS.items()},
    **{("cases", w): e for w, e in CASES_WORDS.items()},
}
MODULES = {entry.place.partition(":")[0] for entry in ENTRIES.values()}
LOADED = """
import sys
from aotidoctor.cli import build_app
try:
    build_app()({words!r}, prog_name="aotidoctor")
except SystemExit:
    pass
import json
print(json.dumps([n.removeprefix("aotidoctor.cli.") for n in sys.modules if n.startswith("aotidoctor.cli.")]))
"""


def call(*words):
    return CliRunner().invoke(build_app(), [*words])


def test_the_table_names_every_command_of_the_folder():
    """A file that begins with the command's name is one."""
    folder = Path(cli.__file__).parent
    assert {path.stem for path in folder.glob("*.py") if path.read_text().startswith('"""``aotidoctor ')} == MODULES


@pytest.mark.parametrize("words", ENTRIES, ids=" ".join)
def test_help_says_what_it_does_and_ends_with_its_examples(words):
    entry = ENTRIES[words]
    module, _, function = entry.place.partition(":")
    first = getattr(import_module(f"aotidoctor.cli.{module}"), function).__doc__.splitlines()[0]
    shown = call(*words, "--help").stdout
    assert first in re.sub(r"\s+", " ", shown)
    assert all(f"aotidoctor {' '.join(words)}" in example for example in entry.examples)
    assert shown.rstrip().endswith(entry.examples[-1])


def test_help_lists_the_commands_in_their_order():
    shown = call("--help").stdout
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", shown.partition("Diagnose:")[2], re.M)
    minor = re.findall(r"[a-z]+", re.search(r"^  Also: (.*)\.$", shown, re.M)[1])
    assert [*listed, *minor] == list(COMMANDS)


@pytest.mark.parametrize(("typo", "meant"), [("chek", "check"), ("inspekt", "inspect"), ("tritn", "triton")])
def test_a_typo_is_told_what_was_meant(typo, meant):
    refused = call(typo)
    assert refused.exit_code == 2
    assert f"No such command '{typo}'. Did you mean '{meant}'" in refused.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_no_other(name):
    """By what the modules say, each closed over what it imports of the folder."""
    own = COMMANDS[name].place.partition(":")[0]
    assert _reached(own) & MODULES == {own}


def test_what_is_really_imported():
    code = LOADED.format(words=["check", "/no/such.pt2", "--json"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded & MODULES == {"diagnose_commands"}


def _reached(module):
    found, ahead = set(), {module}
    while ahead:
        found |= ahead
        ahead = {name for file in ahead for name in _imports(file)} - found
    return found


def _imports(module):
    """What a file says it imports of the folder; nothing for a folder in it, and for the root, which is lazy."""
    found = set()
    file = Path(cli.__file__).parent / f"{module}.py"
    for node in ast.walk(ast.parse(file.read_text() if file.exists() else "")):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aotidoctor.cli"):
            below = node.module.removeprefix("aotidoctor.cli").lstrip(".")
            found |= {below} if below else {alias.name for alias in node.names}
    return found
