"""What ``check`` predicts of a call, against what plain PyTorch answered to it."""

from __future__ import annotations

import json
from pathlib import Path

from foundry.cases import Kit
from foundry.place import cache_dir
from foundry.registry import FAULTS

import aotidoctor
from tests.every import every

RECORD = json.loads(Path(__file__).with_name("plain.json").read_text())
CAUSES = ("input-count", "input-kwargs", "input-nontensor", "input-tree")
# Characters of a message in the record.
LENGTH = 110
KIT = Kit(cache=cache_dir())


@every("case", [case for case in FAULTS if case.cause in CAUSES], ids=lambda case: case.name)
def test_the_error_of_a_wrong_call_is_the_one_of_pytorch(case, tmp_path):
    call = case.make(KIT, tmp_path)
    found = aotidoctor.check(call.model, inputs=call.inputs).diagnoses
    plain = RECORD[case.name]["plain"]
    if not found or plain.endswith("at inputs"):
        return  # It flattens alike, or PyTorch does not read the file.
    if plain == "ok":
        assert found[0].looked_like.startswith("no error: ")
    else:
        kind, _, message = plain.removesuffix(" at run1").partition(": ")
        assert found[0].looked_like.startswith(f"{kind}: {message}")
        assert len(message) == LENGTH or found[0].looked_like == f"{kind}: {message}"


def test_the_catalogue_has_calls_that_pytorch_refuses():
    plain = [RECORD[case.name]["plain"] for case in FAULTS if case.cause in CAUSES]
    assert sum("vector size" in one for one in plain) > 10
    assert sum("keyword mismatch" in one for one in plain) > 5
