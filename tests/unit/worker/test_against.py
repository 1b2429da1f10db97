"""Outputs, side effects and weights of a package against those of its reference."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from aotidoctor.model.jobs import Run

pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.model.case import GRID, Tolerance, Tolerances, agrees_within
from aotidoctor.worker import run_reference
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.run_reference import check_reference, compare_aliases, compare_mutation
from aotidoctor.worker.tensors import compare_outputs, needed_atol, settle_verdicts
from aotidoctor.worker.weights import compare_weights

X = torch.linspace(-2, 2, 12).reshape(3, 4)


def compared(ours, theirs, **tolerances):
    given = {
        name: tuple(Tolerance(output=output, value=value) for output, value in pairs)
        for name, pairs in tolerances.items()
    }
    facts = compare_outputs(ours, theirs, Tolerances(**given))
    settle_verdicts(facts)
    return facts


def leaf(ours, theirs, **tolerances):
    return compared(ours, theirs, **tolerances)["outputs"][0]


def test_equal_outputs_agree():
    facts = compared([X, {"a": X + 1}], [X.clone(), {"a": X + 1}])
    assert facts["agrees"] is True
    assert [item["path"] for item in facts["outputs"]] == ["result[0]", "result[1]['a']"]
    assert facts["outputs"][0]["needed"] == [[rtol, 0.0] for rtol in GRID]


def test_a_few_roundings_agree_and_more_are_not_judged_here():
    assert leaf(X * (1 + 1e-6), X)["verdict"] == "agrees"
    # Within what two correct programs may need: agrees where no float64 run says otherwise.
    assert leaf(X * (1 + 5e-5), X)["verdict"] == "agrees"
    found = leaf(X * 1.01, X)
    assert (found["verdict"], found["far"]) == ("unknown", 12)


def test_one_huge_element_hides_nothing():
    masked = torch.tensor([1.0, 2.0, -1e9])
    assert leaf(masked * torch.tensor([1.5, 1.0, 1.0]), masked)["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("ours", "theirs", "what"),
    [
        (X.double(), X, "dtype"),
        (X[:2], X, "shape"),
        (X.flatten(), X, "shape"),
        ("a", X, "type"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "unknown"),
        (torch.tensor([math.nan, 1]), torch.tensor([1.0, 1]), "unknown"),
        (torch.tensor([math.inf, 1]), torch.tensor([-math.inf, 1]), "unknown"),
    ],
)
def test_what_differs(ours, theirs, what):
    facts = compared(ours, theirs)
    assert facts["agrees"] is False
    assert facts["outputs"][0]["verdict"] == what


def test_nan_and_inf_at_the_same_places_agree():
    odd = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert leaf(odd, odd.clone())["verdict"] == "agrees"


def test_a_number_may_come_as_a_tensor():
    assert leaf(torch.tensor(3), 3)["verdict"] == "agrees"
    assert leaf(torch.tensor(4), 3)["verdict"] == "unknown"
    assert leaf(torch.tensor([3]), 3)["verdict"] == "type"


def test_structure():
    facts = compared([X], [X, X])
    assert (facts["agrees"], facts["missing"], facts["extra"]) == (False, ["result[1]"], [])
    swapped = compared((X, X), [X, X])
    assert swapped["agrees"] is False
    assert "tuple" in swapped["containers"][0]
    assert "list" in swapped["containers"][1]


def test_tolerances_of_one_output_go_before_those_of_all():
    ours, theirs = [X * 1.01, X * 1.01], [X, X]
    found = compared(ours, theirs, rtol=[(None, 0.1), ("result[1]", 0.001)])
    assert [item["verdict"] for item in found["outputs"]] == ["agrees", "unknown"]
    found = compared(ours, theirs, rtol=[("0", 0.1)], atol=[("7", 1.0)])
    assert [item["verdict"] for item in found["outputs"]] == ["agrees", "unknown"]
    assert found["unused_tolerances"] == ["7"]


def test_an_own_tolerance_may_be_strict():
    assert leaf(X * (1 + 1e-6), X, rtol=[(None, 0.0)])["verdict"] == "unknown"


floats = st.floats(-1e3, 1e3, width=32)


@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=8), st.floats(0, 2), st.floats(0, 100))
def test_the_grid_is_on_the_strict_side(pairs, rtol, atol):
    left, right = (torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True))
    needed = [(point, needed_atol(left, right, point)) for point in GRID]
    true = needed_atol(left, right, rtol) <= atol
    if agrees_within(needed, rtol, atol):
        assert true
    if rtol in GRID:
        assert agrees_within(needed, rtol, atol) is true


def call(*args):
    return ModelCall(args=args, kwargs={})


def test_mutation_is_compared():
    before = [X.clone() for _ in range(5)]
    ours, theirs = call(X, X + 1, X, X + 1, X + 1), call(X, X + 1, X + 1, X, X + 2)
    found = compare_mutation(call(*before).digests(), ours, theirs)
    assert [(item["path"], item["package"], item["reference"], item["agrees"]) for item in found] == [
        ("args[1]", True, True, True),
        ("args[2]", False, True, False),
        ("args[3]", True, False, False),
        ("args[4]", True, True, False),
    ]


def test_aliases_are_compared():
    mine, other = X.clone(), X.clone()
    same = compare_aliases([mine.t()], call(mine), [other.t()], call(other))
    assert same == []
    found = compare_aliases([mine.view(-1), X], call(mine), [other.clone(), X], call(other))
    assert found == [{"path": "result[0]", "package": ["args[0]"], "reference": []}]


def weights(change):
    theirs = {"a": torch.linspace(1, 2, 16).reshape(4, 4), "b": torch.linspace(-1, 1, 20), "n": torch.arange(4)}
    ours = {name: value.clone() for name, value in theirs.items()}
    change(ours, theirs)
    return {item["name"]: item for item in compare_weights(ours, theirs)}


def test_a_flipped_bit_is_named():
    def flip(ours, _):
        ours["a"].view(torch.int32)[1, 2] ^= 1 << 30

    found = weights(flip)
    assert (found["a"]["what"], found["a"]["differing"], found["b"]["equal"]) == ("flipped-bit", 1, True)
    element = found["a"]["elements"][0]
    assert (element["index"], element["bits"]) == ([1, 2], [30])
    assert element["expected"] == pytest.approx(1.4)
    assert math.isnan(element["observed"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool])
def test_bits_of_every_width(dtype):
    theirs = torch.zeros(32).to(dtype)
    ours = theirs.clone()
    ours.view(torch.uint8)[1 if dtype is torch.bool else 0] ^= 1
    item = compare_weights({"w": ours}, {"w": theirs})[0]
    assert (item["what"], item["elements"][0]["bits"]) == ("flipped-bit", [0])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda ours, _: ours.update(a=ours["a"] * 1.5), "values"),
        (lambda ours, _: ours["a"][0].mul_(1.5), "few"),
        (lambda ours, _: ours.update(a=ours["a"].t().contiguous()), "transposed"),
        (lambda ours, _: ours.update(a=ours["a"].reshape(2, 8)), "reshaped"),
        (lambda ours, _: ours.update(a=ours["a"][:2]), "shape"),
        (lambda ours, _: ours.update(a=ours["a"].half()), "cast"),
        (lambda ours, _: ours.update(a=ours["a"].half() + 1), "dtype"),
        (lambda ours, _: ours.pop("a"), "not in the package"),
        (lambda _, theirs: theirs.pop("a"), "not in the reference"),
        (lambda ours, theirs: (ours["a"].zero_().neg_(), theirs["a"].zero_()), None),
    ],
)
def test_how_weights_differ(change, what):
    assert weights(change)["a"]["what"] == what


class Channel:
    """Gathers what a job says; the user's folder is ``user_cwd``."""

    def __init__(self, folder):
        self.user_cwd, self.said, self.stages = folder, {}, []

    def enter(self, stage):
        self.stages.append(stage)

    def put(self, **facts):
        self.said |= facts


