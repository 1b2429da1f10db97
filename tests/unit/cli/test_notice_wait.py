"""What says on stderr that a command goes on: it leaves no thread, and needs none."""

from __future__ import annotations

import threading

import pytest

from aotidoctor.cli import document_output


def test_no_thread_is_left():
    before = threading.active_count()
    with document_output.notice_wait("reading"):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_where_there_are_no_threads_nothing_is_said(monkeypatch):
    """As in WebAssembly."""

    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with document_output.notice_wait("reading"):
        pass


def test_a_long_wait_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr(document_output, "PATIENCE_S", 0.01)
    said = threading.Event()
    real = document_output.write_stderr
    monkeypatch.setattr(document_output, "write_stderr", lambda text: (real(text), said.set()))
    with document_output.notice_wait("reading"):
        assert said.wait(60)
    assert capsys.readouterr().err == "aotidoctor: reading; Ctrl+C stops\n"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_inside_leaves_no_thread(error):
    before = threading.active_count()
    with pytest.raises(error), document_output.notice_wait("reading"):
        raise error
    assert threading.active_count() == before
