"""No wait without an end: each call that can wait for ever is bounded, or is here with what ends it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import aotidoctor

PACKAGE = Path(aotidoctor.__file__).parent
# Without arguments they wait until it comes.
ENDLESS = {"wait", "join", "communicate", "acquire", "recv", "accept"}
# What bounds them, where it is not an argument.
BOUNDED = {
    ("fleet/dask_cluster.py", "judge_there"): "a pool answers after a moment, and each item has a limit",
    ("fleet/flow.py", "run"): "an engine answers after a moment, and each item has a limit",
    ("commands/mcp.py", "call"): "anyio.fail_after around it",
    ("runner/own_command.py", "run_each"): "the command's own limits, and the next signal",
    ("runner/watch.py", "_leave_pump"): "a process of its own, which lasts as long as somebody writes to the user",
    ("runner/watch.py", "start_program"): "a child that is in its last line",
    ("runner/watch.py", "close"): "a child of ours, which has been killed and does nothing but wait",
    ("runner/watch_streams.py", "finish"): "whoever reads the user's stdout, as without us; a signal ends it",
    ("runner/watch_streams.py", "_run"): "a thread of its own, which finish wakes",
    ("runner/watch_streams.py", "_write_all"): "whoever reads the user's stdout, as without us; a signal ends it",
    ("cli/batch_child.py", "_end_with"): "a daemon thread that waits for the end of the command",
    ("cli/guard_monitor.py", "next"): "the end of the user's program, which it watches",
    ("worker/forkserver.py", "reap_child"): "the command, which waits for the answer with a limit",
    ("worker/forkserver.py", "start_reaper"): "a child that forks once and ends",
    ("worker/forkserver.py", "forkserver"): "the command, or the reaper, which kills the warm worker",
    ("worker/serve.py", "stand_between"): "the command, which kills both at the limit",
}


def waits(source: str, file: str) -> Iterator[tuple[str, str, int]]:
    """File, function and line of every call that has no end of its own."""

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, str, int]]:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.Call) and is_endless(child):
                yield file, function, child.lineno
            yield from walk(child, inside)

    yield from walk(ast.parse(source), "")


def is_endless(call: ast.Call) -> bool:
    text = ast.unparse(call.func)
    owner, _, name = text.rpartition(".")
    last = ast.unparse(call.args[-1]) if call.args else ""
    match text:
        case "os.waitpid" | "os.wait4":
            return "WNOHANG" not in last
        case "os.wait":
            return True
        case "select.select":
            return len(call.args) < 4
        case "fcntl.flock":
            return "LOCK_NB" not in last and "LOCK_UN" not in last
        case "subprocess.run" | "subprocess.check_output" | "subprocess.check_call" | "subprocess.call":
            return not any(word.arg == "timeout" for word in call.keywords)
    if name == "poll":
        limits = (
            [call.args[0].body, call.args[0].orelse] if call.args and isinstance(call.args[0], ast.IfExp) else call.args
        )
        return owner in ("poll", "poller") and (not limits or any(ast.unparse(limit) == "None" for limit in limits))
    if name == "result" and not owner.endswith("future"):
        return False
    return bool(owner) and name in {*ENDLESS, "result"} and not call.args and not call.keywords


@pytest.mark.parametrize(
    ("code", "endless"),
    [
        ("process.wait()", True),
        ("process.wait(3)", False),
        ("process.wait(timeout=left)", False),
        ("thread.join()", True),
        ("','.join(words)", False),
        ("poll.poll()", True),
        ("poll.poll(0 if ending else None)", True),
        ("poll.poll(0 if last is not None else 200)", False),
        ("process.poll()", False),
        ("future.result()", True),
        ("os.waitpid(pid, 0)", True),
        ("os.wait4(pid, os.WNOHANG)", False),
        ("select.select([], [fd], [])", True),
        ("select.select([fd], [], [], 5.0)", False),
        ("fcntl.flock(lock, fcntl.LOCK_EX)", True),
        ("subprocess.run(words, timeout=3)", False),
        ("subprocess.run(words)", True),
    ],
)
def test_what_counts_as_endless(code: str, endless: bool) -> None:
    assert bool([*waits(code, "x.py")]) is endless


def test_every_wait_has_an_end() -> None:
    found = [
        one
        for path in sorted(PACKAGE.rglob("*.py"))
        for one in waits(path.read_text(encoding="utf-8"), str(path.relative_to(PACKAGE)))
    ]
    places = {(file, function) for file, function, _ in found}
    assert [f"{file}:{line} in {function}" for file, function, line in found if (file, function) not in BOUNDED] == []
    assert sorted(set(BOUNDED) - places) == [], "nothing waits there any more"
