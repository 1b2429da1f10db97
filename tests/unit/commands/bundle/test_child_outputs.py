from __future__ import annotations

import os

import pytest

from aotidoctor.commands.bundle import collect
from aotidoctor.commands.bundle.collect import ChildOutputs, decode_text, read_log
from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Request
from aotidoctor.runner.runner import Runner


def kept(tmp_path, **streams):
    for name, data in streams.items():
        (tmp_path / name).write_bytes(data)
    outputs = ChildOutputs()
    outputs.keep("R1", tmp_path)
    return outputs.texts


def test_streams_that_said_something(tmp_path):
    assert kept(tmp_path, stdout=b"out", stderr=b"") == {"R1.stdout": "out"}


def test_a_flood_keeps_its_ends_and_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "HEAD", 10)
    monkeypatch.setattr(collect, "TAIL", 20)
    text = kept(tmp_path, stdout=b"BEGIN" + b"x" * 100 + b"END")["R1.stdout"]
    assert text == "BEGINxxxxx\n[... 78 bytes left out ...]\n" + "x" * 17 + "END"


def test_what_the_file_system_took_back_is_no_zeros(tmp_path):
    text = kept(tmp_path, stdout=b"\0" * 5000 + b"END")["R1.stdout"]
    assert "\0" not in text
    assert text.endswith("END")


def test_all_runs_together_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "TOTAL", 10)
    assert kept(tmp_path, stdout=b"x" * 8, stderr=b"y" * 8) == {"R1.stdout": "x" * 8}


def test_a_directory_that_is_gone(tmp_path):
    outputs = ChildOutputs()
    outputs.keep("R1", tmp_path / "gone")
    assert outputs.texts == {}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_of_logs(tmp_path, encoding):
    text = "one line, and another line\n"
    assert decode_text(text.encode(encoding)) == text
    (tmp_path / "a.log").write_bytes(text.encode(encoding))
    assert read_log(tmp_path / "a.log")[0] == text


def test_bytes_that_are_no_text_are_replaced():
    assert decode_text(b"a\xff\xfeb") == "a��b"


def test_a_runner_shows_each_directory_before_it_is_removed(tmp_path):
    outputs = ChildOutputs()
    code = "import sys; print('said'); print('loud', file=sys.stderr)"
    setup = tmp_path / "s.py"
    setup.write_text(code)
    seen = []

    def keep(run, directory):
        seen.append((run, directory, directory.is_dir()))
        outputs.keep(run, directory)

    with Runner(environ={**os.environ, "TMPDIR": str(tmp_path)}, keep=keep) as runner:
        outcome = runner.run(Request(probe="x", job="script", payload=Script(path=str(setup)), fresh=True))
    [(run, directory, was_there)] = seen
    assert (run, was_there, directory.exists()) == (outcome.id, True, False)
    assert outputs.texts == {"R1.stdout": "said\n", "R1.stderr": "loud\n"}
