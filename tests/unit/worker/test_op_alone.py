"""Arguments of operators, and operators called alone. Needs torch, no package and no process."""

from __future__ import annotations

import importlib.util
import itertools
import json
import mmap
from pathlib import Path

import pytest

from aotidoctor.model.jobs import OneOperator
from aotidoctor.runner.child_ending import read_channel
from aotidoctor.worker.channel import Channel

pytest.importorskip("torch")

from aotidoctor.worker.operators.op_calls import CallSaver, op_alone
from aotidoctor.worker.operators.op_schema import (
    UnsuitableArgumentError,
    build_arguments,
    describe_values,
    read_operator_call,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
NUMBERS = itertools.count()


def torch_():
    import torch

    return torch


def channel_in(folder: Path) -> Channel:
    (folder / "channel.jsonl").touch()
    return Channel(folder / "channel.jsonl", user_cwd=folder, run_dir=folder)


def operator(schema, real, fake=None, tags=()):
    """Register ``real`` under a fresh name; the name, and what keeps it registered."""
    torch = torch_()
    space = f"alone{next(NUMBERS)}"
    library = torch.library.Library(space, "DEF")
    library.define(f"op{schema}", tags=tags)
    library.impl("op", real, "CPU")
    if fake is not None:
        torch.library.register_fake(f"{space}::op", fake, lib=library)
    return f"{space}::op", library


def ask(folder, schema, real, arguments, meta=None, tags=(), **payload):
    """What the job tells of one call."""
    target, library = operator(schema, real, meta, tags)
    described, tensors = describe_values(arguments)
    torch_().save({"target": target, "arguments": described, "tensors": tensors}, folder / "call.pt")
    channel = channel_in(folder)
    op_alone(OneOperator(target=target, files=(str(folder / "call.pt"),), **payload), channel)
    del library
    result = read_channel(folder / "channel.jsonl").result
    return result, result["calls"][0]


# arguments


def node(outputs=(), **arguments):
    return {"target": "a::b", "inputs": [{"name": n, "arg": a} for n, a in arguments.items()], "outputs": list(outputs)}


NODE = node(
    [{"as_tensor": {"name": "buf1"}}],
    x={"as_tensor": {"name": "x"}},
    parts={"as_tensors": [{"name": "p"}, {"name": "q"}]},
    more={"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "r"}}]},
    bias={"as_none": True},
    rows={"as_sym_int": {"as_name": "s0"}},
    sizes={"as_sym_ints": [{"as_name": "s0"}, {"as_int": 4}]},
    alpha={"as_int": 2},
    factor={"as_float": 0.5},
    mode={"as_string": "sum"},
    flag={"as_bool": True},
    dtype={"as_scalar_type": 6},
    layout={"as_layout": 7},
    form={"as_memory_format": 2},
    device={"as_device": {"type": "cuda", "index": 0}},
)


def test_flat_arrays_become_named_arguments():
    torch = torch_()
    flat = [torch.full((1,), float(at)) for at in range(5)]
    described, tensors = read_operator_call(NODE, [7, 7, 4, 2], flat, "cpu")
    made = build_arguments(described, tensors)
    assert [float(one) for one in (made["x"], *made["parts"], made["more"][1])] == [0, 1, 2, 3]
    assert (made["more"][0], made["bias"], made["rows"], made["sizes"]) == (None, None, 7, [7, 4])
    assert (made["alpha"], made["factor"], made["mode"], made["flag"]) == (2, 0.5, "sum", True)
    assert (made["dtype"], made["layout"]) == (torch.float16, torch.strided)
    assert (made["form"], made["device"]) == (torch.channels_last, torch.device("cpu"))


def test_a_constant_number_that_is_not_passed_is_read_from_the_node():
    one = node(scale={"as_int": 5}, rows={"as_sym_int": {"as_name": "s0"}})
    assert read_operator_call(one, [5, 9], [], "cpu")[0] == {"scale": ["value", 5], "rows": ["value", 9]}
    assert read_operator_call(one, [9], [], "cpu")[0] == {"scale": ["value", 5], "rows": ["value", 9]}


def test_an_integer_result_is_no_argument():
    one = node([{"as_int": {"name": "n"}}], rows={"as_int": 5})
    assert read_operator_call(one, [5, 0], [], "cpu")[0] == {"rows": ["value", 5]}


def test_objects_of_custom_classes_are_refused():
    with pytest.raises(UnsuitableArgumentError, match="custom obj"):
        read_operator_call(node(engine={"as_custom_obj": {"name": "e"}}), [], [], "cpu")


def test_saved_arguments_keep_strides_and_what_they_share(tmp_path):
    torch = torch_()
    base = torch.arange(12.0)
    given = {"x": base.view(3, 4).t(), "rest": [base[2:5], None], "dtype": torch.bool, "n": 3, "sizes": [1, 2]}
    keeper = CallSaver(channel_in(tmp_path))
    keeper.keep(4, "a::b", lambda: describe_values(given))
    (told,) = read_channel(tmp_path / "channel.jsonl").result["captured"]
    loaded = torch.load(told["file"], weights_only=True)
    made = build_arguments(loaded["arguments"], loaded["tensors"])
    assert made["x"].stride() == (1, 4)
    made["rest"][0].zero_()
    assert made["x"].flatten().tolist().count(0.0) == 4
    assert (made["dtype"], made["n"], made["sizes"], told["index"]) == (torch.bool, 3, [1, 2], 4)


def test_the_first_call_of_a_node_is_kept_and_what_is_too_big_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("aotidoctor.worker.operators.op_calls.MOST_BYTES", 100)
    torch = torch_()
    keeper = CallSaver(channel_in(tmp_path))
    for size in (4, 8):
        keeper.keep(0, "a::b", lambda size=size: describe_values({"x": torch.ones(size)}))
    keeper.keep(1, "a::b", lambda: describe_values({"x": torch.ones(1000)[:2]}))
    result = read_channel(tmp_path / "channel.jsonl").result
    kept = [torch.load(one["file"], weights_only=False)["tensors"] for one in result["captured"]]
    assert [[tensor.numel() for tensor in tensors] for tensors in kept] == [[4]]
    assert [(one["index"], "limit" in one["reason"]) for one in result["skipped"]] == [(1, True)]


# operators that match their schema and fake kernel


def _nothing(x):
    return torch_().empty_like(x)


HEALTHY = {
    "plain": ("(Tensor x) -> Tensor", lambda x: x * 2),
    "alias declared": ("(Tensor(a) x) -> Tensor(a)", lambda x: x.view(-1)),
    "write declared": ("(Tensor(a!) x) -> ()", lambda x: (x.add_(1), None)[1]),
    "write returned": ("(Tensor(a!) x) -> Tensor(a!)", lambda x: x.add_(1)),
    "list": ("(Tensor x) -> Tensor[]", lambda x: [x[0].clone(), x[1].clone()]),
    "several": ("(Tensor x) -> (Tensor, Tensor)", lambda x: (x + 1, x[:1] * 2)),
    "optional": ("(Tensor x) -> Tensor?", lambda x: None),
    "empty": ("(Tensor x) -> Tensor", lambda x: x[:0] * 2),
    "number": ("(Tensor x) -> int", lambda x: 3),
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_healthy_operators_do_nothing_odd(kind, tmp_path):
    schema, real = HEALTHY[kind]
    result, call = ask(tmp_path, schema, real, {"x": torch_().randn(4, 4)})
    assert (call["bad"], call["writes"], call["aliases"]) == (None, [], [])
    assert call["digests"] == call["again"]
    assert (call["clean"], result["returned"]) == (True, True)
    assert all(one["nan"] == one["inf"] == 0 for one in call["outputs"])


def test_side_effects_are_no_change_of_the_arguments(tmp_path, capsys):
    counts = []
    ask(tmp_path, "(Tensor x, str text) -> Tensor", lambda x, text: print(text) or counts.append(text) or x + 1,
        {"x": torch_().ones(2), "text": "seen"}, loop=3)  # fmt: skip
    assert capsys.readouterr().out.split() == counts == ["seen"] * 5


def test_an_argument_that_shares_memory_with_one_that_is_written_to_may_change(tmp_path):
    base = torch_().zeros(8)
    schema = "(Tensor(a!) x, Tensor y) -> ()"
    _, call = ask(tmp_path, schema, lambda x, y: (x.add_(1), None)[1], {"x": base[:4], "y": base[2:]})
    assert call["writes"] == []


# operators that do not


@pytest.mark.parametrize(
    ("real", "part", "expected"),
    [
        (lambda x: (x.mul_(3), x * 2)[1], "writes", ["x"]),
        (lambda x: x, "aliases", [["result", "x"]]),
        (lambda x: x[1:], "aliases", [["result", "x"]]),
        (lambda x: None, "bad", "an undefined tensor (None)"),
        (lambda x: x.to("meta"), "bad", "result is a meta tensor, without memory"),
        (lambda x: x.to_sparse(), "bad", "result is a tensor that has no storage"),
    ],
)
def test_what_breaks_the_schema_is_seen(real, part, expected, tmp_path):
    _, call = ask(tmp_path, "(Tensor x) -> Tensor", real, {"x": torch_().ones(4)})
    assert call[part] == expected


def test_two_results_that_share_memory(tmp_path):
    def both(x):
        made = x * 2
        return made, made.view(-1)

    _, call = ask(tmp_path, "(Tensor x) -> (Tensor, Tensor)", both, {"x": torch_().ones(4)})
    assert call["aliases"] == [["result[1]", "result[0]"]]


def test_a_tensor_of_a_list_that_is_written_to(tmp_path):
    def real(parts):
        return parts[1].add_(1) * 2

    given = {"parts": [torch_().ones(2), torch_().ones(2)]}
    _, call = ask(tmp_path, "(Tensor[] parts) -> Tensor", real, given)
    assert call["writes"] == ["parts[1]"]


@pytest.mark.parametrize("schema", ["(Tensor x, Tensor w) -> Tensor", "(Tensor(a!) x, Tensor w) -> Tensor"])
def test_a_tensor_without_elements_is_not_written_to(schema, tmp_path):
    torch = torch_()
    given = {"x": torch.ones(0, 4), "w": torch.ones(4, 4)}
    _, call = ask(tmp_path, schema, lambda x, w: x @ w, given)
    assert (call["bad"], call["writes"], call["aliases"]) == (None, [], [])


def test_an_argument_that_gets_other_memory_is_written_to(tmp_path):
    def moves(x):
        x.set_(torch_().zeros(2))
        return torch_().ones(2)

    _, call = ask(tmp_path, "(Tensor x) -> Tensor", moves, {"x": torch_().ones(2)})
    assert call["writes"] == ["x"]


def test_random_results_and_where_they_come_from(tmp_path):
    torch = torch_()
    x = {"x": torch.ones(8)}
    seeded = (torch.Tag.nondeterministic_seeded,)
    result, call = ask(tmp_path, "(Tensor x) -> Tensor", torch.rand_like, x, tags=seeded)
    assert call["digests"] != call["again"]
    assert (call["generator"], result["tags"]) == (True, ["nondeterministic_seeded"])
    counts = itertools.count()
    (tmp_path / "b").mkdir()
    result, call = ask(tmp_path / "b", "(Tensor x) -> Tensor", lambda x: x + next(counts), x)
    assert call["digests"] != call["again"]
    assert (call["generator"], result["tags"]) == (False, [])


def test_nan_counts_only_from_clean_arguments(tmp_path):
    torch = torch_()
    _, call = ask(tmp_path, "(Tensor x) -> Tensor", torch.log, {"x": -torch.ones(3)})
    assert (call["clean"], call["outputs"][0]["nan"]) == (True, 3)
    (tmp_path / "b").mkdir()
    _, call = ask(tmp_path / "b", "(Tensor x) -> Tensor", torch.log, {"x": torch.tensor([float("nan")])})
    assert call["clean"] is False


def test_a_loop_notes_the_memory_after_each_call(tmp_path):
    kept = []

    def leak(x):
        # Memory of its own: the heap of a long test session has room to give.
        block = mmap.mmap(-1, 4 << 20)
        block.write(b"x" * (4 << 20))
        kept.append(block)
        return x + 1

    result, _ = ask(tmp_path, "(Tensor x) -> Tensor", leak, {"x": torch_().ones(2)}, loop=4)
    assert result["rss"][3] - result["rss"][0] >= 3 * 4 << 20


# fake kernels


def test_the_fake_kernel_promises(tmp_path):
    torch = torch_()

    def real(x, factor):
        return (x * factor).double().t()

    given = {"x": torch.ones(4, 2), "factor": 2.0}
    _, call = ask(
        tmp_path, "(Tensor x, float factor) -> Tensor", real, given, lambda x, _: torch.empty_like(x), fake=True
    )
    (told,) = call["fake"]
    assert (told["dtype"], told["shape"], told["stride"]) == ("float32", [4, 2], [2, 1])
    assert (call["outputs"][0]["dtype"], call["outputs"][0]["shape"]) == ("float64", [2, 4])


def test_a_size_that_depends_on_values_is_not_promised(tmp_path):
    torch = torch_()

    def fake(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size(), 3)

    schema = "(Tensor x) -> Tensor"
    _, call = ask(tmp_path, schema, lambda x: x[x > 0][:, None].repeat(1, 3), {"x": torch.ones(4)}, fake, fake=True)
    assert call["fake"][0]["shape"] == [None, 3]
    assert call["outputs"][0]["shape"] == [4, 3]


def test_a_missing_fake_kernel_is_told(tmp_path):
    _, call = ask(tmp_path, "(Tensor x) -> Tensor", lambda x: x + 1, {"x": torch_().ones(2)}, fake=True)
    assert "fake" not in call
    assert call["fake_missing"]


def test_opcheck_is_heard(tmp_path):
    schema = "(Tensor x) -> Tensor"
    result, _ = ask(tmp_path, schema, lambda x: x.mul_(3) * 2, {"x": torch_().ones(2)}, _nothing, opcheck=True)
    assert "mutated" in result["opcheck"]["test_schema"]
    assert result["opcheck"]["test_faketensor"] == "SUCCESS"


# without hooks


def test_the_exported_program_gives_the_arguments_too(tmp_path):
    torch = torch_()
    from aotidoctor.worker.call import ModelCall
    from aotidoctor.worker.operators.op_calls import capture_from_program

    target, _library = operator("(Tensor x, float factor, int n=3) -> Tensor", lambda x, factor, n=3: x * factor, _like)
    namespace = target.partition("::")[0]

    class Model(torch.nn.Module):
        def forward(self, x, *, scale, bias):
            once = getattr(torch.ops, namespace).op(x + 1, 2.0)
            return getattr(torch.ops, namespace).op(once * scale, 0.5) + bias

    named = {"scale": torch.full((2,), 3.0), "bias": torch.ones(2)}
    program = torch.export.export(Model(), (torch.ones(2),), named)
    torch.export.save(program, tmp_path / "exported.pt2")
    keeper = CallSaver(channel_in(tmp_path))
    reordered = dict(reversed(named.items()))
    capture_from_program(
        tmp_path / "exported.pt2", [target], ModelCall(args=(torch.ones(2),), kwargs=reordered), keeper
    )
    told = read_channel(tmp_path / "channel.jsonl").result["captured"]
    loaded = [torch.load(one["file"], weights_only=True) for one in told]
    assert [one["index"] for one in told] == [0, 1]
    assert [one["tensors"][0].tolist() for one in loaded] == [[2.0, 2.0], [12.0, 12.0]]
    assert loaded[0]["arguments"]["factor"] == ["value", 2.0]


def _like(x, factor, n=3):
    return torch_().empty_like(x)


def test_a_told_result_is_json(tmp_path):
    result, _ = ask(tmp_path, "(Tensor x) -> Tensor", lambda x: x / 0, {"x": torch_().ones(2)})
    assert json.loads(json.dumps(result)) == result
