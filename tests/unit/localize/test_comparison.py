"""The comparison as a record, from a run and from a saved report, and judged anew."""

from __future__ import annotations

import json
import math

import pytest

from aotidoctor.localize.comparison import judge_anew, read_comparison, read_weights, saved_comparison
from aotidoctor.model.case import GRID, Tolerance, Tolerances, agrees_within, parse_tolerance
from aotidoctor.model.localization import Localization, OutputComparison
from aotidoctor.reports.json.json_report import dump_json
from tests.unit.probes.outcomes import outcome

NEEDED = [[rtol, max(0.0, 0.5 - rtol)] for rtol in GRID]


def leaf(path="result", **more):
    return {
        "path": path,
        "dtype": ["float32", "float32"],
        "shape": [[2, 3], [2, 3]],
        "agrees": False,
        "what": "values",
        "verdict": "package-wrong",
        "judged": "package-wrong",
        "rtol": 1.3e-6,
        "atol": 1e-6,
        "numel": 6,
        "far": 2,
        "max_abs_diff": 0.5,
        "max_rel_diff": "inf",
        "nan": [1, 0],
        "inf": [0, 0],
        "error": 4000.0,
        "reference_error": 0.5,
        "noise": 1.0,
        "allowed": 64.0,
        "asked": False,
        "needed": NEEDED,
        **more,
    }


def compared(*leaves, **more):
    reference = {"agrees": False, "same_structure": True, "missing": [], "extra": [], "outputs": list(leaves), **more}
    return outcome("reference", result={"reference": reference})


def test_records_from_a_run():
    (item,) = read_comparison(compared(leaf()))
    assert (item.path, item.verdict, item.dtype, item.shape, item.nan) == (
        "result",
        "package-wrong",
        "float32",
        (2, 3),
        1,
    )
    assert (item.error, item.reference_error, item.allowed, item.max_rel) == (4000.0, 0.5, 64.0, math.inf)
    assert item.needed[0] == (0.0, 0.5)
    assert read_comparison(outcome()) == ()


def test_structure_is_told_by_rows_of_its_own():
    found = read_comparison(compared(leaf(), same_structure=False, missing=["result[1]"], extra=["result[2]"]))
    assert [(item.path, item.verdict) for item in found[1:]] == [("result[1]", "missing"), ("result[2]", "extra")]
    found = read_comparison(compared(leaf(), same_structure=False, containers=["(*,)", "[*]"]))
    assert (found[0].verdict, found[0].reason) == ("structure", "(*,) for [*]")


def test_a_report_keeps_all_of_it():
    found = read_comparison(compared(leaf(), leaf("result[1]", needed=[[0.0, "inf"]], reason="why")))
    document = json.loads(dump_json({"localization": Localization(comparison=found)}))
    assert saved_comparison(document) == found
    assert found[1].nan_differs


@pytest.mark.parametrize(
    "document", [{}, {"localization": None}, {"localization": {"comparison": [3, {"verdict": 1}]}}]
)
def test_reports_without_a_comparison(document):
    assert saved_comparison(document) == ()


def asked(**given):
    return Tolerances(
        **{name: tuple(Tolerance(output=out, value=value) for out, value in pairs) for name, pairs in given.items()}
    )


def test_other_tolerances_other_verdicts():
    found = read_comparison(compared(leaf("result[0]"), leaf("result[1]", judged=None, verdict="agrees")))
    assert judge_anew(found, asked()) == found
    loose = judge_anew(found, asked(atol=[(None, 0.6)]))
    assert [(item.verdict, item.far, item.asked) for item in loose] == [("agrees", 0, True)] * 2
    strict = judge_anew(found, asked(rtol=[(None, 0.1)]))
    assert [item.verdict for item in strict] == ["package-wrong", "unknown"]
    assert "no float64 run" in strict[1].reason
    one = judge_anew(found, asked(atol=[("result[0]", 0.6)]))
    assert [item.verdict for item in one] == ["agrees", "agrees"]
    assert one[1] == found[1]
    back = judge_anew(loose, asked(atol=[(None, 0.1)]))
    assert back[0].verdict == "package-wrong"


