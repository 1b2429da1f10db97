"""Other values in place of what one kernel wrote: of the program where it is to blame, zeros where it makes NaN."""

from __future__ import annotations

import pytest
from warm import line

from aotidoctor.model.jobs import InputsSource, Run, UserCode, Watch
from aotidoctor.model.run import Request
from aotidoctor.probes.payload import call_outputs, reference_comparison

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def runner():
    yield line().runner
    line().runner.forget()
    line().left()


@pytest.fixture(scope="module")
def changed(packages, tmp_path_factory) -> str:
    """The program of ``linear`` with tanh where the package has relu, in the middle: matrix products before and after."""
    import torch

    program = torch.export.load(packages.exported("linear"))
    node = next(node for node in program.graph.nodes if node.target is torch.ops.aten.relu.default)
    node.target = torch.ops.aten.tanh.default
    program.graph_module.recompile()
    path = tmp_path_factory.mktemp("changed") / "exported.pt2"
    torch.export.save(program, path)
    return str(path)


@pytest.fixture(scope="module")
def ask(packages, runner, changed):
    def asked(*steps: dict, watch: bool = False):
        payload = Run(
            package=str(packages.package("linear")), observe=("values",), treatment=steps,
            inputs=InputsSource(path=str(packages.sample_path("linear"))),
            watch=Watch() if watch else None, reference=None if watch else changed,
        )  # fmt: skip
        return runner.run(Request(probe="x", job="run", payload=payload, timeout=120.0))

    return asked


@pytest.fixture(scope="module")
def symbols(ask) -> list[str]:
    return [call["symbol"] for call in ask(watch=True).result["watch"]["calls"]]


def test_the_program_s_values_where_the_package_computes_something_else(ask, symbols) -> None:
    at = next(number for number, symbol in enumerate(symbols) if "relu" in symbol)
    assert 0 < at < len(symbols) - 1
    assert reference_comparison(ask())["agrees"] is False
    assert reference_comparison(ask({"op": "put_nodes", "call": at, "symbol": symbols[at]}))["agrees"] is True


def test_a_call_that_is_not_to_blame_heals_nothing(ask, symbols) -> None:
    treated = ask({"op": "put_nodes", "call": 0, "symbol": symbols[0]})
    assert treated.error is not None or reference_comparison(treated)["agrees"] is False


def test_a_call_that_was_not_made_is_no_treatment(ask, symbols) -> None:
    treated = ask({"op": "put_zeros", "call": len(symbols), "symbol": symbols[0]})
    assert treated.error.type == "TreatmentError"


def test_zeros_stand_in_for_nan_alone(ask, symbols) -> None:
    spoilt = {"op": "put_zeros", "call": 0, "symbol": symbols[0]}
    assert [value.sha256 for value in call_outputs(ask(spoilt), 0)] == [
        value.sha256 for value in call_outputs(ask(), 0)
    ]


def test_the_program_s_values_where_a_custom_operator_gives_something_else(packages, runner, tmp_path) -> None:
    """The reference has operators of PyTorch in place of the custom one, which computes something else here."""
    import torch
    from foundry.ops import python_op

    class Plain(torch.nn.Module):
        def forward(self, x):
            return ((x + 1) * 2.0) * 2 + x

    plain, setup = tmp_path / "plain.pt2", tmp_path / "setup_wrong.py"
    torch.export.save(torch.export.export(Plain(), (torch.randn(16, 16),)), plain)
    setup.write_text(python_op(body="return x * factor * 1.1"))

    def asked(*steps: dict):
        payload = Run(
            package=str(packages.package("scale")), observe=("values",), treatment=steps, reference=str(plain),
            inputs=InputsSource(path=str(packages.sample_path("scale"))), code=UserCode(setup=str(setup)),
        )  # fmt: skip
        return runner.run(Request(probe="x", job="run", payload=payload, timeout=120.0))

    assert reference_comparison(asked())["agrees"] is False
    step = {"op": "put_nodes", "call": 1, "symbol": "aoti_torch_proxy_executor_call_function"}
    assert reference_comparison(asked(step))["agrees"] is True
