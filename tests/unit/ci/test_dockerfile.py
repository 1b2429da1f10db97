"""The Dockerfile against the rules that hadolint has; hadolint itself and a build where they are at hand."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Dockerfile").read_text()
# Lines that go on are one instruction; comments are none.
LINES = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.M)).splitlines()
INSTRUCTIONS = [(line.split(None, 1)[0], " ".join(line.split(None, 1)[1].split())) for line in LINES if line.strip()]


def stages():
    """``(name, base, instructions)`` of each stage."""
    found = []
    for word, rest in INSTRUCTIONS:
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append((name, base, []))
        elif found:
            found[-1][2].append((word, rest))
    return found


def test_stages():
    assert [name for name, _, _ in stages()] == ["wheel", "slim", "torch"]
    known = set()
    for name, base, _ in stages():
        # A base has a tag, and not the one that moves.
        assert base in known or re.fullmatch(r"[a-z]+:\$\{PYTHON\}-slim-bookworm", base)
        known.add(name)
    assert ("ARG", "PYTHON=3.12") in INSTRUCTIONS


def test_every_instruction():
    for word, rest in INSTRUCTIONS:
        assert word in {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
        if word == "WORKDIR":
            assert rest.startswith("/")
        if word in ("ENTRYPOINT", "CMD"):
            assert rest.startswith("[")
        if "pip install" in rest or "pip wheel" in rest:
            assert rest.count("--no-cache-dir") == rest.count("-m pip ")
        if "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "--yes" in rest
            assert rest.startswith("apt-get update &&")
            assert rest.endswith("rm -rf /var/lib/apt/lists/*")
        assert "sudo" not in rest


def test_nobody_runs_as_root():
    for name, _, instructions in stages():
        users = [rest for word, rest in instructions if word == "USER"]
        assert name == "wheel" or users[-1] == "doctor"


def test_what_is_copied_exists_and_is_not_ignored():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [
        word for name, rest in INSTRUCTIONS if name == "COPY" and "--from" not in rest for word in rest.split()[:-1]
    ]
    assert len(copied) == 5
    for path in copied:
        assert (ROOT / path).exists()
        assert path in kept
    # All that the wheel is made of.
    assert set(kept) == {"pyproject.toml", "README.md", "LICENSE", "aotidoctor", "playbooks"}


def test_hadolint():
    if shutil.which("hadolint") is None:
        pytest.skip("there is no hadolint")
    subprocess.run(["hadolint", str(ROOT / "Dockerfile")], check=True)
