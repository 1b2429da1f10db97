"""The report and the contract of the library: the record of the commands, shown, written, raised and sent."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import html5lib
import jsonschema
import pytest

import aotidoctor
from aotidoctor.model import contract as contract_records
from aotidoctor.model import report as report_records
from aotidoctor.reports.json.schema import schema

CUDA = Path(__file__).parents[2] / "data" / "cuda" / "mlp.pt2"


@pytest.fixture(scope="module")
def healthy():
    return aotidoctor.inspect(CUDA)


@pytest.fixture(scope="module")
def missing():
    return aotidoctor.check("/no/such/model.pt2")


def test_it_is_the_record_of_the_command(healthy):
    assert isinstance(healthy, aotidoctor.Report)
    assert isinstance(healthy, report_records.Report)
    assert (healthy.verdict, healthy.cause, healthy.command) == ("healthy", None, "inspect")
    assert healthy.argv == ("aotidoctor", "inspect", str(CUDA))
    assert repr(healthy) == "<aotidoctor.Report healthy>"


def test_it_says_the_first_cause(missing):
    assert missing.cause == missing.diagnoses[0].cause == "artifact-missing"
    assert "artifact-missing" in repr(missing)


def test_formats(healthy, missing, tmp_path):
    for report in (healthy, missing):
        document = report.to_dict()
        jsonschema.Draft202012Validator(schema()).validate(document)
        assert document["verdict"] == report.verdict
        page = report.to_html(tmp_path / "deep" / "report.html")
        assert (tmp_path / "deep" / "report.html").read_text(encoding="utf-8") == page
        html5lib.HTMLParser(strict=True).parse(page)
        assert report.to_markdown(str(tmp_path / "report.md")).startswith("## ")
    stream = io.StringIO()
    missing.show(-1, file=stream)
    assert "artifact-missing" in stream.getvalue() or "no such file" in stream.getvalue()


def test_what_is_shown_is_redacted(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "zebedee"))
    report = aotidoctor.check(tmp_path / "zebedee" / "model.pt2")
    shown = [str(report.to_dict()), report.to_html(), report.to_markdown(), str(report._repr_mimebundle_())]
    assert not any("zebedee" in text for text in shown)
    assert "zebedee" in str(report.to_dict(redact=False))


def test_in_a_notebook(healthy, missing):
    for shown in (healthy, missing, aotidoctor.contract(CUDA)):
        bundle = shown._repr_mimebundle_(include=None, exclude=None)
        assert set(bundle) == {"text/plain", "text/html"}
        html5lib.HTMLParser(strict=True).parseFragment(bundle["text/html"])
        assert "<script" not in bundle["text/html"]
    assert "kwargs" not in aotidoctor.contract(CUDA)._repr_html_()
    assert "float32[s77:2..1024, 16]" in aotidoctor.contract(CUDA)._repr_html_()


def test_text_of_a_stranger_stays_text_in_a_notebook(tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>.pt2"
    path.write_text("nothing")
    assert "<img" not in aotidoctor.check(path)._repr_html_()


def test_raise_for_problem(healthy, missing):
    assert healthy.raise_for_problem() is healthy
    with pytest.raises(aotidoctor.CannotExamineError, match="no such file"):
        missing.raise_for_problem()
    with pytest.raises(aotidoctor.ProblemFoundError) as raised:
        aotidoctor.classify(
            b"RuntimeError: Error in dlopen: libfoo.so.3: cannot open shared object file\n"
        ).raise_for_problem()
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.cause, error.report.cause) == ("missing-library", "missing-library")
    with pytest.raises(aotidoctor.ProblemFoundError) as raised:
        aotidoctor.classify(b"Traceback (most recent call last):\nWeirdError: nobody knows\n").raise_for_problem()
    assert raised.value.cause is None


def test_a_log_in_all_its_forms(tmp_path):
    text = b"RuntimeError: Error in dlopen: libfoo.so.3: cannot open shared object file\n"
    path = tmp_path / "crash.log"
    path.write_bytes(text)
    with path.open("rb") as stream:
        found = [aotidoctor.classify(log) for log in (path, str(path), text, io.BytesIO(text), stream)]
    assert [report.cause for report in found] == ["missing-library"] * 5
    with pytest.raises(aotidoctor.CannotExamineError):
        aotidoctor.classify(tmp_path / "none.log")
    with pytest.raises(aotidoctor.CannotExamineError):
        aotidoctor.classify(CUDA.read_bytes())


def test_contract(tmp_path):
    found = aotidoctor.contract(CUDA)
    assert isinstance(found, contract_records.ModelContract)
    assert [(leaf.path, leaf.dtype) for leaf in found.leaves] == [("args[0]", "float32")]
    assert found.to_dict()["leaves"][0]["dtype"] == "float32"
    stream = io.StringIO()
    found.show(file=stream)
    assert stream.getvalue().splitlines()[0].split() == ["args[0]", "float32[s77:2..1024,", "16]", "(16,", "1)", "cuda"]
    assert pickle.loads(pickle.dumps(found)) == found
    (tmp_path / "text.pt2").write_text("no package")
    for path, name in ((tmp_path / "none.pt2", None), (tmp_path / "text.pt2", None)):
        with pytest.raises(aotidoctor.CannotExamineError, match="observed"):
            aotidoctor.contract(path, model_name=name)


def test_compat_of_several():
    report = aotidoctor.compat([CUDA, CUDA], host=["here"], torch="2.13")
    assert [(one.package, one.host) for one in report.compat.answers] == [(str(CUDA), "here with torch 2.13")] * 2


def test_threads_and_spawned_processes():
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(aotidoctor.check, [CUDA] * 8))
    assert len({report.signature for report in reports}) == 1
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        sent = processes.submit(aotidoctor.check, CUDA).result(timeout=120)
        with pytest.raises(aotidoctor.ArgumentError):
            processes.submit(aotidoctor.check, 3).result(timeout=120)
    assert isinstance(sent, aotidoctor.Report)
    assert sent.signature == reports[0].signature


PROCESS = """
import faulthandler, gc, locale, os, signal, sys, threading, warnings
import aotidoctor

