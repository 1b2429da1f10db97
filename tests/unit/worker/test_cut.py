"""Parts of a program compute what they compute within the whole, on the inputs that they have there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from aotidoctor.model.jobs import Cut, InputsSource

torch = pytest.importorskip("torch", reason="torch is not installed")

from aotidoctor.worker.verify.cut_program import cut  # noqa: E402

pytestmark = pytest.mark.torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 4)
        self.register_buffer("shift", torch.arange(8.0))

    def forward(self, x, other):
        left, right = torch.split(x, [4, x.shape[1] - 4], dim=1)
        joined = torch.cat([right, left], dim=1) + self.shift + other["y"]
        rows = joined.reshape(x.shape[0], -1)
        return self.head(rows).relu(), rows.sum()


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    where = tmp_path_factory.mktemp("cut")
    torch.manual_seed(0)
    x, y = torch.randn(6, 8), torch.randn(6, 8)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(Model().eval(), (x, {"y": y}), dynamic_shapes=({0: rows}, {"y": {0: rows}}))
    torch.export.save(program, where / "program.pt2")
    torch.save((x, {"y": y}), where / "inputs.pt")
    return where, program, (x, {"y": y})


def part(where: Path, nodes, inputs="inputs.pt", name="part"):
    folder = where / name
    folder.mkdir(exist_ok=True)
    channel = SimpleNamespace(user_cwd=where, enter=lambda _: None, put=lambda **_: None)
    source = InputsSource(path=inputs)
    told = cut(Cut(reference="program.pt2", inputs=source, nodes=nodes, folder=str(folder)), channel)
    if "problem" in told:
        return told, None, None
    return told, torch.export.load(folder / "exported.pt2"), torch.load(folder / "sample.pt")["args"]


def test_all_of_it_is_the_program(case):
    where, program, (x, other) = case
    told, whole, sample = part(where, None)
    assert told["kept"] == len(told["operators"]) == len(told["targets"])
    results = whole.module()(*sample)
    for wanted in program.module()(x, other):
        assert any(one.shape == wanted.shape and torch.allclose(one, wanted) for one in results)


def test_each_operator_alone_computes_what_it_computes_there(case):
    where, program, (x, other) = case
    told, _, _ = part(where, None)
    flat = program.run_decompositions({})
    seen = {}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n):
            seen[n.name] = super().run_node(n)
            return seen[n.name]

    state = [flat.state_dict.get(spec.target) for spec in flat.graph_signature.input_specs if spec.target is not None]
    Recorder(flat.graph_module).run(*state, x, other["y"])
    assert len(told["operators"]) >= 6
    for name in told["operators"]:
        _, alone, sample = part(where, [name])
        result = alone.module()(*sample)
        wanted = seen[name]
        many = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        assert len(result) == len(many), name
        assert all(torch.equal(one, other_) for one, other_ in zip(result, many, strict=True)), name


def test_sizes_stay_dynamic_and_weights_stay_weights(case):
    where, _, _ = case
    told, _, _ = part(where, None)
    linear = next(name for name in told["operators"] if "linear" in name or "addmm" in name)
    _, alone, sample = part(where, [linear])
    assert len(sample) == 1
    assert sum(value.numel() for value in alone.state_dict.values()) == 8 * 4 + 4
    assert alone.module()(torch.randn(11, 8))[0].shape == (11, 4)


def test_a_call_that_breaks_the_contract_breaks_it_here(case):
    where, _, (x, other) = case
    torch.save((x.t().contiguous().t(), other), where / "transposed.pt")
    told, _, _ = part(where, None)
    first = next(name for name in told["operators"] if "split" in name)
    _, alone, sample = part(where, [first], inputs="transposed.pt")
    assert sample[0].stride() == (1, 6)
    (planned,) = [node.meta["val"] for node in alone.graph.nodes if node.op == "placeholder"]
    assert planned.stride()[1] == 1


def test_what_pytorch_does_not_reach_is_no_part(case):
    where, _, (x, _) = case
    torch.save((x, {"y": torch.randn(6, 9)}), where / "wrong.pt")
    told, _, _ = part(where, None)
    told, alone, _ = part(where, [told["operators"][-1]], inputs="wrong.pt")
    assert alone is None
    assert "does not reach" in told["problem"]
