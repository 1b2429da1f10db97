"""Rules that the JSON of a program breaks, one edit each; programs as they were saved break none."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.model.artifact import ProgramArchive
from aotidoctor.model.evidence import Severity
from aotidoctor.program.rules import BY_CODE
from aotidoctor.program.static_verify import judge_static
from aotidoctor.program.verify_stages import violation_evidence
from aotidoctor.readers.package.exported_program import program_facts_of
from tests.artifacts.packages import write_zip
from tests.artifacts.zips import Part
from tests.unit.program.programs import judged, opened, recorded, write

NOTES = {
    "mlp": [("A06", "range", None, "args[0].shape[0]")],
    "batchnorm": [
        ("A07", "batch-norm", "batch_norm", "aten.batch_norm.default"),
        ("A08", "buffer-mutation", "add_", "norm.num_batches_tracked"),
    ],
    "constants": [
        ("A11", "constant-input", "k", "args[1]"),
        ("A11", "constant-input", "m", "args[2]"),
        ("A11", "constant-input", "mode", "args[3]"),
    ],
    "item": [],
}
# The rules of a program that an archive answers in full.
JUDGED = (
    "G01", "G03", "S01", "S02", "S03", "S04", "S05", "S06", "S07", "S08", "S09", "S10", "S11", "S12", "A01", "A04", "A06",
    "A07", "A09", "A10", "A11", "A13",
)  # fmt: skip


@pytest.mark.parametrize("name", NOTES)
def test_as_saved(name, tmp_path):
    assert sorted(judged(write(tmp_path / "e.pt2", name)), key=str) == sorted(NOTES[name], key=str)


def graph(record):
    return record["program"]["graph_module"]["graph"]


def node(record, at=0):
    return graph(record)["nodes"][at]


def specs(record, which="input_specs"):
    return record["program"]["graph_module"]["signature"][which]


def dialect(record, name="ATEN"):
    record["program"]["verifiers"] = [name]


def in_place(record):
    dialect(record)
    node(record)["target"] = "torch.ops.aten.relu_.default"


def written_by_out(record):
    dialect(record)
    node(record)["target"] = "torch.ops.aten.relu.out"
    node(record)["inputs"].append({"name": "out", "arg": {"as_tensor": {"name": "y"}}, "kind": 2})


def through_a_view(record):
    view = {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}
    into = {"name": "self", "arg": {"as_tensor": {"name": "relu"}}, "kind": 1}
    node(record).update(target="torch.ops.aten.view.default", inputs=[view])
    node(record, 1).update(target="torch.ops.aten.mul_.Tensor", inputs=[into, node(record, 1)["inputs"][1]])


def mutation(kind, field, target):
    def change(record):
        specs(record, "output_specs")[0] = {kind: {"arg": {"name": "add"}, field: target}}

    return change


def stray(record):
    mutation("buffer_mutation", "buffer_name", "gone")(record)
    specs(record, "output_specs")[0]["buffer_mutation"]["arg"]["name"] = "mul"


def module_call(record):
    call = {"inputs": [{"as_tensor": {"name": "gone"}}], "outputs": [{"as_tensor": {"name": "add"}}]}
    record["program"]["graph_module"]["module_call_graph"].append({"fqn": "body", "signature": call})


def renamed(which, at, field, name="gone"):
    def change(record):
        next(iter(specs(record)[at].values()))[field] = name

    return change


def weight(name, **changes):
    return lambda record: record["weights"]["config"][name].update(changes)


def huge(record):
    meta = record["weights"]["config"]["norm.weight"]["tensor_meta"]
    meta["sizes"] = [{"as_int": 600_000_000}]


def swapped_outputs(record):
    graph(record)["outputs"].append({"as_tensor": {"name": "mul"}})
    out = {"user_output": {"arg": {"as_tensor": {"name": "mul"}}}}
    specs(record, "output_specs").insert(0, out)


def gone(which, name):
    return lambda record: record[which]["config"].pop(name)


def tensor(record, name):
    return graph(record)["tensor_values"][name]


def number_input(record):
    graph(record)["inputs"][1] = {"as_sym_int": {"as_name": "y"}}
    specs(record)[1] = {"user_input": {"arg": {"as_sym_int": {"as_name": "y"}}}}
    graph(record)["sym_int_values"]["y"] = {
        "as_expr": {"expr_str": "Symbol('s99', integer=True)", "hint": {"as_int": 4}}
    }


CASES = [
    ("mlp", lambda r: graph(r)["tensor_values"].pop("mul"), "G01", "val-missing", "mul", "aten.mul.Tensor"),
    ("mlp", lambda r: graph(r)["tensor_values"].pop("y"), "G01", "val-missing", "y", None),
    ("item", lambda r: graph(r)["sym_int_values"].pop("item"), "G01", "val-missing", "item", "aten.item.default"),
    ("mlp", lambda r: node(r).update(target="torch.relu"), "G03", "operator-kind", "relu", "torch.relu"),
    ("mlp", lambda r: node(r).update(target="builtins.round"), "G03", "operator-kind", "relu", "builtins.round"),
    ("mlp", lambda r: node(r).update(target="_operator.iadd"), "G03", "operator-kind", "relu", "operator.iadd"),
    ("mlp", lambda r: node(r).update(target=""), "G03", "operator-kind", "relu", ""),
    ("mlp", in_place, "G04", "not-functional", "relu", "aten.relu_.default"),
    ("mlp", written_by_out, "G04", "not-functional", "relu", "aten.relu.out"),
    ("mlp", lambda r: graph(r)["inputs"].pop(), "S01", "input-count", "y", None),
    ("mlp", lambda r: specs(r).reverse(), "S02", "input-name", "x", None),
    ("batchnorm", renamed("parameter", 0, "parameter_name"), "S03", "absent", "p_norm_weight", "gone"),
    ("batchnorm", renamed("parameter", 0, "parameter_name", ""), "S03", "no-target", "p_norm_weight", None),
    ("batchnorm", gone("weights", "norm.bias"), "S03", "absent", "p_norm_bias", "norm.bias"),
    ("batchnorm", weight("norm.bias", is_param=False), "S03", "not-parameter", "p_norm_bias", "norm.bias"),
    (
        "batchnorm",
        renamed("buffer", 2, "persistent", None),
        "S04",
        "no-persistence",
        "b_norm_running_mean",
        "norm.running_mean",
    ),
    (
        "batchnorm",
        renamed("buffer", 2, "persistent", False),
        "S04",
        "unwanted",
        "b_norm_running_mean",
        "norm.running_mean",
    ),
    ("batchnorm", gone("weights", "norm.running_var"), "S04", "absent", "b_norm_running_var", "norm.running_var"),
    (
        "mlp",
        lambda r: specs(r).__setitem__(0, {"tensor_constant": {"arg": {"name": "x"}, "tensor_constant_name": "t"}}),
        "S05",
        "absent",
        "x",
        "t",
    ),
    (
        "mlp",
        lambda r: specs(r).__setitem__(0, {"custom_obj": {"arg": {"name": "x"}, "custom_obj_name": "o"}}),
        "S06",
        "absent",
        "x",
        "o",
    ),
    ("mlp", lambda r: specs(r).__setitem__(0, {"token": {}}), "S07", "not-token", None, None),
    ("mlp", lambda r: specs(r).__setitem__(0, {"other": {}}), "S08", "input-kind", None, None),
    ("mlp", lambda r: specs(r, "output_specs").clear(), "S09", "output-count", "output", None),
    ("mlp", mutation("buffer_mutation", "buffer_name", "b"), "S10", "buffer", "add", "b"),
    ("mlp", mutation("parameter_mutation", "parameter_name", "p"), "S10", "parameter", "add", "p"),
    ("mlp", mutation("user_input_mutation", "user_input_name", "z"), "S10", "user-input", "add", "z"),
    ("mlp", stray, "S10", "stray", "add", None),
    ("mlp", swapped_outputs, "S11", "output-order", "add", None),
    ("mlp", module_call, "S12", "input", "gone", "body"),
    ("mlp", lambda r: tensor(r, "y")["device"].update(type="cuda", index=0), "A01", "mixed-device", "y", None),
    ("item", lambda r: r["program"]["range_constraints"]["u0"].update(max_val=None), "A04", "no-bound", "item", "u0"),
    ("item", lambda r: r["program"]["range_constraints"].clear(), "A04", "no-bound", "item", "u0"),
    ("mlp", lambda r: r["program"]["range_constraints"]["s17"].update(min_val=65), "A06", "empty", None, "s17"),
    (
        "mlp",
        lambda r: r["program"]["range_constraints"]["s17"].update(max_val=2),
        "A06",
        "one-value",
        None,
        "args[0].shape[0]",
    ),
    (
        "mlp",
        lambda r: r["program"]["range_constraints"]["s17"].update(min_val=9),
        "A06",
        "example-outside",
        None,
        "s17",
    ),
    ("mlp", in_place, "A08", "input-mutation", "relu", "args[0]"),
    ("mlp", through_a_view, "A08", "input-mutation", "mul", "args[0]"),
    ("mlp", mutation("user_input_mutation", "user_input_name", "x"), "A08", "input-mutation", "add", "args[0]"),
    # A parameter may be called as an input is.
    ("mlp", mutation("parameter_mutation", "parameter_name", "x"), "A08", "parameter-mutation", "add", "x"),
    ("batchnorm", huge, "A09", "large-constants", None, "norm.weight"),
    ("mlp", lambda r: tensor(r, "x").update(dtype=33), "A10", "unsupported-input", "x", None),
    ("mlp", lambda r: tensor(r, "mul").update(dtype=33), "A10", "unsupported", "mul", "aten.mul.Tensor"),
    ("mlp", number_input, "A11", "symbolic-input", "y", "args[1]"),
    ("batchnorm", lambda r: r.pop("weights"), "L03", "weights", None, "weights"),
]


@pytest.mark.parametrize(("name", "change", "code", "kind", "about", "target"), CASES)
def test_one_edit(name, change, code, kind, about, target, tmp_path):
    found = judged(write(tmp_path / "e.pt2", name, change))
    assert (code, kind, about, target) in found
    # Nothing is told of this rule where it is not broken.
    assert (code, kind, about, target) not in judged(write(tmp_path / "healthy.pt2", name))


def test_training_dialect_may_write(tmp_path):
    def change(record):
        in_place(record)
        dialect(record, "TRAINING")

    assert [item[0] for item in judged(write(tmp_path / "e.pt2", "mlp", change))] == ["A06", "A08"]


def test_batch_norm_in_evaluation_is_none(tmp_path):
    def change(record):
        call = next(item for item in graph(record)["nodes"] if "batch_norm" in item["target"])
        next(item for item in call["inputs"] if item["name"] == "training")["arg"] = {"as_bool": False}

    assert "A07" not in [item[0] for item in judged(write(tmp_path / "e.pt2", "batchnorm", change))]


def test_dropout_in_training(tmp_path):
    def change(record):
        given = [
            node(record)["inputs"][0],
            {"name": "p", "arg": {"as_float": 0.5}},
            {"name": "train", "arg": {"as_bool": True}},
        ]
        node(record).update(target="torch.ops.aten.dropout.default", inputs=given)

    assert ("A07", "dropout", "relu", "aten.dropout.default") in judged(write(tmp_path / "e.pt2", "mlp", change))


def test_operators_of_submodules(tmp_path):
    """A graph that goes to a higher-order operator is judged as well, and is named."""

    def change(record):
        inner = copy.deepcopy(graph(record))
        inner["nodes"][0]["target"] = "torch.ops.lab.mix.default"
        del inner["tensor_values"]["mul"]
        given = {"name": "", "arg": {"as_graph": {"name": "true_graph_0", "graph": inner}}}
        node(record).update(target="torch.ops.higher_order.cond", inputs=[given])

    path = write(tmp_path / "e.pt2", "mlp", change)
    found = {(item.code, item.graph, item.node) for item in judge_static(opened(path)).violations}
    assert ("VERIFY-A03", "true_graph_0", "relu") in found
    assert ("VERIFY-G01", "true_graph_0", "mul") in found


def test_line_of_the_user(tmp_path):
    (found,) = [item for item in judge_static(opened(write(tmp_path / "e.pt2", "batchnorm"))).violations if item.code == "VERIFY-A07"]  # fmt: skip
    assert found.where.file == "/home/me/model.py"


def test_bytes_that_are_not_there(tmp_path):
    path = write(tmp_path / "e.pt2", "batchnorm")
    archive = opened(path)
    assert archive.weights["norm.weight"].member == "e/data/weights/weight_0"
    lost = write_zip(tmp_path / "lost.pt2", [Part(m, d) for m, d in _members(path) if not m.endswith("weight_0")])
    assert ("L03", "weights", None, "weights") in judged(lost)


def _members(path):
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ({"major": 8, "minor": 20}, True),
        ({"major": 8, "minor": 21}, False),
        ({"major": 9, "minor": 0}, False),
        ({}, False),
    ],
)
def test_formats_that_are_not_known_are_said(version, known, tmp_path):
    path = write(tmp_path / "e.pt2", "mlp", lambda r: r["program"].update(schema_version=version))
    reading = judge_static(opened(path))
    said = [item.reason for item in reading.not_checked if item.code == "VERIFY-L04" and "format" in item.reason]
    assert (said == []) is known


def test_every_rule_is_judged_or_named_as_not_checked():
    """A rule that is new is neither until somebody decides: it must not be passed over in silence."""
    named = {item.code for item in judge_static(_archive(recorded("mlp")["program"])).not_checked}
    rules = {code for code in BY_CODE if code[7] in "GSA"}
    assert rules - named == {f"VERIFY-{code}" for code in JUDGED}


def _archive(document, weights=None):
    return ProgramArchive(
        path="e.pt2",
        member="models/model.json",
        layout="pt2",
        facts=program_facts_of("model", document),
        document=document,
        weights=weights or {},
        constants={},
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.data())
def test_whatever_is_in_its_place_raises_nothing(data):
    """Any part of a real program replaced by any JSON: facts and answers come all the same."""
    record = recorded(data.draw(st.sampled_from(sorted(NOTES))))["program"]
    at, key = record, data.draw(st.sampled_from(sorted(record)))
    while isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans(), label="deeper"):
        at = at[key]
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    at[key] = data.draw(JSON)
    document = json.loads(json.dumps(record))
    if not isinstance(document.get("graph_module"), dict):
        return
    reading = judge_static(_archive(document))
    assert all(violation_evidence(item, "e.pt2").severity in Severity for item in reading.violations)


@given(JSON)
def test_any_json_is_no_program_or_an_odd_one(value):
    judge_static(
        _archive({"graph_module": value, "range_constraints": value, "verifiers": value, "schema_version": value})
    )


def test_nesting_is_bounded():
    inner: dict[str, object] = {"nodes": []}
    for _ in range(200):
        inner = {"nodes": [{"target": "torch.ops.higher_order.cond", "inputs": [{"arg": {"as_graph": {"name": "g", "graph": inner}}}]}]}  # fmt: skip
    assert judge_static(_archive({"graph_module": {"graph": inner}})).violations == ()