def test_no_tolerance_mends_a_dtype():
    found = read_comparison(compared(leaf(verdict="dtype", judged=None)))
    assert judge_anew(found, asked(atol=[(None, 1e9)])) == found


def test_between_points_the_smaller_rtol_counts():
    needed = [(0.0, 1.0), (0.1, 0.5), (1.0, 0.0)]
    assert agrees_within(needed, 0.1, 0.5)
    assert agrees_within(needed, 0.5, 0.5)
    assert not agrees_within(needed, 0.5, 0.4)
    assert agrees_within(needed, 5.0, 0.0)
    assert not agrees_within([], 1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "output", "value"),
    [
        ("1e-3", None, 1e-3),
        ("result[0]:0", "result[0]", 0.0),
        ("2:0.5", "2", 0.5),
        ("result['a:b']:1", "result['a:b']", 1),
    ],
)
def test_tolerances_as_text(text, output, value):
    assert parse_tolerance(text) == Tolerance(output=output, value=value)


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "result[0]:", ":"])
def test_what_is_no_tolerance(text):
    with pytest.raises(ValueError):
        parse_tolerance(text)


def test_the_last_of_equal_tolerances_counts():
    given = asked(rtol=[(None, 0.1), (None, 0.2), ("0", 0.3)], atol=[("result", 0.4)])
    assert given.of("result", 0) == (0.3, 0.4)
    assert given.of("result[1]", 1) == (0.2, 0.0)
    assert asked().of("result", 0) is None
    assert given.missing_outputs(["x"]) == ("result",)


def weight(name="w", what="values", **more):
    facts = {"name": name, "equal": False, "what": what, "differing": 16, "numel": 16, "share": 1.0}
    element = {"index": [0, 3], "observed": 4.3e37, "expected": 0.126, "bits": [30]}
    return {**facts, "elements": [element], "observed": "bfloat16", "expected": "float32", **more}


SAME = {"name": "s", "equal": True, "what": None}
FEW = {"differing": 1, "share": 0.1}


@pytest.mark.parametrize(
    ("items", "kind", "sentence"),
    [
        (
            [weight(what="flipped-bit", **FEW), SAME],
            "flipped-bit",
            "w[0, 3]: bit 30 is flipped: 4.3e+37 in the package",
        ),
        ([weight(), weight("v"), SAME], "other-checkpoint", "2 of 3 weights differ, most of their elements"),
        ([weight()], "other-checkpoint", "1 of 1 weights differ"),
        ([weight(), SAME, SAME], "stale-one", "only w differs (16 of 16 elements), 2 others are equal"),
        ([weight(what="cast"), weight("v", what="cast")], "cast", "cast from float32 to bfloat16"),
        ([weight(what="transposed"), SAME], "transposed", "w: the reference's values, transposed"),
        ([weight(what="shape", observed=[2], expected=[3])], "other-model", "w has shape [2], the reference's [3]"),
        ([weight(what="few", **FEW), SAME], "other-values", "w in 1 of 16 elements"),
        ([weight(what="flipped-bit", **FEW), weight("v")], "other-checkpoint", "2 of 2 weights"),
    ],
)
def test_what_differing_weights_look_like(items, kind, sentence):
    found = read_weights(outcome(result={"weights": items}))
    assert found.kind == kind
    assert sentence in found.sentence
    assert found.equal == items.count(SAME)


def test_weights_that_only_one_side_has_are_no_difference():
    alone = {"name": "folded", "equal": None, "what": "not in the reference"}
    found = read_weights(outcome(result={"weights": [SAME, alone]}))
    assert (found.names, found.kind, found.equal, found.alone) == ((), "", 1, ("folded",))
    assert read_weights(outcome(result={"weights": [], "weights_unread": "too big"})).unread == "too big"


def test_a_record_without_anything():
    assert OutputComparison(path="result", verdict="missing").needed == ()
