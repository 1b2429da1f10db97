"""The trial of real models: what it lists without importing their libraries, and how its results are counted."""

from __future__ import annotations

import json

from tests.trial import table, trial


def line(judged, *, causes=(), command="run", case="x", model="m", status="suspected", confidence=0.95, **more):
    said = [{"cause": "c", "status": status, "confidence": confidence, "subject": None}] if causes else []
    return {
        "model": model, "command": command, "case": case, "judged": judged, "causes": list(causes), "said": said,
        "exit": 0, "verdict": "healthy", "traits": ["vision"], "commit": "abc", **more,
    }  # fmt: skip


def test_families_cover_what_they_have_to():
    known = trial.names()
    traits = {trait for _, found, _ in known.values() for trait in found}
    assert len(known) >= 40
    assert sum("big" in found for _, found, _ in known.values()) >= 6
    assert traits >= {
        "encoder", "decoder", "cache", "encoder-decoder", "vision", "detection", "segmentation", "diffusion", "speech",
        "state-space", "moe", "recommender", "ragged", "quantised", "half", "masks", "mutated", "tied", "output-class",
    }  # fmt: skip


def test_a_row_counts_each_question_once():
    lines = [
        line("healthy", case="a"),
        line("healthy", case="b", model="n"),
        line("false alarm", case="c"),
        line("ended badly", case="d"),
        line("sample is not healthy in plain PyTorch", case="e"),
        line("right", causes="c", case="f", status="confirmed"),
        line("right", causes="c", case="g"),
        line("wrong", causes="d", case="h"),
        line("wrong subject", causes="c", case="i", confidence=0.8),
        line("missed", causes="c", case="j"),
        line("harmless", causes="c", case="k"),
        line("not for check", causes="c", case="l"),
    ]
    assert table.Row("run", tuple(lines)).cells() == {
        "command": "run", "architectures": 2, "healthy": 4, "alarms": 2, "faults": 5, "right at rank 1, with subject": "2 (40.0%)",
        "wrong": 2, "wrong above 80 %": 1, "no cause": 1, "confirmed": 1, "harmless": 1, "only values tell": 1,
    }  # fmt: skip


def test_the_last_answer_of_a_question_counts(tmp_path):
    path = tmp_path / "results.jsonl"
    old, new = line("wrong", causes="d"), line("right", causes="d", commit="def")
    path.write_text(f"{json.dumps(old)}\n{json.dumps(new)}\n", encoding="utf-8")
    text = table.render(path)
    assert "run | 1 | 0 | 0 | 1 | 1 (100.0%) | 0" in text
    assert "Commits: def (1)" in text
    assert table.done(path, again="misses") == {("m", "run", "x")}
    assert table.done(path, again="commit", commit="abc") == set()


def test_a_package_that_python_refuses_is_the_fault_of_every_case():
    told = "ValueError: treespec.unflatten(leaves): `leaves` has length 5 but the spec refers to a pytree that holds 1 items"
    good = {"name": "sample0", "causes": [], "subjects": [], "plain": {"package": {"ending": "error", "text": told}}}
    bad = {"name": "int32", "causes": ["input-dtype"], "subjects": ["args[0]"]}
    assert trial.refused([good, bad])
    assert not trial.refused([{**good, "plain": {"package": {"ending": "ok"}}}, good])
    asked = trial.refused_too([good, bad])
    assert [(case["causes"], case["subjects"]) for case in asked] == [
        (["output-spec"], []),
        (["output-spec", "input-dtype"], []),
    ]
