"""Where a process that does not end stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.localize.culprit import classify_hang
from aotidoctor.localize.debugger_output import Backtrace, KernelTask, ThreadStack, read_backtrace
from aotidoctor.model.localization import Frame

DATA = Path(__file__).parents[2] / "data" / "stacks"
MODEL = ("torch::aot_inductor::AOTInductorModel::run_impl", "/tmp/x.wrapper.so")
CPU = "/venv/torch/lib/libtorch_cpu.so"
LIBC, GOMP = "/lib/libc.so.6", "/venv/torch/lib/libgomp.so.1"
BARRIER = [("futex_wait", GOMP), ("do_wait", GOMP), ("gomp_team_barrier_wait_end", GOMP)]
KERNEL = ("cpp_fused_a_0._omp_fn.0", "/tmp/x.wrapper.so")
LOCK = [("__GI___lll_lock_wait", LIBC), ("___pthread_mutex_lock", LIBC)]


def thread(*rows: tuple[str, str], tid: int = 1) -> ThreadStack:
    frames = (Frame(index=index, function=name, library=library) for index, (name, library) in enumerate(rows))
    return ThreadStack(tid=tid, frames=tuple(frames))


def task(tid: int = 1, state: str = "S", wchan: str = "0", call: str = "0") -> KernelTask:
    return KernelTask(tid=tid, state=state, cpu=1.0, wchan=wchan, call=call, name="python")


@pytest.mark.parametrize(
    ("name", "where", "state", "kernel"),
    [
        ("operator_spin", "operator", "runs", None),
        ("operator_sleep", "operator", "sleeps", None),
        ("operator_pyspy", "operator", "runs", None),
        ("python_sleep", "operator", "sleeps", None),
        ("python_lock", "operator", "waits for a lock", None),
        ("kernel_spin", "kernel", "runs", "cpp_fused_add_mul_1"),
        ("kernel_omp_spin", "kernel", "runs", "cpp_fused_mul_sum_0"),
    ],
)
def test_recorded(name: str, where: str, state: str, kernel: str | None) -> None:
    hang = classify_hang(read_backtrace((DATA / f"{name}.txt").read_text()))
    assert (hang.where, hang.state) == (where, state)
    assert hang.culprit is not None
    assert hang.culprit.kernel == kernel


@pytest.mark.parametrize(
    ("threads", "where"),
    [
        # The main thread waits for a worker that computes.
        ([thread(*BARRIER, KERNEL, MODEL), thread(KERNEL, tid=2)], "kernel"),
        ([thread(*BARRIER, KERNEL, MODEL), thread(*BARRIER, KERNEL, tid=2)], "lock"),
        ([thread(*LOCK, ("at::lock", CPU), MODEL)], "lock"),
        ([thread(*LOCK, ("op", "/me/libop.so"), ("c10::Dispatcher::callBoxed", CPU), MODEL)], "operator"),
        ([thread(("at::addmm", CPU), MODEL)], "library"),
        # The thread that called the model counts, not the first that is shown.
        ([thread(*LOCK, tid=9), thread(("at::addmm", CPU), MODEL, tid=3)], "library"),
        ([thread(("??", LIBC))], None),
    ],
)
def test_whose_wait_it_is(threads: list[ThreadStack], where: str | None) -> None:
    assert classify_hang(Backtrace(threads=tuple(threads))).where == where


@pytest.mark.parametrize(
    ("tasks", "machine", "where", "state"),
    [
        ([task(state="R")], "x86_64", None, "runs"),
        ([task(wchan="futex_wait_queue")], "x86_64", "lock", "waits for a lock"),
        ([task(call="202")], "x86_64", "lock", "waits for a lock"),
        ([task(call="98")], "aarch64", "lock", "waits for a lock"),
        ([task(call="202")], "aarch64", None, "sleeps"),
        ([task(wchan="hrtimer_nanosleep", call="230")], "x86_64", None, "sleeps"),
        # Waiting for a thread that works is no deadlock.
        ([task(wchan="futex_wait"), task(tid=2, state="R")], "x86_64", None, "runs"),
        ([], None, None, None),
    ],
)
def test_without_a_debugger(tasks: list[KernelTask], machine: str | None, where: str | None, state: str | None) -> None:
    hang = classify_hang(Backtrace(tasks=tuple(tasks), machine=machine))
    assert (hang.where, hang.state, hang.culprit) == (where, state, None)


def test_stacks_come_before_what_proc_tells() -> None:
    trace = Backtrace(tasks=(task(wchan="futex_wait"),), threads=(thread(("at::addmm", CPU), MODEL),))
    assert classify_hang(trace).where == "library"
    assert classify_hang(replace(trace, threads=())).where == "lock"
