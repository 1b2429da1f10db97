"""Maps of real packages: the calls, their time and values, and the memory that PyTorch's own profiler counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from foundry.cases import Kit

from aotidoctor.commands.map.draw_map import draw_map
from aotidoctor.model.case import Options
from aotidoctor.model.package_map import PackageMap
from aotidoctor.runner.runner import Runner

pytestmark = pytest.mark.torch


def drawn(kit: Kit, name: str, runner: Runner, *, reference: bool = False, **options: object) -> PackageMap:
    wanted = Options(reference=str(kit.exported(name)) if reference else None, **options)
    return draw_map(
        str(kit.package(name)), str(kit.sample_path(name)), wanted, environ=os.environ, runner=runner
    )  # fmt: skip


def test_an_intermediate_that_no_node_has_is_no_error_and_a_wrong_output_is_noted(
    packages: Kit, runner: Runner
) -> None:
    # The kernel of the first writes a sum, of which the program has only the mean.
    healthy = drawn(packages, "mlp", runner, reference=True)
    assert [call.error for call in healthy.calls] == [pytest.approx(0, abs=1e-5)]
    assert not any("no node" in note for note in healthy.notes)
    wrong = drawn(packages, "wronggelu", runner, reference=True)
    assert any(note.startswith("cpp_fused_add_gelu_mean_mul_0: ") and "no node" in note for note in wrong.notes)


def profiled_peak(kit: Kit, name: str) -> int:
    """The most bytes that a call of the package holds, as PyTorch's profiler counts them."""
    import torch

    args, kwargs = kit.call(name)
    function = torch._inductor.aoti_load_package(str(kit.package(name)))
    function(*args, **kwargs)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        function(*args, **kwargs)
    events = [one for one in seen.profiler.kineto_results.events() if one.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def test_a_map_has_calls_times_values_and_the_lines_of_the_program(packages: Kit, runner: Runner) -> None:
    found = drawn(packages, "linear", runner, reference=True)
    assert [call.name for call in found.calls] == [
        "aoti_torch_cpu_addmm_out", "cpp_fused_relu_0", "aoti_torch_cpu_mm_out",
    ]  # fmt: skip
    assert [call.state for call in found.calls] == ["returned"] * 3
    assert all(call.time is not None and call.time.runs == found.run.runs for call in found.calls)
    assert all(call.time.low <= call.time.seconds <= call.time.high for call in found.calls)
    assert sum(call.time.share for call in found.calls) == pytest.approx(1)
    assert 0 < found.run.stamp < 1e-6
    assert found.run.compared
    assert [call.operations for call in found.calls] == [2 * 4 * 16 * 12, None, 2 * 4 * 12 * 8]
    # Every value is that of a node, and the nodes have one line.
    assert [call.error for call in found.calls] == [pytest.approx(0, abs=1e-5)] * 3
    (line,) = found.lines
    assert line.text == "return torch.relu(self.l(x)) @ self.w"
    assert line.calls == (0, 1, 2)
    assert found.notes == ()


@pytest.mark.parametrize("name", ["linear", "mlp", "sentence", "batchnorm", "crowd", "bag"])
def test_the_peak_of_the_buffers_is_what_the_profiler_counts(name: str, packages: Kit, runner: Runner) -> None:
    found = drawn(packages, name, runner)
    assert found.peak.unknown == ()
    assert found.peak.bytes == found.peak.allocated == profiled_peak(packages, name)


def test_what_a_convolution_needs_in_between_is_measured_and_named(packages: Kit, runner: Runner) -> None:
    found = drawn(packages, "conv", runner)
    assert found.peak.allocated == profiled_peak(packages, "conv") > found.peak.bytes
    assert {"copy-before-product", "operator-memory"} <= {hint.kind for hint in found.hints}


def test_an_operator_that_fell_back_is_named(packages: Kit, runner: Runner) -> None:
    found = drawn(packages, "bag", runner)
    hint = next(hint for hint in found.hints if hint.kind == "fallback")
    assert found.calls[hint.calls[0]].name == "aoti_torch_cpu__embedding_bag"
    # The symbols of this call, and the shapes with them.
    assert found.symbols.keys() == {"s23", "s33"}
    assert {"8*s23", "16*s33"} <= {buffer.size for buffer in found.buffers}


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
def test_one_thread_is_named(packages: Kit, runner: Runner) -> None:
    found = drawn(packages, "linear", runner, threads=1)
    assert "one-thread" in {hint.kind for hint in found.hints}
    assert "one-thread" not in {hint.kind for hint in drawn(packages, "linear", runner).hints}


def test_a_run_that_dies_leaves_the_map_of_what_ran(packages: Kit, runner: Runner, tmp_path: Path) -> None:
    setup = tmp_path / "setup_segv.py"
    setup.write_text(
        f"import os, torch\nos.environ['ZOO_MODE'] = 'segv'\ntorch.ops.load_library({str(packages.library)!r})\n"
    )
    found = drawn(packages, "misbehave", runner, setup=str(setup))
    states = {call.name: call.state for call in found.calls}
    assert states["zoo::misbehave.default" if "zoo::misbehave.default" in states else "zoo::misbehave"] == "entered"
    assert "returned" in states.values()
    assert "SIGSEGV" in found.run.ended
    assert found.peak.call is not None


def test_without_inputs_nothing_is_executed(packages: Kit) -> None:
    found = draw_map(str(packages.package("bag")), None, Options(), environ=os.environ)
    assert (found.run, found.symbols) == (None, {})
    assert {buffer.size for buffer in found.buffers if buffer.role == "input"} == {"8*s23", "8*s33"}
    assert all(call.time is None and call.state is None for call in found.calls)
