"""A reference with other weights, some of which the compiler wrote into the code: what the treatment proves."""

from __future__ import annotations

import pytest

from aotidoctor.localize.comparison import read_weights
from aotidoctor.model.jobs import InputsSource, Run
from aotidoctor.model.run import Request
from aotidoctor.probes.payload import reference_comparison

pytestmark = pytest.mark.torch


@pytest.fixture
def ask(packages, tmp_path, runner):
    import torch

    def asked(change, *, treated: bool = True) -> dict:
        program = torch.export.load(packages.exported("conv"))
        change(program)
        path = str(tmp_path / "exported.pt2")
        torch.export.save(program, path)
        payload = Run(
            package=str(packages.package("conv")), observe=("values",), reference=path,
            treatment=({"op": "load_weights", "from": path},) if treated else (),
            inputs=InputsSource(path=str(packages.sample_path("conv"))),
        )  # fmt: skip
        outcome = runner.run(Request(probe="x", job="run", payload=payload, timeout=120.0))
        return {**reference_comparison(outcome), "weights": read_weights(outcome)}

    return asked


def other_weights(program) -> None:
    for tensor in program.state_dict.values():
        tensor.data = tensor.data * 1.5 + 0.25


def written_into(packages) -> set[str]:
    import torch

    loaded = torch._inductor.aoti_load_package(str(packages.package("conv")))
    program = torch.export.load(packages.exported("conv"))
    return set(program.state_dict) - set(loaded.get_constant_fqns())


def test_values_in_the_code_go_into_the_reference_where_they_cannot_be_loaded(ask, packages) -> None:
    names = written_into(packages)
    assert names
    found = ask(other_weights)
    assert (found["agrees"], set(found["written"])) == (True, names)


def with_a_sine(program) -> None:
    import torch

    node = [node for node in program.graph.nodes if node.op == "call_function"][-1]
    with program.graph.inserting_after(node):
        after = program.graph.call_function(torch.ops.aten.sin.default, (node,))
    after.meta = dict(node.meta)
    node.replace_all_uses_with(after)
    after.args = (node,)
    spec = program.graph_signature.output_specs[0]
    spec.arg = type(spec.arg)(name=after.name)
    program.graph_module.recompile()


def test_another_operator_stays_a_difference(ask) -> None:
    def change(program) -> None:
        other_weights(program)
        with_a_sine(program)

    found = ask(change)
    assert found["agrees"] is False
    assert "written" not in found


def test_the_same_weights_need_nothing(ask) -> None:
    found = ask(lambda program: None)
    assert found["agrees"] is True
    assert "written" not in found


@pytest.mark.parametrize("change", [lambda value: value * 1.5 + 0.25, lambda value: value.flip(0)])
def test_a_constant_of_the_code_that_alone_differs_is_named(ask, packages, change) -> None:
    names = written_into(packages)

    def changed(program) -> None:
        for name in names:
            program.state_dict[name].data = change(program.state_dict[name].data)

    found = ask(changed, treated=False)
    assert found["agrees"] is False
    assert set(found["weights"].names) == names


def test_another_operator_is_no_constant(ask) -> None:
    found = ask(with_a_sine, treated=False)
    assert (found["agrees"], found["weights"].names) == (False, ())
