"""Where the kernel puts core files, from its own words."""

from __future__ import annotations

import pytest

from aotidoctor.model.run import Exited, ProcessFacts, Signalled, WatchedProgram
from aotidoctor.runner import core_file
from aotidoctor.runner.core_file import CorePattern, core_glob, read_core_pattern

FACTS = {"p": "17", "u": "0", "s": "11"}


@pytest.mark.parametrize(
    ("text", "uses_pid", "kind", "name"),
    [
        ("core\n", "0\n", "file", "core"),
        ("/var/cores/%e.%p\n", "0", "file", "/var/cores/%e.%p"),
        ("|/usr/lib/systemd/systemd-coredump %P %u %g %s %t 9223372036854775808 %h", "1", "systemd",
         "/usr/lib/systemd/systemd-coredump"),
        ("|/usr/share/apport/apport -p%p -s%s -c%c -d%d -P%P -u%u -g%g -- %E", "0", "apport",
         "/usr/share/apport/apport"),
        ("|/wsl-capture-crash %t %E %p %s", "0", "program", "/wsl-capture-crash"),
        ("", "0", "none", ""),
        ("\n", "1", "file", ""),
    ],
)  # fmt: skip
def test_kinds(text, uses_pid, kind, name):
    found = read_core_pattern(text, uses_pid)
    assert (found.kind, found.text) == (kind, name)


@pytest.mark.parametrize(
    ("text", "uses_pid", "expected"),
    [
        ("core", "0", "/home/me/core"),
        ("core", "1", "/home/me/core.17"),
        ("core.%p", "1", "/home/me/core.17"),
        ("/cores/%e-%t.%p.%s", "0", "/cores/*-*.17.11"),
        ("100%%-%p%", "0", "/home/me/100%-17"),
        ("a[b]%p", "0", "/home/me/a[[]b]17"),
        ("", "1", "/home/me/.17"),
    ],
)
def test_names(text, uses_pid, expected):
    assert core_glob(read_core_pattern(text, uses_pid), FACTS, "/home/me") == expected


def watched(ending, *, limit="0", name="server"):
    return WatchedProgram(argv=(name,), ending=ending, status=11, pid=17, seen=ProcessFacts(core_limit=limit, cwd="/"))


SEGV = Signalled(signal=11, name="SIGSEGV")


@pytest.mark.parametrize(
    ("ending", "limit", "pattern", "word"),
    [
        (SEGV, "0", "core", "ulimit -c"),
        (SEGV, "unlimited", "core", "PR_SET_DUMPABLE"),
        (SEGV, "unlimited", "", "disabled"),
        (Signalled(signal=9, name="SIGKILL"), "unlimited", "core", "SIGKILL leaves none"),
        (Exited(code=3, done=False), "unlimited", "core", "not ended by a signal"),
        (Signalled(signal=11, name="SIGSEGV", core_dumped=True), "unlimited", "|/usr/share/apport/apport", "apport"),
        (Signalled(signal=11, name="SIGSEGV", core_dumped=True), "unlimited", "|/bin/taker %p", "/bin/taker"),
        (
            Signalled(signal=11, name="SIGSEGV", core_dumped=True),
            "unlimited",
            "|/usr/lib/systemd/systemd-coredump",
            "coredumpctl is not installed",
        ),
    ],
)
def test_it_says_why_there_is_no_core(monkeypatch, tmp_path, ending, limit, pattern, word):
    monkeypatch.setattr(core_file, "read_proc_text", lambda path: pattern if path.endswith("pattern") else "0")
    monkeypatch.setattr(core_file.shutil, "which", lambda *_args, **_more: None)
    core = core_file.find_core(watched(ending, limit=limit), {"PATH": ""}, room=str(tmp_path))
    assert core.path is None
    assert word in core.why


def test_only_a_file_of_this_run_is_taken(monkeypatch, tmp_path):
    import os
    import time
    from dataclasses import replace

    monkeypatch.setattr(core_file, "read_proc_text", lambda path: "core.%p" if path.endswith("pattern") else "0")
    old = tmp_path / "core.17"
    old.write_bytes(b"old")
    os.utime(old, (1, 1))
    died = replace(
        watched(Signalled(signal=11, name="SIGSEGV", core_dumped=True)),
        started=time.time(),
        seen=ProcessFacts(cwd=str(tmp_path)),
    )
    assert "not where core.%p says" in core_file.find_core(died, {}, room="").why
    old.write_bytes(b"new")
    assert core_file.find_core(died, {}, room="").path == str(old)


def test_a_pattern_without_a_name():
    assert core_glob(CorePattern(kind="file", text="", uses_pid=True), FACTS, "/") == "/.17"


@pytest.mark.parametrize(
    ("script", "made", "word"),
    [
        ('while [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done; echo core > $out', True, ""),
        ("echo 'Failed to open coredump: stored externally, but missing' >&2; exit 1", False, "missing"),
    ],
)
def test_systemd_is_asked(monkeypatch, tmp_path, script, made, word):
    program = tmp_path / "coredumpctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(core_file, "read_proc_text", lambda path: "|/usr/lib/systemd/systemd-coredump %P")
    died = watched(Signalled(signal=11, name="SIGSEGV", core_dumped=True))
    core = core_file.find_core(died, {"PATH": f"{tmp_path}:/bin:/usr/bin"}, room=str(tmp_path))
    assert (core.path is not None, core.made) == (made, made)
    assert word in core.why
