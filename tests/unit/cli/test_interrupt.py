"""Ctrl-C in a real process: the first gives the report, the second the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from aotidoctor.__main__ import SAME_REQUEST_S
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