def state():
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return (handlers, signal.getitimer(signal.ITIMER_PROF), signal.pthread_sigmask(signal.SIG_BLOCK, ()), dict(os.environ),
            os.getcwd(), list(warnings.filters), sys.getrecursionlimit(), gc.get_threshold(), locale.setlocale(locale.LC_ALL),
            faulthandler.is_enabled(), threading.active_count(), os.umask(0o022) , list(sys.path), sys.excepthook)

def keep(*_): pass
signal.signal(signal.SIGINT, keep); signal.signal(signal.SIGALRM, keep); signal.signal(signal.SIGCHLD, keep)
before = state()
{work}
after = state()
assert before == after, [(a, b) for a, b in zip(before, after) if a != b]
assert "torch" not in sys.modules and "numpy" not in sys.modules
"""


def test_the_process_stays_as_it_was(tmp_path):
    work = (
        f"path = {str(CUDA)!r}\n"
        "aotidoctor.check(path).to_html(); aotidoctor.inspect(path).to_dict(); aotidoctor.contract(path)\n"
        "aotidoctor.compat(path); aotidoctor.classify(b'Segmentation fault')\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if aotidoctor.check(path).findings else 9)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", PROCESS.replace("{work}", work)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(aotidoctor.__file__).parents[1])},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_cases_knows_what_was_seen_before(tmp_path):
    log = b"RuntimeError: Error in dlopen: libcudart.so.12: cannot open shared object file\n"
    first = aotidoctor.classify(log, cases=tmp_path / "cases.db")
    again = aotidoctor.classify(log, cases=tmp_path / "cases.db")
    seen = [report.to_dict().get("history") for report in (first, again)]
    assert (seen[0] or {}).get("count", 0) == 0
    assert seen[1]["count"] == 1
    with pytest.raises(aotidoctor.CannotExamineError):
        aotidoctor.classify(log, cases=tmp_path)
