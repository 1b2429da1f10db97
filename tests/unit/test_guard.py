"""``aotidoctor.guard()`` inside of programs without torch: the exception and the death stay what they were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import pytest

import aotidoctor
from aotidoctor.commands.guard import failing_call, is_failure
from aotidoctor.commands.live_inputs import split_arguments
from aotidoctor.reports.json.schema import schema
from tests.waiting import soon

ROOT = Path(__file__).parents[2]
HEAD = "import os, signal, sys\nimport aotidoctor\n"


@pytest.fixture
def run(tmp_path):
    """Run a script; exit status, streams, and the report, for which a monitor may need a moment."""
    (tmp_path / "tmp").mkdir()
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path / "tmp")}

    def run(script, *, reports=True, **more):
        done = subprocess.run(
            [sys.executable, "-c", HEAD + textwrap.dedent(script)], capture_output=True, text=True, env=environ,
            cwd=tmp_path, check=False, timeout=120, **more,
        )  # fmt: skip
        report = tmp_path / "report.json"
        assert not reports or soon(report.exists), done.stderr
        done.report = json.loads(report.read_text()) if report.exists() else None
        if done.report is not None:
            jsonschema.Draft202012Validator(schema()).validate(done.report)
        return done

    run.tmp = tmp_path / "tmp"
    return run


def program(report):
    return next(item for item in report["findings"] if item["code"] == "AD-RUN-033")


def test_a_block_that_ends_well_is_not_talked_about(run):
    done = run("with aotidoctor.guard(report='json:report.json'):\n    print('well')", reports=False)
    assert (done.returncode, done.stdout, done.stderr, done.report) == (0, "well\n", "", None)
    assert list(run.tmp.iterdir()) == []


def test_a_block_that_is_over_before_anybody_looked(run):
    done = run("for _ in range(3):\n    with aotidoctor.guard():\n        pass\nos._exit(0)", reports=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_exception_leaves_as_it_came(run):
    done = run(
        """
        error = KeyError("x")
        try:
            with aotidoctor.guard(report="json:report.json"):
                raise error
        except KeyError as caught:
            frames = []
            trace = caught.__traceback__
            while trace:
                frames.append(trace.tb_frame.f_code.co_filename)
                trace = trace.tb_next
            print(caught is error, caught.args, caught.__context__, caught.__notes__ if hasattr(caught, "__notes__") else "-", set(frames))
        """
    )
    assert (done.returncode, done.stdout) == (0, "True ('x',) None - {'<string>'}\n")
    assert program(done.report)["facts"]["type"] == "KeyError"
    # Whether the program ends with it is not known.
    assert (program(done.report)["observed"], program(done.report)["expected"]) == (
        "KeyError left the guarded block",
        "no exception",
    )
    assert done.report["command"] == "guard"
    assert "KeyError" in done.stderr
    assert list(run.tmp.iterdir()) == []


def test_each_failure_of_a_loop_is_reported(run, tmp_path):
    """The next exception may lie where the last one lay."""
    run(
        """
        for at in range(3):
            try:
                with aotidoctor.guard(report=f"json:{at}.json", quiet=True):
                    raise ValueError(at)
            except ValueError:
                pass
        """,
        reports=False,
    )
    said = [json.loads((tmp_path / f"{at}.json").read_text()) for at in range(3)]
    assert [program(report)["facts"]["type"] for report in said] == ["ValueError"] * 3


def test_nested_blocks_report_a_failure_once(run, tmp_path):
    done = run(
        """
        with aotidoctor.guard(report="json:outer.json"):
            with aotidoctor.guard(report="json:report.json"):
                raise ValueError("no")
        """
    )
    assert program(done.report)["facts"]["type"] == "ValueError"
    assert not (tmp_path / "outer.json").exists()


def test_uncaught_it_ends_the_program_as_without_us(run):
    done = run("with aotidoctor.guard(report='json:report.json'):\n    raise ValueError('no')")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: no\n")


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit(0)", "SystemExit", "GeneratorExit"])
def test_what_is_no_failure(run, raised):
    done = run(
        f"try:\n    with aotidoctor.guard(report='json:report.json'):\n        raise {raised}\n"
        "except BaseException as error:\n    print(type(error).__name__)",
        reports=False,
    )
    assert (done.stdout.strip(), done.stderr, done.report) == (raised.removesuffix("(0)"), "", None)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(SystemExit(1), True), (SystemExit("no"), True), (SystemExit(), False), (RuntimeError(), True)],
)
def test_failures(error, expected):
    assert is_failure(error) is expected


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"])
def test_a_death_by_a_signal_stays_one_and_is_reported(run, name):
    done = run(f"with aotidoctor.guard(report='json:report.json'):\n    os.kill(os.getpid(), signal.{name})")
    assert done.returncode == -getattr(signal, name)
    assert program(done.report)["facts"]["signal"] == name
    assert done.report["runs"][0]["signal"] == name
    assert name in done.stderr


OLDER = "import os\nfor name in ('pidfd_open', 'memfd_create'):\n    vars(os).pop(name, None)\n"


@pytest.mark.parametrize("failure", ["raise ValueError('no')", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_a_python_that_was_built_for_an_older_system(run, tmp_path, failure):
    """The Python of conda knows no ``os.pidfd_open``, whatever kernel it runs on."""
    (tmp_path / "sitecustomize.py").write_text(OLDER)
    done = run(
        f"os.environ['PYTHONPATH'] = os.pathsep.join(({str(tmp_path)!r}, os.environ['PYTHONPATH']))\n"
        f"with aotidoctor.guard(report='json:report.json'):\n    {failure}"
    )
    assert "no report" not in done.stderr
    assert program(done.report)["kind"] in ("raised", "signalled")


def test_a_crash_leaves_nothing(run):
    run("with aotidoctor.guard(report='json:report.json'):\n    os.kill(os.getpid(), signal.SIGSEGV)")
    assert soon(lambda: not list(run.tmp.iterdir()))


def test_an_end_that_nobody_can_tell_leaves_nothing(run):
    run("with aotidoctor.guard():\n    os._exit(5)", reports=False)
    assert soon(lambda: not list(run.tmp.iterdir()))


def test_the_exit_status_of_an_exit_is_told(run):
    done = run("with aotidoctor.guard(report='json:report.json'):\n    sys.exit(3)")
    assert done.returncode == 3
    assert "exit status 3" in program(done.report)["observed"]


def test_faulthandler_is_left_as_it_was(run):
    script = """
    import faulthandler
    before = faulthandler.is_enabled()
    with aotidoctor.guard():
        inside = faulthandler.is_enabled()
    print(before, inside, faulthandler.is_enabled())
    faulthandler.enable()
    with aotidoctor.guard():
        pass
    print(faulthandler.is_enabled())
    """
    assert run(script, reports=False).stdout == "False True False\nTrue\n"


def test_a_program_with_many_open_files(run):
    done = run(
        """
        files = [open(os.devnull) for _ in range(40)]
        try:
            with aotidoctor.guard(report="json:report.json"):
                raise OSError("gone")
        except OSError:
            pass
        """
    )
    assert program(done.report)["facts"]["type"] == "OSError"


def test_as_a_decorator(run):
    done = run(
        """
        @aotidoctor.guard(report="json:report.json")
        def serve(a, *, b):
            "Serves."
            return a / b
        print(serve.__name__, serve.__doc__, serve(4, b=2))
        try:
            serve(1, b=0)
        except ZeroDivisionError:
            print("as it came")
        """
    )
    assert done.stdout == "serve Serves. 2.0\nas it came\n"
    assert program(done.report)["facts"]["type"] == "ZeroDivisionError"


def test_a_coroutine_function(run):
    done = run(
        """
        import asyncio
        @aotidoctor.guard(report="json:report.json")
        async def serve():
            await asyncio.sleep(0)
            raise OSError("gone")
        try:
            asyncio.run(serve())
        except OSError as error:
            print(error)
        """
    )
    assert done.stdout == "gone\n"
    assert program(done.report)["facts"]["type"] == "OSError"


def test_one_exception_is_reported_once(run):
    done = run(
        """
        try:
            with aotidoctor.guard(report="json:report.json"):
                with aotidoctor.guard():
                    raise OSError("gone")
        except OSError:
            pass
        """,
        reports=False,
    )
    assert done.stderr.count("OSError") >= 1
    assert done.stderr.count("no known cause") == 1


def test_the_program_has_no_child_that_it_did_not_start(run):
    done = run(
        """
        with aotidoctor.guard():
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                print("none")
        """,
        reports=False,
    )
    assert done.stdout == "none\n"


def test_our_own_failure_never_reaches_the_program(run):
    done = run(
        """
        sys.executable = "/nowhere/python"
        with aotidoctor.guard(report="json:report.json"):
            print("went on")
        try:
            with aotidoctor.guard(report="json:/nowhere/at/all.json"):
                raise KeyError("mine")
        except KeyError as error:
            print(error)
        """,
        reports=False,
    )
    assert (done.returncode, done.stdout) == (0, "went on\n'mine'\n")


def test_a_forked_child_is_not_the_program(run):
    done = run(
        """
        with aotidoctor.guard(report="json:report.json"):
            if os.fork() == 0:
                os._exit(3)
            os.wait()
        print("well")
        """,
        reports=False,
    )
    assert (done.returncode, done.stdout, done.report) == (0, "well\n", None)


def test_quiet_prints_nothing(run):
    done = run(
        """
        try:
            with aotidoctor.guard(quiet=True, report="json:report.json"):
                raise OSError("gone")
        except OSError:
            pass
        """
    )
    assert done.stderr == ""
    assert done.report["verdict"] == "unknown"


def test_a_report_that_cannot_be_meant():
    with pytest.raises(ValueError, match="not FMT:PATH"):
        aotidoctor.guard(report="crash.md")


def test_torch_is_not_imported(run):
    done = run(
        """
        with aotidoctor.guard():
            pass
        print([name for name in sys.modules if name.partition(".")[0] in ("torch", "numpy", "rich", "typer")])
        """,
        reports=False,
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("inputs", "args", "kwargs"),
    [
        ((1, 2), (1, 2), {}),
        ([1], (1,), {}),
        ({"ids": 1}, (), {"ids": 1}),
        ({"args": (1,), "kwargs": {"k": 2}}, (1,), {"k": 2}),
        (((1,), {"k": 2}), (1,), {"k": 2}),
        (7, (7,), {}),
    ],
)
def test_inputs_are_read_as_from_a_file(inputs, args, kwargs):
    assert split_arguments(inputs) == (args, kwargs)


def test_the_arguments_are_those_of_the_call_that_raised():
    """The frame is told by module and name; a stand-in has both."""
    names: dict[str, object] = {"__name__": "torch._inductor.package.package"}
    code = "def __call__(self, *args, **kwargs):\n    raise ValueError\n"
    exec(compile(code, "/x/torch/_inductor/package/package.py", "exec"), names)
    with pytest.raises(ValueError) as raised:
        names["__call__"](None, 1, b=2)
    assert failing_call(raised.value) == ((1,), {"b": 2})
    assert failing_call(KeyError()) is None
