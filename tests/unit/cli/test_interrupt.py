"""Ctrl-C in a real process: the first gives the report, the second the end."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from aotidoctor.interruption import SAME_REQUEST_S
from aotidoctor.reports.json.schema import schema

CODE = """
import sys, time
from aotidoctor import __main__
from aotidoctor.commands import diagnose_package

def forever(*args, **kwargs):
    try:
        print("working", file=sys.stderr, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        if {stubborn}:
            print("cleaning", file=sys.stderr, flush=True)
            time.sleep(60)
        raise

diagnose_package.diagnose = forever
sys.argv = ["aotidoctor", "run", "m.pt2", "--json"]
__main__.main()
"""


@pytest.mark.parametrize("stubborn", [False, True])
def test_interrupts(stubborn):
    code = CODE.format(stubborn=stubborn)
    # No shell has this process ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"working\n"
        process.send_signal(signal.SIGINT)
        if stubborn:
            assert process.stderr.readline() == b"cleaning\n"
            # Sooner it would be the first one once more.
            time.sleep(2 * SAME_REQUEST_S)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == b""
    if stubborn:
        assert out == b""
    else:
        report = json.loads(out)
        jsonschema.Draft202012Validator(schema()).validate(report)
        assert report["interrupted"] is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_end_by_a_signal_leaves_a_report_and_no_files(number, tmp_path):
    code = f"""
import sys, tempfile, time
from aotidoctor import __main__
from aotidoctor.commands import diagnose_package

def forever(*args, **kwargs):
    with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}):
        print("working", file=sys.stderr, flush=True)
        time.sleep(60)

diagnose_package.diagnose = forever
sys.argv = ["aotidoctor", "run", "m.pt2", "--json"]
__main__.main()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"working\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (128 + number, b"")
    report = json.loads(out)
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert report["interrupted"] is True
    assert list(tmp_path.iterdir()) == []


def test_the_same_wish_twice_leaves_a_report():
    """``timeout`` and shells signal the process and its group: two interrupts for one."""
    code = CODE.format(stubborn=False).replace("time.sleep(60)", "os.kill(0, signal.SIGINT); time.sleep(60)")
    code = code.replace("import sys, time", "import os, signal, sys, time")
    code = code.replace("os.kill(0, signal.SIGINT)", "[os.kill(os.getpid(), signal.SIGINT) for _ in range(3)]")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert done.returncode == 130
    assert json.loads(done.stdout)["interrupted"] is True


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_document_that_is_being_written_is_not_cut(unbuffered):
    read_end, write_end = os.pipe()
    # Less than the document takes: the command waits for its reader.
    size = fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-m", "aotidoctor", "schema"], stdout=write_end, env=environ) as process:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as stream:
            first = stream.read(1)
            process.send_signal(signal.SIGTERM)
            whole = first + stream.read()
    assert len(whole) > 2 * size
    assert json.loads(whole) == json.loads(json.dumps(schema()))
    assert process.returncode == 143


FINALIZER = """
import os, signal, time
from aotidoctor import interruption

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)

interruption.receive_requests()
try:
    with interruption.interruptible():
        Last()
        time.sleep(60)
except KeyboardInterrupt:
    print(interruption.requested_signal(), interruption.signal_status(0))
"""


def test_a_request_that_a_finalizer_swallows_comes_again():
    done = subprocess.run([sys.executable, "-c", FINALIZER], capture_output=True, text=True, timeout=50, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("SIGTERM 143\n", "", 0)


CLEANING = FINALIZER.replace(
    "        time.sleep(60)",
    """
        from aotidoctor.runner.child_ending import defer_interrupts

        with defer_interrupts():
            time.sleep(4 * interruption._LOOK_S)
            print("cleaned up")
        time.sleep(60)
""",
)


def test_a_request_that_comes_again_does_not_cut_the_cleaning_up_in_half():
    done = subprocess.run([sys.executable, "-c", CLEANING], capture_output=True, text=True, timeout=50, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("cleaned up\nSIGTERM 143\n", "", 0)


ENDLESS = """
import os, signal, time
from aotidoctor import interruption

interruption.LONGEST_END_S = 0.6
interruption.receive_requests()
with interruption.held():
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(60)
"""


def test_a_process_that_does_not_end_by_itself_is_ended():
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (129, b"")
