"""The library as its users have it: the examples of its documentation, a running event loop, a notebook, a forked server."""

from __future__ import annotations

import doctest
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from warm import line

import aotidoctor
from aotidoctor.commands import diagnose_package
from tests.e2e.foundry.place import cache_dir, compiler_answers

pytestmark = [pytest.mark.torch]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo():
    """The files of the demo, built once per machine."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the demo's packages with")
    pytest.importorskip("torch", reason="torch is not installed")
    from aotidoctor.commands import demo

    return demo.prepare_demo({**os.environ, "XDG_CACHE_HOME": str(cache_dir())}, lambda _event: None)


@pytest.fixture
def folder(demo, tmp_path, monkeypatch):
    for path in demo.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(folder):
    import torch

    made = torch.load("good.pt")
    return {"args": made["args"], "ids": made["kwargs"]["ids"], "x": made["args"][0]}


def examples():
    """The examples of every public name and of the methods of what it returns."""
    finder = doctest.DocTestFinder(recurse=True)
    for name in aotidoctor.__all__:
        value = getattr(aotidoctor, name)
        if callable(value) and value.__module__.startswith(("aotidoctor.api", "aotidoctor.testing")):
            yield from (
                test for test in finder.find(value, name, module=sys.modules[value.__module__]) if test.examples
            )


EXAMPLES = list(examples())


def test_every_function_has_an_example():
    have = {test.name.partition(".")[0] for test in EXAMPLES}
    ours = [name for name in aotidoctor.__all__ if inspect.isfunction(getattr(aotidoctor, name))]
    assert {name for name in ours if not getattr(aotidoctor, name).__module__.startswith("aotidoctor.commands")} <= have
    assert {"Report.show", "Report.to_html", "Report.to_dict", "Report.raise_for_problem"} <= {t.name for t in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=[test.name for test in EXAMPLES])
def test_example(example, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    # How they start a runner of their own, the tests below ask.
    monkeypatch.setattr(diagnose_package, "runner_or_new", line().lend)
    example.globs = {"aotidoctor": aotidoctor, **call}
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)


LIVE = """
import asyncio, os, signal, sys, threading, warnings
import torch, aotidoctor

def state():
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return (handlers, dict(os.environ), os.getcwd(), list(warnings.filters), torch.get_num_threads(),
            torch.is_grad_enabled(), torch.get_default_dtype(), [one.name for one in threading.enumerate()])

def keep(*_): pass
signal.signal(signal.SIGTERM, keep)
made = torch.load("good.pt")
args, ids = made["args"], made["kwargs"]["ids"]
copies = [args[0].clone(), ids.clone()]
torch.set_num_threads(2)
before = state()

def ask(ids, **more):
    report = aotidoctor.diagnose("model.pt2", args=args, kwargs={"ids": ids}, **more)
    return report.verdict, report.cause, [one.status.value for one in report.diagnoses[:1]]

async def main():
    # In the loop's own thread, as in a notebook, and beside it.
    beside = asyncio.to_thread(ask, ids.numpy(), probes=["plain_run"])
    task = asyncio.create_task(beside)
    await asyncio.sleep(0)
    here = ask(ids.int())
    return here, await task

print(asyncio.run(main()))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    frozen = ids.numpy().copy(); frozen.setflags(write=False)
    aotidoctor.check("model.pt2", args=args, kwargs={"ids": frozen})
assert not seen, seen
child = os.fork()
if child == 0:
    found = ask(ids + 1000, probes=["plain_run"])
    os.write(1, (repr(found) + "\\n").encode())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
after = state()
before[0].pop(signal.SIGCHLD, None); after[0].pop(signal.SIGCHLD, None)
ends = ("asyncio_0",)
assert before[:-1] == after[:-1]
assert torch.equal(copies[0], args[0]) and torch.equal(copies[1], ids)

class Odd:
    pass
try:
    aotidoctor.diagnose("model.pt2", args=args, kwargs={"ids": (Odd() for _ in "a")})
except aotidoctor.InputsError as error:
    print(error.where, "generator" in error.observed)
class Own(torch.Tensor):
    pass
# A class that only this script has is no fault of the model's.
for odd in (Odd(), ids.as_subclass(Own), [ids.as_subclass(Own)]):
    try:
        aotidoctor.diagnose("model.pt2", args=args, kwargs={"ids": odd}, probes=["plain_run"])
    except aotidoctor.InputsError as error:
        print(error.observed, end=" ")
print(aotidoctor.check("model.pt2", args=args, kwargs={"ids": Odd()}).cause)
"""


def test_live_tensors_in_a_running_loop_beside_a_thread_and_in_a_forked_process(folder):
    temporary = folder / "tmp"
    temporary.mkdir()
    environ = {**os.environ, **compiler_answers(), "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", LIVE], capture_output=True, text=True, env=environ, cwd=folder, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines[0] == "(('problem', 'input-dtype', ['confirmed']), ('healthy', None, []))"
    assert lines[1].startswith("('problem', 'index-out-of-range'")
    assert lines[2] == "inputs True"
    assert lines[3] == "__main__.Odd __main__.Own __main__.Own input-nontensor"
    assert list(temporary.iterdir()) == []


def test_a_notebook(folder):
    """Executed by the kernel that a notebook has: its event loop runs, and what a cell ends with is displayed."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    cells = (
        "import torch, aotidoctor\nmade = torch.load('good.pt')\nargs, ids = made['args'], made['kwargs']['ids']",
        "aotidoctor.contract('model.pt2')",
        "report = aotidoctor.diagnose('model.pt2', args=args, kwargs={'ids': ids.int()})\nreport",
        "report.show(-1)",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")}
    client = nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environ)
    outputs = [cell["outputs"] for cell in notebook["cells"]]
    assert "kwargs[&#x27;ids&#x27;]" in outputs[1][0]["data"]["text/html"]
    assert "int64" in outputs[1][0]["data"]["text/plain"]
    shown = outputs[2][-1]["data"]
    assert "input-dtype" in shown["text/html"]
    assert "<iframe" in shown["text/html"]
    assert shown["text/plain"].startswith(" PROBLEM  input-dtype")
    assert "input-dtype: kwargs['ids'] is int32" in outputs[3][0]["text"]
