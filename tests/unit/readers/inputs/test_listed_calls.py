"""A list in a file: the arguments of one call, or many calls, as the call spec decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.readers.inputs import read_inputs as module
from aotidoctor.readers.inputs.read_inputs import listed_calls, read_inputs, sample_files

NO_KEYWORDS: Container[int] = Container(type="dict", children=())
ONE = Container(type="tuple", children=(Leaf(value=0),)), NO_KEYWORDS
PAIRS = (
    Container(
        type="tuple",
        children=tuple(Container(type="list", children=(Leaf(value=at), Leaf(value=at + 1))) for at in (0, 2)),
    ),
    NO_KEYWORDS,
)
TENSOR = {"tensor": {"dtype": "float32", "shape": [4]}}


def listed(folder: Path, document: object, expected) -> list[tuple[str, ...]]:
    """The paths of the tensors of each call."""
    file = folder / "calls.json"
    file.write_text(json.dumps(document))
    found = listed_calls(read_inputs(str(file), expected=expected), expected)
    return [tuple(path for path, _ in one.tensors()) for one in found]


def test_a_list_of_calls(tmp_path: Path) -> None:
    assert listed(tmp_path, [[TENSOR], [TENSOR], [TENSOR]], ONE) == [("args[0]",)] * 3


def test_a_list_with_the_structure_of_the_call_is_one(tmp_path: Path) -> None:
    assert listed(tmp_path, [[TENSOR, TENSOR], [TENSOR, TENSOR]], PAIRS) == []


@pytest.mark.parametrize("expected", [None, PAIRS])
def test_what_cannot_be_told_is_one_call(tmp_path: Path, expected) -> None:
    assert listed(tmp_path, [[TENSOR], [TENSOR]], expected) == []
    notes = read_inputs(str(tmp_path / "calls.json"), expected=expected).notes
    assert "a list of arguments: one call, not a list of calls" in notes


def test_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SAMPLES", 2)
    with pytest.raises(CannotExamineError, match="a list of 3 calls, expected at most 2"):
        listed(tmp_path, [[TENSOR]] * 3, ONE)
    for name in "abc":
        (tmp_path / f"{name}.pt").touch()
    with pytest.raises(CannotExamineError, match="4 files, expected at most 2"):
        sample_files(str(tmp_path))
