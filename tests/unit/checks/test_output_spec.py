"""The counts of outputs and inputs in the compiled code against the leaves of the call spec."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.checks import output_spec
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.artifact import ModelEntry, SharedObject, SymbolRef
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.report import Status
from aotidoctor.readers.contract.wrapper_declarations import parse_constructor
from aotidoctor.readers.contract.wrapper_text import find_sections
from tests.every import every
from tests.unit.checks.input_builders import CONSTANT, Spec, case_of, contract_of

LEAF = {"type": None, "context": None, "children_spec": []}
WRAPPERS = sorted((Path(__file__).parents[2] / "data" / "wrappers").rglob("*.wrapper.cpp"))


def spec(*children, kind="builtins.tuple"):
    return {"type": kind, "context": "null", "children_spec": list(children)}


def test_results_in_a_graph_of_the_package_are_valid_until_the_next_call():
    contract = replace(contract_of(Spec(4, device="cuda")), n_outputs=1, out_spec=json.dumps([1, LEAF]))
    for name, kinds in (("aoti_torch_cuda_graph_replay", ["cuda-graph"]), ("aoti_torch_cuda_mm_out", [])):
        compiled = SharedObject(member="a.so", size=1, format="elf", undefined=(SymbolRef(name=name),))
        model = ModelEntry(name="model", layout="pt2", members=(), shared_objects=(compiled,))
        case = case_of(contract, None)
        findings = list(output_spec.run(replace(case, model=model)))
        assert [item.kind for item in findings] == kinds
        assert all(item.severity is Severity.WARN for item in findings)


def found(n_outputs, tree, **more):
    text = tree if tree is None or isinstance(tree, str) else json.dumps([1, tree])
    contract = replace(contract_of(Spec(4)), n_outputs=n_outputs, out_spec=text, **more)
    return output_spec.CHECK.run(case_of(contract, None))


@pytest.mark.parametrize(
    ("n_outputs", "tree"),
    [
        (1, LEAF),
        (2, spec(LEAF, LEAF)),
        # None and numbers of the program are leaves, and outputs.
        (3, spec(LEAF, spec(LEAF, LEAF, kind="builtins.list"))),
        (0, spec()),
        (1, spec(LEAF, kind="zoo.Answer")),
    ],
)
def test_as_many_outputs_as_leaves(n_outputs, tree):
    assert found(n_outputs, tree) == []


@pytest.mark.parametrize(
    ("n_outputs", "tree", "leaves"), [(5, spec(LEAF), 1), (1, spec(LEAF, LEAF), 2), (1, spec(), 0)]
)
def test_another_number_of_outputs_is_proof(n_outputs, tree, leaves):
    (item,) = found(n_outputs, tree)
    assert (item.kind, item.facts["outputs"], item.facts["leaves"]) == ("outputs", n_outputs, leaves)
    assert ("fix" in item.facts) == (n_outputs > leaves)
    (told,) = diagnose([item], load_playbooks())
    assert (told.cause, told.status) == ("output-spec", Status.CONFIRMED)


@pytest.mark.parametrize(
    ("n_outputs", "tree", "why"),
    [
        (None, LEAF, "does not record its number of outputs"),
        (2, None, "does not record its out spec"),
        (2, "", "does not record its out spec"),
        (2, "[1,", "cannot be read: Expecting value"),
        (2, "[2, {}]", "cannot be read: not a call spec of protocol 1"),
    ],
)
def test_what_cannot_be_counted_is_not_checked(n_outputs, tree, why):
    answer = found(n_outputs, tree)
    assert isinstance(answer, NotChecked)
    assert why in answer.reason


def test_more_inputs_than_leaves_is_a_warning_and_fewer_are_values_baked_in():
    (item,) = found(1, LEAF, n_inputs=2)
    assert (item.kind, item.severity.value, item.facts["leaves"]) == ("inputs", "warn", 1)
    assert diagnose([item], load_playbooks()) == ()
    baked = replace(contract_of(Spec(4), CONSTANT, flag=CONSTANT), n_outputs=1, out_spec=json.dumps([1, LEAF]))
    assert output_spec.CHECK.run(case_of(baked, None)) == []


@every("path", WRAPPERS, ids=lambda path: path.stem)
def test_wrappers_of_every_release_have_as_many_outputs_as_leaves(path):
    made = parse_constructor(find_sections(path.read_text(encoding="utf-8")).constructor)
    assert made is not None
    told = found(made.n_outputs, made.out_spec)
    assert told == [] or (isinstance(told, NotChecked) and not made.out_spec)
