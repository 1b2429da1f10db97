"""Other values in place of what one kernel wrote: of the program where it is to blame, zeros where it makes NaN."""

from __future__ import annotations

import os

import pytest

from aotidoctor.model.jobs import InputsSource, Run, Watch
from aotidoctor.model.run import Request
from aotidoctor.probes.results import outputs, reference
from aotidoctor.runner import Runner

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def runner():
    with Runner(environ=dict(os.environ)) as made:
        yield made


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
    assert reference(ask())["agrees"] is False
    assert reference(ask({"op": "put_nodes", "call": at, "symbol": symbols[at]}))["agrees"] is True


def test_a_call_that_is_not_to_blame_heals_nothing(ask, symbols) -> None:
    treated = ask({"op": "put_nodes", "call": 0, "symbol": symbols[0]})
    assert treated.error is not None or reference(treated)["agrees"] is False


def test_a_call_that_was_not_made_is_no_treatment(ask, symbols) -> None:
    treated = ask({"op": "put_zeros", "call": len(symbols), "symbol": symbols[0]})
    assert treated.error.type == "TreatmentError"


def test_zeros_stand_in_for_nan_alone(ask, symbols) -> None:
    spoilt = {"op": "put_zeros", "call": 0, "symbol": symbols[0]}
    assert [value.digest for value in outputs(ask(spoilt), 0)] == [value.digest for value in outputs(ask(), 0)]
