"""How a command ends: at once, but with everything written, closed and waited for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import atexit, sys, tempfile, threading, time, weakref
from aotidoctor import __main__
from aotidoctor.commands import diagnose_package as diagnose

def answer(*args, **kwargs):
    print("x" * 100_000)
    atexit.register(print, "registered")
    {more}
    sys.exit({status})

diagnose.diagnose = answer
sys.argv = ["aotidoctor", "check", "m.pt2"]
__main__.main()
"""
THREAD = 'threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()'
FOLDER = 'print(tempfile.mkdtemp()); kept = tempfile.TemporaryDirectory(); print(kept.name); globals()["kept"] = kept'


def ended(more, status):
    code = CODE.format(more=more, status=status)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("status", "code"), [("0", 0), ("3", 3), ("None", 0), ("-1", 255)])
def test_what_is_buffered_or_registered_is_not_lost(status, code):
    done = ended("pass", status)
    assert (done.returncode, done.stdout) == (code, "x" * 100_000 + "\nregistered\n"), done.stderr


def test_a_thread_is_waited_for():
    done = ended(THREAD, 0)
    assert done.stdout.splitlines()[1:] in (["thread", "registered"], ["registered", "thread"])


def test_a_temporary_folder_is_removed():
    left, removed = map(Path, ended(FOLDER, 0).stdout.splitlines()[1:3])
    assert left.is_dir()
    assert not removed.exists()
    left.rmdir()


def test_nobody_reads_the_answer():
    """A reader that is gone is no failure that anybody sees."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE.format(more="pass", status=0)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
