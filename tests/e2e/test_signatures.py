"""Signatures: the same fault gives the same one anywhere; different faults do not share one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from foundry.cases import Kit
from foundry.registry import BY_NAME, FAULTS
from signatures import of_report, recorded
from warm import line

KNOWN = recorded()
# The subject of these is a place of the machine, which is no part of a signature.
PLACES = {"gone", "sample.pt", "/proc/self"}
SECONDS = 240


def test_every_fault_that_is_diagnosed_is_recorded():
    missing = {case.name for case in FAULTS if 1 in case.exits and 0 not in case.exits} - set(KNOWN)
    assert not missing


def test_different_faults_do_not_collide():
    """Cases of one exact signature have one cause and one subject, and a cause is a family of its own."""
    classes, families = defaultdict(list), defaultdict(set)
    for name, found in KNOWN.items():
        classes[found["exact"]].append(BY_NAME[name])
        families[found["family"]].add(found["cause"])
    assert all(len(causes) == 1 for causes in families.values())
    for exact, cases in classes.items():
        assert len({KNOWN[case.name]["cause"] for case in cases}) == 1, exact
        # Of a bad value the signature keeps the input, not the element.
        subjects = {re.sub(r"\[\d+\] = \S+$", "", case.subject) for case in cases if case.subject is not None} - PLACES
        # The lists name what must be in the subject; an index names the input that its size is of.
        assert len(subjects) <= 1, (exact, [case.name for case in cases])


def test_an_exact_signature_is_of_one_family():
    families = defaultdict(set)
    for found in KNOWN.values():
        families[found["exact"]].add(found["family"])
    assert all(len(found) == 1 for found in families.values())


def test_nothing_private_is_in_a_signature():
    texts = " ".join(text for found in KNOWN.values() for text in found["parts"].values())
    assert not [mark for mark in ("/tmp", "/home", "0x", "root") if mark in texts]


ELSEWHERE = ("dtype_int32_ids", "op_segv", "setup_raises", "host_tmpdir_missing", "artifact_crc_so", "index_gather_16")
# What the child says of itself, and what is read of a dead one, has paths of its own; the others are told by the parent.
IN_A_SHELL = ("op_segv", "setup_raises", "host_tmpdir_missing")


@pytest.mark.torch
@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_path_user_and_home_do_not_count(name: str, packages: Kit, tmp_path: Path) -> None:
    where = tmp_path / "Other Folder" / "ünïcode"
    where.mkdir(parents=True)
    call = BY_NAME[name].make(packages, where)
    home = tmp_path / "home of bob"
    (home / "tmp").mkdir(parents=True)
    person = {"HOME": str(home), "USER": "bob", "LOGNAME": "bob", "HOSTNAME": "node-17", "TMPDIR": str(home / "tmp")}
    found = of_report(_asked("run", call.arguments(), {**person, **call.env}, cwd=home, shell=name in IN_A_SHELL))
    assert found == {key: KNOWN[name][key] for key in ("exact", "family", "cause", "parts")}


STATIC = ("dtype_int32_ids", "stride_transposed", "artifact_crc_so", "host_undefined_symbol", "tree_dict_order")


@pytest.mark.torch
@pytest.mark.parametrize("name", STATIC)
def test_what_check_sees_has_the_signature_that_run_gives_it(name: str, packages: Kit, case_dir: Path) -> None:
    call = BY_NAME[name].make(packages, case_dir)
    found = of_report(_asked("check", call.arguments(), call.env, shell=False))
    assert found is not None
    assert found["exact"] == KNOWN[name]["exact"]


def _asked(
    command: str, arguments: list[str], env: dict[str, str], cwd: Path | None = None, *, shell: bool = True
) -> dict:
    if not shell:
        return json.loads(line()(command, *arguments, "--format", "json", env=env, cwd=cwd).stdout)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), **env}
    words = [sys.executable, "-m", "aotidoctor", command, *arguments, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env=environment, cwd=cwd, check=False)
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout)