class Package:
    """A loaded package whose constants are ``held``."""

    def __init__(self, held):
        self.loader = self
        self.held = held
        self.directory = Path("/no/such/folder")
        self.given = held

    def extract_constants_map(self, _):
        return self.held

    def get_constant_fqns(self):
        return list(self.held)


class Counting(torch.nn.Module):
    """Counts its calls, and gives the count."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.w = torch.nn.Parameter(torch.ones(4) * 3)

    def forward(self, x):
        self.count.add_(1)
        return torch.exp(x * self.w) + self.count, self.count


def checked(tmp_path, ours, held=None, *, flipped=None, **payload):
    """``flipped``: a bit of this weight of the program is flipped in the file."""
    program = torch.export.export(Counting(), (X,))
    torch.export.save(program, tmp_path / "exported.pt2")
    if flipped is not None:
        bits = program.state_dict[flipped].detach().numpy().tobytes()
        whole = (tmp_path / "exported.pt2").read_bytes()
        at = whole.index(bits, whole.index(b"data/weights/"))
        (tmp_path / "exported.pt2").write_bytes(whole[:at] + bytes([bits[0] ^ 64]) + whole[at + 1 :])
    channel = Channel(tmp_path)
    held = {"w": torch.ones(4) * 3, "count": torch.zeros(1)} if held is None else held
    result = check_reference(
        Run(reference="exported.pt2", **payload), Package(held), call(X.clone()), (call(X.clone()), ours), channel
    )
    return result, channel


def test_a_program_with_state_is_judged_from_its_beginning(tmp_path):
    # Were the state that the eager run left behind the beginning of the float64 run, all would be off by one.
    ours = (torch.exp(X * 3) * 1.001 + 1, torch.ones(1))
    result, channel = checked(tmp_path, ours)
    first, count = result["reference"]["outputs"]
    assert (first["verdict"], count["verdict"]) == ("package-wrong", "agrees")
    assert first["reference_error"] < 8
    assert channel.stages == ["float64"]
    assert channel.said["reference"]["float64"]["problem"] == "it did not finish"


def test_float64_is_only_asked_where_it_can_matter(tmp_path):
    right = (torch.exp(X * 3) + 1, torch.ones(1))
    result, channel = checked(tmp_path, right)
    assert (result["reference"]["agrees"], channel.stages) == (True, [])
    assert "error" not in result["reference"]["outputs"][0]
    near = (right[0] * (1 + 3e-7), right[1])
    result, channel = checked(tmp_path, near, measure=True)
    assert (result["reference"]["agrees"], channel.stages) == (True, ["float64"])
    assert 0 < result["reference"]["outputs"][0]["error"] < 8


def test_other_weights_are_explanation_enough(tmp_path):
    held = {"w": torch.ones(4) * 4, "count": torch.zeros(1)}
    result, channel = checked(tmp_path, (torch.exp(X * 4) + 1, torch.ones(1)), held)
    assert channel.stages == []
    assert "different weights" in result["reference"]["float64"]["problem"]
    assert [item["equal"] for item in result["weights"]] == [False, True]


@pytest.mark.parametrize("held", [{"w": torch.ones(4) * 3, "count": torch.zeros(1)}, {"count": torch.zeros(1)}])
def test_damage_of_a_large_program_is_found_where_something_differs(tmp_path, monkeypatch, held):
    """Its checksums are not compared before that: by weights that differ, or by outputs alone."""
    monkeypatch.setattr(run_reference, "QUICK_CRC_LIMIT", 0)
    right = (torch.exp(X * 3) + 1, torch.ones(1))
    result, _ = checked(tmp_path, right, held, flipped="w")
    assert list(result["reference"]) == ["unavailable"]
    assert "exported.pt2 is damaged: the data of " in result["reference"]["unavailable"]
    assert checked(tmp_path, right, held)[0]["reference"]["agrees"] is True


def test_payload_tolerances(tmp_path):
    ours = (torch.exp(X * 3) * 1.001 + 1, torch.ones(1))
    result, _ = checked(tmp_path, ours, tolerances=Tolerances(rtol=(Tolerance(output=None, value=0.01),)))
    assert result["reference"]["outputs"][0]["verdict"] == "agrees"
