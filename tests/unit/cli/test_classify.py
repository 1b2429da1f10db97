"""``aotidoctor classify``: files, standard input, exit statuses."""

from __future__ import annotations

import json
import os
import sys
import threading

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app, document_output

SCHEMA = "RuntimeError: Could not find schema for mylib::custom_op.\n"


def call(*words, stdin=None):
    return CliRunner().invoke(build_app(), ["classify", *map(str, words)], input=stdin)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "crash.log"
    path.write_text(SCHEMA)
    return path


def test_a_file_and_standard_input_say_the_same(log):
    from_file, from_stdin = call(log, "--json"), call("-", "--json", stdin=SCHEMA)
    assert (from_file.exit_code, from_stdin.exit_code) == (1, 1)
    one, other = (json.loads(result.stdout) for result in (from_file, from_stdin))
    assert one["diagnoses"] == other["diagnoses"]
    assert (one["command"], other["log"]["name"]) == ("classify", "stdin")


@pytest.mark.parametrize(("text", "status"), [("", 4), ("hello\n", 0), ("Aborted\n", 3), (b"\xff\xfe\x00", 0)])
def test_status(text, status):
    assert call("-", "-q", stdin=text).exit_code == status


GUESS = "AssertionError: Tensor-likes are not close!\n"


def test_a_cause_that_is_not_sure_is_no_problem_but_perhaps_one():
    document = json.loads(call("-", "--json", stdin=GUESS).stdout)
    assert (document["verdict"], document["diagnoses"][0]["cause"]) == ("unknown", "numeric-difference")
    assert document["diagnoses"][0]["confidence"] < 0.6
    page = call("-", stdin=GUESS)
    assert page.exit_code == 3
    assert page.stdout.lstrip().startswith("UNKNOWN  perhaps numeric-difference")
    assert call("-", "--fail-on", "info", "-q", stdin=GUESS).exit_code == 1


def test_a_suspicion_in_a_log_without_a_failure_is_not_named():
    document = json.loads(call("-", "--json", stdin="WARNING: Tensor-likes are not close! trying again\ndone\n").stdout)
    assert (document["verdict"], document["diagnoses"]) == ("healthy", [])


@pytest.mark.parametrize("magic", [b"PK\x03\x04", b"\x7fELF\x02", b"\xfd7zXZ\0", b"BZh9", b"\x28\xb5\x2f\xfd"])
def test_what_is_no_log_is_not_judged_by_the_words_in_it(magic, tmp_path):
    path = tmp_path / "model.pt2"
    path.write_bytes(magic + SCHEMA.encode())
    result = call(path, "-q")
    assert result.exit_code == 4
    assert "Could not find schema" not in result.stdout


@pytest.mark.parametrize("path", ["/no/such.log", "/tmp", "/dev/zero"])
def test_no_log(path):
    result = call(path)
    assert result.exit_code == 4
    assert "CANNOT EXAMINE" in result.stdout


def test_a_package_that_is_not_there(log):
    result = call(log, "--package", "/nope.pt2", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["verdict"], document["diagnoses"]) == (4, "unknown", [])
    assert "/nope.pt2" in document["cannot_examine"]


def test_inputs_need_a_package(log):
    result = call(log, "--inputs", "x.pt")
    assert result.exit_code == 2
    assert "--package" in result.stderr


def test_warnings_and_fail_on(tmp_path):
    log = tmp_path / "w.log"
    log.write_text(
        "W0325 19:20:00.685000 2065 torch/_inductor/ir.py:6638] [0/0] aten.grid_sampler_3d.default is missing a c-shim"
        " implementation, using proxy executor as fallback\n"
    )
    assert call(log).exit_code == 0
    assert "missing-c-shim" in call(log).stdout
    assert call(log, "--fail-on", "warn").exit_code == 1


def test_the_log_is_not_overwritten(log):
    assert call(log, "--report", f"md:{log}").exit_code == 2
    assert log.read_text() == SCHEMA


def test_reports_into_files(log, tmp_path):
    result = call(log, "-q", "-o", tmp_path / "out", "--report", f"md:{tmp_path / 'a.md'}")
    assert result.exit_code == 1
    assert json.loads((tmp_path / "out" / "report.json").read_text())["diagnoses"][0]["cause"] == "custom-op-missing"
    assert "custom-op-missing" in (tmp_path / "a.md").read_text()


def test_paths_of_the_user_are_redacted(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/zaphod")
    log = tmp_path / "x.log"
    log.write_text('Traceback (most recent call last):\n  File "/home/zaphod/secret/run.py", line 3, in f\n' + SCHEMA)
    assert "zaphod" not in call(log, "--json").stdout
    assert "zaphod" in call(log, "--json", "--no-redact").stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the file whose reading fails is one of Linux")
def test_a_file_that_opens_and_cannot_be_read_is_not_examined():
    result = call("/proc/self/mem", "--json")
    assert result.exit_code == 4
    assert "Input/output error" in json.loads(result.stdout)["cannot_examine"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("opens_first", [True, False])
def test_a_pipe_whose_writer_is_silent_is_waited_for_and_the_wait_is_said(tmp_path, monkeypatch, opens_first):
    pipe, notice, lines = tmp_path / "a.log", threading.Event(), []

    def write_line(text):
        lines.append(text)
        notice.set()

    def write():
        if not opens_first:
            notice.wait(60)
        with open(pipe, "w", encoding="utf-8") as stream:
            notice.wait(60)
            stream.write("RuntimeError: expected inputs vector size to be 4, but got 3\n")

    os.mkfifo(pipe)
    monkeypatch.setattr(document_output, "PATIENCE_S", 0.02)
    monkeypatch.setattr(document_output, "write_stderr", write_line)
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    result = call(pipe, "--json")
    writer.join(60)
    assert lines == [f"aotidoctor: reading {pipe} to its end; Ctrl+C stops\n"]
    assert json.loads(result.stdout)["diagnoses"][0]["cause"] == "input-count"


def test_a_file_is_not_waited_for(tmp_path, monkeypatch):
    (tmp_path / "a.log").write_text("RuntimeError: expected inputs vector size to be 4, but got 3\n")
    result = call(tmp_path / "a.log", "--json")
    assert "to its end" not in result.stderr
    assert result.exit_code == 1
