"""Tracing and watching real packages: the calls of a run, the values of every kernel, and nothing changed by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from foundry.cases import Kit

from aotidoctor.localize.call_timeline import last_call, timeline
from aotidoctor.localize.watched_values import first_nonfinite, read_watched
from aotidoctor.model.case import Case, Host
from aotidoctor.model.jobs import InputsSource, Run, UserCode, Watch
from aotidoctor.model.run import CallKind, Exited, Outcome, Request, Signalled
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.runner.runner import Runner

pytestmark = pytest.mark.torch


def request_of(kit: Kit, name: str, inputs: Path | None = None, **changes) -> Request:
    source = InputsSource(path=str(inputs or kit.sample_path(name)))
    plain = Run(package=str(kit.package(name)), calls=2, observe=("outputs",), inputs=source)
    payload = replace(plain, **changes)
    return Request(probe="test", job="run", payload=payload)


def case_of(kit: Kit, name: str) -> Case:
    from aotidoctor.readers.package.read_package import read_artifact

    artifact = read_artifact(kit.package(name))
    model = artifact.model("model")
    assert model is not None
    host = Host(system="Linux", machine="x86_64", python="3.11")
    return Case(artifact=artifact, host=host, model=model, contract=read_contract(artifact, model))


def computing(outcome: Outcome, number: int) -> list[str]:
    assert outcome.trace is not None, outcome
    assert outcome.trace.problem is None, outcome.trace.problem
    return [call.symbol for call in outcome.trace.of_run(number) if call.kind is not CallKind.RUNTIME]


def test_every_kernel_and_operator_of_both_calls_is_written_down(packages: Kit, runner: Runner) -> None:
    outcome = runner.run(request_of(packages, "linear", trace=True))
    assert outcome.ending == Exited(code=0, done=True), outcome
    wanted = ["aoti_torch_cpu_addmm_out", "cpp_fused_relu_0", "aoti_torch_cpu_mm_out"]
    assert computing(outcome, 1) == wanted
    assert computing(outcome, 2) == wanted
    times = [call.at for call in outcome.trace.calls]
    assert times == sorted(times)
    assert 0 < times[-1] < 60


def test_outputs_are_those_of_an_untraced_run(packages: Kit, runner: Runner) -> None:
    plain = runner.run(request_of(packages, "linear"))
    traced = runner.run(request_of(packages, "linear", trace=True))
    assert plain.result["outputs"][0][0]["sha256"] == traced.result["outputs"][0][0]["sha256"]


def test_a_crash_loses_nothing(packages: Kit, runner: Runner, tmp_path: Path) -> None:
    setup = tmp_path / "setup_segv.py"
    setup.write_text(
        f"import os, torch\nos.environ['ZOO_MODE'] = 'segv'\ntorch.ops.load_library({str(packages.library)!r})\n"
    )
    outcome = runner.run(request_of(packages, "misbehave", code=UserCode(setup=str(setup)), trace=True))
    assert isinstance(outcome.ending, Signalled), outcome
    found = last_call(case_of(packages, "misbehave"), outcome.trace, raised=False)
    assert found is not None
    assert (found.name, found.run, found.after) == ("zoo::misbehave", 1, "cpp_fused_add_misbehave_0")


def test_the_timeline_has_names_kinds_and_states(packages: Kit, runner: Runner) -> None:
    outcome = runner.run(request_of(packages, "linear", trace=True, calls=1))
    entries = timeline(case_of(packages, "linear"), outcome.trace, ended=True)
    assert [(entry.name, entry.kind, entry.state) for entry in entries] == [
        ("aoti_torch_cpu_addmm_out", "extern", "returned"),
        ("cpp_fused_relu_0", "kernel", "returned"),
        ("aoti_torch_cpu_mm_out", "extern", "returned"),
    ]
    assert entries[0].origins == ("aten.t", "aten.addmm")
    assert entries[1].origins == ()


def watch(kit: Kit, runner: Runner, name: str, inputs: Path | None = None, *, reference: bool = False):
    spec = {"reference": str(kit.exported(name)) if reference else None}
    outcome = runner.run(request_of(kit, name, inputs, watch=spec, calls=1))
    assert outcome.ending == Exited(code=0, done=True), outcome
    found = read_watched(case_of(kit, name), outcome)
    assert found.run.problem is None
    assert found.run.notes == ()
    return found


def test_each_call_s_tensors_are_seen_by_the_user_s_names(packages: Kit, runner: Runner) -> None:
    found = watch(packages, runner, "linear")
    seen = [(call.name, [(b.role, b.name, b.shape, b.written_by) for b in call.buffers]) for call in found.calls]
    assert seen == [
        ("aoti_torch_cpu_addmm_out", [("in", "l.bias", (12,), None), ("in", "args[0]", (4, 16), None),
                                      ("in", "l.weight", (16, 12), None), ("out", "buf0", (4, 12), None)]),
        ("cpp_fused_relu_0", [("in", "buf1", (4, 12), 0), ("out", "buf1", (4, 12), None)]),
        ("aoti_torch_cpu_mm_out", [("in", "buf1", (4, 12), 1), ("in", "w", (12, 8), None), ("out", "buf2", (4, 8), None)]),
    ]  # fmt: skip
    assert [(one.path, one.writer) for one in found.run.outputs] == [("result", 2)]
    relu = found.calls[1].buffers
    assert relu[0].low is not None
    assert relu[0].low < 0
    assert relu[1].low == 0.0


def test_a_layout_change_a_convolution_and_a_mean(packages: Kit, runner: Runner) -> None:
    found = watch(packages, runner, "conv", reference=True)
    assert found.run.compared
    outs = [b for call in found.calls for b in call.buffers if b.role == "out"]
    assert [b.target for b in outs] == ["input", "weight", "weight", "aten.conv2d", "aten.mean"]
    assert all(b.agrees for b in outs)
    assert outs[-1].where is not None
    assert outs[-1].where.startswith("models.py:")


def test_the_kernel_that_makes_nan(packages: Kit, runner: Runner, tmp_path: Path) -> None:
    import torch

    x, h = packages.call("numeric")[0]
    torch.save((-x, h), tmp_path / "negative.pt")
    found = watch(packages, runner, "numeric", tmp_path / "negative.pt")
    bad = first_nonfinite(case_of(packages, "numeric"), found, nan=True)
    assert bad is not None
    assert (bad.name, bad.domain, bad.source) == ("cpp_fused_add_log_0 (aten.log)", "x <= 0", None)


def test_a_custom_operator_s_result_is_seen(packages: Kit, runner: Runner) -> None:
    request = request_of(
        packages, "misbehave", code=UserCode(custom_op_libraries=(str(packages.library),)), watch=Watch(), calls=1
    )
    found = read_watched(case_of(packages, "misbehave"), runner.run(request))
    middle = found.calls[1]
    assert (middle.name, middle.kind) == ("zoo::misbehave", "custom")
    assert [b.role for b in middle.buffers] == ["in", "out"]
    assert middle.buffers[1].high == pytest.approx(2 * middle.buffers[0].high)


def test_a_library_that_is_not_there_is_said(tmp_path: Path) -> None:
    from aotidoctor.worker.call_hooks.slots import HooksUnavailableError, find_slots

    with pytest.raises(HooksUnavailableError, match="not found among the mapped"):
        find_slots(tmp_path)
